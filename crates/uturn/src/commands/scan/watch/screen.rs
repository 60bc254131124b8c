//! Shows the findings of a watched cluster as text: redrawn in place on a terminal, else as a line
//! for each difference.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write as _};

use uturn_cli::{Failure, Printer};
use uturn_model::wording::some_of;
use uturn_report::scan::{self, Difference, FindingLines, Listing};
use uturn_report::schema::scan::{NotCurrent, Watch};
use uturn_report::style::on_terminal;
use uturn_report::{ScanReport, Style};

use crate::cli::{Scan, ScanOutput};

/// The number of differences that are shown below the table.
const DIFFERENCES: usize = 8;

/// Shows states as text.
pub(super) struct Screen<'s> {
    printer: &'s Printer,
    listing: Listing,
    is_wide: bool,
    is_terminal: bool,
    findings: FindingLines,
    /// The parts of the cluster that were not current in the last state.
    not_current: BTreeMap<String, NotCurrent>,
    failure: Vec<String>,
    /// The last differences, each with its time.
    last: VecDeque<String>,
    is_drawn: bool,
}

impl<'s> Screen<'s> {
    pub(super) fn new(args: &Scan, printer: &'s Printer, is_terminal: bool) -> Self {
        Self {
            printer,
            listing: if args.all { Listing::Every } else { Listing::Short },
            is_wide: args.output == ScanOutput::Wide,
            is_terminal,
            findings: FindingLines::default(),
            not_current: BTreeMap::new(),
            failure: Vec::new(),
            last: VecDeque::new(),
            is_drawn: false,
        }
    }

    /// Shows a state.
    ///
    /// # Errors
    /// If the output can no longer be written.
    pub(super) fn show(
        &mut self,
        report: Result<&ScanReport, &Failure>,
        watch: &Watch,
    ) -> io::Result<()> {
        let style = self.printer.style(self.is_wide);
        let differences = self.differences(report, watch, style);
        if !self.is_terminal {
            let lines: String = differences.iter().map(|line| format!("{line}\n")).collect();
            return if lines.is_empty() { Ok(()) } else { write(&on_terminal(&lines)) };
        }
        // Differences of the first state are in the table already.
        if self.is_drawn {
            self.last.extend(differences);
            let surplus = self.last.len().saturating_sub(DIFFERENCES);
            self.last.drain(..surplus);
        }
        let text = self.drawing(report, watch, style);
        let rows = terminal_size::terminal_size().map(|(_, height)| usize::from(height.0));
        let begin = if self.is_drawn { "\x1b[H" } else { "\x1b[2J\x1b[H" };
        self.is_drawn = true;
        write(&format!("{begin}{}\x1b[J", in_rows(&on_terminal(&text), rows)))
    }

    /// Returns a line for each difference from the previous state.
    fn differences(
        &mut self,
        report: Result<&ScanReport, &Failure>,
        watch: &Watch,
        style: Style,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        let at = &watch.at;
        let now: BTreeMap<String, NotCurrent> =
            watch.not_current.iter().map(|known| (known.what.clone(), known.clone())).collect();
        let is_new =
            |(what, known): &(&String, &NotCurrent)| self.not_current.get(*what) != Some(known);
        let new: Vec<&NotCurrent> = now.iter().filter(is_new).map(|(_, known)| known).collect();
        for line in not_current(&new) {
            lines.push(format!("{at} {}", style.yellow(&line)));
        }
        let before = self.not_current.keys();
        let again: Vec<&String> = before.filter(|what| !now.contains_key(*what)).collect();
        if !again.is_empty() {
            lines.push(format!("{at} current again: {}", some_of(&again)));
        }
        self.not_current = now;
        let failure = report.err().map(|failure| failure.messages().to_vec()).unwrap_or_default();
        if failure != self.failure {
            let failed =
                failure.iter().map(|message| format!("{at} {} {message}", style.red("error:")));
            lines.extend(failed);
            self.failure = failure;
        }
        let Ok(report) = report else { return lines };
        let findings = FindingLines::of(&report.findings);
        for (difference, line) in findings.since(&self.findings) {
            let word = format!("{difference:<7}");
            let word = match difference {
                Difference::New => style.red(&word),
                Difference::Changed => style.yellow(&word),
                Difference::Gone => style.green(&word),
            };
            lines.push(format!("{at} {word} {line}"));
        }
        self.findings = findings;
        lines
    }

