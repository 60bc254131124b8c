//! A comparison as text.

use uturn_whatif::Entry;
use uturn_whatif::result::NotJudged;

use super::{WhatIfReport, called, clients, condition, counts, cure, ending, verb};
use crate::fold::beside;
use crate::lines::Lines as _;
use crate::style::{Paint, Style};
use crate::{supposed, words};

/// Formats what gets worse, then what gets better, then the rest in a line each.
pub fn text(report: &WhatIfReport, style: Style) -> String {
    let comparison = &report.comparison;
    let mut text = String::new();
    for entry in &comparison.worse {
        text.push_str(&paragraph(entry, "worse", Style::RED, style));
        text.push('\n');
    }
    for entry in &comparison.better {
        text.push_str(&paragraph(entry, "better", Style::GREEN, style));
        text.push('\n');
    }
    let most = if style.wide { usize::MAX } else { MOST };
    for entry in comparison.other.iter().take(most) {
        if style.wide {
            text.push_str(&paragraph(entry, "other", Style::YELLOW, style));
            text.push('\n');
        } else {
            text.push_str(&one_line(entry, style));
        }
    }
    if comparison.other.len() > most {
        text.line(&format!("other: {} more (-o wide lists all)", comparison.other.len() - most));
    }
    if !comparison.other.is_empty() && !style.wide {
        text.push('\n');
    }
    text.line(&summary(report));
    for own in &comparison.not_judged {
        text.push_str(&not_judged(own, style));
    }
    let conditions: Vec<_> = comparison
        .worse
        .iter()
        .chain(&comparison.better)
        .chain(&comparison.other)
        .flat_map(|entry| &entry.conditions)
        .collect();
    let all: Vec<_> = comparison.supposed.iter().collect();
    text.push_str(&supposed::lines(
        &all,
        |assumption| supposed::is_condition(assumption, &conditions),
        style,
    ));
    text
}

/// The number of entries that go otherwise and get a line.
const MOST: usize = 12;

/// Says in a line what becomes of how many calls.
fn summary(report: &WhatIfReport) -> String {
    let comparison = &report.comparison;
    let calls = words::count(comparison.calls, "call");
    let changes = match report.changes.len() {
        0 => String::new(),
        count => format!(", {}", words::count(count, "change")),
    };
    if comparison.is_empty() {
        let judged = if comparison.not_judged.is_empty() { "" } else { " that can be judged" };
        return format!("nothing changes: {calls}{judged} compared{changes}");
    }
    format!("{} ({calls} compared{changes})", counts(comparison))
}

/// Formats an entry with how its calls ended and end.
fn paragraph(entry: &Entry, list: &str, paint: Paint, style: Style) -> String {
    let mut text = String::new();
    let title = format!("{}: {}{}", called(entry), verb(entry), condition(entry));
    text.push_str(&beside(&format!("{}: ", style.paint(paint.bold(), list)), &title, style.width));
    let mut line = |label: &str, what: &str| {
        if !what.is_empty() {
            text.push_str(&beside(&format!("  {label:<10}"), what, style.width));
        }
    };
    line("who", &clients(&entry.who));
    line("before", &ending(&entry.before));
    line("after", &ending(&entry.after));
    if let Some(said) = &entry.subjected {
        let because = said.because.as_deref().unwrap_or_else(|| said.code.title());
        let label = if list == "better" { "fault was" } else { "because" };
        line(label, &format!("{because} ({})", said.code));
    }
    if list == "worse"
        && let Some(cure) = cure(entry)
    {
        line("cure", &cure);
    }
    if style.wide {
        let pods: Vec<String> =
            entry.who.pods.iter().take(MOST_PODS).map(|pod| format!("pod/{pod}")).collect();
        line("clients", &pods.join(", "));
        for target in &entry.targets {
            line("target", target);
        }
        for observed in entry.subjected.iter().flat_map(|said| &said.evidence) {
            let place = words::place(observed);
            let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
            line("evidence", &format!("{place}{}  [{}]", observed.what, observed.by.origin()));
        }
    }
    text
}

/// The largest number of pods that are named.
const MOST_PODS: usize = 50;

fn one_line(entry: &Entry, style: Style) -> String {
    let change = if entry.before.is_absent() {
        ending(&entry.after)
    } else if entry.after.is_absent() {
        format!("{} before", ending(&entry.before))
    } else {
        format!("{} → {}", ending(&entry.before), ending(&entry.after))
    };
    let what = format!(
        "{}: {}{}: {change} ({})",
        called(entry),
        verb(entry),
        condition(entry),
        clients(&entry.who)
    );
    beside(&format!("{}: ", style.paint(Style::YELLOW, "other")), &what, style.width)
}

fn not_judged(own: &NotJudged, style: Style) -> String {
    let when = match (own.before, own.after) {
        (true, true) => "",
        (true, false) => " before the change",
        (false, _) => " after the change",
    };
    let objects: Vec<String> =
        own.unjudged.objects.iter().map(uturn_model::ObjectRef::short).collect();
    let settle = match &*own.unjudged.settle {
        "" => String::new(),
        settle => format!("; to settle it: {settle}"),
    };
    let what =
        format!("{}: {}: {}{settle}", own.unjudged, words::some_of(&objects), own.unjudged.because);
    beside(&format!("not judged{when}: "), &what, style.width)
}
