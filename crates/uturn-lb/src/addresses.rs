//! The addresses of load balancers.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::NamedAddress;
use uturn_model::service::{ServiceKind, ServicePort};
use uturn_model::{Client, Cluster, Destination};

use crate::cloud::Owner;

/// The addresses of the load balancer of a Service or an Ingress: those of its status, and of an
/// entry that has only a name, those that the name has.
pub fn addresses(cluster: &Cluster, owner: Owner<'_>) -> Vec<NamedAddress> {
    let mut all: Vec<NamedAddress> = Vec::new();
    for entry in owner.status() {
        let found = match (entry.ip, &entry.hostname) {
            (Some(address), _) => vec![NamedAddress { address, zone: None }],
            (None, Some(host)) => cluster.dns.of_balancer(host).to_vec(),
            (None, None) => Vec::new(),
        };
        for new in found {
            if all.iter().all(|known| known.address != new.address) {
                all.push(new);
            }
        }
    }
    all
}

/// What a client outside calls where it names a Service: its load balancer, which has an address. No
/// client outside reaches a cluster IP.
pub fn called_from_outside(
    cluster: &Cluster,
    from: &Client,
    to: &Destination,
) -> Option<SocketAddr> {
    let (Client::Outside(own), Destination::Service(name, port)) = (from, to) else { return None };
    let service = cluster.services.get(name).filter(|own| own.kind == ServiceKind::LoadBalancer)?;
    let wanted = |known: &&ServicePort| match port {
        None => true,
        Some(text) => known.name.as_ref() == Some(text) || text.parse() == Ok(known.port),
    };
    let port = service.ports.iter().find(wanted)?.port;
    let all = addresses(cluster, Owner::Service(service));
    let fits = |at: &&NamedAddress| own.is_none_or(|own| own.is_ipv4() == at.address.is_ipv4());
    let at = all.iter().find(fits).or(all.first())?;
    Some(SocketAddr::new(at.address, port.number()))
}

/// The own addresses of all nodes. Where a status has one of them, no load balancer is in front of
/// it: a packet reaches that node, at any port.
pub(crate) struct NodeAddresses(HashSet<IpAddr>);

impl NodeAddresses {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let all = cluster.nodes.values().flat_map(|node| &node.internal_ips);
        Self(all.copied().collect())
    }

    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// The addresses of an object's load balancer that are no node's.
    pub(crate) fn beside(&self, cluster: &Cluster, owner: Owner<'_>) -> Vec<NamedAddress> {
        let mut all = addresses(cluster, owner);
        all.retain(|at| !self.has(at.address));
        all
    }
}
