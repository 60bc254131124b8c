//! Resolves a flow's client and destination to peers and addresses.

pub(crate) mod misled;
mod protocol;
mod zones;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use uturn_clouds::cloud::Owner;
use uturn_clouds::controller::{self, BalancerCall};
use uturn_model::lb::Layer;
use uturn_model::{Client, Cluster, Destination, Family, Flow, Pod, Port, Protocol};
use uturn_netfilter::{Entry, Packet};

use crate::engine::Engine;
use crate::error::WalkError;
use crate::names::{self, DnsClient, Resolution};
use crate::packet::{Peer, Request};
use protocol::ports_named;
pub use protocol::usual_protocol;

/// The source port of clients. Nothing else uses it.
pub(crate) const CLIENT_PORT: u16 = 40_000;

/// A resolved destination: its addresses and the request.
pub struct ResolvedTarget {
    /// The addresses, equally likely; none if a name does not resolve.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) request: Request,
    pub(crate) resolved: Option<Resolution>,
}

impl ResolvedTarget {
    /// Makes a target of an address and the request that is sent to it.
    pub fn at(address: SocketAddr, request: Request) -> Self {
        Self { addresses: vec![address], request, resolved: None }
    }

    /// Returns the addresses, which are equally likely; none if a name does not resolve.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns whether the target is a name that certainly has no address: every name server that the
    /// client asks says so, and nothing of that is assumed.
    pub fn is_name_lost(&self) -> bool {
        self.resolved.as_ref().is_some_and(|found| {
            found.addresses.is_empty()
                && found.doubt.is_none()
                && found.balancer.is_none()
                && found.supposed.is_empty()
        })
    }

    /// Returns why the target is a name without an address, with the condition under which that is
    /// certain: the library that the client resolves it with.
    pub fn lost_name(&self) -> Option<(&str, Option<String>)> {
        let found = self.resolved.as_ref()?;
        let others = found.supposed.iter().filter(|own| !names::is_about_library(own)).count();
        let is_lost = found.addresses.is_empty()
            && found.doubt.is_none()
            && found.balancer.is_none()
            && others == 0;
        let why = &found.steps.last().filter(|_| is_lost)?.why;
        let library = found.supposed.first();
        Some((why, library.map(|own| format!("{} is {}", own.subject, own.assumed))))
    }

    /// Returns the request, beyond the packet.
    pub fn request(&self) -> &Request {
        &self.request
    }
}

/// Returns the peers that a client of a flow stands for.
pub(crate) fn clients<'e>(
    cluster: &'e Cluster,
    client: &Client,
) -> Result<Vec<Peer<'e>>, WalkError> {
    match client {
        Client::Pod(name) => {
            let pod = cluster.pods.get(name).ok_or_else(|| WalkError::unknown(client))?;
            party(cluster, pod).map(|party| vec![party])
        }
        Client::Workload(kind, name) => {
            let workload = cluster
                .workloads
                .get(&(*kind, name.clone()))
                .ok_or_else(|| WalkError::unknown(client))?;
            let parties: Vec<Peer<'e>> = cluster
                .pods
                .values()
                .filter(|pod| pod.name.namespace == name.namespace && pod.is_alive())
                .filter(|pod| workload.selector.matches(&pod.spec.labels))
                .filter_map(|pod| party(cluster, pod).ok())
                .collect();
            if parties.is_empty() {
                return Err(WalkError::NoPods(client.to_string()));
            }
            Ok(parties)
        }
        Client::Node(name) => {
            let node = cluster.nodes.get(name).ok_or_else(|| WalkError::unknown(client))?;
            Ok(vec![Peer::Host(node, None)])
        }
        Client::Outside(_) => Ok(vec![Peer::Outside]),
    }
}

/// Returns a pod as a peer that sends and receives packets.
fn party<'e>(cluster: &'e Cluster, pod: &'e Pod) -> Result<Peer<'e>, WalkError> {
    let node = pod
        .node
        .as_ref()
        .and_then(|name| cluster.nodes.get(name))
        .ok_or_else(|| WalkError::NotPlaced(pod.name.clone()))?;
    Ok(if pod.spec.host_network { Peer::Host(node, Some(pod)) } else { Peer::Pod(pod) })
}

