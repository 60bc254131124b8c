//! The trace of one flow, hop by hop, out and back.

use std::net::SocketAddr;

use uturn_diagnose::{CureTitle, Finding};
use uturn_model::route::{Hop, Place, Route, Step, StepKind};
use uturn_model::{Assumption, Flow, Text, Verdict};

use crate::fold::beside;
use crate::lines::Lines as _;
use crate::style::{Style, in_a_line};
use crate::{supposed, table, words};

/// The columns of a place: its kind, its name, and the direction.
const PLACE: usize = 28;
/// The columns of a place's name, unless a name of the route is longer.
const NAME: usize = 14;
/// The largest number of columns that names may take.
const LONGEST_NAME: usize = 48;

/// What a verdict means for the one who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// The codes of its faults.
    pub codes: Vec<String>,
    /// The reason why calls fail.
    pub because: Option<Text>,
}

/// A finding of a scan about what is called that the verdicts do not show, and what helps.
#[derive(Clone, Debug)]
pub struct Doubt {
    /// The finding.
    pub finding: Finding,
    /// The cures that work.
    pub cures: Vec<CureTitle>,
}

/// Formats the verdict, then each way with what decided every step. Several verdicts are all
/// printed before their ways; the ways of those that end alike are printed once. `meanings` are those
/// of the verdicts, `assumed` the assumptions about the whole cluster.
pub fn text(
    flow: &Flow,
    verdicts: &[Verdict],
    meanings: &[Meaning],
    assumed: &[Assumption],
    style: Style,
) -> String {
    let mut text = String::new();
    let ends = |at: usize| (&verdicts[at].outcomes, &verdicts[at].mechanisms, &meanings[at].codes);
    let cases: Vec<Vec<usize>> = alike(verdicts.len(), |a, b| ends(a) == ends(b));
    for case in &cases {
        let all: Vec<&Verdict> = case.iter().map(|at| &verdicts[*at]).collect();
        text.push_str(&heading(&all, &meanings[case[0]], style));
    }
    text.line(&format!("{} → {} ({})", flow.from, flow.to, flow.protocol));
    for case in &cases {
        let shown = if style.wide { case.as_slice() } else { &case[..1] };
        for at in shown {
            let verdict = &verdicts[*at];
            if verdicts.len() > 1 {
                text.paragraph(&style.bold(&conditions(&[verdict]).concat()));
            }
            let mut routes: Vec<&Route> = verdict.routes.iter().collect();
            // The failing routes come first.
            routes.sort_by_key(|route| route.outcome.is_fine());
            for (i, route) in routes.iter().enumerate() {
                text.push_str(&way(i + 1, routes.len(), route, style));
            }
        }
        let others: Vec<&Verdict> = case[shown.len()..].iter().map(|at| &verdicts[*at]).collect();
        if !others.is_empty() {
            text.push('\n');
            for condition in conditions(&others) {
                text.line(&format!(
                    "{}: ends alike; -o wide shows the way",
                    style.bold(&condition)
                ));
            }
        }
    }
    let mut supposed: Vec<&Assumption> = Vec::new();
    for assumption in verdicts.iter().flat_map(|verdict| &verdict.supposed) {
        // Assumptions that differ only from case to case are printed once.
        let is_same = |known: &&Assumption| {
            known.subject == assumption.subject
                && known.settle == assumption.settle
                && verdicts.len() > 1
        };
        if !supposed.iter().any(|known| *known == assumption || is_same(known)) {
            supposed.push(assumption);
        }
    }
    let conditions: Vec<&Text> = verdicts.iter().flat_map(|verdict| &verdict.conditions).collect();
    let decides = |assumption: &Assumption| {
        !assumed.contains(assumption) || supposed::is_condition(assumption, &conditions)
    };
    if !supposed.is_empty() {
        text.push('\n');
        text.push_str(&supposed::lines(&supposed, decides, style));
    }
    text
}

