//! Measures cases that differ again, since a busy machine delays answers.

use std::time::Duration;

use uturn_cli::Failure;
use uturn_lab::Contention;
use uturn_model::Outcome;
use uturn_report::lab::{CaseReport, FlowReport};

use super::rounds::Rounds;

/// How often a case that differs is measured again, alone and with one connection after another.
const TRIES: usize = 2;

/// How often, if only delays differ and other work has the processors.
const TRIES_ON_A_BUSY_MACHINE: usize = 8;

/// Measures the cases that differ again: delays on a busy machine do not recur if each case is
/// measured alone, and each connection. If other work has the processors at every try, delays prove
/// nothing: such a case counts as not measured.
pub(super) fn measure_again(
    rounds: &mut Rounds<'_>,
    reports: &mut [CaseReport],
) -> Result<(), Failure> {
    rounds.paced = true;
    let mut wait = None;
    for number in 1..=TRIES_ON_A_BUSY_MACHINE {
        let is_open = |report: &CaseReport| {
            !report.agrees() && (number <= TRIES || wait.is_some() && differs_in_delays(report))
        };
        let again: Vec<usize> = (0..reports.len()).filter(|at| is_open(&reports[*at])).collect();
        if again.is_empty() {
            return Ok(());
        }
        let contention = Contention::observe();
        let measured = rounds.run(&again, 1)?;
        wait = contention.long_wait();
        for (at, next) in again.into_iter().zip(measured) {
            let before = std::mem::replace(&mut reports[at], next);
            let is_first = before.first_try.is_empty();
            reports[at].first_try = if is_first { before.differences() } else { before.first_try };
        }
    }
    if let Some(wait) = wait {
        for (report, case) in reports.iter_mut().zip(rounds.cases) {
            if !report.agrees() && differs_in_delays(report) {
                let first_try = std::mem::take(&mut report.first_try);
                *report = CaseReport { first_try, ..case.not_run(too_busy(wait)) };
            }
        }
    }
    Ok(())
}

fn too_busy(wait: Duration) -> String {
    format!(
        "this machine was too busy to measure delays: at the last of {} tries, other work had the \
         processors for {:.1} s",
        TRIES_ON_A_BUSY_MACHINE + 1,
        wait.as_secs_f64()
    )
}

/// Returns whether all that differs is when connections ended, and how many of them, not how.
fn differs_in_delays(report: &CaseReport) -> bool {
    report.probes.iter().all(|probe| probe.differences.is_empty())
        && report.flows.iter().all(ends_as_expected)
}

fn ends_as_expected(flow: &FlowReport) -> bool {
    let expected: Vec<Outcome> =
        flow.expected.iter().map(|(outcome, _)| without_delay(*outcome)).collect();
    flow.measured.iter().all(|(outcome, _)| expected.contains(&without_delay(*outcome)))
}

fn without_delay(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Answered { .. } => Outcome::Answered { after: Duration::ZERO },
        Outcome::Status { code, .. } => Outcome::Status { code, after: Duration::ZERO },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::{Flow, Protocol, Share};

    use super::*;

    fn report(expected: &[Outcome], measured: &[Outcome]) -> CaseReport {
        let flow = Flow {
            from: "pod/shop/web".parse().unwrap(),
            to: "http://10.0.0.100/".parse().unwrap(),
            protocol: Protocol::Tcp,
        };
        let flow = FlowReport {
            flow,
            expected: expected.iter().map(|outcome| (*outcome, Share::ALL)).collect(),
            predicted: None,
            measured: measured.iter().map(|outcome| (*outcome, 1)).collect(),
            differences: vec!["a difference".to_owned()],
        };
        CaseReport {
            scenario: "any".to_owned(),
            case: "any".to_owned(),
            flows: vec![flow],
            probes: Vec::new(),
            seconds: 0.0,
            place: None,
            first_try: Vec::new(),
            not_run: None,
        }
    }

    #[test]
    fn a_busy_machine_excuses_delays_and_nothing_else() {
        let late = Outcome::Answered { after: Duration::from_secs(4) };
        let status = |code| Outcome::Status { code, after: Duration::ZERO };
        for (expected, measured, is_excused) in [
            (&[Outcome::AT_ONCE][..], &[late][..], true),
            (&[Outcome::AT_ONCE, late], &[Outcome::AT_ONCE], true),
            (&[Outcome::AT_ONCE], &[Outcome::AT_ONCE, Outcome::Hangs], false),
            (&[Outcome::Refused], &[Outcome::AT_ONCE], false),
            (&[status(503)], &[status(504)], false),
        ] {
            let report = report(expected, measured);
            assert_eq!(differs_in_delays(&report), is_excused, "{expected:?} {measured:?}");
        }
    }
}
