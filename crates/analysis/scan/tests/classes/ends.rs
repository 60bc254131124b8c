//! How calls end, as scans and brute force are compared.

use uturn_model::{Mechanism, Outcome, Share, Verdict};

/// Outcomes with their shares, in order, and why some are not fine.
pub(crate) type End = (Vec<(Outcome, Share)>, Vec<Mechanism>);

/// Returns how a verdict ends.
pub(crate) fn end(verdict: &Verdict) -> End {
    let mut outcomes = verdict.outcomes.clone();
    outcomes.sort_by_key(|end| end.0);
    (outcomes, verdict.mechanisms.clone())
}

/// Returns whether two ends are the same but for rounding.
pub(crate) fn is_same(own: &End, other: &End) -> bool {
    own.1 == other.1
        && own.0.len() == other.0.len()
        && own.0.iter().zip(&other.0).all(|(a, b)| a.0 == b.0 && a.1.is_rounded_from(b.1))
}