/// Returns the source address of a client. On a node, the kernel chooses it by the packet's route:
/// for a call to one of the node's own addresses, it is that address.
pub(crate) fn source(
    engine: &Engine<'_>,
    client: Peer<'_>,
    to: SocketAddr,
    protocol: Protocol,
) -> Result<Option<SocketAddr>, WalkError> {
    let family = Family::of(to.ip());
    let ip = match client {
        _ if to.ip().is_loopback() => Some(match family {
            Family::V4 => Ipv4Addr::LOCALHOST.into(),
            Family::V6 => Ipv6Addr::LOCALHOST.into(),
        }),
        Peer::Pod(pod) => pod.address(family),
        Peer::Host(node, _) => {
            let anywhere = match family {
                Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            };
            let from = SocketAddr::new(anywhere, CLIENT_PORT);
            let packet = Packet::new(protocol, from, to);
            let runtime = engine.runtime_for(&node.name, &packet)?;
            let ends = runtime.kernel.walk(&packet, &Entry::Local, &[]);
            let tracked =
                ends.iter().find_map(|end| Some(end.connection.as_ref()?.original.src.ip()));
            // The source of a packet is chosen before a rule drops it.
            let picked = tracked
                .or_else(|| ends.first().map(|end| end.packet.leg().src.ip()))
                .filter(|ip| !ip.is_unspecified());
            picked.or_else(|| node.address(family))
        }
        // A documentation address, which nothing inside has.
        Peer::Balancer(_) | Peer::Outside => Some(any_client(family)),
    };
    Ok(ip.map(|ip| SocketAddr::new(ip, CLIENT_PORT)))
}

/// Resolves a destination for a client outside the cluster.
///
/// # Errors
/// Returns an error if there is no such destination, or if it has no address.
pub(crate) fn from_outside(
    engine: &Engine<'_>,
    to: &Destination,
) -> Result<ResolvedTarget, WalkError> {
    let flow = Flow { from: Client::Outside(None), to: to.clone(), protocol: Protocol::Tcp };
    aim(engine, Peer::Outside, &flow, to)
}

/// Resolves the destination of a flow for its client; of a workload, for its first pod.
///
/// # Errors
/// Returns an error if there is no such client or destination, or if it has no address.
pub(crate) fn of_flow(engine: &Engine<'_>, flow: &Flow) -> Result<ResolvedTarget, WalkError> {
    let clients = clients(engine.cluster, &flow.from)?;
    let client = clients.first().ok_or_else(|| WalkError::NoPods(flow.from.to_string()))?;
    aim_of(engine, *client, flow)
}

/// Resolves the destination of a flow for one of its clients.
pub(crate) fn aim_of(
    engine: &Engine<'_>,
    client: Peer<'_>,
    flow: &Flow,
) -> Result<ResolvedTarget, WalkError> {
    match BalancerCall::of(engine.cluster, &flow.from, &flow.to) {
        Some(BalancerCall::At(address)) => {
            aim(engine, client, flow, &Destination::Address(address))
        }
        Some(BalancerCall::WithoutAddress(service)) => {
            Err(WalkError::Later(format!("{} has no address yet", service.object())))
        }
        None => aim(engine, client, flow, &flow.to),
    }
}

/// Returns the first address of a family that the client of a flow has, else the first address.
fn usable(
    engine: &Engine<'_>,
    client: Peer<'_>,
    flow: &Flow,
    addresses: &[IpAddr],
) -> Result<Option<IpAddr>, WalkError> {
    if addresses.len() < 2 {
        return Ok(addresses.first().copied());
    }
    for ip in addresses {
        let has_family = match flow.from {
            Client::Outside(Some(own)) => Family::of(own) == Family::of(*ip),
            _ => source(engine, client, SocketAddr::new(*ip, 1), flow.protocol)?.is_some(),
        };
        if has_family {
            return Ok(Some(*ip));
        }
    }
    Ok(addresses.first().copied())
}

