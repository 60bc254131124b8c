//! Load balancers that are pods of the cluster: one on each node accepts connections to the ports of a
//! Service at its node's addresses, and forwards them to the Service.

use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Pod, Service};

use crate::cloud::{Maker, Product, maker_of};

/// A load balancer that consists of pods.
pub struct OnNodes<'c> {
    /// The Service that owns the load balancer.
    pub service: &'c Service,
    /// The product of the load balancer.
    pub product: &'static dyn Product,
    /// The running pods of the load balancer; empty if they are not given.
    pub pods: Vec<&'c Pod>,
}

/// Returns every load balancer of a cluster that consists of pods.
pub fn all(cluster: &Cluster) -> Vec<OnNodes<'_>> {
    let services =
        cluster.services.values().filter(|service| service.kind == ServiceKind::LoadBalancer);
    let on_nodes = services.filter_map(|service| match maker_of(service, &cluster.provider) {
        Maker::Product(product, _) if product.is_on_nodes() => {
            let is_its = |pod: &&Pod| {
                pod.is_alive() && product.service_of(pod).as_ref() == Some(&service.name)
            };
            let pods = cluster.pods.values().filter(is_its).collect();
            Some(OnNodes { service, product, pods })
        }
        _ => None,
    });
    on_nodes.collect()
}
