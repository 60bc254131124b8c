//! Cures: exact edits, tried on a copy of the cluster before they are offered.
//!
//! Each family of cures (one file each) proposes what it knows for a [`Case`]: conditions with
//! their answers, the edits, what they cost; those in `fault` propose for a fault that an object
//! shows without a call. `judge` makes the edits in a draft of the texts, derives the edited cluster,
//! and walks the case and the other flows that can meet what changed. A cure that
//! does not help, or makes another flow worse, is refused with the reason.

mod alias;
mod annotation;
mod balancer;
mod called_name;
mod case;
mod comparison;
mod controller;
mod corefile;
mod diff;
mod endpoint_port;
mod endpoints;
mod entry_point;
mod facts;
mod fault;
mod grant;
mod group;
mod host_network;
mod ingress;
mod judge;
mod kube_proxy;
mod loopback;
mod misled;
mod name;
mod node;
mod node_name;
mod own_target;
mod plain_port;
mod pod_name;
mod policy;
mod relay;
mod service;
mod status;
mod template;

use std::net::{IpAddr, SocketAddr};

use uturn_document::edit::{At, Change, Tree};
use uturn_model::shell::Advice;
use uturn_model::{Flow, Mechanism, NamespacedName, ObjectRef, Outcome, Protocol, Share, Text};
use uturn_snapshot::Manifests;
use uturn_snapshot::manifests::Edit;

use crate::Code;

pub(crate) use self::fault::may_cure;
pub use case::{Case, Subject, case_state};
pub use diff::unified;
pub use judge::TrialBase;

/// An exact edit and its effect.
#[derive(Clone, Debug)]
pub struct Cure {
    /// The name of the cure: `call-service`.
    pub name: &'static str,
    /// The effect of the cure, in a line.
    pub title: String,
    /// How much the cure changes for others; the least intrusive cure has the lowest rank.
    pub rank: u8,
    /// The conditions that must hold for the cure.
    pub conditions: Vec<Condition>,
    /// Side effects of the cure.
    pub effects: Vec<String>,
    /// The commands to type if no manifest can be edited.
    pub commands: Vec<Advice>,
    /// The changes in each text, as unified diffs.
    pub diffs: Vec<String>,
    /// The changed objects, each as a whole.
    pub objects: Vec<(ObjectRef, Tree)>,
    /// All texts as they were tried, including what the cloud and Kubernetes will change by
    /// themselves; `None` if they are too long to be kept.
    pub tried: Option<Manifests>,
    /// The state before the edit.
    pub before: CaseState,
    /// The state after the edit; `None` if the edit was not tried.
    pub after: Option<CaseState>,
    /// The clients of the finding that the cure does not help.
    pub unhelped: Vec<String>,
    /// The reason why the cure is not offered; `None` if it is offered.
    pub refused: Option<String>,
    /// Whether the cure is not offered because it was not tried: the trials before it took too much
    /// work.
    pub is_untried: bool,
}

impl Cure {
    /// Returns whether the caller must change, which helps no other client.
    pub fn is_callers(&self) -> bool {
        matches!(self.name, "call-service" | "call-port" | "call-node")
    }

    /// Returns whether the cure works here.
    pub fn is_offered(&self) -> bool {
        self.refused.is_none()
    }
}

/// A condition that must hold for a cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The condition in words: `kube-proxy runs in IPVS mode`.
    pub what: String,
    /// Whether the condition holds.
    pub answer: Answer,
    /// The source of the answer, or where to find it.
    pub because: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The condition holds.
    Holds,
    /// The condition does not hold.
    Fails,
    /// The input does not show whether the condition holds.
    Unknown,
}

impl Answer {
    /// Returns the answer as it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Unknown => "unknown",
        }
    }
}

/// The end of a flow, the result of health checks, or the faults of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseState {
    /// The outcomes of a flow.
    Flow {
        /// The flow that was walked.
        flow: Flow,
        /// The outcomes with their shares.
        outcomes: Vec<(Outcome, Share)>,
        /// The reasons why some outcomes are not fine.
        mechanisms: Vec<Mechanism>,
        /// The conditions under which the flow has these outcomes, if they are not known to hold.
        /// With several verdicts, these are the conditions of the worst.
        conditions: Vec<Text>,
        /// The share whose outcome is not known although a server has received the call.
        arrived: Share,
        /// Whether the called name leads elsewhere than to the object with this name.
        is_misled: bool,
    },
    /// The results of health checks.
    Probes {
        /// The load balancer's address and port.
        listener: SocketAddr,
        /// The transport protocol.
        protocol: Protocol,
        /// The number of targets that answer.
        alive: usize,
        /// The number of targets.
        of: usize,
    },
    /// The faults that an object has without a call that shows them.
    Object {
        /// The code of the finding.
        code: Code,
        /// The object.
        object: ObjectRef,
        /// What is wrong, in words; empty if nothing is.
        faults: Vec<Text>,
        /// The conditions under which this is wrong, if they are not known to hold.
        conditions: Vec<Text>,
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
    /// New objects, each with the file in which it is created.
    objects: Vec<(String, ObjectRef, Tree)>,
    /// Changes that the cloud or Kubernetes will then make by itself.
    follows: Vec<Edit>,
    /// Host names that then resolve to these addresses.
    resolves: Vec<(String, IpAddr)>,
    /// The flow to walk after the edit, if it is not the flow of the case.
    then: Option<Flow>,
    /// The listener whose health checks are walked after the edit, if the one of the case is gone.
    then_checks: Option<SocketAddr>,
    /// The Service whose own pods and their nodes may no longer reach it through its load balancer.
    /// The cure names this among its effects.
    gives_up: Option<NamespacedName>,
    /// The addresses at which nothing may be called any more. The cure names this among its effects.
    gives_up_addresses: Vec<IpAddr>,
    /// The Service of type ExternalName to which calls get, after the edit, that failed before. It
    /// is not known what answers outside.
    leads_out: Option<NamespacedName>,
    /// Whether the cure is a guess, which is not reported if it does not help.
    is_trial: bool,
}

