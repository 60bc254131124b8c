//! Load balancers: what is set up on them. How they decide is `uturn-lb`'s business.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;

use crate::{Name, NamespacedName, ObjectRef, Port, Text};

/// A load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancer {
    /// What people call it: its id, or one made up from its owner.
    pub name: Text,
    /// Its address.
    pub vip: IpAddr,
    /// Reachable from the VPC only, or from the internet.
    pub scope: Scope,
    /// Its own security groups; none known means everything may enter.
    pub security_groups: Vec<Text>,
    /// Its listeners.
    pub listeners: Vec<Listener>,
}

/// Who can reach a load balancer.
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
    /// What it speaks.
    pub protocol: ListenerProtocol,
    /// How it behaves.
    pub profile: Profile,
    /// Where it sends what; one rule without host and path on layer 4.
    pub rules: Vec<Rule>,
}

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListenerProtocol {
    /// Layer 4.
    Tcp,
    /// Layer 4.
    Udp,
    /// Layer 4 with TLS ended at the load balancer.
    TcpSsl,
    /// Layer 7.
    Http,
    /// Layer 7 with TLS ended at the load balancer.
    Https,
}

impl ListenerProtocol {
    /// The layer it works on.
    pub fn layer(self) -> Layer {
        match self {
            Self::Tcp | Self::Udp | Self::TcpSsl => Layer::L4,
            Self::Http | Self::Https => Layer::L7,
        }
    }

    /// The transport below it.
    pub fn transport(self) -> crate::Protocol {
        match self {
            Self::Udp => crate::Protocol::Udp,
            _ => crate::Protocol::Tcp,
        }
    }

    /// Whether it ends TLS.
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

/// Layer 4 passes packets on; layer 7 ends the connection and makes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Packets.
    L4,
    /// Requests.
    L7,
}

/// How a kind of load balancer behaves: data, so that a cloud is a value and not a code path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Its name: `tke-clb-l7`.
    pub name: Text,
    /// The source address that targets see.
    pub source: Source,
    /// Never picks a target whose address is the client's own, while there is another.
    pub avoids_client: bool,
    /// How long a connection to a target may take; layer 7 only.
    pub connect_timeout: Duration,
    /// Tries another target when one does not answer; layer 7 only.
    pub next_target: bool,
    /// How it picks.
    pub scheduler: Scheduler,
    /// When every target is dead, treats all as alive.
    pub all_dead_all_alive: bool,
    /// How it learns whether a target is alive.
    pub health_check: Option<HealthCheck>,
    /// How it learns from requests that fail; layer 7 only.
    pub passive_check: Option<PassiveCheck>,
}

/// The source address of what a load balancer sends to a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The client's own.
    Kept,
    /// One of the load balancer's own, out of this range; the client's goes into
    /// `X-Forwarded-For` on layer 7.
    Replaced(IpNet),
}

/// How a load balancer picks a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// In turns, by weight.
    WeightedRoundRobin,
    /// The one with the fewest connections for its weight.
    LeastConnections,
    /// By the client's address.
    SourceHash,
}

/// A health check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthCheck {
    /// The address it comes from.
    pub source: ProbeSource,
    /// Time between two.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// So many good ones make a target alive.
    pub rise: u32,
    /// So many bad ones make it dead.
    pub fall: u32,
}

/// What requests that fail do to a target: so many in a row, and it is left alone for a
/// while.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PassiveCheck {
    /// So many failures in a row.
    pub failures: u32,
    /// So long nobody is sent there.
    pub rest: Duration,
}

/// Where health checks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeSource {
    /// The load balancer's own address.
    Vip,
    /// The cloud's range for that: 100.64.0.0/10.
    Reserved,
}

/// Where a listener sends what.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The host; none means every host.
    pub host: Option<Text>,
    /// The path; none means every path.
    pub path: Option<(Text, crate::ingress::PathKind)>,
    /// The Service it serves.
    pub service: NamespacedName,
    /// What asked for it: a Service or an Ingress.
    pub owner: ObjectRef,
    /// Where it sends to.
    pub targets: Vec<Target>,
    /// Where it sends clients instead of serving them, on layer 7.
    pub redirect: Option<Redirect>,
}

