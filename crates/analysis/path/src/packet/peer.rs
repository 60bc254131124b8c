//! The senders and receivers of packets.

use uturn_model::route::Place;
use uturn_model::{Cluster, Evidence, LoadBalancer, Name, Node, Pod};

use crate::origin;

/// A sender or receiver of packets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer<'p> {
    /// A pod outside its node's network.
    Pod(&'p Pod),
    /// A process in a node's network; a hostNetwork pod where it is known which.
    Host(&'p Node, Option<&'p Pod>),
    /// A load balancer.
    Balancer(&'p LoadBalancer),
    /// A client or a server outside the cluster.
    Outside,
}

impl<'p> Peer<'p> {
    /// Returns whether both peers have the same network: processes that answer at one address
    /// receive each other's packets.
    pub(crate) fn shares_network_with(self, other: Peer<'_>) -> bool {
        match (self, other) {
            (Self::Pod(a), Peer::Pod(b)) => a.name == b.name,
            (Self::Host(a, _), Peer::Host(b, _)) => a.name == b.name,
            (Self::Balancer(a), Peer::Balancer(b)) => a.vip == b.vip,
            (Self::Outside, Peer::Outside) => true,
            _ => false,
        }
    }

    /// Returns the pod, if the peer is known to be one.
    pub(crate) fn pod(self) -> Option<&'p Pod> {
        match self {
            Self::Pod(pod) | Self::Host(_, Some(pod)) => Some(pod),
            Self::Host(_, None) | Self::Balancer(_) | Self::Outside => None,
        }
    }

    /// Returns the name of the node that the peer is on.
    pub(crate) fn node(self) -> Option<&'p Name> {
        match self {
            Self::Pod(pod) => pod.node.as_ref(),
            Self::Host(node, _) => Some(&node.name),
            Self::Balancer(_) | Self::Outside => None,
        }
    }

    /// Returns the place at which the peer's own actions are noted.
    pub(crate) fn place(self) -> Place {
        match self {
            Self::Pod(pod) | Self::Host(_, Some(pod)) => Place::Pod(pod.name.clone()),
            Self::Host(node, None) => Place::Node(node.name.clone()),
            Self::Balancer(balancer) => Place::LoadBalancer(balancer.name.clone()),
            Self::Outside => Place::Outside,
        }
    }

    /// Returns the evidence for the peer's own actions.
    pub(crate) fn evidence(self, cluster: &Cluster) -> Evidence {
        match self {
            Self::Pod(pod) | Self::Host(_, Some(pod)) => {
                Evidence::object(pod.object(), pod.origin.clone())
            }
            Self::Host(node, None) => Evidence::object(node.object(), node.origin.clone()),
            Self::Balancer(balancer) => Evidence::LoadBalancer {
                name: balancer.name.clone(),
                origin: origin::of_balancer(cluster, balancer),
            },
            Self::Outside => Evidence::Outside { what: "a host outside the cluster".into() },
        }
    }
}
