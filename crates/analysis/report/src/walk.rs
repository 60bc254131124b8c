//! The ends of one packet's walk through one node.

mod cases;

use std::collections::{HashMap, HashSet};

use uturn_model::route::Leg;
use uturn_model::{Assumption, Share, Step, StepKind};

use crate::lines::Lines as _;
use crate::style::Style;
use crate::trace::end as place;
use crate::{trace, words};

/// One end of a walk.
#[derive(Clone, Debug)]
pub struct WalkEnd {
    /// The share of packets with this end: more than 0 and at most 1.
    pub share: Share,
    /// The kind of end, as in JSON: `local`, `forward`, `drop`, `reject`, `unsettled`.
    pub end: &'static str,
    /// The kind of drop or rejection.
    pub reason: Option<String>,
    /// The interface by which the packet came in.
    pub came_in: Option<String>,
    /// The interface by which it leaves.
    pub leaves_by: Option<String>,
    /// The packet as it leaves, or as it was last seen.
    pub leg: Leg,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Rules that are not modelled.
    pub unknown: Vec<String>,
    /// The cases that lead here, each with the answers that it needs. A single case without answers
    /// if no question is open.
    pub cases: Vec<Vec<Case>>,
    /// The assumptions about what is not stated.
    pub supposed: Vec<Assumption>,
}

/// The answer to a question in a case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The rule that asks the question.
    pub rule: String,
    /// The question in words.
    pub question: String,
    /// Whether the answer is yes.
    pub holds: bool,
    /// The answer in words.
    pub words: String,
}

/// Merges ends with the same packet, the same way out and the same rules: questions whose answer
/// makes no difference do not keep them apart.
pub fn merged(ends: Vec<WalkEnd>) -> Vec<WalkEnd> {
    let mut merged: Vec<WalkEnd> = Vec::new();
    let mut unknown: Vec<HashSet<String>> = Vec::new();
    let mut by_rules: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
    for end in ends {
        let alike = by_rules.entry(rules(&end)).or_default();
        match alike.iter().find(|at| is_alike(&merged[**at], &end)) {
            Some(at) => join(&mut merged[*at], &mut unknown[*at], end),
            None => {
                alike.push(merged.len());
                unknown.push(end.unknown.iter().cloned().collect());
                merged.push(end);
            }
        }
    }
    for end in &mut merged {
        let open = rules_of(&end.cases);
        cases::reduce(&mut end.cases);
        let mattering = rules_of(&end.cases);
        for step in end.steps.iter_mut().filter(|step| step.kind == StepKind::Unknown) {
            let rule = step.by.to_string();
            let answer = match (open.contains(&rule), mattering.contains(&rule), end.cases.len()) {
                (true, false, _) => "it makes no difference here",
                (true, true, 2..) => "as in one of the cases above",
                _ => continue,
            };
            if let Some((asked, _)) = step.why.rsplit_once(": ") {
                step.why = format!("{asked}: {answer}").into();
            }
        }
    }
    merged
}

/// Returns the rules that decided the end.
fn rules(end: &WalkEnd) -> Vec<String> {
    let known = end.steps.iter().filter(|step| step.kind != StepKind::Unknown);
    known.map(|step| step.by.to_string()).collect()
}

/// Returns the rules that ask the questions which the cases answer.
fn rules_of(cases: &[Vec<Case>]) -> HashSet<String> {
    cases.iter().flatten().map(|case| case.rule.clone()).collect()
}

fn is_alike(end: &WalkEnd, other: &WalkEnd) -> bool {
    let steps = |end: &WalkEnd| -> Vec<_> {
        let known = end.steps.iter().filter(|step| step.kind != StepKind::Unknown);
        known.map(|step| (step.kind, step.by.clone(), step.before, step.after)).collect()
    };
    (end.end, &end.reason, &end.came_in, &end.leaves_by, end.leg)
        == (other.end, &other.reason, &other.came_in, &other.leaves_by, other.leg)
        && steps(end) == steps(other)
}

fn join(end: &mut WalkEnd, unknown: &mut HashSet<String>, other: WalkEnd) {
    end.share += other.share;
    if other.steps.len() > end.steps.len() {
        end.steps = other.steps;
    }
    end.unknown.extend(other.unknown.into_iter().filter(|rule| unknown.insert(rule.clone())));
    let new: Vec<Assumption> = other
        .supposed
        .into_iter()
        .filter(|assumption| !end.supposed.contains(assumption))
        .collect();
    end.supposed.extend(new);
    end.cases.extend(other.cases);
}

/// Returns the cases that lead to an end, each in words. Returns none if all cases lead there.
pub(crate) fn cases(end: &WalkEnd) -> Vec<String> {
    let words = |case: &Vec<Case>| {
        case.iter().map(|answer| answer.words.clone()).collect::<Vec<_>>().join(", and ")
    };
    if end.cases.iter().any(Vec::is_empty) {
        Vec::new()
    } else {
        end.cases.iter().map(words).collect()
    }
}

/// Formats each end with its steps.
pub fn text(ends: &[WalkEnd], style: Style) -> String {
    let mut text = String::new();
    for (i, end) in ends.iter().enumerate() {
        let mut ending = end.end.to_owned();
        if let Some(by) = &end.leaves_by {
            ending.push_str(&format!(" by {by}"));
        }
        if let Some(reason) = &end.reason {
            ending.push_str(&format!(": {reason}"));
        }
        let heading = format!(
            "end {} of {} · {} · {ending} · {} → {}",
            i + 1,
            ends.len(),
            words::share(end.share),
            place(end.leg.src),
            place(end.leg.dst)
        );
        text.line(&style.bold(&heading));
        for (at, case) in cases(end).iter().enumerate() {
            let word = if at == 0 { "if" } else { "or if" };
            text.line(&format!("  {}", style.yellow(&format!("{word} {case}"))));
        }
        for step in &end.steps {
            text.push_str(&trace::line(step.kind.as_str(), step, style));
        }
        for assumption in &end.supposed {
            text.line(&format!("  {}", style.dim(&format!("supposed: {assumption}"))));
        }
    }
    text
}
