//! Prints the results of a run beside hostile clients as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::honest::{FLOWS, Met, counts};
use super::turn::{Company, Turn};
use super::verdict::Verdict;
use crate::arguments::HostileArguments;
use crate::attack::Tally;
use crate::load::Measured;
use crate::statistics::Summary;

/// Returns the lines above all turns.
pub(super) fn head(arguments: &HostileArguments, rounds: u32, alone: u32, beside: u32) -> String {
    let limit = match arguments.connections_per_client {
        None => "none".to_owned(),
        Some(most) => most.to_string(),
    };
    format!(
        "{rounds} rounds of {alone} s with honest clients alone and {beside} s beside hostile ones\n\
         open files: {} at most; connectionsPerClient: {limit}; other limits at their defaults\n",
        arguments.files
    )
}

/// Returns the results of a turn.
pub(super) fn turn(number: usize, turn: &Turn) -> String {
    let company = match turn.company {
        Company::None => "honest clients alone",
        Company::Hostile => "beside hostile clients",
    };
    let mut text = format!("\nTURN {number}: {company}, {} s\n", turn.seconds);
    text += "  HONEST                    REQUESTS  FAILED  UNANSWERED  P50 ms  P99 ms  P99.9 ms\n";
    for (flow, met) in FLOWS.iter().zip(&turn.honest) {
        let _ = match met {
            Ok(measured) => writeln!(
                text,
                "  {:24}  {:8}  {:6}  {:10}  {:6.2}  {:6.2}  {:8.2}",
                flow.name,
                measured.answered + measured.failed + measured.unanswered,
                measured.failed,
                measured.unanswered,
                measured.p50 / 1000.0,
                measured.p99 / 1000.0,
                measured.p999 / 1000.0,
            ),
            Err(why) => writeln!(text, "  {:24}  did not begin: {why}", flow.name),
        };
        for (error, count) in met.iter().flat_map(|measured| &measured.errors) {
            let _ = writeln!(text, "    {count} times: {error}");
        }
    }
    let part = |duration: Duration| 100.0 * duration.as_secs_f64() / f64::from(turn.seconds);
    let _ = writeln!(
        text,
        "  load balancer: {} kB of memory, {} descriptors, {:.0} % of a core",
        turn.end.resident,
        turn.end.descriptors,
        part(turn.cost.total()),
    );
    if let Some(report) = &turn.hostile {
        let _ = writeln!(text, "  hostile clients: {:.0} % of a core", part(report.cost.total()));
    }
    let _ = writeln!(text, "  access log: {} lines, {} bad", turn.log.lines, turn.log.bad);
    for (what, counts) in [
        ("connections refused", &turn.refused),
        ("what this machine could not do", &turn.local_errors),
        ("bad health checks", &turn.bad_checks),
    ] {
        if !counts.is_empty() {
            let _ = writeln!(text, "  {what}: {}", list(counts));
        }
    }
    if turn.target_failures + turn.deaths > 0 {
        let _ = writeln!(
            text,
            "  attempts held against targets: {}; taken for dead: {}",
            turn.target_failures, turn.deaths
        );
    }
    text
}

/// Returns the results of the whole run.
pub(super) fn end(turns: &[Turn], verdict: &Verdict) -> String {
    let mut text = "\nHOSTILE CLIENTS            ATTEMPTS  WHAT THEY MET\n".to_owned();
    let mut kinds: BTreeMap<&str, Tally> = BTreeMap::new();
    for (kind, tally) in
        turns.iter().filter_map(|turn| turn.hostile.as_ref()).flat_map(|report| &report.kinds)
    {
        kinds.entry(kind).or_default().add(tally);
    }
    for (kind, tally) in &kinds {
        let _ = writeln!(text, "{kind:27}  {:8}  {}", tally.attempts, list(&tally.met));
    }
    text += "\nHONEST CLIENTS            REQUESTS  FAILED  P99 ms ALONE           BESIDE HOSTILE ONES\n";
    for (number, flow) in FLOWS.iter().enumerate() {
        let of = |company| {
            turns
                .iter()
                .filter(move |turn| turn.company == company)
                .map(move |turn| &turn.honest[number])
        };
        let all = turns.iter().map(|turn| counts(&turn.honest[number]));
        let (answered, failed) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let _ = writeln!(
            text,
            "{:24}  {:8}  {failed:6}  {:21}  {}",
            flow.name,
            answered + failed,
            spread(of(Company::None)),
            spread(of(Company::Hostile)),
        );
    }
    text += "(the median of all turns, and the least and the most)\n";
    let memory: Vec<_> = turns.iter().map(|turn| turn.end.resident.to_string()).collect();
    let descriptors: Vec<_> = turns.iter().map(|turn| turn.end.descriptors.to_string()).collect();
    let left = &verdict.left;
    let _ = writeln!(
        text,
        "\nkB of memory at the end of each turn: {}\ndescriptors: {}\n\
         after all clients had left: {} kB, {} descriptors, {} s later",
        memory.join(", "),
        descriptors.join(", "),
        left.resident,
        left.descriptors,
        left.after.as_secs(),
    );
    match verdict.faults.as_slice() {
        [] => text += "every honest request was answered, and all that was taken came back\n",
        faults => {
            for fault in faults {
                let _ = writeln!(text, "FAULT: {fault}");
            }
        }
    }
    text
}

/// Returns the p99 of turns in milliseconds: the median, the least and the most.
fn spread<'a>(met: impl Iterator<Item = &'a Met>) -> String {
    let p99 = |measured: &Measured| measured.p99 / 1000.0;
    match Summary::of(met.filter_map(|met| met.as_ref().ok()).map(p99)) {
        None => "-".to_owned(),
        Some(summary) => {
            format!("{:.2} ({:.2} to {:.2})", summary.median, summary.least, summary.most)
        }
    }
}

fn list(counts: &BTreeMap<String, u64>) -> String {
    let mut all: Vec<_> = counts.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let texts: Vec<_> = all.iter().map(|(what, count)| format!("{what} {count}")).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_met_most_often_comes_first() {
        let counts = [("closed".to_owned(), 2), ("reset".to_owned(), 30)].into();
        assert_eq!(list(&counts), "reset 30, closed 2");
    }
}
