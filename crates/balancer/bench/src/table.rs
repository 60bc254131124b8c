//! Prints the results as text.

use std::fmt::Write as _;

use crate::goal::{Goal, Outcome};
use crate::result::{Comparison, ContestantResult, Figure, RowResult, Sample, figures};
use crate::row::Measure;
use crate::statistics::{ENOUGH, PART, Summary, seconds_for_enough};

/// The widths of the columns: names of figures, figures and ratios.
const NAME: usize = 14;
const FIGURE: usize = 26;
const RATIO: usize = 22;

/// The use of a core, in percent, from which on that core counts as the limit of the speed.
const BUSY: f64 = 85.0;

/// The number of rounds from which on the spread means something.
const ROUNDS: u32 = 3;

/// Returns the lines above all rows.
pub(crate) fn head(comparison: &Comparison) -> String {
    let Comparison { machine, rounds, .. } = comparison;
    let mut text = format!(
        "{}, {} cores, Linux {}, load {} at the beginning\n",
        machine.processor, machine.cores, machine.kernel, machine.load
    );
    for program in &machine.programs {
        let _ = writeln!(text, "{program}");
    }
    let _ = writeln!(
        text,
        "medians of {rounds} rounds in turns, with the least and the most; ratios are of rounds side \
         by side, above 1 uturn is better"
    );
    if *rounds < ROUNDS {
        let _ =
            writeln!(text, "fewer than {ROUNDS} rounds do not show the spread: they decide little");
    }
    text
}

/// Returns a row's table.
pub(crate) fn row(result: &RowResult) -> String {
    let RowResult { row, title, connections, .. } = result;
    let mut text = format!("\n{} ({title}): {connections} connections\n", row.name());
    match row.measure() {
        Measure::Memory => memory(result, &mut text),
        Measure::Speed => speed(result, &mut text),
    }
    text
}

fn speed(result: &RowResult, text: &mut String) {
    let of_full: fn(&ContestantResult) -> &[Sample] = |result| &result.full;
    let of_constant: fn(&ContestantResult) -> &[Sample] = |result| &result.constant;
    let whose = if result.row.is_layer_4() {
        "; CPU is of clients, load balancer and targets, which share a core"
    } else {
        "; CPU is the load balancer's"
    };
    let _ = writeln!(text, "at full speed, {} s{whose}", result.full_seconds);
    headings(result, text);
    for figure in [Figure::PerSecond, Figure::Processor, Figure::User, Figure::System, Figure::Busy]
    {
        line(result, of_full, figure, text);
    }
    if !result.row.is_layer_4() {
        line(result, of_full, Figure::OthersBusy, text);
    }
    idle_cores(result, text);
    let (Some(rate), Some(seconds)) = (result.rate, result.rate_seconds) else {
        return failures(result, text);
    };
    let fewest = result.fewest_answers().unwrap_or(0);
    let _ = writeln!(
        text,
        "at {rate} {}/s, {PART} × what the slowest can do; at least {fewest} answers in each round \
         of {seconds} s",
        result.unit
    );
    for figure in [Figure::Median, Figure::OneInHundred] {
        line(result, of_constant, figure, text);
    }
    if result.has_enough_answers() {
        line(result, of_constant, Figure::OneInThousand, text);
    } else {
        let _ = writeln!(
            text,
            "{:<NAME$}not given: it takes {ENOUGH} answers a round, here --seconds {}",
            Figure::OneInThousand.name(result.unit),
            seconds_for_enough(rate)
        );
    }
    for figure in [Figure::Processor, Figure::User, Figure::System] {
        line(result, of_constant, figure, text);
    }
    failures(result, text);
}

/// Marks contestants whose speed was not CPU-bound: neither core was busy.
fn idle_cores(result: &RowResult, text: &mut String) {
    for ContestantResult { contestant, full, .. } in &result.contestants {
        let used = [Figure::Busy, Figure::OthersBusy]
            .into_iter()
            .filter_map(|figure| Summary::of(figures(full, figure)))
            .fold(0.0, |used: f64, summary| used.max(summary.median));
        if used < BUSY {
            let name = contestant.name();
            let _ = writeln!(
                text,
                "{name}: no core was busy with it ({used:.0} %): other work on the machine was in \
                 the way, so look at CPU"
            );
        }
    }
}

fn headings(result: &RowResult, text: &mut String) {
    let _ = write!(text, "{:NAME$}", "");
    for contestant in &result.contestants {
        let _ = write!(text, "{:>FIGURE$}", contestant.contestant.name());
    }
    for peer in result.peers() {
        let _ = write!(text, "{:>RATIO$}", format!("to {}", peer.contestant.name()));
    }
    text.push('\n');
}

fn line(
    result: &RowResult,
    of: fn(&ContestantResult) -> &[Sample],
    figure: Figure,
    text: &mut String,
) {
    let _ = write!(text, "{:<NAME$}", figure.name(result.unit));
    for contestant in &result.contestants {
        let summary = Summary::of(figures(of(contestant), figure));
        let _ = write!(text, "{:>FIGURE$}", summary.map_or("-".to_owned(), figure_text));
    }
    // These figures are parts of one that is compared already, or are neither good nor bad.
    let is_compared =
        !matches!(figure, Figure::User | Figure::System | Figure::Busy | Figure::OthersBusy);
    for peer in result.peers().iter().filter(|_| is_compared) {
        let ratio = result.ratio(peer, of, figure);
        let _ = write!(text, "{:>RATIO$}", ratio.map_or("-".to_owned(), ratio_text));
    }
    text.push('\n');
}

