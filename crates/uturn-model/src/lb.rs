//! The configuration of load balancers. Their decisions are in `uturn-lb`.

mod stated;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

pub use stated::{ListenerFact, LoadBalancerFact, StatedTargets, TargetNodes};

use crate::{Family, Name, NamespacedName, ObjectRef, Port, Text};

/// A load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancer {
    /// Its name for people: its id, or a name derived from its owner.
    pub name: Text,
    /// Its address.
    pub vip: IpAddr,
    /// Whether it is reachable from the VPC only, or from the internet.
    pub scope: Scope,
    /// The zone whose targets it serves at this address; all targets without one.
    pub zone: Option<Text>,
    /// Its security groups; without any, all traffic may enter.
    pub security_groups: Vec<Text>,
    /// Its listeners.
    pub listeners: Vec<Listener>,
}

/// An address of a load balancer that is known by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAddress {
    /// The address, or one that stands for it where it is not given.
    pub address: IpAddr,
    /// The zone that it is in, where the name has an address for each zone.
    pub zone: Option<Text>,
}

/// Which clients can reach a load balancer.
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
    /// The layer that it works on.
    pub fn layer(self) -> Layer {
        match self {
            Self::Tcp | Self::Udp | Self::TcpSsl => Layer::L4,
            Self::Http | Self::Https => Layer::L7,
        }
    }

    /// The transport protocol.
    pub fn transport(self) -> crate::Protocol {
        match self {
            Self::Udp => crate::Protocol::Udp,
            _ => crate::Protocol::Tcp,
        }
    }

    /// Whether it terminates TLS.
    pub fn ends_tls(self) -> bool {
        matches!(self, Self::TcpSsl | Self::Https)
    }
}

impl Listener {
    /// Whether it takes connections of clients itself and makes its own to targets: on layer 7, to end
    /// TLS, to put a header before what clients send, and where its profile says so.
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

/// Layer 4 forwards packets; layer 7 terminates connections and opens new ones.
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
    /// Its name, as reports print it.
    pub name: Text,
    /// How packets get to a target, and answers back.
    pub delivery: Delivery,
    /// The source address that targets see.
    pub source: Source,
    /// The range out of which the source is replaced only where the client is its own target, so
    /// that its answers come back; `None` where that makes no difference.
    pub hairpin_source: Option<IpNet>,
    /// The PROXY header that connections to targets begin with.
    pub proxy_header: Option<ProxyVersion>,
    /// Whether it avoids a target with the client's own address while there is another.
    pub avoids_client: bool,
    /// Whether it takes TCP connections of clients itself on layer 4, and makes its own to targets.
    /// On layer 7, where it ends TLS and with a PROXY header it does so in any case.
    pub ends_connections: bool,
    /// The connect timeout to a target, where it makes connections itself.
    pub connect_timeout: Duration,
    /// Whether it tries another target if one does not answer; layer 7 only.
    pub next_target: bool,
    /// How it selects a target.
    pub scheduler: Scheduler,
    /// The percentage of alive targets at or below which all count as alive: with 0, if none is
    /// alive. `None`: dead targets are never picked.
    pub panic_threshold: Option<u8>,
    /// Its active health check.
    pub health_check: Option<HealthCheck>,
    /// Its passive health check; layer 7 only.
    pub passive_check: Option<PassiveCheck>,
    /// The statuses that it answers itself; layer 7 only.
    pub statuses: Statuses,
    /// What of this is not certain: a verdict that rests on it says so.
    pub doubt: Option<Doubt>,
}

/// What is taken of a load balancer without being certain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    /// What is taken, as a sentence.
    pub taken: Text,
    /// Why it is not certain, or what it is taken from.
    pub because: Text,
    /// What settles it.
    pub settle: Text,
}

impl Doubt {
    /// Something that is inferred, or that documents contradict each other about: a measurement
    /// settles it.
    pub fn new(taken: impl Into<Text>, because: impl Into<Text>) -> Self {
        let settle = "measure it: uturn probe".into();
        Self { taken: taken.into(), because: because.into(), settle }
    }
}

/// What no document says.
impl From<&str> for Doubt {
    fn from(taken: &str) -> Self {
        Self::new(taken, "no document says it")
    }
}

/// The statuses that a load balancer on layer 7 answers without asking a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Statuses {
    /// Where no rule is for the request.
    pub no_rule: u16,
    /// Where a rule has no target that may be asked.
    pub no_target: u16,
}

impl Statuses {
    /// Those of most products.
    pub const USUAL: Self = Self { no_rule: 404, no_target: 503 };
}

