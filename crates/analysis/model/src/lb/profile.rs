//! The behaviour of a kind of load balancer, as data.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::HealthCheck;
use crate::Text;

/// The behaviour of a kind of load balancer. It is data, so that another cloud needs no other code
/// path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Its name, as reports print it.
    pub name: Text,
    /// The delivery of packets to a target, and of answers back.
    pub delivery: Delivery,
    /// The source address that targets see.
    pub source: Source,
    /// The range from which the source is replaced if the client is its own target, so that the
    /// answers come back. `None` if such a connection is treated like any other.
    pub hairpin_source: Option<IpNet>,
    /// The range of source addresses that targets of the other family than the client's see, if the
    /// load balancer has such targets.
    pub source_of_other_family: Option<IpNet>,
    /// Whether targets get TLS on connections whose TLS the load balancer terminates. `None` if that
    /// is not known.
    pub target_tls: Option<bool>,
    /// The PROXY header that connections to targets begin with.
    pub proxy_header: Option<ProxyVersion>,
    /// Whether it avoids a target with the client's own address while there is another.
    pub avoids_client: bool,
    /// Whether it terminates TCP connections on layer 4, and opens its own to targets. It always
    /// does so on layer 7, to terminate TLS, and to send a PROXY header.
    pub ends_connections: bool,
    /// The connect timeout to a target, if it makes connections itself.
    pub connect_timeout: Duration,
    /// Whether it tries another target if one does not answer; layer 7 only.
    pub next_target: bool,
    /// The scheduler that selects a target.
    pub scheduler: Scheduler,
    /// The percentage of alive targets at or below which all count as alive: with 0, if none is
    /// alive. `None`: dead targets are never picked.
    pub panic_threshold: Option<u8>,
    /// Its active health check.
    pub health_check: Option<HealthCheck>,
    /// Its passive health check; layer 7 only.
    pub passive_check: Option<PassiveCheck>,
    /// The treatment of request paths that are not in normal form; layer 7 only.
    pub path_normalization: PathNormalization,
    /// The statuses with which it answers itself; layer 7 only.
    pub statuses: Statuses,
    /// The sources that it allows, if it has a firewall of its own: it drops the packets of all
    /// others. `None` allows every source.
    pub allowed_sources: Option<Vec<IpNet>>,
    /// The part of the behaviour that is not certain: a verdict that rests on it says so.
    pub assumption: Option<BehaviourAssumption>,
}

/// The source address of packets from a load balancer to a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The client's own.
    Kept,
    /// SNAT to an address of the load balancer in this range; on layer 7, the client's address is
    /// in `X-Forwarded-For`.
    Replaced(IpNet),
}

/// The delivery of packets from a load balancer to a target, and of answers back to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Packets are sent to the target's own address and port. Answers come back through the load
    /// balancer.
    #[default]
    ToTarget,
    /// Packets are handed to the target's node with the address and port that the client called, as
    /// with floating IPs, direct server return and announced addresses. A rule or a process on the
    /// node has to know that address. The node sends answers directly to the client.
    KeepsAddress,
}

impl Delivery {
    /// Returns the destination of packets to a target that clients called at another address.
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

/// A scheduler that selects a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// Round robin by weight.
    WeightedRoundRobin,
    /// The target with the fewest connections relative to its weight.
    LeastConnections,
    /// By a hash of the client's address.
    SourceHash,
}

/// The treatment of a request whose path is not in normal form, such as `//a` or `/%61`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathNormalization {
    /// The path is compared with the rules, and forwarded, as it was sent.
    #[default]
    Off,
    /// The path is compared and forwarded in its normal form. The request is refused if a target
    /// could read the path as one that another rule is for.
    Merge,
    /// The request is refused.
    Reject,
}

/// A passive health check: a target is not used for a while after a number of consecutive requests
/// to it have failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PassiveCheck {
    /// The number of consecutive failures.
    pub failures: u32,
    /// The time for which the target is not used.
    pub rest: Duration,
}

/// The statuses with which a load balancer on layer 7 answers without asking a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Statuses {
    /// The status if no rule matches the request.
    pub no_rule: u16,
    /// The status if the rule has no eligible target.
    pub no_target: u16,
}

impl Statuses {
    /// The statuses of most products.
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
    /// Makes an assumption that is inferred, or on which documents contradict each other: only a
    /// measurement can settle it.
    pub fn new(assumed: impl Into<Text>, because: impl Into<Text>) -> Self {
        let settle = "measure it: uturn probe".into();
        Self { assumed: assumed.into(), because: because.into(), settle }
    }
}

/// Makes an assumption that no document mentions.
impl From<&str> for BehaviourAssumption {
    fn from(assumed: &str) -> Self {
        Self::new(assumed, "no document says it")
    }
}
