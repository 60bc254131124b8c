//! The result of a comparison.

use serde::Serialize;
use uturn_diagnose::{Code, CureTitle, Observation, Severity, Untried};
use uturn_model::{
    Assumption, Mechanism, NamespacedName, ObjectRef, Origin, Outcome, Share, Text, Unjudged,
};

/// What a change does to calls.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The calls that get worse, the worst first.
    pub worse: Vec<Entry>,
    /// The calls that get better.
    pub better: Vec<Entry>,
    /// The calls that go otherwise, and neither better nor worse.
    pub other: Vec<Entry>,
    /// What keeps calls from being judged.
    pub not_judged: Vec<NotJudged>,
    /// The assumptions on which the comparison rests.
    pub supposed: Vec<Assumption>,
    /// The number of calls that were compared: of a pod, a node or a client outside to a target.
    pub calls: usize,
    /// Notes about the comparison.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Forgets which cures were not tried: where the texts do not show what was changed, no cure of them
    /// is for it.
    pub fn forget_untried(&mut self) {
        let entries = self.worse.iter_mut().chain(&mut self.better).chain(&mut self.other);
        for subject in entries.filter_map(|entry| entry.subjected.as_mut()) {
            subject.untried = None;
        }
    }

    /// Returns whether nothing changes for any call.
    pub fn is_empty(&self) -> bool {
        self.worse.is_empty() && self.better.is_empty() && self.other.is_empty()
    }
}

/// Something that keeps calls from being judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotJudged {
    /// What it is.
    pub unjudged: Unjudged,
    /// Whether it is so before the change.
    pub before: bool,
    /// Whether it is so after the change.
    pub after: bool,
}

/// Calls that change alike, for the same cause.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What becomes of the calls.
    pub effect: Effect,
    /// The object that is called, or that is at fault.
    pub subject: ObjectRef,
    /// The ports, hosts and paths of the object.
    pub targets: Vec<String>,
    /// The clients.
    pub who: Who,
    /// How the calls ended before.
    pub before: Side,
    /// How the calls end after.
    pub after: Side,
    /// The conditions under which it is so, if it depends on something unknown.
    pub conditions: Vec<Text>,
    /// The finding that says why: after the change for what gets worse, else before it.
    pub subjected: Option<Subject>,
    /// The place where the object is written.
    pub origin: Option<Origin>,
}

/// What a finding says of the calls of an entry.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The code.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The object that the finding is about.
    pub object: ObjectRef,
    /// The reason in words.
    pub because: Option<Text>,
    /// What the finding rests on.
    pub evidence: Vec<Observation>,
    /// The cures that help, the least intrusive first.
    pub cures: Vec<CureTitle>,
    /// The cures that were not tried.
    pub untried: Option<Untried>,
}

/// The clients of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The pods, in order.
    pub pods: Vec<NamespacedName>,
    /// The workloads that make these pods, as on the command line, with their number of pods; a pod
    /// of no workload stands for itself.
    pub workloads: Vec<(String, usize)>,
    /// The number of nodes that the pods are on.
    pub nodes: usize,
    /// Clients that are not pods.
    pub others: Vec<String>,
}

impl Who {
    /// Returns the number of clients.
    pub fn len(&self) -> usize {
        self.pods.len() + self.others.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How calls end on one side of a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// The outcomes with their shares, the likeliest first; none if there is no such call.
    pub outcomes: Vec<(Outcome, Share)>,
    /// The reasons why some calls are not fine.
    pub mechanisms: Vec<Mechanism>,
    /// How calls go, where that is what differs: `the pod's own address is seen`.
    pub way: Option<String>,
}

impl Side {
    /// Returns whether there is no such call: the client or the target does not exist.
    pub fn is_absent(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// Returns the share of calls that is not answered at once.
    pub fn share_failing(&self) -> Share {
        let bad = self.outcomes.iter().filter(|(outcome, _)| outcome.is_bad());
        bad.map(|(_, share)| *share).sum()
    }
}

/// How calls ended in each case of what is not known.
pub type Verdicts = Vec<Side>;

/// What becomes of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Effect {
    /// Calls, or a larger share of them, are not answered any more.
    Fails,
    /// There are new calls that fail.
    NewFails,
    /// Calls are not answered any more, since their target is gone.
    LosesTarget,
    /// Calls are answered later.
    Slower,
    /// A fault is new that no compared call shows.
    Found,
    /// Calls, or a larger share of them, are answered now.
    Recovers,
    /// Calls that failed are gone, with their client or target.
    FailingGone,
    /// A target is there that answers, where calls had none before.
    GainsTarget,
    /// Calls are answered earlier.
    Faster,
    /// A fault is gone that no compared call shows.
    Cured,
    /// Calls fail in another way, or for another reason.
    FailsOtherwise,
    /// Calls are answered as before, but servers see another source address, or they pass another node.
    GoesOtherwise,
    /// Calls that could be judged cannot be judged any more.
    NotJudged,
    /// Calls that could not be judged can be judged.
    Judged,
    /// A warning is new that no compared call shows.
    Warned,
    /// A warning is gone that no compared call shows.
    Unwarned,
    /// The client or the target is new.
    New,
    /// The client or the target is gone with the changes.
    Gone,
}

/// The lists of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// What gets worse.
    Worse,
    /// What gets better.
    Better,
    /// What goes otherwise.
    Other,
}

impl Effect {
    /// Returns the list to which the effect belongs.
    pub fn list(self) -> List {
        match self {
            Self::Fails | Self::NewFails | Self::LosesTarget | Self::Slower | Self::Found => {
                List::Worse
            }
            Self::Recovers | Self::FailingGone | Self::GainsTarget | Self::Faster | Self::Cured => {
                List::Better
            }
            Self::FailsOtherwise
            | Self::GoesOtherwise
            | Self::NotJudged
            | Self::Judged
            | Self::Warned
            | Self::Unwarned
            | Self::New
            | Self::Gone => List::Other,
        }
    }

    /// Returns the effect of the same difference with both sides swapped.
    #[must_use]
    pub fn swapped(self) -> Self {
        match self {
            Self::Fails => Self::Recovers,
            Self::Recovers => Self::Fails,
            Self::NewFails => Self::FailingGone,
            Self::FailingGone => Self::NewFails,
            Self::LosesTarget => Self::GainsTarget,
            Self::GainsTarget => Self::LosesTarget,
            Self::Slower => Self::Faster,
            Self::Faster => Self::Slower,
            Self::Found => Self::Cured,
            Self::Cured => Self::Found,
            Self::NotJudged => Self::Judged,
            Self::Judged => Self::NotJudged,
            Self::Warned => Self::Unwarned,
            Self::Unwarned => Self::Warned,
            Self::New => Self::Gone,
            Self::Gone => Self::New,
            Self::FailsOtherwise | Self::GoesOtherwise => self,
        }
    }
}