    fn drawing(
        &self,
        report: Result<&ScanReport, &Failure>,
        watch: &Watch,
        style: Style,
    ) -> String {
        let changes = match watch.changes {
            0 => String::new(),
            changes => format!(", {changes} changes of objects"),
        };
        let mut text = style.bold(&format!("{}{changes} (Ctrl-C ends this)", watch.at));
        text.push('\n');
        for line in not_current(&watch.not_current.iter().collect::<Vec<_>>()) {
            text.push_str(&style.yellow(&line));
            text.push('\n');
        }
        text.push('\n');
        match report {
            Ok(report) => text.push_str(&scan::text(report, self.listing, style)),
            Err(failure) => failure
                .messages()
                .iter()
                .for_each(|message| text.push_str(&format!("{} {message}\n", style.red("error:")))),
        }
        if !self.last.is_empty() {
            text.push_str(&format!("\n{}\n", style.bold("last changes")));
            self.last.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        }
        text
    }
}

/// Returns lines about the parts that may be outdated. Parts with the same reason and time share a
/// line, since all kinds stop at once when the API server does.
fn not_current(all: &[&NotCurrent]) -> Vec<String> {
    let mut groups: Vec<(&NotCurrent, Vec<&str>)> = Vec::new();
    for known in all {
        let is_alike = |(first, _): &&mut (&NotCurrent, Vec<&str>)| {
            (&first.since, &first.why, first.read_again)
                == (&known.since, &known.why, known.read_again)
        };
        match groups.iter_mut().find(is_alike) {
            Some((_, names)) => names.push(&known.what),
            None => groups.push((known, vec![&known.what])),
        }
    }
    let line = |(known, names): (&NotCurrent, Vec<&str>)| {
        let (what, NotCurrent { since, why, read_again, .. }) = (some_of(&names), known);
        if *read_again {
            format!("{what}: read again from time to time, since a watch is not possible: {why}")
        } else {
            format!("{what}: not updated since {since}: {why}")
        }
    };
    groups.into_iter().map(line).collect()
}

/// Returns as much of a text as the terminal has rows for, so that it stays in place. Each line
/// clears the rest of its row.
fn in_rows(text: &str, rows: Option<usize>) -> String {
    let all: Vec<&str> = text.lines().collect();
    let most = rows.map_or(all.len(), |rows| rows.saturating_sub(1).max(2));
    let mut drawn = String::new();
    let is_cut = all.len() > most;
    for line in &all[..if is_cut { most - 1 } else { all.len() }] {
        drawn.push_str(line);
        drawn.push_str("\x1b[K\n");
    }
    if is_cut {
        drawn.push_str(&format!("… {} more lines\x1b[K\n", all.len() - most + 1));
    }
    drawn
}

/// Prints text on stdout that [`on_terminal`] or JSON has escaped.
pub(super) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_that_is_gone_is_a_line() {
        let stale = |what: &str, since: &str| NotCurrent {
            what: what.into(),
            since: since.into(),
            read_again: false,
            why: "Connection refused".into(),
        };
        let all = [
            stale("Nodes", "06:00:00"),
            stale("Pods", "06:00:00"),
            stale("Secrets", "06:00:01"),
            stale("Services", "06:00:00"),
            stale("Ingresses", "06:00:00"),
        ];
        assert_eq!(
            not_current(&all.iter().collect::<Vec<_>>()),
            [
                "Nodes, Pods, Services and 1 more: not updated since 06:00:00: Connection refused",
                "Secrets: not updated since 06:00:01: Connection refused",
            ]
        );
    }
}
