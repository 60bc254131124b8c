//! The servers that receive connections with a PROXY header.

use std::net::SocketAddr;
use std::sync::Arc;

use uturn_clouds::targets;
use uturn_model::lb::Listener;
use uturn_model::{Cluster, Family, LoadBalancer, NamespacedName};
use uturn_netfilter::hash::FastMap;

/// The endpoints behind load balancers that send a PROXY header, each with its Service.
#[derive(Default)]
pub struct HeaderServers(FastMap<SocketAddr, Arc<NamespacedName>>);

impl HeaderServers {
    /// Finds the servers of a cluster's load balancers, which are in the order of their addresses.
    /// Targets of the load balancers do not matter.
    pub fn new(cluster: &Cluster, balancers: &[LoadBalancer]) -> Self {
        let mut all = FastMap::default();
        for balancer in balancers {
            let family = Family::of(balancer.vip);
            let sends = |listener: &&Listener| listener.profile.proxy_header.is_some();
            for listener in balancer.listeners.iter().filter(sends) {
                for rule in &listener.rules {
                    let service = Arc::new(rule.service.clone());
                    for at in endpoints(cluster, &service, listener, family) {
                        all.insert(at, Arc::clone(&service));
                    }
                }
            }
        }
        Self(all)
    }

    /// Returns the Service whose load balancer sends a header to this endpoint.
    pub fn service_of(&self, at: SocketAddr) -> Option<&NamespacedName> {
        self.0.get(&at).map(Arc::as_ref)
    }

    /// Returns all of these servers, each with the Service whose load balancer sends it a header.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &NamespacedName)> {
        self.0.iter().map(|(at, service)| (*at, &**service))
    }
}

/// Returns the endpoints of a Service at which a listener's connections end.
fn endpoints(
    cluster: &Cluster,
    name: &NamespacedName,
    listener: &Listener,
    family: Family,
) -> Vec<SocketAddr> {
    let Some(service) = cluster.services.get(name) else { return Vec::new() };
    let protocol = listener.protocol.transport();
    let is_it = |port: &&uturn_model::service::ServicePort| {
        port.port == listener.port && port.protocol == protocol
    };
    let Some(port) = service.ports.iter().find(is_it) else { return Vec::new() };
    let all = targets::pods(cluster, service, port, family, |_| Some(1));
    all.into_iter().map(|target| target.address).collect()
}
