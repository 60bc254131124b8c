//! The result of walking a flow: its routes, hop by hop, and their sum.

mod failure_point;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

pub use failure_point::FailurePoint;

use crate::{Assumption, Evidence, Mechanism, Name, NamespacedName, Outcome, Share, Text};

/// One route that a flow can take.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its probability, more than 0 and at most 1.
    pub share: Share,
    /// Its outcome.
    pub outcome: Outcome,
    /// The delay of the retransmission that arrived, if the outcome does not include it.
    pub late: Duration,
    /// The reasons why it fails or is slow; empty if nothing is wrong.
    pub mechanisms: Vec<Mechanism>,
    /// Whether its probability is due to random rules rather than a scheduler's rotation.
    pub chance: bool,
    /// Whether it represents others that end alike: its hops are those of one of them.
    pub has_others: bool,
    /// Where packets are stopped on this route and on the others that it represents.
    pub failures: Vec<FailurePoint>,
    /// The hops, forth and back, in order.
    pub hops: Vec<Hop>,
}

/// The stay of a packet at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// The place.
    pub place: Place,
    /// Whether it is on the way to the target or back.
    pub direction: Direction,
    /// The events there, in order; at least one step.
    pub steps: Vec<Step>,
}

/// Direction of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the client to the target.
    Out,
    /// From the target to the client.
    Back,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Out => "out",
            Self::Back => "back",
        })
    }
}

/// A place where a packet can be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Name resolution.
    Dns,
    /// A pod.
    Pod(NamespacedName),
    /// A node's kernel.
    Node(Name),
    /// The network between the nodes.
    Fabric,
    /// A load balancer.
    LoadBalancer(Text),
    /// Outside everything that is known.
    Outside,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns => f.write_str("dns"),
            Self::Pod(name) => write!(f, "pod/{name}"),
            Self::Node(name) => write!(f, "node/{name}"),
            Self::Fabric => f.write_str("fabric"),
            Self::LoadBalancer(name) => write!(f, "lb/{name}"),
            Self::Outside => f.write_str("outside"),
        }
    }
}

/// An event of a packet's route, and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The event.
    pub kind: StepKind,
    /// The reason, in words.
    pub why: Text,
    /// The evidence for the step.
    pub by: Evidence,
    /// The packet before the step, if the step changed it.
    pub before: Option<Leg>,
    /// The packet after the step, if it still exists.
    pub after: Option<Leg>,
}

impl Step {
    /// Makes a step that does not change the packet.
    pub fn new(kind: StepKind, why: impl Into<Text>, by: Evidence) -> Self {
        Self { kind, why: why.into(), by, before: None, after: None }
    }

    /// Adds the unchanged packet.
    #[must_use]
    pub fn seeing(mut self, packet: Leg) -> Self {
        self.after = Some(packet);
        self
    }

    /// Adds the packet before and after.
    #[must_use]
    pub fn changing(mut self, before: Leg, after: Leg) -> Self {
        self.before = Some(before);
        self.after = Some(after);
        self
    }
}

/// The events of a packet's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepKind {
    /// A name became an address.
    Resolve,
    /// The packet was sent.
    Send,
    /// A route was looked up.
    Route,
    /// A filter let the packet through.
    Filter,
    /// A mark was set on the packet.
    Mark,
    /// An address or port was changed.
    Translate,
    /// An address or port was changed back.
    Untranslate,
    /// One target of several was picked.
    Balance,
    /// A target did not answer in time.
    Timeout,
    /// The packet was delivered to a process.
    Deliver,
    /// A process answered.
    Answer,
    /// The packet was dropped.
    Drop,
    /// The packet was rejected.
    Reject,
    /// The packet returned to the node that it came from (hairpin).
    Turn,
    /// It is not known what happens: all possibilities are followed.
    Unknown,
}

impl StepKind {
    /// Returns whether a packet ends with such a step.
    pub fn stops_packet(self) -> bool {
        matches!(self, Self::Drop | Self::Reject)
    }

    /// Returns the word in JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Send => "send",
            Self::Route => "route",
            Self::Filter => "filter",
            Self::Mark => "mark",
            Self::Translate => "translate",
            Self::Untranslate => "untranslate",
            Self::Balance => "balance",
            Self::Timeout => "timeout",
            Self::Deliver => "deliver",
            Self::Answer => "answer",
            Self::Drop => "drop",
            Self::Reject => "reject",
            Self::Turn => "turn",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A packet's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leg {
    /// The source.
    pub src: SocketAddr,
    /// The destination.
    pub dst: SocketAddr,
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.src, self.dst)
    }
}

/// The sum of a flow's routes, under one set of conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The conditions under which the verdict holds; empty if there are none.
    pub conditions: Vec<Text>,
    /// Each outcome with its share, the likeliest first; the shares add up to 1.
    pub outcomes: Vec<(Outcome, Share)>,
    /// The reasons why some routes are not fine.
    pub mechanisms: Vec<Mechanism>,
    /// The assumptions on which it rests.
    pub supposed: Vec<Assumption>,
    /// The possible routes.
    pub routes: Vec<Route>,
}

impl Verdict {
    /// Sums up routes, and scales their shares to sum to 1.
    pub fn of(routes: Vec<Route>, conditions: Vec<Text>, supposed: Vec<Assumption>) -> Self {
        let total: f64 = routes.iter().map(|route| route.share.get()).sum();
        let mut mechanisms = Vec::new();
        let ends =
            routes.iter().map(|route| (route.outcome, Share::ratio(route.share.get(), total)));
        let mut ends: Vec<(Outcome, Share)> = ends.collect();
        // Shares of one outcome are added up in the order of the routes.
        ends.sort_by_key(|end| end.0);
        let mut outcomes: Vec<(Outcome, Share)> = Vec::with_capacity(ends.len().min(8));
        for (outcome, share) in ends {
            match outcomes.last_mut() {
                Some((last, sum)) if *last == outcome => *sum += share,
                _ => outcomes.push((outcome, share)),
            }
        }
        for route in &routes {
            for mechanism in &route.mechanisms {
                if !mechanisms.contains(mechanism) {
                    mechanisms.push(*mechanism);
                }
            }
        }
        outcomes.sort_by(|a, b| b.1.rounded_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        mechanisms.sort_unstable();
        Self { conditions, outcomes, mechanisms, supposed, routes }
    }

    /// Returns the share of all that is known and not answered at once.
    pub fn share_failing(&self) -> Share {
        let good: Share = self
            .outcomes
            .iter()
            .filter(|(outcome, _)| !outcome.is_bad())
            .map(|(_, share)| *share)
            .sum();
        // Thirds do not add up to one exactly.
        if good.is_all() { Share::NONE } else { good.complement() }
    }

    /// Returns whether a part of the outcome is unknown.
    pub fn is_open(&self) -> bool {
        self.outcomes.iter().any(|(outcome, _)| outcome.is_unknown())
    }

    /// Returns whether outcomes are random, so that shares hold on average only.
    pub fn is_by_chance(&self) -> bool {
        self.outcomes.len() > 1 && self.routes.iter().any(|route| route.chance)
    }

    /// Returns whether every route is answered at once.
    pub fn is_fine(&self) -> bool {
        !self.can_fail() && !self.is_open()
    }

    /// Returns whether a route is known not to be answered at once.
    pub fn can_fail(&self) -> bool {
        !self.share_failing().is_none()
    }
}
