//! What a node's kube-proxy answers at the `healthCheckNodePort` of a Service: over HTTP, 200 if the
//! node has a ready endpoint of the Service, and 503 if it has none.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use uturn_model::proxy::NodePortAddresses;
use uturn_model::service::{Policy, ServiceKind};
use uturn_model::{Cluster, Evidence, Mechanism, Node, Outcome, Port, Service};
use uturn_netfilter::IpProtocol;

use crate::origin;
use crate::packet::{Peer, Request};

/// The path that load balancers ask for. kube-proxy answers alike for every path.
pub(super) const PATH: &str = "/healthz";

/// A Service whose health checks a node answers at a port.
pub(super) struct NodeHealth<'a> {
    pub(super) service: &'a Service,
    node: &'a Node,
    has_endpoint: bool,
}

/// The answer to a request.
pub(super) struct Answer {
    pub(super) why: String,
    pub(super) outcome: Outcome,
    pub(super) mechanism: Option<Mechanism>,
}

/// Returns the port at which kube-proxy answers health checks of a Service.
pub(super) fn port_of(service: &Service) -> Option<Port> {
    let needs =
        service.kind == ServiceKind::LoadBalancer && service.external_policy == Policy::Local;
    service.health_check_node_port.filter(|_| needs)
}

/// Returns the Service whose health checks kube-proxy answers at this address, if it is known that
/// kube-proxy listens there.
pub(super) fn at<'a>(
    cluster: &'a Cluster,
    at: Peer<'a>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<NodeHealth<'a>> {
    let Peer::Host(node, None) = at else { return None };
    if protocol != IpProtocol::TCP || !listens(cluster, node, to.ip()) {
        return None;
    }
    let is_asked = |service: &&Service| {
        port_of(service).is_some_and(|port| port.number() == to.port())
            && !service.unjudged.iter().any(|unknown| unknown.is_of_every_call())
            && !node.unprogrammed.contains(&service.name)
    };
    let service = cluster.services.values().find(is_asked)?;
    let known_as = node.name_for_proxy();
    let has_endpoint = uturn_clouds::targets::has_ready_pod(cluster, service, known_as);
    Some(NodeHealth { service, node, has_endpoint })
}

/// Returns whether kube-proxy listens at an address of its node. Proxies in its place, and kube-proxy
/// on Windows, are not modelled.
fn listens(cluster: &Cluster, node: &Node, ip: IpAddr) -> bool {
    let is_at = match &cluster.proxy.node_port_addresses {
        NodePortAddresses::All => node.has_address(ip) || ip.is_loopback(),
        NodePortAddresses::Primary => node.internal_ips.contains(&ip),
        NodePortAddresses::Ranges(ranges) => {
            node.internal_ips.contains(&ip)
                && (ranges.is_empty() || ranges.iter().any(|net| net.contains(&ip)))
        }
    };
    is_at && !node.is_windows && cluster.proxy.replaced_by().is_none()
}

impl NodeHealth<'_> {
    /// Returns the answer to a request, and without one, to a connection.
    pub(super) fn answer(&self, request: &Request) -> Answer {
        let status = if self.has_endpoint { 200 } else { 503 };
        let whose = self.service.object();
        let with = |outcome, mechanism, why: String| Answer { why, outcome, mechanism };
        let failed = |code| Outcome::Status { code, after: Duration::ZERO };
        if request.has_proxy_header {
            let why = format!(
                "kube-proxy answers health checks of {whose} here, and takes the PROXY header for a bad \
                 request"
            );
            return with(failed(400), Some(Mechanism::ProxyHeader), why);
        }
        if request.tls == Some(true) {
            let why = format!("kube-proxy answers health checks of {whose} here, without TLS");
            return with(Outcome::TlsError, Some(Mechanism::WrongPort), why);
        }
        let found = format!(
            "kube-proxy answers health checks of {whose} here: {status}, since {} {} ready endpoint of it",
            self.node.object(),
            if self.has_endpoint { "has a" } else { "has no" }
        );
        let why = match self.other_name() {
            Some(name) => format!("{found} by the name {name}, which kube-proxy takes for its own"),
            None => found,
        };
        match (self.has_endpoint, &request.http) {
            (false, Some(_)) => with(failed(status), Some(Mechanism::NoEndpoint), why),
            _ => with(Outcome::AT_ONCE, None, why),
        }
    }

    /// Returns the name by which kube-proxy looks for endpoints, if it is not that of the node.
    fn other_name(&self) -> Option<&str> {
        let is_other = self.node.name_for_proxy() != &self.node.name;
        is_other.then(|| self.node.name_for_proxy().as_str())
    }

    pub(super) fn evidence(&self, cluster: &Cluster) -> Evidence {
        let object = self.service.object();
        let origin = origin::of(cluster, &object);
        Evidence::object(object, origin)
    }
}
