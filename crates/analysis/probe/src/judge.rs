//! The comparison of calls with a prediction.
//!
//! A prediction gives each outcome a share. Calls with an outcome that is not predicted contradict
//! it. If all outcomes are predicted, their counts are tested against the shares: exactly
//! (binomial), at a level of one in a thousand. The counts may be those of targets that take turns,
//! which vary less than chance; but a load balancer has other clients too, so they need not be
//! exact.

use std::time::Duration;

use uturn_model::{Outcome, Share};

use crate::chance::tails;
use crate::tool::{CallEnd, MeasuredCall};

/// Counts that are less likely than this contradict a prediction.
const MIN: f64 = 1e-3;
/// The tolerance by which a client may measure less than a wait.
const EARLY: Duration = Duration::from_millis(100);
/// The time after a known wait within which an answer is assumed to have waited for it.
const AFTER_KNOWN: Duration = Duration::from_millis(500);
/// The time beyond its wait from which an answer is worth a note.
const SLOW: Duration = Duration::from_secs(1);

/// An outcome and its share.
pub type Expected = (Outcome, Share);

/// Facts about the calls besides the prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The time after which a client gave up.
    pub limit: Duration,
    /// Waits that occur in any prediction, or after timeouts of the load balancer that is called.
    pub waits: Vec<Duration>,
    /// The condition under which the load balancer ejects a target, and for how long.
    pub rest: Option<Rest>,
    /// The total time of all calls.
    pub took: Duration,
    /// Whether a client gets the same target each time, by a hash of its address or by
    /// `sessionAffinity`.
    pub keeps_target: bool,
}

/// The rule by which a load balancer ejects a target that does not answer for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The number of successive failures that eject a target.
    pub failures: u32,
    /// The time for which a target stays ejected.
    pub lasts: Duration,
}

/// The result of comparing calls with a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Each outcome that was predicted or measured.
    pub rows: Vec<Row>,
    /// The fit of the calls to the prediction.
    pub fit: Fit,
    /// Whether the counts are exactly those of targets that take turns.
    pub in_turns: bool,
    /// The longest time that an answer took beyond its wait, if that is long.
    pub slow: Option<Duration>,
}

/// An outcome with its predicted share and its measured count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The outcome.
    pub outcome: Outcome,
    /// The share of the outcome, if it was predicted.
    pub predicted: Option<Share>,
    /// The number of calls with this outcome.
    pub count: u64,
    /// The shortest and the longest time that such a call took.
    pub waited: Option<(Duration, Duration)>,
}

/// The fit of calls to a prediction.
#[derive(Clone, Debug, PartialEq)]
pub enum Fit {
    /// No call has a known end.
    NothingMeasured,
    /// The prediction does not determine how calls end.
    NotPredicted,
    /// The calls fit the prediction.
    Agrees {
        /// The probability of counts that are at least as far from the shares, from 0 to 1.
        chance: f64,
    },
    /// Some calls have an outcome that the prediction excludes.
    Unpredicted(Vec<(Outcome, u64)>),
    /// Counts at least as far from the shares are too improbable.
    Unlikely {
        /// The probability of counts that are at least as far from the shares, from 0 to 1.
        chance: f64,
    },
}

impl Fit {
    /// Returns whether the calls contradict the prediction.
    pub fn is_contradiction(&self) -> bool {
        matches!(self, Self::Unpredicted(_) | Self::Unlikely { .. })
    }

    /// Returns whether the calls agree with the prediction.
    pub fn agrees(&self) -> bool {
        matches!(self, Self::Agrees { .. })
    }
}

/// Returns the outcomes of a prediction as seen by a client that gives up after `limit`.
pub fn outcomes(predicted: &[Expected], limit: Duration) -> Vec<Expected> {
    let mut seen: Vec<Expected> = Vec::new();
    for (outcome, share) in predicted {
        let is_late = outcome.after().is_some_and(|after| after >= limit);
        let outcome = if is_late { Outcome::Hangs } else { *outcome };
        match seen.iter_mut().find(|known| known.0 == outcome) {
            Some(known) => known.1 += *share,
            None => seen.push((outcome, *share)),
        }
    }
    seen
}

