//! The pods' servers, which answer every request with their name and the client address that they
//! saw.
//!
//! The servers speak HTTP on TCP ports, over TLS if the port is a TLS port. On UDP ports they echo
//! the datagram and add their name. One thread serves all of them, since a socket stays in the
//! namespace in which it was opened.

mod connection;
mod serve;

use std::collections::BTreeSet;
use std::io::{self, PipeReader};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use socket2::{Domain, Socket, Type};
use uturn_clouds::local_addresses;
use uturn_clouds::targets;
use uturn_model::lb::Listener;
use uturn_model::pod::ContainerPort;
use uturn_model::{Cluster, Endpoint, Family, Pod, Port, Protocol};

use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::run::worker::Worker;
use crate::{LabError, Plan};

/// The header field of a plain-text answer on a TLS port.
pub(crate) const WANTS_TLS: &str = "X-Speaks: TLS";

/// A server's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) by: String,
    pub(crate) source: IpAddr,
    pub(crate) forwarded_for: Option<String>,
}

impl Answer {
    fn new(name: &str, peer: SocketAddr, forwarded_for: Option<String>) -> Self {
        Self { by: name.to_owned(), source: peer.ip().to_canonical(), forwarded_for }
    }

    fn to_text(&self) -> String {
        let forwarded_for = self.forwarded_for.as_deref().unwrap_or_default();
        format!("by {}\nsource {}\nforwarded-for {forwarded_for}\n", self.by, self.source)
    }

    /// Reads an answer that a server wrote.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let by = lines.next()?.strip_prefix("by ")?.to_owned();
        let source = lines.next()?.strip_prefix("source ")?.parse().ok()?;
        let forwarded_for = lines.next()?.strip_prefix("forwarded-for ")?;
        let forwarded_for = (!forwarded_for.is_empty()).then(|| forwarded_for.to_owned());
        Some(Self { by, source, forwarded_for })
    }
}

/// All servers of a lab. They stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Servers {
    _worker: Worker,
}

/// A port that is served.
struct Server {
    socket: ServedSocket,
    name: String,
}

enum ServedSocket {
    /// A TCP port, with the TLS configuration if it is a TLS port, and whether connections have to
    /// begin with a PROXY header.
    Tcp(TcpListener, Option<Arc<ServerConfig>>, bool),
    Udp(UdpSocket),
}

impl Servers {
    /// Starts a server on every port of every pod that was built, except for pods that run
    /// programs of their own (`has_own`).
    pub(crate) fn start(
        plan: &Plan<'_>,
        lab_cluster: &LabCluster,
        has_own: impl Fn(&Pod) -> bool,
    ) -> Result<Self, LabError> {
        let cluster = plan.cluster;
        let headers = behind_headers(plan);
        let mut servers = Vec::new();
        let mut certificate = None;
        for pod in cluster.pods.values().filter(|pod| pod.is_alive() && !has_own(pod)) {
            let Some(space) = lab_cluster.of_pod(pod) else { continue };
            servers.extend(open_all(cluster, pod, space, &headers, &mut certificate)?);
        }
        Self::serve(servers)
    }

    /// Starts a server on every port of a pod in this namespace.
    pub(crate) fn of_pod(
        cluster: &Cluster,
        pod: &Pod,
        space: &Namespace,
    ) -> Result<Self, LabError> {
        Self::serve(open_all(cluster, pod, space, &BTreeSet::new(), &mut None)?)
    }

    fn serve(servers: Vec<Server>) -> Result<Self, LabError> {
        let serve = move |end: PipeReader| serve::serve(&servers, &end);
        let worker = Worker::start("servers", serve).during("start the servers")?;
        Ok(Self { _worker: worker })
    }
}

/// Returns the endpoints behind load balancers that send a PROXY header. Their servers expect that
/// header, as otherwise no client outside would ever be answered.
fn behind_headers(plan: &Plan<'_>) -> BTreeSet<SocketAddr> {
    let mut all = BTreeSet::new();
    for lb in plan.load_balancers {
        let sends = |listener: &&Listener| {
            listener.profile.proxy_header.is_some()
                && listener.protocol.transport() == Protocol::Tcp
        };
        for listener in lb.listeners.iter().filter(sends) {
            for rule in &listener.rules {
                let Some(service) = plan.cluster.services.get(&rule.service) else { continue };
                let ports = service.ports.iter().filter(|port| port.port == listener.port);
                for port in ports.filter(|port| port.protocol == Protocol::Tcp) {
                    let family = Family::of(lb.vip);
                    let ends = targets::pods(plan.cluster, service, port, family, |_| Some(1));
                    all.extend(ends.into_iter().map(|end| end.address));
                }
            }
        }
    }
    all
}