/// An answer that tells a client to ask elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// Its status: 301, 302, 307 or 308.
    pub code: u16,
    /// Whether TLS is spoken there.
    pub tls: bool,
    /// The host; none means the one that was asked.
    pub host: Option<Text>,
    /// The port.
    pub port: Port,
    /// The path; none means the one that was asked.
    pub path: Option<Text>,
}

impl Redirect {
    /// The host and path that a request for these is sent to. `host` may carry a port.
    pub fn aim<'s>(&'s self, host: &'s str, path: &'s str) -> (&'s str, &'s str) {
        let bare = match host.rsplit_once(':') {
            Some((name, port))
                if port.bytes().all(|byte| byte.is_ascii_digit())
                    && (!name.contains(':') || name.ends_with(']')) =>
            {
                name
            }
            _ => host,
        };
        (self.host.as_deref().unwrap_or(bare), self.path.as_deref().unwrap_or(path))
    }

    /// The same as the answer says it.
    pub fn location(&self, host: &str, path: &str) -> String {
        let (host, path) = self.aim(host, path);
        match (self.tls, self.port.number()) {
            (true, 443) => format!("https://{host}{path}"),
            (false, 80) => format!("http://{host}{path}"),
            (true, port) => format!("https://{host}:{port}{path}"),
            (false, port) => format!("http://{host}:{port}{path}"),
        }
    }
}

/// One target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where packets go.
    pub address: SocketAddr,
    /// Its share of the traffic beside the others'; 0 takes none.
    pub weight: u32,
    /// What it is.
    pub kind: TargetKind,
}

/// What a target is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A NodePort of a node.
    NodePort(Name),
    /// A pod.
    Pod {
        /// The pod, where it is known.
        pod: Option<NamespacedName>,
        /// The node it is on.
        node: Option<Name>,
    },
}

impl TargetKind {
    /// The node that packets to it arrive at.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Self::NodePort(node) => Some(node),
            Self::Pod { node, .. } => node.as_ref(),
        }
    }
}

/// What Facts say of a load balancer: each thing that is stated wins over what was derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancerFact {
    /// Its address: how it is found.
    pub vip: IpAddr,
    /// Its name.
    pub name: Option<Text>,
    /// Its scope.
    pub scope: Option<Scope>,
    /// Where its health checks come from.
    pub probe_source: Option<ProbeSource>,
    /// Its security groups.
    pub security_groups: Option<Vec<Text>>,
    /// Its listeners.
    pub listeners: Vec<ListenerFact>,
    /// Where it was written.
    pub origin: crate::Origin,
}

/// What Facts say of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerFact {
    /// Its port: how it is found.
    pub port: Port,
    /// What it speaks.
    pub protocol: Option<ListenerProtocol>,
    /// Whether the source address is replaced.
    pub snat: Option<bool>,
    /// How it picks.
    pub scheduler: Option<Scheduler>,
    /// Where it was written.
    pub origin: crate::Origin,
}

/// A TkeServiceConfig: what people set on listeners that the cloud's controller made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TkeServiceConfig {
    /// Its name.
    pub name: NamespacedName,
    /// `spec.loadBalancer.l4Listeners` and `l7Listeners`.
    pub listeners: Vec<ListenerConfig>,
    /// Where it was written.
    pub origin: crate::Origin,
}

/// A listener of a [`TkeServiceConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Its port.
    pub port: Port,
    /// What it speaks.
    pub protocol: ListenerProtocol,
    /// `keepaliveEnable`: keeps connections to targets, and so replaces the source.
    pub keepalive: Option<bool>,
    /// `scheduler`: of the listener on layer 4; of its first rule that names one on layer 7.
    pub scheduler: Option<Scheduler>,
    /// `healthCheck.enable`.
    pub health_check: Option<bool>,
    /// `healthCheck.sourceIpType`.
    pub probe_source: Option<ProbeSource>,
    /// Where it was written.
    pub origin: crate::Origin,
}
