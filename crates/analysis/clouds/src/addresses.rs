//! The addresses of load balancers.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::NamedAddress;
use uturn_model::service::ServiceKind;
use uturn_model::{Client, Cluster, Destination, Service};

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

/// The load balancer that a client outside calls where it names a Service: no client outside reaches a
/// cluster IP.
#[derive(Clone, Copy, Debug)]
pub enum BalancerCall<'a> {
    /// The load balancer has this address. It need not listen on the port.
    At(SocketAddr),
    /// No address of this Service's load balancer is known.
    WithoutAddress(&'a Service),
}

impl<'a> BalancerCall<'a> {
    /// Returns `None` for every other client and destination, and for a port that the Service lacks by
    /// that name.
    pub fn of(cluster: &'a Cluster, from: &Client, to: &Destination) -> Option<Self> {
        let (Client::Outside(own), Destination::Service(name, port)) = (from, to) else {
            return None;
        };
        let service = cluster.services.get(name)?;
        if service.kind != ServiceKind::LoadBalancer {
            return None;
        }
        let port = match port {
            None => service.ports.first()?.port,
            Some(text) => {
                let mut ports = service.ports.iter();
                let named = ports.find(|known| known.name.as_ref() == Some(text));
                named.map_or_else(|| text.parse().ok(), |known| Some(known.port))?
            }
        };
        let all = addresses(cluster, Owner::Service(service));
        let fits = |at: &&NamedAddress| own.is_none_or(|own| own.is_ipv4() == at.address.is_ipv4());
        let at = all.iter().find(fits).or(all.first());
        Some(at.map_or(Self::WithoutAddress(service), |at| {
            Self::At(SocketAddr::new(at.address, port.number()))
        }))
    }

    /// The address that is called.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(address),
            Self::WithoutAddress(_) => None,
        }
    }
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
