//! Compares measurements with the outcomes that a scenario expects and the engine predicts.

use uturn_cli::Failure;
use uturn_lab::MeasuredFlow;
use uturn_lab::agree::{Agreement, agrees, outcomes_within, within};
use uturn_model::{Mechanism, Outcome, Share, Verdict};
use uturn_path::Engine;
use uturn_report::lab::{CaseReport, FlowReport, Predicted};
use uturn_snapshot::scenario::ExpectedFlow;

use super::health;
use super::machine::Named;

/// Returns the report of a case. Without flows, it states why the case could not be built.
pub(super) fn report(
    named: &Named<'_>,
    measured: Result<Vec<MeasuredFlow>, String>,
    place: String,
    seconds: f64,
    predicts: bool,
) -> Result<CaseReport, Failure> {
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return Ok(named.not_run(why)),
    };
    let engine = super::engine(&named.case.cluster)?;
    let probes = named
        .case
        .probes
        .iter()
        .map(|expected| health::judge(&engine, expected, &measured, predicts))
        .collect::<Result<_, _>>()?;
    let judged = named
        .case
        .flows
        .iter()
        .zip(measured)
        .map(|(expected, measured)| judge(&engine, expected, measured, predicts));
    Ok(CaseReport {
        scenario: named.scenario.to_owned(),
        case: named.case.label.clone(),
        flows: judged.collect::<Result<_, _>>()?,
        probes,
        seconds,
        place: Some(place),
        first_try: Vec::new(),
        not_run: None,
    })
}

/// Compares measurements with the outcomes that the scenario expects and the engine predicts.
fn judge(
    engine: &Engine<'_>,
    expected: &ExpectedFlow,
    measured: MeasuredFlow,
    predicts: bool,
) -> Result<FlowReport, Failure> {
    let verdict = engine.verdict(&expected.flow)?;
    let exact = !verdict.is_by_chance();
    let mut differences = Vec::new();
    // A scenario may expect nothing.
    let states = !expected.outcomes.is_empty();
    let wanted = outcomes_within(&expected.outcomes, measured.limit);
    if states && let Agreement::Differs(all) = agrees(&wanted, &measured.counts, exact) {
        differences.extend(all.iter().map(|difference| {
            format!("measured against expected: {}", difference.describe("expected"))
        }));
    }
    if predicts {
        differences.extend(unlike(expected, &verdict));
        let seen = within(&verdict, measured.limit);
        if let Agreement::Differs(all) = agrees(&seen, &measured.counts, exact) {
            differences.extend(
                all.iter().map(|difference| format!("measured against predicted: {difference}")),
            );
        }
    }
    Ok(FlowReport {
        flow: measured.flow,
        expected: expected.outcomes.clone(),
        predicted: predicts.then_some(Predicted {
            outcomes: verdict.outcomes.clone(),
            mechanisms: verdict.mechanisms,
        }),
        measured: measured.counts,
        differences,
    })
}

/// Returns the differences between prediction and expectation.
fn unlike(expected: &ExpectedFlow, verdict: &Verdict) -> Vec<String> {
    let mut differences = Vec::new();
    let share_in = |list: &[(Outcome, Share)], outcome: Outcome| {
        list.iter().find(|(known, _)| *known == outcome).map_or(Share::NONE, |(_, share)| *share)
    };
    if expected.outcomes.is_empty() {
        return differences;
    }
    let predicted = &verdict.outcomes;
    let outcomes = expected.outcomes.iter().chain(predicted).map(|(outcome, _)| *outcome);
    let mut seen: Vec<Outcome> = Vec::new();
    for outcome in outcomes {
        if seen.contains(&outcome) {
            continue;
        }
        seen.push(outcome);
        let (wanted, share) = (share_in(&expected.outcomes, outcome), share_in(predicted, outcome));
        if !wanted.is_about(share) {
            differences
                .push(format!("{outcome}: a share of {wanted:.4} expected, {share:.4} predicted"));
        }
    }
    if let Some(wanted) = &expected.mechanisms {
        let mut wanted = wanted.clone();
        wanted.sort_unstable();
        if wanted != verdict.mechanisms {
            let names = |list: &[Mechanism]| {
                let names: Vec<&str> = list.iter().map(|mechanism| mechanism.as_str()).collect();
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            };
            differences.push(format!(
                "mechanism: {} expected, {} predicted",
                names(&wanted),
                names(&verdict.mechanisms)
            ));
        }
    }
    differences
}
