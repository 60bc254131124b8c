//! Results that rest on rules which are not modelled: a walk takes both ways at such a rule, each
//! with half the share, and the actual shares are not known.

use uturn_model::route::Route;
use uturn_model::{Assumption, AssumptionSubject, Mechanism, Outcome, Share, Verdict};
use uturn_path::{Engine, WalkError, is_both_ways};

use crate::clients::{ScanResult, without_details};

/// Returns the rule on which an open verdict depends.
pub fn open_rule(verdict: &Verdict) -> Option<&Assumption> {
    let mut supposed = verdict.supposed.iter().filter(|_| verdict.is_open());
    supposed.find(|assumption| assumption.subject == AssumptionSubject::RuleThatDecides)
}

/// Settles the verdicts of results, so that none has a share that nothing states. If such a rule
/// matters, the verdict is that the outcome is not known. Flows of a large cluster are not walked
/// again.
pub(crate) fn settle(
    engine: &Engine<'_>,
    results: &mut [ScanResult],
    is_large: bool,
) -> Result<(), WalkError> {
    for result in results {
        let mut found = result.verdicts.iter().flat_map(|verdict| &verdict.supposed);
        if !found.any(is_both_ways) {
            continue;
        }
        let [verdict] = &*result.verdicts else { continue };
        let settled = match is_alike(verdict) {
            true => verdict.clone(),
            false if is_large => unknown(&[]),
            false => of_cases(&engine.rule_cases(&result.flow())?),
        };
        result.verdicts = [without_rule(settled)].into();
    }
    Ok(())
}

/// Returns whether calls end alike whatever such a rule does.
fn is_alike(verdict: &Verdict) -> bool {
    verdict.outcomes.len() < 2
}

/// Returns the verdict of all cases: one of them if all are equal, or, if each can fail, the one
/// with the smallest failing share.
fn of_cases(cases: &[Verdict]) -> Verdict {
    let are_settled =
        cases.iter().all(|case| is_alike(case) || !case.supposed.iter().any(is_both_ways));
    let all_fail = cases.len() == 1 || cases.iter().all(Verdict::can_fail);
    let least = cases.iter().min_by(|a, b| a.share_failing().rounded_cmp(&b.share_failing()));
    match least.filter(|_| are_settled && all_fail) {
        Some(case) => {
            let mut case = Verdict { conditions: Vec::new(), ..case.clone() };
            without_details(&mut case);
            case
        }
        None => unknown(cases),
    }
}

/// Returns the verdict that the outcome is not known, with the rule on which it depends.
fn unknown(cases: &[Verdict]) -> Verdict {
    let condition = cases.iter().find_map(|case| case.conditions.first());
    let because = condition.map(|condition| format!("it is not known whether {condition}"));
    let supposed = because.map(|because| Assumption {
        subject: AssumptionSubject::RuleThatDecides,
        assumed: "not known".into(),
        because: because.into(),
        settle: "see whether the rule's counter grows when a client calls".into(),
    });
    let route = Route {
        share: Share::ALL,
        outcome: Outcome::Unknown,
        late: std::time::Duration::ZERO,
        mechanisms: vec![Mechanism::NotModelled],
        chance: false,
        has_others: false,
        failures: Vec::new(),
        hops: Vec::new(),
    };
    Verdict::of(vec![route], Vec::new(), supposed.into_iter().collect())
}

fn without_rule(mut verdict: Verdict) -> Verdict {
    verdict.supposed.retain(|assumption| !is_both_ways(assumption));
    verdict
}
