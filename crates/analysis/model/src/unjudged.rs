//! Reasons for which flows cannot be judged: something is not given or not modelled.

use std::fmt;

use crate::{Mechanism, ObjectRef, Text};

/// Objects whose flows have no verdict for a common reason.
///
/// The outcome of a flow that depends on one of them is [`crate::Outcome::Unknown`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// The missing information.
    pub subject: Unknown,
    /// The objects concerned, sorted.
    pub objects: Vec<ObjectRef>,
    /// The reason why their flows cannot be judged.
    pub because: Text,
    /// How to fix it: `give the EndpointSlices`; empty if there is no way yet.
    pub settle: Text,
}

/// Information that is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unknown {
    /// The behaviour of load balancers of this kind: `AWS`, `F5`, or [`UNKNOWN_CLOUD`].
    LoadBalancers(Text),
    /// The rules of a controller in the cluster for Ingresses: `ingress-nginx`.
    Controller(Text),
    /// The endpoints of Services.
    Endpoints,
    /// The Services behind Ingresses.
    Backends,
    /// The program that replaces kube-proxy: `Cilium`.
    ServiceProxy(Text),
    /// The settings of load balancers' listeners: the objects that contain them were not read.
    Listeners,
    /// The version of an object that applies, if there are several different ones.
    Versions,
    /// The behaviour of nodes that run Windows.
    Windows,
    /// The treatment of some calls on their way.
    Calls,
}

/// The name of a load balancer's cloud if it is unknown.
pub const UNKNOWN_CLOUD: &str = "an unknown cloud";

impl Unknown {
    /// Returns whether it concerns the behaviour of a load balancer or of the controller at its
    /// address.
    pub fn is_of_balancer(&self) -> bool {
        matches!(self, Self::LoadBalancers(_) | Self::Controller(_) | Self::Listeners)
    }

    /// Returns the mechanism of a flow that depends on it.
    pub fn mechanism(&self) -> Mechanism {
        match self {
            Self::LoadBalancers(_)
            | Self::Controller(_)
            | Self::ServiceProxy(_)
            | Self::Windows
            | Self::Calls => Mechanism::NotModelled,
            Self::Endpoints | Self::Backends | Self::Listeners | Self::Versions => {
                Mechanism::NotGiven
            }
        }
    }

    /// Returns whether it concerns all calls to an object, not only those through its load
    /// balancer.
    pub fn is_of_every_call(&self) -> bool {
        matches!(self, Self::Endpoints | Self::ServiceProxy(_) | Self::Versions)
    }
}

impl fmt::Display for Unjudged {
    /// Formats the objects: `3 load balancers of AWS`, `2 Ingresses that Traefik serves`,
    /// `endpoints of 1 Service`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.objects.len();
        let plural = if count == 1 { "" } else { "s" };
        let is_route = |object: &ObjectRef| object.kind.is_route();
        let ingresses = match (count, self.objects.iter().all(is_route)) {
            (1, true) => "route",
            (_, true) => "routes",
            (1, false) => "Ingress",
            (_, false) => "Ingresses",
        };
        match &self.subject {
            Unknown::LoadBalancers(kind) => write!(f, "{count} load balancer{plural} of {kind}"),
            Unknown::Controller(name) => write!(f, "{count} {ingresses} that {name} serves"),
            Unknown::Endpoints => write!(f, "endpoints of {count} Service{plural}"),
            Unknown::Backends => write!(f, "backends of {count} {ingresses}"),
            Unknown::Listeners => write!(f, "listeners of {count} load balancer{plural}"),
            Unknown::ServiceProxy(name) => write!(f, "{count} Service{plural} that {name} serves"),
            Unknown::Versions => write!(f, "{count} object{plural} in several versions"),
            Unknown::Windows if count == 1 => f.write_str("1 node that runs Windows"),
            Unknown::Windows => write!(f, "{count} nodes that run Windows"),
            Unknown::Calls => {
                let mut kinds = self.objects.iter().map(|object| object.kind.as_str());
                let kind = kinds.next().filter(|first| kinds.all(|kind| kind == *first));
                match kind.unwrap_or("object") {
                    kind if count > 1 && kind.ends_with('s') => {
                        write!(f, "calls to {count} {kind}es")
                    }
                    kind => write!(f, "calls to {count} {kind}{plural}"),
                }
            }
        }
    }
}
