//! The report of a comparison of two clusters: `uturn whatif` and `uturn diff`.

mod markdown;
mod text;

use uturn_model::shell::Command;
use uturn_model::{Outcome, Share};
use uturn_whatif::{Comparison, Effect, Entry, Side, Who};

use crate::words;

pub use markdown::text as markdown;
pub use text::text;

/// What changes do to calls.
#[derive(Debug, Default)]
pub struct WhatIfReport {
    /// The changes; of two inputs, the objects that differ.
    pub changes: Vec<Change>,
    /// What becomes of calls.
    pub comparison: Comparison,
    /// The options that name the input on a command line, with a space before each.
    pub input: Command,
}

/// A change, as it is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The change as it was typed, or what differs.
    pub change: String,
    /// The objects that it concerns.
    pub objects: Vec<String>,
}

/// Describes what becomes of calls, before their clients.
pub(crate) fn verb(entry: &Entry) -> &'static str {
    let is_partly = |side: &Side| side.outcomes.iter().any(|(outcome, _)| outcome.is_answered());
    match entry.effect {
        Effect::Fails if is_partly(&entry.after) => "fewer calls answered",
        Effect::Fails => "not answered any more",
        Effect::NewFails => "new, and not answered",
        Effect::LosesTarget => "nothing to call any more",
        Effect::Slower => "answered later",
        Effect::Found => "new fault",
        Effect::Recovers if is_partly(&entry.before) => "more calls answered",
        Effect::Recovers => "answered now",
        Effect::FailingGone => "gone, and failed before",
        Effect::GainsTarget => "can be called now",
        Effect::Faster => "answered earlier",
        Effect::Cured => "fault is gone",
        Effect::FailsOtherwise => "fails otherwise",
        Effect::GoesOtherwise => "goes otherwise",
        Effect::NotJudged => "cannot be judged any more",
        Effect::Judged => "can be judged now",
        Effect::Warned => "new warning",
        Effect::Unwarned => "warning is gone",
        Effect::New => "new",
        Effect::Gone => "gone with the change",
    }
}

/// Names what is called: the object, with its first targets.
pub(crate) fn called(entry: &Entry) -> String {
    let targets = match entry.targets.as_slice() {
        [] => String::new(),
        few if few.len() <= 2 => format!(" {}", few.join(", ")),
        [first, rest @ ..] => format!(" {first} + {} more", rest.len()),
    };
    format!("{}{targets}", entry.subject.short())
}

/// Describes clients: `deploy/shop/web + 2 more (9 pods on 3 nodes), outside`.
pub(crate) fn clients(who: &Who) -> String {
    let mut parts = Vec::new();
    let pods = words::count(who.pods.len(), "pod");
    match who.workloads.as_slice() {
        _ if who.pods.is_empty() => {}
        [(only, 1)] => parts.push(only.clone()),
        [] => parts.push(pods),
        [(only, _)] => parts.push(format!("{only} ({})", on_nodes(who))),
        [(first, _), rest @ ..] => {
            parts.push(format!("{first} + {} more ({})", rest.len(), on_nodes(who)));
        }
    }
    let nodes = who.others.iter().filter(|name| name.starts_with("node/")).count();
    match nodes {
        0 => {}
        1 => parts.extend(who.others.iter().find(|name| name.starts_with("node/")).cloned()),
        many => parts.push(format!("programs of {many} nodes")),
    }
    parts.extend(who.others.iter().filter(|name| !name.starts_with("node/")).cloned());
    if parts.is_empty() { "no client yet".to_owned() } else { parts.join(", ") }
}

fn on_nodes(who: &Who) -> String {
    let pods = words::count(who.pods.len(), "pod");
    match who.nodes {
        0 => pods,
        nodes => format!("{pods} on {}", words::count(nodes, "node")),
    }
}

/// Describes how calls end on a side: `1 in 3 hangs, 2 in 3 answered at once (no-endpoint)`.
pub(crate) fn ending(side: &Side) -> String {
    if side.is_absent() {
        return "no such call".to_owned();
    }
    let part = |(outcome, share): &(Outcome, Share)| match words::share(*share).as_str() {
        "always" => outcome.to_string(),
        part => format!("{part} {outcome}"),
    };
    let mut parts: Vec<String> = side.outcomes.iter().take(MOST).map(part).collect();
    match side.outcomes.len() - parts.len() {
        0 => {}
        more => parts.push(format!("and {more} other endings")),
    }
    let mechanisms: Vec<&str> =
        side.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
    let why = match (mechanisms.as_slice(), &side.way) {
        ([], None) => String::new(),
        ([], Some(way)) => format!(": {way}"),
        (some, None) => format!(" ({})", some.join(", ")),
        (some, Some(way)) => format!(" ({}): {way}", some.join(", ")),
    };
    format!("{}{why}", parts.join(", "))
}

/// The largest number of outcomes that are named.
const MOST: usize = 4;

/// Describes what else has to hold: ` if kube-proxy mode is ipvs`.
pub(crate) fn condition(entry: &Entry) -> String {
    let conditions: Vec<&str> = entry.conditions.iter().map(|own| &**own).collect();
    if conditions.is_empty() { String::new() } else { format!(" if {}", conditions.join(" and ")) }
}

/// Describes the first cure, and the number of further ones; why there is none, if none was tried.
pub(crate) fn cure(entry: &Entry) -> Option<String> {
    let said = entry.subjected.as_ref()?;
    match (said.cures.as_slice(), &said.untried) {
        ([], None) => None,
        ([], Some(untried)) => Some(untried.in_a_line()),
        (some, _) => Some(words::first_of(some)),
    }
}

/// Counts the lists: `2 get worse, 1 gets better, 3 go otherwise`.
fn counts(comparison: &Comparison) -> String {
    let part = |all: &[Entry], one: &str, many: &str| match all.len() {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let parts = [
        part(&comparison.worse, "gets worse", "get worse"),
        part(&comparison.better, "gets better", "get better"),
        part(&comparison.other, "goes otherwise", "go otherwise"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