/// Compares calls with a prediction. `by_chance` states that the shares are those of chance, not of
/// turns.
pub fn judge(
    predicted: &[Expected],
    by_chance: bool,
    calls: &[MeasuredCall],
    known: &Known,
) -> Judgement {
    let predicted = outcomes(predicted, known.limit);
    let mut rows: Vec<Row> = predicted
        .iter()
        .map(|(outcome, share)| Row {
            outcome: *outcome,
            predicted: Some(*share),
            count: 0,
            waited: None,
        })
        .collect();
    let mut slow: Option<Duration> = None;
    for call in calls {
        let Some(outcome) = outcome_of(call, &predicted, known) else { continue };
        let place = rows.iter().position(|row| row.outcome == outcome);
        let row = match place {
            Some(place) => &mut rows[place],
            None => {
                rows.push(Row { outcome, predicted: None, count: 0, waited: None });
                let last = rows.len() - 1;
                &mut rows[last]
            }
        };
        row.count += 1;
        let (least, most) = row.waited.unwrap_or((call.waited, call.waited));
        row.waited = Some((least.min(call.waited), most.max(call.waited)));
        let is_answer = matches!(outcome, Outcome::Answered { .. } | Outcome::Status { .. });
        let late = call.waited.saturating_sub(outcome.after().unwrap_or_default());
        if is_answer && late >= SLOW {
            slow = slow.max(Some(late));
        }
    }
    let of: u64 = rows.iter().map(|row| row.count).sum();
    let counts = || rows.iter().filter_map(|row| Some((row.predicted?, row.count)));
    let in_turns = !by_chance
        && predicted.len() > 1
        && of > 0
        && rows.iter().all(|row| row.predicted.is_some())
        && counts().all(|(share, count)| share.is_about(Share::ratio(count as f64, of as f64)));
    Judgement { fit: fit(&rows, of, known), rows, in_turns, slow }
}

fn fit(rows: &[Row], of: u64, known: &Known) -> Fit {
    if of == 0 {
        return Fit::NothingMeasured;
    }
    // An unknown outcome may be anything, and may add to any other outcome.
    if rows.iter().any(|row| row.outcome.is_unknown()) {
        return Fit::NotPredicted;
    }
    let is_unpredicted = |row: &&Row| row.predicted.is_none_or(Share::is_none) && row.count > 0;
    let unpredicted: Vec<(Outcome, u64)> =
        rows.iter().filter(is_unpredicted).map(|row| (row.outcome, row.count)).collect();
    if !unpredicted.is_empty() {
        return Fit::Unpredicted(unpredicted);
    }
    let mut met = rows.iter().filter(|row| row.count > 0);
    if let (true, Some(only), None) = (known.keeps_target, met.next(), met.next()) {
        return Fit::Agrees { chance: only.predicted.unwrap_or(Share::NONE).get() };
    }
    let waited: u64 = rows.iter().filter(|row| is_wait(row.outcome)).map(|row| row.count).sum();
    // The load balancer may have ejected targets that do not answer, because of these calls or
    // earlier ones: then fewer calls wait.
    let rested = known
        .rest
        .is_some_and(|rest| waited >= u64::from(rest.failures) || known.took <= rest.lasts);
    let tests = if rows.len() > 2 { rows.len() as f64 } else { 1.0 };
    let mut chance: f64 = 1.0;
    for row in rows {
        let (fewer, more) = tails(row.count, of, row.predicted.unwrap_or(Share::NONE).get());
        let tail = match (rested, is_wait(row.outcome)) {
            (false, _) => fewer.min(more),
            (true, true) => more,
            (true, false) => fewer,
        };
        chance = chance.min((2.0 * tail * tests).min(1.0));
    }
    if chance < MIN { Fit::Unlikely { chance } } else { Fit::Agrees { chance } }
}

/// Returns whether an outcome includes a wait for a target that does not answer.
fn is_wait(outcome: Outcome) -> bool {
    outcome == Outcome::Hangs || outcome.after().is_some_and(|after| !after.is_zero())
}

