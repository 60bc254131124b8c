//! The outcome of packets for ports that a load balancer does not serve.

use uturn_model::{Cluster, LoadBalancer, ProxyMode};

use crate::cloud::{UnservedPort, product_of};

/// The outcome of a call to a port without a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// The load balancer refuses.
    Refused,
    /// The node that announces the address has the address on an interface, and refuses unless one
    /// of its own programs listens.
    RefusedByNode,
    /// The load balancer drops the packet.
    Dropped,
    /// The node that announces the address does not have it on an interface, and has no route for
    /// the packet.
    LostAtNode,
}

impl Unserved {
    /// Returns what a load balancer of a cluster does with a call to a port without a listener.
    pub fn of(cluster: &Cluster, balancer: &LoadBalancer) -> Self {
        let mut listeners = balancer.listeners.iter();
        let found = listeners.find_map(|listener| product_of(cluster, listener));
        let Some((product, service)) = found else { return Self::Refused };
        // kube-proxy in IPVS mode has every address of a load balancer on every node.
        let proxy = &cluster.proxy;
        let is_bound = proxy.replaced_by().is_none() && proxy.mode.value == ProxyMode::Ipvs;
        let mut nodes = cluster.nodes.values();
        match product.unserved_port() {
            UnservedPort::Refused => Self::Refused,
            UnservedPort::Dropped => Self::Dropped,
            UnservedPort::UpToNode
                if is_bound || nodes.any(|node| product.is_held_by(service, node)) =>
            {
                Self::RefusedByNode
            }
            UnservedPort::UpToNode => Self::LostAtNode,
        }
    }

    /// Returns whether the client waits for an answer that never comes.
    pub fn is_silent(self) -> bool {
        match self {
            Self::Refused | Self::RefusedByNode => false,
            Self::Dropped | Self::LostAtNode => true,
        }
    }
}
