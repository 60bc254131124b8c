//! How a kind of load balancer behaves, as data.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::HealthCheck;
use crate::Text;

/// How a kind of load balancer behaves. It is data, so that another cloud needs no other code path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Its name, as reports print it.
    pub name: Text,
    /// How packets get to a target, and answers back.
    pub delivery: Delivery,
    /// The source address that targets see.
    pub source: Source,
    /// The range out of which the source is replaced if the client is its own target, so that its
    /// answers come back. `None` if such a connection is treated like any other.
    pub hairpin_source: Option<IpNet>,
    /// The source address that targets of the other family than the client's see, where it has such
    /// targets.
    pub source_of_other_family: Option<IpNet>,
    /// The PROXY header that connections to targets begin with.
    pub proxy_header: Option<ProxyVersion>,
    /// Whether it avoids a target with the client's own address while there is another.
    pub avoids_client: bool,
    /// Whether it terminates TCP connections on layer 4, and opens its own to targets. It does so in
    /// any case on layer 7, where it terminates TLS, and where it sends a PROXY header.
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
    /// What it does with paths of requests that have other forms than one; layer 7 only.
    pub path_normalization: PathNormalization,
    /// The statuses that it answers itself; layer 7 only.
    pub statuses: Statuses,
    /// The sources that it lets in, where it has a firewall of its own: it drops the packets of all
    /// others. `None` lets everyone in.
    pub allowed_sources: Option<Vec<IpNet>>,
    /// The part of this that is not certain: a verdict that rests on it says so.
    pub assumption: Option<BehaviourAssumption>,
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

/// What becomes of a request whose path could be written in another way, such as `//a` or `/%61`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathNormalization {
    /// It is compared with the rules, and forwarded, as it was sent.
    #[default]
    Off,
    /// It is compared and forwarded in its normal form. It is refused if a target could read it as a
    /// path that another rule is for.
    Merge,
    /// It is refused if it is not in its normal form.
    Reject,
}

/// A passive health check: a target is not used for a while after a number of consecutive requests to it
/// have failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PassiveCheck {
    /// The number of consecutive failures.
    pub failures: u32,
    /// How long the target is not used.
    pub rest: Duration,
}

/// The statuses that a load balancer on layer 7 answers without asking a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Statuses {
    /// If no rule matches the request.
    pub no_rule: u16,
    /// If the rule has no eligible target.
    pub no_target: u16,
}

impl Statuses {
    /// Those of most products.
    pub const USUAL: Self = Self { no_rule: 404, no_target: 503 };
}

/// An assumption about how a load balancer behaves, which is likely but not certain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BehaviourAssumption {
    /// What is assumed, as a sentence.
    pub assumed: Text,
    /// Why it is not certain, or what it is inferred from.
    pub because: Text,
    /// How to find out.
    pub settle: Text,
}

impl BehaviourAssumption {
    /// An assumption that is inferred, or on which documents contradict each other: only a
    /// measurement tells.
    pub fn new(assumed: impl Into<Text>, because: impl Into<Text>) -> Self {
        let settle = "measure it: uturn probe".into();
        Self { assumed: assumed.into(), because: because.into(), settle }
    }
}

/// An assumption on which no document says anything.
impl From<&str> for BehaviourAssumption {
    fn from(assumed: &str) -> Self {
        Self::new(assumed, "no document says it")
    }
}