fn failures(result: &RowResult, text: &mut String) {
    for ContestantResult { contestant, full, constant, .. } in &result.contestants {
        let all = || full.iter().chain(constant).map(|sample| &sample.measured);
        let failed: u64 = all().map(|measured| measured.failed).sum();
        let unanswered: u64 = all().map(|measured| measured.unanswered).sum();
        if failed + unanswered > 0 {
            let error = all().find_map(|measured| measured.error());
            let error = error.map(|error| format!(": {error}")).unwrap_or_default();
            let name = contestant.name();
            let _ = writeln!(text, "{name}: {failed} failed, {unanswered} had no answer{error}");
        }
    }
}

fn memory(result: &RowResult, text: &mut String) {
    let _ = writeln!(
        text,
        "kB of the load balancer for each connection (the difference of its PSS), before there were \
         any, and the kernel's\nfor each (sockets of both ends); measured once"
    );
    headings(result, text);
    let mut line = |name: &str, figure: &dyn Fn(&ContestantResult) -> Option<f64>, ratios: bool| {
        let _ = write!(text, "{name:<NAME$}");
        for contestant in &result.contestants {
            let figure = figure(contestant).map_or("-".to_owned(), digits);
            let _ = write!(text, "{figure:>FIGURE$}");
        }
        let ours = result.contestants.first().and_then(figure);
        for peer in result.peers().iter().filter(|_| ratios) {
            let ratio =
                figure(peer).zip(ours).map(|(theirs, ours)| format!("{:.2}×", theirs / ours));
            let _ = write!(text, "{:>RATIO$}", ratio.unwrap_or_default());
        }
        text.push('\n');
    };
    let connections = result.connections;
    line("kB each", &|result| Some(result.memory?.each(connections)), true);
    line("kB before", &|result| Some(result.memory?.before as f64), false);
    line("kernel, each", &|result| result.memory?.kernel_each(connections), false);
}

/// Returns the table of goals, and how many were reached.
pub(crate) fn goals(goals: &[Goal]) -> String {
    let mut text = format!(
        "\nGoals: on layer 7 as good as the better peer, on layer 4 0.95 × plain routing\n\
         {:<18}{:<14}{:>22}  {:<16}{}\n",
        "", "", "ratio", "to", "outcome"
    );
    for goal in goals {
        let outcome = match goal.outcome {
            Outcome::Reached => "reached",
            Outcome::Missed => "NOT reached",
            Outcome::Unclear => "unclear: rounds lie on both sides",
        };
        let _ = writeln!(
            text,
            "{:<18}{:<14}{:>22}  {:<16}{outcome}",
            goal.row.name(),
            goal.figure.name(goal.row.unit()),
            ratio_text(goal.ratio),
            goal.peer.name(),
        );
    }
    let count = |outcome| goals.iter().filter(|goal| goal.outcome == outcome).count();
    let _ = writeln!(
        text,
        "{} reached, {} not reached, {} unclear",
        count(Outcome::Reached),
        count(Outcome::Missed),
        count(Outcome::Unclear)
    );
    text
}

fn figure_text(Summary { median, least, most }: Summary) -> String {
    format!("{} ({}–{})", digits(median), digits(least), digits(most))
}

fn ratio_text(Summary { median, least, most }: Summary) -> String {
    format!("{median:.2}× ({least:.2}–{most:.2})")
}

fn digits(figure: f64) -> String {
    let digits = if figure < 100.0 { 1 } else { 0 };
    format!("{figure:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::row_result;
    use crate::row::Row;

    #[test]
    fn a_row_shows_spreads_and_ratios() {
        let result = row_result(Row::Small, &[&[30_000, 20_000], &[20_000; 2], &[10_000; 2]]);
        let text = row(&result);
        let line = text.lines().find(|line| line.starts_with("requests/s")).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "requests/s 25000 (20000–30000) 20000 (20000–20000) 10000 (10000–10000) \
             1.25× (1.00–1.50) 2.50× (2.00–3.00)"
        );
        assert!(text.contains("at 5000 requests/s, 0.5 × what the slowest can do"), "{text}");
        assert!(text.contains("p99.9 µs "), "{text}");
        assert!(!text.contains("not given"), "{text}");
    }

    #[test]
    fn too_few_answers_have_no_p999_and_it_says_why() {
        let text = row(&row_result(Row::Large, &[&[900], &[1000]]));
        assert!(
            text.contains("not given: it takes 10000 answers a round, here --seconds 3"),
            "{text}"
        );
    }

    #[test]
    fn a_speed_that_no_core_limited_is_pointed_out() {
        let mut result = row_result(Row::Small, &[&[20_000], &[20_000]]);
        result.contestants[0].full[0].cpu = 49.0;
        result.contestants[1].full[0].cpu_others = 10.0;
        let text = row(&result);
        assert!(!text.contains("uturn: no core"), "{text}");
        assert!(text.contains("nginx: no core was busy with it (50 %)"), "{text}");
    }

    #[test]
    fn failures_are_told() {
        let mut result = row_result(Row::Small, &[&[20_000], &[20_000]]);
        result.contestants[1].full[0].measured.failed = 3;
        result.contestants[1].full[0].measured.errors = [("reset".to_owned(), 1)].into();
        assert!(row(&result).ends_with("nginx: 3 failed, 0 had no answer: reset\n"));
    }
}
