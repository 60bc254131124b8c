//! Cures: exact edits, tried on a copy of the cluster before they are offered.
//!
//! Each family of cures (one file each) proposes what it knows for a [`Case`]: conditions with
//! their answers, the edits, what they cost. `judge` makes the edits in the texts, reads the
//! cluster anew and walks the case, and all other flows before and after the edits. A cure that
//! does not help, or makes another flow worse, is refused with the reason.

mod annotation;
mod balancer;
mod case;
mod comparison;
mod controller;
mod destination;
mod diff;
mod facts;
mod group;
mod ingress;
mod judge;
mod loopback;
mod name;
mod node;
mod service;

use std::net::{IpAddr, SocketAddr};

use uturn_model::shell::Advice;
use uturn_model::{Flow, Mechanism, NamespacedName, ObjectRef, Outcome, Protocol, Share, Text};
use uturn_snapshot::Manifests;
use uturn_snapshot::edit::{At, Change, Tree};
use uturn_snapshot::manifests::Edit;

pub use case::{Case, Subject};
pub use diff::unified;
pub use judge::TrialBase;

/// An exact edit with what it leads to.
#[derive(Clone, Debug)]
pub struct Cure {
    /// Its name: `call-service`.
    pub name: &'static str,
    /// What it does, in a line.
    pub title: String,
    /// How much it changes for others; the least intrusive first.
    pub rank: u8,
    /// What has to hold.
    pub conditions: Vec<Condition>,
    /// What else it does.
    pub effects: Vec<String>,
    /// What is typed where no manifest can be edited.
    pub commands: Vec<Advice>,
    /// What it changes in each text, as a unified diff.
    pub diffs: Vec<String>,
    /// The objects it changes, whole.
    pub objects: Vec<(ObjectRef, Tree)>,
    /// All texts as they were tried, with what the cloud and Kubernetes will change by themselves; `None`
    /// if they are too long to be kept.
    pub tried: Option<Manifests>,
    /// The state before the edit.
    pub before: CaseState,
    /// The state after the edit; `None` if the edit was not tried.
    pub after: Option<CaseState>,
    /// Why it is not offered; `None` if it is.
    pub refused: Option<String>,
    /// Whether it is not offered because it was not tried: the trials before it took too much work.
    pub is_untried: bool,
}

impl Cure {
    /// Whether the caller has to change, which helps no other client.
    pub fn is_callers(&self) -> bool {
        matches!(self.name, "call-service" | "call-port")
    }

    /// Whether it works here.
    pub fn is_offered(&self) -> bool {
        self.refused.is_none()
    }
}

/// Something that has to hold for a cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What: `kube-proxy runs in IPVS mode`.
    pub what: String,
    /// Whether it does.
    pub answer: Answer,
    /// The source of the answer, or where to find it.
    pub because: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// The input does not say.
    Unknown,
}

impl Answer {
    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Unknown => "unknown",
        }
    }
}

/// How a flow ends, or what health checks find.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseState {
    /// A flow's outcomes.
    Flow {
        /// The flow that was walked.
        flow: Flow,
        /// Each outcome with its share.
        outcomes: Vec<(Outcome, Share)>,
        /// Why some of it is not fine.
        mechanisms: Vec<Mechanism>,
        /// What has to hold for these outcomes, if that is not known. Of several cases, the worst.
        conditions: Vec<Text>,
    },
    /// What health checks find.
    Probes {
        /// The load balancer's address and port.
        listener: SocketAddr,
        /// The transport protocol.
        protocol: Protocol,
        /// How many targets answer.
        alive: usize,
        /// How many targets there are.
        of: usize,
    },
}

/// A cure that a family proposes, before it is tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposal {
    name: &'static str,
    title: String,
    rank: u8,
    conditions: Vec<Condition>,
    effects: Vec<String>,
    commands: Vec<Advice>,
    edits: Vec<Edit>,
    /// New objects, each with the file it goes to.
    objects: Vec<(String, ObjectRef, Tree)>,
    /// What the cloud or Kubernetes will then do by itself.
    follows: Vec<Edit>,
    /// Names that then lead to these addresses.
    resolves: Vec<(String, IpAddr)>,
    /// The flow to walk after the edit, if it is not the flow of the case.
    then: Option<Flow>,
    /// The listener whose health checks are walked after the edit, if the one of the case is gone.
    then_checks: Option<SocketAddr>,
    /// The Service whose own pods and their nodes may lose the way to it through its load
    /// balancer: the cure says so among its effects.
    gives_up: Option<NamespacedName>,
    /// Whether it is a guess, which is not reported if it does not help.
    is_trial: bool,
}

impl Proposal {
    fn new(name: &'static str, rank: u8, title: impl Into<String>) -> Self {
        Self { name, rank, title: title.into(), ..Self::default() }
    }

    fn when(mut self, what: impl Into<String>, holds: bool, because: impl Into<String>) -> Self {
        let answer = if holds { Answer::Holds } else { Answer::Fails };
        self.conditions.push(Condition { what: what.into(), answer, because: because.into() });
        self
    }

    fn ask(mut self, what: impl Into<String>, because: impl Into<String>) -> Self {
        let (what, because) = (what.into(), because.into());
        self.conditions.push(Condition { what, answer: Answer::Unknown, because });
        self
    }

    fn costs(mut self, effect: impl Into<String>) -> Self {
        self.effects.push(effect.into());
        self
    }

    fn types(mut self, command: impl Into<Advice>) -> Self {
        self.commands.push(command.into());
        self
    }

    fn edit(mut self, object: ObjectRef, path: Vec<At>, change: Change) -> Self {
        self.edits.push(Edit { object, path, change });
        self
    }

    fn follow(mut self, object: ObjectRef, path: Vec<At>, change: Change) -> Self {
        self.follows.push(Edit { object, path, change });
        self
    }

    fn trial(mut self) -> Self {
        self.is_trial = true;
        self
    }
}

/// A path in a document, from keys and indices.
macro_rules! way {
    ($($step:expr),* $(,)?) => { vec![$(uturn_snapshot::edit::At::from($step)),*] };
}
pub(crate) use way;

/// Every cure that a family knows for a case: those that work first, by rank.
pub fn cures(base: &TrialBase<'_>, case: &Case<'_>) -> Vec<Cure> {
    let families: [fn(&Case<'_>) -> Vec<Proposal>; 8] = [
        name::propose,
        loopback::propose,
        balancer::propose,
        annotation::propose,
        group::propose,
        service::propose,
        ingress::propose,
        node::propose,
    ];
    let mut proposals: Vec<Proposal> =
        families.into_iter().flat_map(|family| family(case)).collect();
    // Trials take much work in a large cluster, so that some may not be made.
    proposals.sort_by_key(|proposal| proposal.rank);
    let mut cures: Vec<Cure> =
        proposals.iter().filter_map(|proposal| judge::judge(base, case, proposal)).collect();
    cures.sort_by_key(|cure| (!cure.is_offered(), cure.rank, cure.title.clone()));
    cures
}