/// Returns the numbers below `count` in groups of those that are alike.
pub(crate) fn alike(count: usize, is_alike: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in 0..count {
        match groups.iter_mut().find(|group| is_alike(group[0], at)) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// The largest number of outcomes in the heading; all are in JSON.
const MAX_ENDS: usize = 12;

/// Describes the outcomes of a flow in one line, in all cases that end so, and the reason in
/// another.
fn heading(verdicts: &[&Verdict], meaning: &Meaning, style: Style) -> String {
    let verdict = verdicts[0];
    let summary = words::verdict(verdict, MAX_ENDS);
    let summary = match (verdict.can_fail(), verdict.is_open()) {
        (true, _) => style.red(&summary),
        (false, true) => style.yellow(&summary),
        (false, false) => style.green(&summary),
    };
    let conditions = conditions(verdicts);
    let mut text = match &*conditions {
        [condition] => format!("{condition}: "),
        _ => String::new(),
    };
    text.push_str(&style.bold(&summary));
    let mut reasons = meaning.codes.clone();
    reasons.extend(verdict.mechanisms.iter().map(ToString::to_string));
    if !reasons.is_empty() {
        text.push_str(&format!("   {}", reasons.join(" ")));
    }
    text.push('\n');
    for (at, condition) in conditions.iter().enumerate().filter(|_| conditions.len() > 1) {
        let or = if at > 0 { "  or " } else { "  " };
        text.push_str(&beside(or, condition, style.width));
    }
    if let Some(why) = &meaning.because {
        text.push_str(&beside("because: ", why, style.width));
    }
    text
}

/// Describes the conditions of verdicts, of which one has to hold.
fn conditions(verdicts: &[&Verdict]) -> Vec<String> {
    let conditional = verdicts.iter().filter(|verdict| !verdict.conditions.is_empty());
    conditional.map(|verdict| format!("if {}", verdict.conditions.join(" and "))).collect()
}

fn way(number: usize, of: usize, route: &Route, style: Style) -> String {
    let mut heading =
        format!("way {number} of {of} · {} · {}", words::share(route.share), route.outcome);
    if route.has_others {
        heading.push_str(" · one of several that end alike: --all shows each");
    }
    let mut text = format!("\n  {}\n", style.bold(&heading));
    let names = route.hops.iter().map(|hop| table::length(&place(hop).1));
    let width = names.max().unwrap_or_default().clamp(NAME, LONGEST_NAME);
    for hop in &route.hops {
        text.push_str(&stay(hop, width, style));
    }
    text
}

/// Returns the kind of a place and its name.
fn place(hop: &Hop) -> (&'static str, String) {
    match &hop.place {
        Place::Dns => ("name", String::new()),
        Place::Pod(name) => ("pod", name.to_string()),
        Place::Node(name) => ("node", name.to_string()),
        Place::Fabric => ("fabric", String::new()),
        Place::LoadBalancer(name) => ("lb", name.to_string()),
        Place::Outside => ("outside", String::new()),
    }
}

fn stay(hop: &Hop, width: usize, style: Style) -> String {
    let (kind, name) = place(hop);
    let mut text = String::new();
    for step in shown_steps(hop, style) {
        let first = match text.as_str() {
            "" => format!("{kind:<7} {name:<width$} {:<4}", hop.direction.to_string()),
            _ => String::new(),
        };
        text.push_str(&line_of(&first, PLACE - NAME + width, step, style));
    }
    text
}

/// Returns the steps that are shown: all if everything is wanted, else those that decide; if there
/// are none, the last step.
fn shown_steps(hop: &Hop, style: Style) -> Vec<&Step> {
    let at_node = matches!(hop.place, Place::Node(_));
    let decides = |step: &&Step| match step.kind {
        StepKind::Mark | StepKind::Filter | StepKind::Route => false,
        // The pick among endpoints shows in the translation that follows it.
        StepKind::Balance => !at_node,
        _ => true,
    };
    let mut steps: Vec<&Step> =
        hop.steps.iter().filter(|step| style.wide || decides(step)).collect();
    if steps.is_empty() {
        let route = hop.steps.iter().find(|step| step.kind == StepKind::Route);
        steps.extend(route.or(hop.steps.last()));
    }
    steps
}

/// Formats a step in one line, or in two if its evidence does not fit into the first.
pub(crate) fn line(place: &str, step: &Step, style: Style) -> String {
    line_of(place, PLACE, step, style)
}

/// Formats a step behind a place of this many columns.
fn line_of(place: &str, width: usize, step: &Step, style: Style) -> String {
    let indent = 2 + width;
    let addresses = addresses(step);
    let main = match (step.kind, addresses) {
        (StepKind::Balance | StepKind::Resolve | StepKind::Timeout, _) | (_, None) => {
            step.why.to_string()
        }
        (StepKind::Translate | StepKind::Untranslate, Some(addresses)) => addresses,
        (_, Some(addresses)) => format!("{addresses}  {}", step.why),
    };
    let main = if step.kind == StepKind::Turn { format!("↩ {main}") } else { main };
    let painted = match step.kind {
        StepKind::Turn | StepKind::Drop | StepKind::Reject | StepKind::Timeout => style.red(&main),
        StepKind::Unknown => style.yellow(&main),
        StepKind::Translate | StepKind::Untranslate => style.bold(&main),
        _ => main.clone(),
    };
    let rule = if style.wide { step.by.rule() } else { words::short_rule(&step.by) };
    let source = step.by.origin().to_string();
    // A pod's sending and answering need no evidence.
    let plain = matches!(step.kind, StepKind::Send | StepKind::Deliver);
    let by = match plain && !style.wide {
        true => String::new(),
        false if *rule == *source => source,
        false => format!("{rule}  {source}"),
    };
    let painted = in_a_line(&painted);
    let mut text = format!("  {}{painted}", pad(place, width));
    if by.is_empty() {
        text.push('\n');
    } else if indent + table::length(&main) + 3 + table::length(&by) <= style.width || style.wide {
        text.line(&format!("   {}", style.dim(&by)));
    } else {
        text.paragraph(&format!("{}{}", " ".repeat(indent + 2), style.dim(&by)));
    }
    text
}

fn pad(text: &str, width: usize) -> String {
    let length = table::length(text);
    if length < width {
        format!("{text}{}", " ".repeat(width - length))
    } else {
        format!("{text} ")
    }
}

/// Formats an address, with the port if there is one.
pub(crate) fn end(of: SocketAddr) -> String {
    match of.port() {
        0 => of.ip().to_string(),
        _ => of.to_string(),
    }
}

/// Formats the addresses of the packet in a step: the changed ones, or all if none changed.
fn addresses(step: &Step) -> Option<String> {
    let after = step.after?;
    let Some(before) = step.before.filter(|before| *before != after) else {
        return Some(format!("{} → {}", end(after.src), end(after.dst)));
    };
    let mut changes = Vec::new();
    if before.dst != after.dst {
        changes.push(format!("to {} ⇒ {}", end(before.dst), end(after.dst)));
    }
    if before.src != after.src {
        changes.push(format!("from {} ⇒ {}", end(before.src), end(after.src)));
    }
    Some(changes.join(", "))
}