/// How packets get from a load balancer to a target, and answers back to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// They are sent to the target's own address and port. Answers come back through the load
    /// balancer.
    #[default]
    ToTarget,
    /// They are handed to the target's node with the address and port that the client called, as
    /// with floating IPs, direct server return and announced addresses. A rule or a process on
    /// the node has to know that address. Answers go from there to the client.
    KeepsAddress,
}

impl Delivery {
    /// The destination of packets to a target that clients called at another address.
    pub fn destination(self, target: SocketAddr, called: SocketAddr) -> SocketAddr {
        match self {
            Self::ToTarget => target,
            Self::KeepsAddress => called,
        }
    }
}

/// A version of the PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// The source address of what a load balancer sends to a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The client's own.
    Kept,
    /// SNAT to an address of the load balancer out of this range; on layer 7, the client's
    /// address is in `X-Forwarded-For`.
    Replaced(IpNet),
}

/// How a load balancer selects a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// Round robin by weight.
    WeightedRoundRobin,
    /// The target with the fewest connections relative to its weight.
    LeastConnections,
    /// By a hash of the client's address.
    SourceHash,
}

/// A health check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthCheck {
    /// The source address of probes.
    pub source: ProbeSource,
    /// The time between two probes.
    pub interval: Duration,
    /// The timeout of a probe.
    pub timeout: Duration,
    /// The number of consecutive successes that make a target healthy.
    pub rise: u32,
    /// The number of consecutive failures that make a target unhealthy.
    pub fall: u32,
    /// What is asked.
    pub question: HealthQuestion,
    /// Whether probes go to the load balancer's own address on the target, as requests do, and not to
    /// the target's.
    pub keeps_address: bool,
}

/// What a health check asks of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HealthQuestion {
    /// Whether the target answers at the address and port that requests are sent to.
    #[default]
    Target,
    /// Whether the node has a ready endpoint of the Service: its kube-proxy answers that at the
    /// Service's `healthCheckNodePort`.
    LocalEndpoint,
    /// The same, with a PROXY header before the question. kube-proxy does not read it and answers
    /// with an error, so no node passes.
    LocalEndpointWithHeader,
    /// Whether the node's kube-proxy works, at its own health port.
    ServiceProxy,
}

/// What requests that fail do to a target: so many in a row, and it is left alone for a
/// while.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PassiveCheck {
    /// The number of consecutive failures.
    pub failures: u32,
    /// How long the target is not used.
    pub rest: Duration,
}

/// The source address of health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeSource {
    /// The load balancer's own address.
    Vip,
    /// A range that the cloud reserves for probes, or that a data plane's own file names.
    Reserved(ProbeRanges),
}

/// The ranges that a cloud reserves for probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProbeRanges {
    /// For targets with an IPv4 address.
    pub v4: Ipv4Net,
    /// For targets with an IPv6 address.
    pub v6: Ipv6Net,
}

impl ProbeRanges {
    /// The address that probes come from: the first host address of the family's range.
    pub fn prober(self, family: Family) -> IpAddr {
        let first = match family {
            Family::V4 => self.v4.hosts().next().map(IpAddr::V4),
            Family::V6 => self.v6.hosts().next().map(IpAddr::V6),
        };
        first.unwrap_or(match family {
            Family::V4 => self.v4.addr().into(),
            Family::V6 => self.v6.addr().into(),
        })
    }
}

impl ProbeSource {
    /// The address that the probes of a load balancer come from.
    pub fn address(self, vip: IpAddr) -> IpAddr {
        match self {
            Self::Vip => vip,
            Self::Reserved(ranges) => ranges.prober(Family::of(vip)),
        }
    }
}

/// The source address of health checks, as users choose it. Which range is reserved, the cloud
/// says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatedProbeSource {
    /// The load balancer's own address.
    Vip,
    /// The range that the cloud reserves for probes.
    Reserved,
}

impl StatedProbeSource {
    /// The source in a cloud that reserves these ranges.
    pub fn with_ranges(self, reserved: ProbeRanges) -> ProbeSource {
        match self {
            Self::Vip => ProbeSource::Vip,
            Self::Reserved => ProbeSource::Reserved(reserved),
        }
    }
}

/// A forwarding rule of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The host; `None` for all hosts.
    pub host: Option<Text>,
    /// The path; `None` for all paths.
    pub path: Option<(Text, crate::ingress::PathKind)>,
    /// The Service that it forwards to; of a load balancer that no Service owns, a name that none
    /// has ([`LoadBalancerFact::no_service`]).
    pub service: NamespacedName,
    /// The Service or Ingress that it was derived from.
    pub owner: ObjectRef,
    /// Its targets.
    pub targets: Vec<Target>,
    /// A redirect to send instead of forwarding; layer 7 only.
    pub redirect: Option<Redirect>,
}

