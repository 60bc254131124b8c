//! Load balancers: addresses, listeners, rules and targets. Their behaviour is data, the
//! [`Profile`]; their decisions are in `uturn-lb`.

mod health_check;
mod overrides;
mod profile;
mod redirect;
mod stated;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

pub use health_check::{HealthCheck, HealthQuestion, ProbeRanges, ProbeSource};
pub use overrides::{
    DomainOverride, ListenerOverride, ListenerOverrides, RuleOverride, StatedHealthCheck,
    StatedProbeSource,
};
pub use profile::{
    BehaviourAssumption, Delivery, PassiveCheck, PathNormalization, Profile, ProxyVersion,
    Scheduler, Source, Statuses,
};
pub use redirect::Redirect;
pub use stated::{ListenerFact, LoadBalancerFact, StatedTargets, TargetNodes};

use crate::{Name, NamespacedName, ObjectRef, Port, Text};

/// A load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancer {
    /// Its display name: its id, or a name derived from its owner.
    pub name: Text,
    /// Its address.
    pub vip: IpAddr,
    /// Whether it is reachable from the VPC only or from the internet.
    pub scope: Scope,
    /// The zone whose targets it serves at this address; `None` if it serves all targets.
    pub zone: Option<Text>,
    /// Its security groups. Without any, all traffic may enter.
    pub security_groups: Vec<Text>,
    /// Its listeners.
    pub listeners: Vec<Listener>,
}

/// An address of a load balancer whose name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAddress {
    /// The address, or a placeholder if it is not given.
    pub address: IpAddr,
    /// The zone of the address, if the name has an address for each zone.
    pub zone: Option<Text>,
}

/// The clients that can reach a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Clients within the VPC.
    Private,
    /// Clients on the internet; pods reach it with their node's public address.
    Public,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Private => "private",
            Self::Public => "public",
        })
    }
}

/// One listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The port it listens on.
    pub port: Port,
    /// Its protocol.
    pub protocol: ListenerProtocol,
    /// Its behaviour.
    pub profile: Profile,
    /// Its forwarding rules; on layer 4, a single rule without host and path.
    pub rules: Vec<Rule>,
}

impl Listener {
    /// Returns whether it terminates connections and opens its own to targets: on layer 7, to
    /// terminate TLS, to send a PROXY header, and if its profile says so.
    pub fn makes_connections(&self) -> bool {
        match self.protocol {
            ListenerProtocol::Tcp => {
                self.profile.ends_connections || self.profile.proxy_header.is_some()
            }
            ListenerProtocol::Udp => false,
            ListenerProtocol::TcpSsl | ListenerProtocol::Http | ListenerProtocol::Https => true,
        }
    }
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenerProtocol {
    /// Layer 4.
    Tcp,
    /// Layer 4.
    Udp,
    /// Layer 4 with TLS termination.
    TcpSsl,
    /// Layer 7.
    Http,
    /// Layer 7 with TLS termination.
    Https,
}

impl ListenerProtocol {
    /// Returns the layer on which it works.
    pub fn layer(self) -> Layer {
        match self {
            Self::Tcp | Self::Udp | Self::TcpSsl => Layer::L4,
            Self::Http | Self::Https => Layer::L7,
        }
    }

    /// Returns the transport protocol.
    pub fn transport(self) -> crate::Protocol {
        match self {
            Self::Udp => crate::Protocol::Udp,
            _ => crate::Protocol::Tcp,
        }
    }

    /// Returns whether it terminates TLS.
    pub fn ends_tls(self) -> bool {
        matches!(self, Self::TcpSsl | Self::Https)
    }
}

impl fmt::Display for ListenerProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::TcpSsl => "TCP_SSL",
            Self::Http => "HTTP",
            Self::Https => "HTTPS",
        })
    }
}

/// The layer on which a listener works: layer 4 forwards packets, layer 7 terminates connections
/// and opens new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Packets.
    L4,
    /// Requests.
    L7,
}

/// A forwarding rule of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The host; `None` for all hosts.
    pub host: Option<Text>,
    /// The path; `None` for all paths.
    pub path: Option<(Text, crate::ingress::PathKind)>,
    /// The Service to which it forwards. For a load balancer that no Service owns, a name that no
    /// Service has ([`LoadBalancerFact::no_service`]).
    pub service: NamespacedName,
    /// The Service or Ingress from which it was derived.
    pub owner: ObjectRef,
    /// Its targets.
    pub targets: Vec<Target>,
    /// A redirect to send instead of forwarding; layer 7 only.
    pub redirect: Option<Redirect>,
}

/// One target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address to which packets are sent.
    pub address: SocketAddr,
    /// Its weight relative to the other targets; 0 receives no traffic.
    pub weight: u32,
    /// The kind of target.
    pub kind: TargetKind,
}

/// The kind of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A NodePort of a node.
    NodePort(Name),
    /// A pod.
    Pod {
        /// The pod, if known.
        pod: Option<NamespacedName>,
        /// The node that it is on.
        node: Option<Name>,
    },
}

impl TargetKind {
    /// Returns the node that receives packets for the target.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Self::NodePort(node) => Some(node),
            Self::Pod { node, .. } => node.as_ref(),
        }
    }
}
