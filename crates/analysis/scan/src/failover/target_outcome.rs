//! The results of asking one target.

use std::time::Duration;

use uturn_model::Share;
use uturn_path::ReasonSet;

/// A way in which asking a target fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Failure {
    /// Whether the target does not answer at all.
    pub(crate) is_timeout: bool,
    pub(crate) why: ReasonSet,
    pub(crate) share: Share,
}

/// The ways in which asking a target ends; all shares add up to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TargetOutcome {
    /// The weight with which the target is asked first.
    pub(crate) weight: f64,
    pub(crate) answers: Vec<(ReasonSet, Share)>,
    pub(crate) failures: Vec<Failure>,
}

/// Whether a target timed out or refused, `None` if it answered; its delay and its share.
type End = (Option<bool>, Duration, Share);

impl TargetOutcome {
    pub(crate) fn fails(&self) -> Share {
        self.failures.iter().map(|failure| failure.share).sum()
    }

    /// Returns whether asking both targets ends alike, for any reason.
    pub(crate) fn ends_like(&self, other: &Self) -> bool {
        let (own, others) = (self.ends(), other.ends());
        let share = |all: &[End], end: &End| {
            let same = all.iter().filter(|known| (known.0, known.1) == (end.0, end.1));
            same.map(|known| known.2).sum::<Share>()
        };
        let is_as_often = |end: &End| share(&own, end).is_rounded_from(share(&others, end));
        self.weight == other.weight && own.iter().chain(&others).all(is_as_often)
    }

    fn ends(&self) -> Vec<End> {
        let answers = self.answers.iter().map(|(why, share)| (None, why.late(), *share));
        let failures = self
            .failures
            .iter()
            .map(|failure| (Some(failure.is_timeout), failure.why.late(), failure.share));
        answers.chain(failures).collect()
    }

    /// Returns whether the target never answers.
    pub(crate) fn never_answers(&self) -> bool {
        self.answers.is_empty()
    }

    /// Returns whether both are equal, except for rounding of rules' probabilities.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.answers.len() == other.answers.len()
            && self.failures.len() == other.failures.len()
            && self.weight == other.weight
            && self
                .answers
                .iter()
                .zip(&other.answers)
                .all(|(a, b)| a.0 == b.0 && a.1.is_rounded_from(b.1))
            && self.failures.iter().zip(&other.failures).all(|(a, b)| {
                a.is_timeout == b.is_timeout && a.why == b.why && a.share.is_rounded_from(b.share)
            })
    }
}
