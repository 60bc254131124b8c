//! How calls end before and after a loss.

use std::hash::{Hash, Hasher};

use uturn_model::{Mechanism, Outcome, Share, Verdict};

/// The least difference of waits that counts, in seconds.
const LEAST_WAIT: f64 = 1e-3;

/// How calls end.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// Each outcome with its share.
    pub outcomes: Vec<(Outcome, Share)>,
    /// The reasons why some are not fine.
    pub mechanisms: Vec<Mechanism>,
}

/// How calls end before a loss, at once, and after it was noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Before the loss.
    pub before: End,
    /// While nothing has noticed the loss.
    pub at_once: End,
    /// After health checks and endpoints have followed.
    pub noticed: End,
}

impl Ends {
    /// Returns whether calls are worse off at once, or after the loss was noticed.
    pub fn is_worse(&self) -> bool {
        self.at_once.is_worse_than(&self.before) || self.noticed.is_worse_than(&self.before)
    }

    /// Returns whether fewer calls are answered after the loss was noticed.
    pub fn is_lasting(&self) -> bool {
        self.noticed.unanswered().is_more_than(self.before.unanswered())
    }

    /// Returns whether no call is answered at once, although some were before.
    pub fn is_all_lost_at_once(&self) -> bool {
        self.at_once.unanswered().is_all() && !self.before.unanswered().is_all()
    }
}

impl End {
    /// Returns the worst of several verdicts.
    pub(super) fn of(verdicts: &[Verdict]) -> Self {
        let all = verdicts.iter().map(Self::of_verdict);
        all.reduce(|a, b| if b.is_worse_than(&a) { b } else { a }).unwrap_or_default()
    }

    pub(super) fn of_verdict(verdict: &Verdict) -> Self {
        Self { outcomes: verdict.outcomes.clone(), mechanisms: verdict.mechanisms.clone() }
    }

    /// Returns the share that is known not to be answered.
    pub fn unanswered(&self) -> Share {
        self.share(|outcome| !outcome.is_answered() && !outcome.is_unknown())
    }

    /// Returns the share of which it is not known how it ends.
    pub fn unknown(&self) -> Share {
        self.share(Outcome::is_unknown)
    }

    fn share(&self, counts: impl Fn(&Outcome) -> bool) -> Share {
        self.outcomes.iter().filter(|(end, _)| counts(end)).map(|(_, share)| *share).sum()
    }

    /// Returns how many seconds calls wait for an answer on average; those without one count as none.
    fn wait(&self) -> f64 {
        let answered = self.outcomes.iter().filter(|(outcome, _)| outcome.is_answered());
        let waits = answered
            .filter_map(|(outcome, share)| Some(outcome.after()?.as_secs_f64() * share.get()));
        waits.sum()
    }

    /// Returns whether fewer calls are answered, or as many later.
    pub fn is_worse_than(&self, other: &Self) -> bool {
        let (own, others) = (self.unanswered(), other.unanswered());
        own.is_more_than(others)
            || !others.is_more_than(own) && self.wait() > other.wait() + LEAST_WAIT
    }

    /// Returns the outcomes with shares in millionths: rules write probabilities in ten digits, and
    /// their products differ by the order of the endpoints.
    pub(super) fn key(&self) -> impl Iterator<Item = (Outcome, u64)> + '_ {
        self.outcomes.iter().map(|(outcome, share)| (*outcome, (share.get() * 1e6).round() as u64))
    }
}

impl PartialEq for End {
    /// Compares ends as they are shown: shares are rounded.
    fn eq(&self, other: &Self) -> bool {
        self.key().eq(other.key()) && self.mechanisms == other.mechanisms
    }
}

impl Eq for End {}

impl Hash for End {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().for_each(|own| own.hash(state));
        self.mechanisms.hash(state);
    }
}