impl Proposal {
    fn new(name: &'static str, rank: u8, title: impl Into<String>) -> Self {
        Self { name, rank, title: title.into(), ..Self::default() }
    }

    /// Returns whether the proposal changes objects.
    fn changes_objects(&self) -> bool {
        !(self.edits.is_empty() && self.objects.is_empty() && self.follows.is_empty())
    }

    /// Returns whether another proposal makes the same edits.
    fn has_edits_of(&self, other: &Self) -> bool {
        self.edits == other.edits
            && self.objects == other.objects
            && self.follows == other.follows
            && self.resolves == other.resolves
    }

    /// Returns the first condition that does not hold.
    fn failing(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.answer == Answer::Fails)
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
    ($($step:expr),* $(,)?) => { vec![$(uturn_document::edit::At::from($step)),*] };
}
pub(crate) use way;

/// Returns the cures that all families know for a case: those that work first, then by rank. A cure
/// after which servers only receive the requests names what remains, and comes after the others. So
/// does one that does not help all kinds of clients that the finding is about.
pub fn cures(base: &TrialBase<'_>, case: &Case<'_>) -> Vec<Cure> {
    cures_of_each(base, &[case]).pop().unwrap_or_default()
}

/// Returns the cures of several cases, as [`cures`] does. Edits that several cases propose are tried
/// on one copy of the cluster.
pub fn cures_of_each(base: &TrialBase<'_>, cases: &[&Case<'_>]) -> Vec<Vec<Cure>> {
    until_enough(base, cases, usize::MAX)
}

/// Returns the cures of a case, as [`cures`] does, but tries none after the first that works.
pub(crate) fn first_cure(base: &TrialBase<'_>, case: &Case<'_>) -> Vec<Cure> {
    until_enough(base, &[case], 1).pop().unwrap_or_default()
}

fn until_enough(base: &TrialBase<'_>, cases: &[&Case<'_>], enough: usize) -> Vec<Vec<Cure>> {
    let all = cases.iter().enumerate();
    let mut proposals: Vec<(usize, Proposal)> = all
        .flat_map(|(number, case)| {
            proposals(base, case).into_iter().map(move |proposal| (number, proposal))
        })
        .collect();
    // Trials take much work in a large cluster, so the less intrusive cures are tried first: there
    // may be no work left for the rest.
    proposals.sort_by_key(|(_, proposal)| proposal.rank);
    judge::judge_each(base, cases, proposals, enough).into_iter().map(in_order).collect()
}

/// Returns what all families propose for a case.
fn proposals(base: &TrialBase<'_>, case: &Case<'_>) -> Vec<Proposal> {
    let mut proposals = match case.subject {
        Subject::Flow(_) | Subject::Probes(..) => of_calls(case),
        Subject::Object(..) => Vec::new(),
    };
    for new in base.faults_of(case).into_iter().flat_map(|fault| fault::propose(case, fault)) {
        let is_known = |known: &Proposal| !known.edits.is_empty() && known.edits == new.edits;
        if !proposals.iter().any(is_known) {
            proposals.push(new);
        }
    }
    proposals
}

/// Puts the cures of a case in order, and names what they leave.
fn in_order(mut cures: Vec<Cure>) -> Vec<Cure> {
    let only_arrives = |cure: &Cure| {
        let after = cure.after.as_ref().filter(|_| cure.is_offered());
        after.is_some_and(|after| after.only_arrives(&cure.before))
    };
    cures.sort_by_key(|cure| {
        let is_partial = !cure.unhelped.is_empty();
        (!cure.is_offered(), is_partial, only_arrives(cure), cure.rank, cure.title.clone())
    });
    for cure in &mut cures {
        if !cure.unhelped.is_empty() {
            cure.title = format!("{}; not for {}", cure.title, cure.unhelped.join(" and "));
        }
        if only_arrives(cure)
            && let Some(after) = &cure.after
        {
            cure.title = format!("{}; what remains: {}", cure.title, after.summary());
        }
    }
    cures
}

/// Returns what the families know for a flow or health checks.
fn of_calls(case: &Case<'_>) -> Vec<Proposal> {
    let families: [fn(&Case<'_>) -> Vec<Proposal>; 25] = [
        name::propose,
        corefile::propose,
        loopback::propose,
        balancer::propose,
        annotation::propose,
        status::propose,
        controller::propose,
        group::propose,
        policy::propose,
        service::propose,
        plain_port::propose,
        ingress::propose,
        node::propose,
        kube_proxy::propose,
        relay::propose,
        |case| own_target::propose(case).into_iter().collect(),
        |case| pod_name::propose(case).into_iter().collect(),
        node_name::propose,
        endpoint_port::propose,
        |case| called_name::propose(case).into_iter().collect(),
        |case| alias::propose(case).into_iter().collect(),
        entry_point::propose,
        |case| grant::propose(case).into_iter().collect(),
        misled::propose,
        |case| host_network::of_hidden_pod(case).into_iter().collect(),
    ];
    families.into_iter().flat_map(|family| family(case)).collect()
}