/// Returns the outcome of a call: a predicted one if the call fits it. Returns `None` if it is not
/// known how the call ended.
fn outcome_of(call: &MeasuredCall, predicted: &[Expected], known: &Known) -> Option<Outcome> {
    let status = match &call.end {
        CallEnd::Failed(_) => return None,
        CallEnd::Refused => return Some(Outcome::Refused),
        // Not every program distinguishes a reset from a closed connection.
        CallEnd::Reset => {
            let is_closed = predicted.iter().any(|(outcome, _)| *outcome == Outcome::EmptyReply);
            return Some(if is_closed { Outcome::EmptyReply } else { Outcome::Reset });
        }
        CallEnd::Unreachable => return Some(Outcome::Unreachable),
        CallEnd::TlsError => return Some(Outcome::TlsError),
        CallEnd::TimedOut => return Some(Outcome::Hangs),
        CallEnd::NameNotFound => return Some(Outcome::NameNotFound),
        CallEnd::Connected => None,
        CallEnd::Status(status) => Some(*status),
    };
    let is_same = |outcome: &Outcome| matches!(outcome, Outcome::Status { code, .. } if Some(*code) == status);
    let names_status = predicted.iter().any(|(outcome, _)| is_same(outcome));
    // A status below 500 is an answer: the server was reached.
    let is_answer = status.is_none_or(|status| status < 500);
    let is_alike = |outcome: &&Outcome| {
        if names_status { is_same(outcome) } else { is_answer && outcome.is_answered() }
    };
    let time = call.waited + EARLY;
    let waits = predicted.iter().map(|(outcome, _)| outcome).filter(is_alike);
    let reached = waits.filter(|outcome| outcome.after().is_some_and(|after| after <= time));
    let likely = reached.max_by_key(|outcome| outcome.after());
    let other = known
        .waits
        .iter()
        .copied()
        .filter(|wait| *wait <= time && time < *wait + EARLY + AFTER_KNOWN)
        .max();
    if let Some(outcome) = likely
        && other.is_none_or(|other| outcome.after() >= Some(other))
    {
        return Some(*outcome);
    }
    // The server itself may cause a delay that nothing else explains.
    let after = other.unwrap_or_default();
    Some(match status {
        Some(code) if names_status || !is_answer => Outcome::Status { code, after },
        _ => Outcome::Answered { after },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Outcome = Outcome::Answered { after: Duration::from_secs(4) };

    fn known() -> Known {
        let waits = [4, 8, 12].map(Duration::from_secs).to_vec();
        let rest = Some(Rest { failures: 3, lasts: Duration::from_secs(10) });
        Known {
            limit: Duration::from_secs(20),
            waits,
            rest,
            took: Duration::from_secs(15),
            keeps_target: false,
        }
    }

    fn call(end: CallEnd, seconds: f64) -> MeasuredCall {
        MeasuredCall { end, waited: Duration::from_secs_f64(seconds), address: None }
    }

    fn answers(seconds: &[f64]) -> Vec<MeasuredCall> {
        seconds.iter().map(|seconds| call(CallEnd::Status(200), *seconds)).collect()
    }

    fn third() -> [Expected; 2] {
        [(Outcome::AT_ONCE, Share::of(2, 3)), (LATE, Share::of(1, 3))]
    }

    #[test]
    fn targets_in_turns_give_exact_counts() {
        let calls = answers(&[0.01, 4.01, 0.02, 0.01, 4.02, 0.01]);
        let judged = judge(&third(), false, &calls, &known());
        assert!(judged.fit.agrees() && judged.in_turns, "{judged:?}");
        let counts: Vec<(Outcome, u64)> =
            judged.rows.iter().map(|row| (row.outcome, row.count)).collect();
        assert_eq!(counts, [(Outcome::AT_ONCE, 4), (LATE, 2)]);
        let waited = judged.rows[1].waited.unwrap();
        assert_eq!(waited.1 - waited.0, Duration::from_millis(10));
        // With other clients in between, turns look like chance.
        let judged = judge(&third(), false, &answers(&[0.01, 4.01, 0.0, 0.0, 0.0, 0.0]), &known());
        assert!(judged.fit.agrees() && !judged.in_turns, "{judged:?}");
    }

    #[test]
    fn a_client_may_get_the_same_target_each_time() {
        let known = Known { keeps_target: true, rest: None, ..known() };
        for (seconds, share) in [(0.01, 2), (4.01, 1)] {
            let judged = judge(&third(), true, &answers(&[seconds; 60]), &known);
            assert_eq!(judged.fit, Fit::Agrees { chance: Share::of(share, 3).get() });
        }
        let changing = Known { keeps_target: false, ..known.clone() };
        let fit = judge(&third(), true, &answers(&[0.01; 60]), &changing).fit;
        assert!(matches!(fit, Fit::Unlikely { .. }), "{fit:?}");
        let other = vec![call(CallEnd::TimedOut, 20.0); 3];
        let fit = judge(&third(), true, &other, &known).fit;
        assert_eq!(fit, Fit::Unpredicted(vec![(Outcome::Hangs, 3)]));
    }

    #[test]
    fn a_wait_that_was_not_predicted_contradicts() {
        let always = [(Outcome::AT_ONCE, Share::ALL)];
        let judged = judge(&always, false, &answers(&[0.01, 4.01]), &known());
        assert_eq!(judged.fit, Fit::Unpredicted(vec![(LATE, 1)]));
        // A server may be slow by itself.
        let judged = judge(&always, false, &answers(&[0.01, 2.5]), &known());
        assert!(judged.fit.agrees(), "{judged:?}");
        assert_eq!(judged.slow, Some(Duration::from_millis(2500)));
    }

    #[test]
    fn an_answer_that_comes_too_early_contradicts() {
        let late = [(LATE, Share::ALL)];
        let judged = judge(&late, false, &answers(&[0.01]), &known());
        assert_eq!(judged.fit, Fit::Unpredicted(vec![(Outcome::AT_ONCE, 1)]));
        assert!(judge(&late, false, &answers(&[3.95, 4.4]), &known()).fit.agrees());
    }

    #[test]
    fn what_never_occurs_though_it_should_is_unlikely_at_last() {
        let at_once = |count| vec![call(CallEnd::Status(200), 0.0); count];
        for (count, is_contradiction) in [(6, false), (12, false), (18, false), (24, true)] {
            let fit = judge(&third(), false, &at_once(count), &known()).fit;
            assert_eq!(fit.is_contradiction(), is_contradiction, "{count}: {fit:?}");
        }
        // All calls may have been made while a target was ejected after earlier failures.
        let quick = Known { took: Duration::from_secs(2), ..known() };
        assert!(judge(&third(), false, &at_once(24), &quick).fit.agrees());
    }

    #[test]
    fn a_target_that_is_left_alone_makes_waits_rare() {
        let mut calls = vec![call(CallEnd::Status(200), 0.0); 57];
        calls.extend(answers(&[4.0, 4.0, 4.0]));
        assert!(judge(&third(), false, &calls, &known()).fit.agrees());
        let without = Known { rest: None, ..known() };
        assert!(judge(&third(), false, &calls, &without).fit.is_contradiction());
        // An ejected target does not explain too many waits.
        let all = vec![call(CallEnd::Status(200), 4.0); 20];
        assert!(judge(&third(), false, &all, &known()).fit.is_contradiction());
    }

    #[test]
    fn a_servers_own_status_is_an_answer() {
        let always = [(Outcome::AT_ONCE, Share::ALL)];
        for (status, agrees) in [(204, true), (302, true), (404, true), (502, false)] {
            let calls = [call(CallEnd::Status(status), 0.01)];
            assert_eq!(judge(&always, false, &calls, &known()).fit.agrees(), agrees, "{status}");
        }
        let after = Duration::from_secs(4);
        let gateway = [(Outcome::Status { code: 504, after }, Share::ALL)];
        let judged = judge(&gateway, false, &[call(CallEnd::Status(504), 4.1)], &known());
        assert!(judged.fit.agrees(), "{judged:?}");
        let judged = judge(&gateway, false, &[call(CallEnd::Status(504), 0.1)], &known());
        assert!(judged.fit.is_contradiction(), "{judged:?}");
        let judged = judge(&gateway, false, &[call(CallEnd::Status(200), 0.1)], &known());
        assert!(judged.fit.is_contradiction(), "{judged:?}");
    }

    #[test]
    fn other_ends_are_what_they_are() {
        for (end, outcome) in [
            (CallEnd::Refused, Outcome::Refused),
            (CallEnd::Reset, Outcome::Reset),
            (CallEnd::Unreachable, Outcome::Unreachable),
            (CallEnd::TlsError, Outcome::TlsError),
            (CallEnd::TimedOut, Outcome::Hangs),
            (CallEnd::NameNotFound, Outcome::NameNotFound),
            (CallEnd::Connected, Outcome::AT_ONCE),
        ] {
            let calls = [call(end.clone(), 0.5)];
            assert!(judge(&[(outcome, Share::ALL)], false, &calls, &known()).fit.agrees());
            let never = [(Outcome::Status { code: 404, after: Duration::ZERO }, Share::ALL)];
            let fit = judge(&never, false, &calls, &known()).fit;
            assert_eq!(fit, Fit::Unpredicted(vec![(outcome, 1)]), "{end:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_compared() {
        let failed = [call(CallEnd::Failed("no".into()), 0.0)];
        let always = [(Outcome::AT_ONCE, Share::ALL)];
        assert_eq!(judge(&always, false, &failed, &known()).fit, Fit::NothingMeasured);
        let open = [(Outcome::Unknown, Share::ALL)];
        let judged = judge(&open, false, &answers(&[0.1]), &known());
        assert_eq!(judged.fit, Fit::NotPredicted);
        assert_eq!(judged.rows.len(), 2);
    }

    #[test]
    fn a_client_that_gives_up_sees_no_later_answer() {
        let known = Known { limit: Duration::from_secs(3), ..known() };
        let calls = [call(CallEnd::TimedOut, 3.0), call(CallEnd::Status(200), 0.1)];
        assert!(judge(&third(), false, &calls, &known).fit.agrees());
    }
}