/// An answer that tells a client to ask elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// The status code: 301, 302, 307 or 308.
    pub code: u16,
    /// Whether the new URL uses TLS.
    pub tls: bool,
    /// The host; `None` for that of the request.
    pub host: Option<Text>,
    /// The port.
    pub port: Port,
    /// The path; `None` for that of the request.
    pub path: Option<Text>,
}

impl Redirect {
    /// The host and path that a request is redirected to. `host` may contain a port.
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

    /// The value of the `Location` header.
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
    /// The address that packets are sent to.
    pub address: SocketAddr,
    /// Its weight relative to the other targets; 0 receives no traffic.
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
        /// The pod, if known.
        pod: Option<NamespacedName>,
        /// The node that it is on.
        node: Option<Name>,
    },
}

impl TargetKind {
    /// The node that receives packets to it.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Self::NodePort(node) => Some(node),
            Self::Pod { node, .. } => node.as_ref(),
        }
    }
}

/// An object of a cloud in which users set properties of the listeners that the cloud's
/// controller makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerOverrides {
    /// Its name.
    pub name: NamespacedName,
    /// The listeners that it sets properties of.
    pub listeners: Vec<ListenerOverride>,
    /// Where it was written.
    pub origin: crate::Origin,
}

/// A listener of [`ListenerOverrides`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerOverride {
    /// Its port.
    pub port: Port,
    /// Its protocol.
    pub protocol: ListenerProtocol,
    /// Whether it keeps connections to targets open, and so replaces the source.
    pub keepalive: Option<bool>,
    /// How it picks a target: on layer 7, of its first rule that names a scheduler.
    pub scheduler: Option<Scheduler>,
    /// Whether it probes its targets.
    pub health_check: Option<bool>,
    /// Where its probes come from.
    pub probe_source: Option<StatedProbeSource>,
    /// Whether it replaces the client's address.
    pub snat: Option<bool>,
    /// Whether connections to a target that is unbound are reset; layer 4 only.
    pub resets_on_unbind: Option<bool>,
    /// Seconds a client stays with its target, 0 for not at all; layer 4 only.
    pub session_seconds: Option<u32>,
    /// How it probes its targets; layer 4 only.
    pub check: Option<StatedHealthCheck>,
    /// The domain that serves hosts without a rule; layer 7 only.
    pub default_domain: Option<Text>,
    /// Its domains; layer 7 only.
    pub domains: Vec<DomainOverride>,
    /// Where it was written.
    pub origin: crate::Origin,
}

impl ListenerOverride {
    /// The first health check that is stated: its own, else that of a rule.
    pub fn first_check(&self) -> Option<&StatedHealthCheck> {
        let of_rules = || {
            let mut rules = self.domains.iter().flat_map(|domain| &domain.rules);
            rules.find_map(|rule| rule.check.as_ref())
        };
        self.check.as_ref().or_else(of_rules)
    }
}

/// A domain of a [`ListenerOverride`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainOverride {
    /// The domain; empty for the load balancer's address.
    pub domain: Text,
    /// Whether clients may speak HTTP/2.
    pub http2: Option<bool>,
    /// Its rules.
    pub rules: Vec<RuleOverride>,
}

/// A rule of a [`DomainOverride`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleOverride {
    /// The path.
    pub url: Text,
    /// The protocol towards targets: `HTTP`, `HTTPS` or `GRPC`.
    pub forward_type: Option<Text>,
    /// Seconds a client stays with its target, 0 for not at all.
    pub session_seconds: Option<u32>,
    /// How it picks a target.
    pub scheduler: Option<Scheduler>,
    /// How it probes its targets.
    pub check: Option<StatedHealthCheck>,
}

/// What users set on a health check. What is `None` they leave to the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedHealthCheck {
    /// Whether targets are probed.
    pub enabled: Option<bool>,
    /// Seconds between two probes.
    pub interval: Option<u16>,
    /// Seconds that a probe may take.
    pub timeout: Option<u16>,
    /// The successes in a row that make a target healthy.
    pub rise: Option<u8>,
    /// The failures in a row that make a target unhealthy.
    pub fall: Option<u8>,
    /// What is sent: `TCP`, `HTTP`, `HTTPS` or `GRPC`.
    pub protocol: Option<Text>,
    /// The port that is probed, where it is not the target's.
    pub port: Option<Port>,
    /// The path of a request.
    pub path: Option<Text>,
    /// The host of a request.
    pub host: Option<Text>,
    /// The method of a request.
    pub method: Option<Text>,
    /// The classes of statuses that are successes, one bit each.
    pub codes: Option<u8>,
    /// Where probes come from.
    pub source: Option<StatedProbeSource>,
}