/// Resolves a destination for one of a flow's clients.
fn aim(
    engine: &Engine<'_>,
    client: Peer<'_>,
    flow: &Flow,
    to: &Destination,
) -> Result<ResolvedTarget, WalkError> {
    let cluster = engine.cluster;
    let plain = |address: SocketAddr| {
        Ok(ResolvedTarget { addresses: vec![address], request: Request::default(), resolved: None })
    };
    match to {
        Destination::Address(address) => plain(*address),
        Destination::Host(host, port) => {
            Ok(zones::aim_by_zone(engine, client, host, *port, Request::default()))
        }
        Destination::Url { tls, host, port, path } => {
            let http = Some((host.to_string(), path.to_string()));
            Ok(zones::aim_by_zone(
                engine,
                client,
                host,
                *port,
                Request { http, tls: Some(*tls), ..Request::default() },
            ))
        }
        Destination::Pod(name, port) => {
            let pod = cluster.pods.get(name).ok_or_else(|| WalkError::unknown(to))?;
            let ip = usable(engine, client, flow, &pod.ips)?.ok_or_else(|| match pod.node {
                Some(_) => WalkError::Later(format!("{} has no address yet", pod.object())),
                None => WalkError::NotPlaced(name.clone()),
            })?;
            plain(SocketAddr::new(ip, port.number()))
        }
        Destination::Service(name, port) => {
            let service = cluster.services.get(name).ok_or_else(|| WalkError::unknown(to))?;
            let found = ports_named(service, port.as_ref());
            let own = found.clone().find(|found| found.protocol == flow.protocol);
            let number = match (own.or(found.clone().next()), port) {
                (Some(found), _) => found.port,
                (None, Some(text)) => text.parse().map_err(|_| WalkError::unknown(to))?,
                (None, None) => return Err(WalkError::unknown(to)),
            };
            let ip = usable(engine, client, flow, &service.cluster_ips)?.ok_or_else(|| {
                WalkError::Later(format!(
                    "{} has no cluster IP: call it by its name, as HOST:PORT, or name one of its pods",
                    service.object()
                ))
            })?;
            plain(SocketAddr::new(ip, number.number()))
        }
        Destination::Ingress { name, host, path, port } => {
            let ingress = cluster.ingresses.get(name).ok_or_else(|| WalkError::unknown(to))?;
            let at = controller::addresses(cluster, Owner::Ingress(ingress));
            let at: Vec<IpAddr> = at.into_iter().map(|at| at.address).collect();
            let vip = usable(engine, client, flow, &at)?.ok_or_else(|| {
                WalkError::Later(format!("{} has no address yet", ingress.object()))
            })?;
            let call = match port {
                Some(port) => controller::route_call(cluster, ingress, *port, host.as_ref())
                    .ok_or_else(|| WalkError::unknown(to))?,
                None => engine.ingress_call(ingress, host.as_ref(), path.as_ref()),
            };
            if call.protocol.layer() == Layer::L4 {
                let named = call.host.map(|host| (host.to_string(), vip));
                let tls = Some(call.protocol.ends_tls());
                let request = Request { tls, named, ..Request::default() };
                return Ok(ResolvedTarget::at((vip, call.port.number()).into(), request));
            }
            let http = (
                call.host.map_or_else(|| vip.to_string(), |host| host.to_string()),
                call.path.map_or_else(|| "/".to_owned(), |path| path.to_string()),
            );
            let tls = Some(call.protocol.ends_tls());
            let request = Request { http: Some(http), tls, ..Request::default() };
            Ok(ResolvedTarget {
                addresses: vec![(vip, call.port.number()).into()],
                request,
                resolved: None,
            })
        }
    }
}

pub(crate) fn aim_at_host(
    engine: &Engine<'_>,
    client: Peer<'_>,
    host: &str,
    port: Port,
    request: Request,
) -> ResolvedTarget {
    if let Ok(ip) = host.parse::<IpAddr>() {
        let addresses = vec![SocketAddr::new(ip, port.number())];
        return ResolvedTarget { addresses, request, resolved: None };
    }
    let resolution = by_name_servers(engine, client, host);
    let sockets = resolution.addresses.iter().map(|ip| SocketAddr::new(*ip, port.number()));
    ResolvedTarget { addresses: sockets.collect(), request, resolved: Some(resolution) }
}

/// Resolves a name as a client does.
fn by_name_servers(engine: &Engine<'_>, client: Peer<'_>, host: &str) -> Resolution {
    let dns_client = match client {
        Peer::Pod(pod) | Peer::Host(_, Some(pod)) => DnsClient::Pod(pod),
        _ => DnsClient::Elsewhere,
    };
    engine.names().resolve(dns_client, host)
}

/// Returns the address of a client outside the cluster that states none: a documentation address,
/// which nothing inside has.
pub fn any_client(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([198, 51, 100, 10]),
        Family::V6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10]),
    }
}
