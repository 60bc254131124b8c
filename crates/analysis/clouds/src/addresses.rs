//! The addresses of load balancers.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::NamedAddress;
use uturn_model::service::ServiceKind;
use uturn_model::{Client, Cluster, Destination, Service};

use crate::cloud::Owner;

/// Returns the addresses of the load balancer of a Service or an Ingress: those in its status, and
/// for a status entry with only a name, those to which the name resolves.
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

/// The load balancer that a client outside the cluster calls if it names a Service: no such client
/// reaches a cluster IP.
#[derive(Clone, Copy, Debug)]
pub enum BalancerCall<'a> {
    /// A load balancer with this address, which need not listen on the port.
    At(SocketAddr),
    /// A load balancer of this Service without a known address.
    WithoutAddress(&'a Service),
}

impl<'a> BalancerCall<'a> {
    /// Returns the load balancer that a client calls. Returns `None` for every other client and
    /// destination, and for a port name that the Service lacks.
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

    /// Returns the address that is called.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(address),
            Self::WithoutAddress(_) => None,
        }
    }
}

/// The addresses of all nodes themselves. If a status has one of them, no load balancer is in front
/// of it: a packet reaches that node, at any port.
pub(crate) struct NodeAddresses(HashSet<IpAddr>);

impl NodeAddresses {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let all = cluster.nodes.values().flat_map(|node| &node.internal_ips);
        Self(all.copied().collect())
    }

    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Returns the addresses of an object's load balancer that belong to no node.
    pub(crate) fn beside(&self, cluster: &Cluster, owner: Owner<'_>) -> Vec<NamedAddress> {
        let mut all = addresses(cluster, owner);
        all.retain(|at| !self.has(at.address));
        all
    }
}