/// Opens the ports of a pod's servers. Makes the certificate if it is needed and does not exist
/// yet.
fn open_all(
    cluster: &Cluster,
    pod: &Pod,
    space: &Namespace,
    headers: &BTreeSet<SocketAddr>,
    certificate: &mut Option<Arc<ServerConfig>>,
) -> Result<Vec<Server>, LabError> {
    let doing = format!("start the servers of pod {}", pod.name);
    let ports = ports(cluster, pod);
    if certificate.is_none() && ports.iter().any(|port| port.speaks_tls) {
        *certificate = Some(self_signed().during(&doing)?);
    }
    // A program in a node's network listens at all addresses of the node.
    let node = pod.node.as_ref().filter(|_| pod.spec.host_network);
    let node = node.and_then(|name| cluster.nodes.get(name));
    let held = node.map_or_else(Vec::new, |node| local_addresses::on(cluster, node));
    let addresses = Family::BOTH.into_iter().filter_map(|family| pod.address(family)).chain(held);
    let places: Vec<(IpAddr, Served)> = addresses
        .flat_map(|ip| ports.iter().map(move |port| (ip, *port)))
        .filter(|(_, port)| port.protocol != Protocol::Sctp)
        .collect();
    let sockets = space
        .run(|| {
            refuse_without_limit()?;
            places
                .iter()
                .map(|(ip, port)| open(*ip, *port, certificate.as_ref(), headers))
                .collect::<io::Result<Vec<_>>>()
        })
        .during(&doing)?;
    let name = format!("pod {}", pod.name);
    Ok(sockets.into_iter().map(|socket| Server { socket, name: name.clone() }).collect())
}

/// A port, and whether it is a TLS port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Served {
    protocol: Protocol,
    port: Port,
    speaks_tls: bool,
}

impl Served {
    fn new(protocol: Protocol, port: Port, name: Option<&str>) -> Self {
        let is_usual = matches!(port.number(), 443 | 6443 | 8443);
        let speaks_tls = is_usual || name.is_some_and(|name| name.contains("https"));
        Self { protocol, port, speaks_tls: speaks_tls && protocol == Protocol::Tcp }
    }
}

/// Returns the ports of a pod's servers: those that its containers declare and those that its
/// probes use or, if it declares none, those that Services send to.
fn ports(cluster: &Cluster, pod: &Pod) -> Vec<Served> {
    let declared =
        |port: &ContainerPort| Served::new(port.protocol, port.port, port.name.as_deref());
    let mut ports: Vec<Served> = pod.spec.ports().map(declared).collect();
    if !ports.is_empty() {
        let probed = pod.spec.containers.iter().flat_map(|container| &container.probed);
        let probed = probed.filter(|port| pod.spec.ports().all(|declared| declared.port != **port));
        ports.extend(probed.map(|port| Served::new(Protocol::Tcp, *port, None)));
    } else {
        let slices = cluster.endpoints.values().flatten();
        // Pods of the host's network share addresses.
        let is_its = |endpoint: &Endpoint| match &endpoint.pod {
            Some(name) => *name == pod.name,
            None => !pod.spec.host_network && pod.ips.contains(&endpoint.address),
        };
        let its = slices.filter(|slice| slice.endpoints.iter().any(is_its));
        let expected = its.flat_map(|slice| &slice.ports);
        ports.extend(expected.map(|port| Served::new(port.protocol, port.port, None)));
    }
    ports.sort_unstable();
    ports.dedup_by_key(|port| (port.protocol, port.port));
    ports
}

fn open(
    ip: IpAddr,
    at: Served,
    certificate: Option<&Arc<ServerConfig>>,
    headers: &BTreeSet<SocketAddr>,
) -> io::Result<ServedSocket> {
    let address = SocketAddr::new(ip, at.port.number());
    let kind = if at.protocol == Protocol::Udp { Type::DGRAM } else { Type::STREAM };
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    socket.set_nonblocking(true)?;
    if at.protocol == Protocol::Udp {
        socket.bind(&address.into())?;
        return Ok(ServedSocket::Udp(socket.into()));
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    let tls = certificate.filter(|_| at.speaks_tls).cloned();
    Ok(ServedSocket::Tcp(socket.into(), tls, headers.contains(&address)))
}

/// Turns off the rate limits of ICMP errors. One client stands for many: with the default limits
/// only its first datagrams would get an ICMP error.
fn refuse_without_limit() -> io::Result<()> {
    Namespace::set_sysctl("net/ipv4/icmp_ratemask", "0")?;
    match Namespace::set_sysctl("net/ipv6/icmp/ratelimit", "0") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        set => set,
    }
}

/// Returns a self-signed certificate for this run.
fn self_signed() -> io::Result<Arc<ServerConfig>> {
    let made = rcgen::generate_simple_self_signed(["pod".to_owned()]).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.into()], key)
        .map_err(io::Error::other)?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_can_be_read_back() {
        for forwarded_for in [None, Some("10.1.1.10, 10.0.0.1".to_owned())] {
            let by = "pod shop/front-1".to_owned();
            let answer = Answer { by, source: "10.1.1.10".parse().unwrap(), forwarded_for };
            assert_eq!(Answer::from_text(&answer.to_text()), Some(answer));
        }
        assert_eq!(Answer::from_text("hello"), None);
    }

    #[test]
    fn a_port_says_whether_tls_is_spoken() {
        let speaks = |protocol, port, name: Option<&str>| {
            Served::new(protocol, Port::new(port).unwrap(), name).speaks_tls
        };
        assert!(speaks(Protocol::Tcp, 8443, None));
        assert!(speaks(Protocol::Tcp, 8080, Some("web-https")));
        assert!(!speaks(Protocol::Tcp, 8080, Some("http")));
        assert!(!speaks(Protocol::Udp, 443, Some("https")));
    }
}
