//! What decides about flows and cannot be judged, because it is not given or not modelled.

use std::fmt;

use crate::{Mechanism, ObjectRef, Text};

/// Objects whose flows have no verdict, for one common reason.
///
/// A flow that depends on one of them ends in [`crate::Outcome::Unknown`]: it neither works
/// nor fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// What is missing.
    pub subject: Unknown,
    /// The objects that it concerns, sorted.
    pub objects: Vec<ObjectRef>,
    /// Why it cannot be judged.
    pub because: Text,
    /// What would settle it: `give the EndpointSlices`; empty where nothing does yet.
    pub settle: Text,
}

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unknown {
    /// How load balancers of this kind behave: `AWS`, `MetalLB`, or [`UNKNOWN_CLOUD`].
    LoadBalancers(Text),
    /// What a controller in the cluster makes of Ingresses: `ingress-nginx`.
    Controller(Text),
    /// Which endpoints Services have.
    Endpoints,
    /// Which Services stand behind Ingresses.
    Backends,
    /// What serves Services in place of kube-proxy: `Cilium`.
    ServiceProxy(Text),
    /// Which one counts of several objects of one name that differ.
    Versions,
}

/// What the cloud of a load balancer is called where nothing names it.
pub const UNKNOWN_CLOUD: &str = "an unknown cloud";

impl Unknown {
    /// Whether it is how a load balancer, or the controller that serves at its address, behaves.
    pub fn is_of_balancer(&self) -> bool {
        matches!(self, Self::LoadBalancers(_) | Self::Controller(_))
    }

    /// Why a flow that depends on it has no verdict.
    pub fn mechanism(&self) -> Mechanism {
        match self {
            Self::LoadBalancers(_) | Self::Controller(_) | Self::ServiceProxy(_) => {
                Mechanism::NotModelled
            }
            Self::Endpoints | Self::Backends | Self::Versions => Mechanism::NotGiven,
        }
    }

    /// Whether it concerns all calls of an object, not only those that come to its load
    /// balancer.
    pub fn is_of_every_call(&self) -> bool {
        matches!(self, Self::Endpoints | Self::ServiceProxy(_) | Self::Versions)
    }
}

impl fmt::Display for Unjudged {
    /// `3 load balancers of AWS`, `2 Ingresses that Traefik serves`, `endpoints of 1 Service`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.objects.len();
        let plural = if count == 1 { "" } else { "s" };
        let ingresses = if count == 1 { "Ingress" } else { "Ingresses" };
        match &self.subject {
            Unknown::LoadBalancers(kind) => write!(f, "{count} load balancer{plural} of {kind}"),
            Unknown::Controller(name) => write!(f, "{count} {ingresses} that {name} serves"),
            Unknown::Endpoints => write!(f, "endpoints of {count} Service{plural}"),
            Unknown::Backends => write!(f, "backends of {count} {ingresses}"),
            Unknown::ServiceProxy(name) => write!(f, "{count} Service{plural} that {name} serves"),
            Unknown::Versions => write!(f, "{count} object{plural} in several versions"),
        }
    }
}
