//! A comparison as Markdown, for the comment of a pull request: short, with details folded, and the
//! same from run to run.

use uturn_diagnose::Severity;
use uturn_whatif::Entry;

use super::{WhatIfReport, called, clients, condition, counts, cure, ending, verb};
use crate::words;

/// The number of entries of each list that are shown.
const MOST: usize = 20;

/// The mark by which a workflow finds its own comment again.
const MARK: &str = "<!-- uturn -->";

/// Formats the whole comment.
pub fn text(report: &WhatIfReport) -> String {
    let comparison = &report.comparison;
    let mut text = format!("{MARK}\n");
    if comparison.is_empty() {
        text.push_str("### uturn: nothing changes for any call\n");
    } else {
        let sign = if comparison.worse.is_empty() { "" } else { ":warning: " };
        text.push_str(&format!("### {sign}uturn: {}\n", escaped(&counts(comparison))));
    }
    if !comparison.worse.is_empty() {
        text.push_str("\n| gets worse | for | before | after | because | cure |\n");
        text.push_str("| --- | --- | --- | --- | --- | --- |\n");
        for entry in comparison.worse.iter().take(MOST) {
            text.push_str(&row(entry));
        }
        text.push_str(&more(comparison.worse.len()));
    }
    fold(&mut text, "gets better", "get better", &comparison.better);
    fold(&mut text, "goes otherwise", "go otherwise", &comparison.other);
    let mut rest = String::new();
    for change in &report.changes {
        rest.push_str(&format!("- {}\n", code(&change.change)));
    }
    if !rest.is_empty() {
        let title = words::count(report.changes.len(), "change");
        text.push_str(&details(&title, &rest));
    }
    let mut open = String::new();
    for own in &comparison.not_judged {
        let objects: Vec<String> =
            own.unjudged.objects.iter().map(uturn_model::ObjectRef::short).collect();
        open.push_str(&format!(
            "- {}: {}: {}\n",
            escaped(&own.unjudged.to_string()),
            escaped(&words::some_of(&objects)),
            escaped(&own.unjudged.because)
        ));
    }
    if !open.is_empty() {
        text.push_str(&details("not judged", &open));
    }
    let mut supposed = String::new();
    for assumption in &comparison.supposed {
        supposed.push_str(&format!("- {}\n", escaped(&assumption.to_string())));
    }
    if !supposed.is_empty() {
        text.push_str(&details("supposed, since nothing states it", &supposed));
    }
    text.push_str(&format!("\n{} compared.\n", words::count(comparison.calls, "call")));
    text
}

fn row(entry: &Entry) -> String {
    let said = entry.subjected.as_ref();
    let because = said.map_or_else(String::new, |said| {
        let why = said.because.as_deref().unwrap_or_else(|| said.code.title());
        let bold = if said.severity == Severity::Error { "**" } else { "" };
        format!("{bold}{}{bold} {}", said.code, escaped(why))
    });
    let what = format!("{}: {}{}", called(entry), verb(entry), condition(entry));
    let cells = [
        escaped(&what),
        escaped(&clients(&entry.who)),
        escaped(&ending(&entry.before)),
        escaped(&ending(&entry.after)),
        because,
        escaped(&cure(entry).unwrap_or_default()),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn fold(text: &mut String, one: &str, many: &str, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    let mut list = String::new();
    for entry in entries.iter().take(MOST) {
        list.push_str(&format!(
            "- {}: {}{}: {} → {} ({})\n",
            escaped(&called(entry)),
            verb(entry),
            escaped(&condition(entry)),
            escaped(&ending(&entry.before)),
            escaped(&ending(&entry.after)),
            escaped(&clients(&entry.who))
        ));
    }
    list.push_str(&more(entries.len()));
    let title = match entries.len() {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    text.push_str(&details(&title, &list));
}

fn more(count: usize) -> String {
    match count.saturating_sub(MOST) {
        0 => String::new(),
        more => format!("\n… and {more} more\n"),
    }
}

fn details(title: &str, inside: &str) -> String {
    format!("\n<details><summary>{}</summary>\n\n{inside}\n</details>\n", escaped(title))
}

/// Formats text that is printed as it is.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{}{space}{ticks}", text.replace(['\n', '\r'], " "))
}

/// Escapes what Markdown or HTML would take for a mark, so that a name cannot write into the comment.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            // A mention notifies people, and a number leads to an issue.
            '@' => safe.push_str("&#64;"),
            '#' => safe.push_str("&#35;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' | '!' => {
                safe.push('\\');
                safe.push(letter);
            }
            '\n' | '\r' => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}
