//! What becomes of one call.

use uturn_model::{Outcome, Share};

use crate::result::{Effect, Side};

/// How bad calls are: the share that gets no answer, and the mean wait of the others.
struct Harm {
    lost: Share,
    wait: f64,
    is_open: bool,
}

/// The least difference of mean waits, in seconds.
const LEAST: f64 = 1e-3;

impl Harm {
    /// Returns the harm in the worst case.
    fn of(ends: &[Side]) -> Self {
        let worst = Self { lost: Share::NONE, wait: 0.0, is_open: false };
        ends.iter().fold(worst, |worst, side| {
            let share = |counts: &dyn Fn(&Outcome) -> bool| -> Share {
                let counted = side.outcomes.iter().filter(|(outcome, _)| counts(outcome));
                counted.map(|(_, share)| *share).sum()
            };
            let is_lost = |outcome: &Outcome| !outcome.is_answered() && !outcome.is_unknown();
            let waits = side.outcomes.iter().filter(|(outcome, _)| outcome.is_answered());
            let wait = waits
                .filter_map(|(outcome, share)| Some(outcome.after()?.as_secs_f64() * share.get()));
            Self {
                lost: worst.lost.larger(share(&is_lost)),
                wait: worst.wait.max(wait.sum()),
                is_open: worst.is_open || !share(&Outcome::is_unknown).is_none(),
            }
        })
    }
}

/// Returns what becomes of a call that exists before and after. `None` if it ends as before.
pub(super) fn of_both(before: &[Side], after: &[Side]) -> Option<Effect> {
    if is_same(before, after) {
        return None;
    }
    let (old, new) = (Harm::of(before), Harm::of(after));
    Some(match (old.is_open, new.is_open) {
        (false, true) if !new.lost.is_more_than(old.lost) => Effect::NotJudged,
        (true, false) if !old.lost.is_more_than(new.lost) => Effect::Judged,
        _ if new.lost.is_more_than(old.lost) => Effect::Fails,
        _ if old.lost.is_more_than(new.lost) => Effect::Recovers,
        _ if new.wait > old.wait + LEAST => Effect::Slower,
        _ if old.wait > new.wait + LEAST => Effect::Faster,
        _ => Effect::FailsOtherwise,
    })
}

/// Returns what becomes of a call whose client or target is new. `is_new` tells whether an object of
/// it is, so that nobody expected an answer before.
pub(super) fn of_new(after: &[Side], is_new: bool) -> Effect {
    let harm = Harm::of(after);
    match (harm.lost.is_none(), is_new) {
        (false, _) => Effect::NewFails,
        (true, true) => Effect::New,
        (true, false) => Effect::GainsTarget,
    }
}

/// Returns whether calls end alike in each case.
fn is_same(before: &[Side], after: &[Side]) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|(old, new)| {
            let mut own: Vec<&(Outcome, Share)> = old.outcomes.iter().collect();
            let mut other: Vec<&(Outcome, Share)> = new.outcomes.iter().collect();
            own.sort_by_key(|(outcome, _)| *outcome);
            other.sort_by_key(|(outcome, _)| *outcome);
            own.len() == other.len()
                && own
                    .iter()
                    .zip(other)
                    .all(|(own, other)| own.0 == other.0 && own.1.is_about(other.1))
                && old.mechanisms == new.mechanisms
        })
}

/// Returns the case that is the worst.
pub(super) fn worst(ends: &[Side]) -> Side {
    let rank = |side: &Side| {
        let harm = Harm::of(std::slice::from_ref(side));
        (harm.lost.rounded(), (harm.wait * 1e6) as u64)
    };
    // The first of equal cases.
    let mut best: Option<&Side> = None;
    for side in ends {
        if best.is_none_or(|known| rank(side) > rank(known)) {
            best = Some(side);
        }
    }
    best.cloned().unwrap_or_default()
}
