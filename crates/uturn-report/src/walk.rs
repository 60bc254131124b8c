//! One packet through one node: every end it can come to.

use serde_json::{Map, Value, json};
use uturn_model::route::Leg;
use uturn_model::{Step, StepKind, Supposition};

use crate::style::Style;
use crate::trace::end as place;
use crate::{json, trace, words};

/// One end of a walk.
#[derive(Clone, Debug)]
pub struct WalkEnd {
    /// Its odds.
    pub share: f64,
    /// The word of the contract: `local`, `forward`, `drop`, `reject`, `unsettled`.
    pub end: &'static str,
    /// What kind of drop or rejection it is.
    pub reason: Option<String>,
    /// The interface the packet came in by.
    pub came_in: Option<String>,
    /// The interface it leaves by.
    pub leaves_by: Option<String>,
    /// The packet as it leaves, or as it was last seen.
    pub leg: Leg,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// Rules that are not modelled.
    pub unknown: Vec<String>,
    /// The cases that lead here, each of which is all that holds in it; one that nothing has
    /// to hold in where nothing is open.
    pub cases: Vec<Vec<Case>>,
    /// What nothing said and was taken for true.
    pub supposed: Vec<Supposition>,
}

/// Something that holds in a case, or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The rule that asked for it.
    pub rule: String,
    /// What is asked, in words.
    pub question: String,
    /// Whether it holds.
    pub holds: bool,
    /// The answer, in words.
    pub words: String,
}

/// The ends that can be told apart: of those with the same packet, the same way out and the
/// same rules, what was asked in vain makes no difference.
pub fn merged(ends: Vec<WalkEnd>) -> Vec<WalkEnd> {
    let mut merged: Vec<WalkEnd> = Vec::new();
    for end in ends {
        match merged.iter_mut().find(|one| is_alike(one, &end)) {
            Some(one) => join(one, end),
            None => merged.push(end),
        }
    }
    for end in &mut merged {
        let open: Vec<String> = end.cases.iter().flatten().map(|case| case.rule.clone()).collect();
        reduce(&mut end.cases);
        for step in end.steps.iter_mut().filter(|step| step.kind == StepKind::Unknown) {
            let rule = step.by.to_string();
            let matters = end.cases.iter().flatten().any(|case| case.rule == rule);
            let answer = match (open.contains(&rule), matters, end.cases.len()) {
                (true, false, _) => "here it makes no difference",
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

fn is_alike(one: &WalkEnd, other: &WalkEnd) -> bool {
    let steps = |end: &WalkEnd| -> Vec<_> {
        let told = end.steps.iter().filter(|step| step.kind != StepKind::Unknown);
        told.map(|step| (step.kind, step.by.clone(), step.before, step.after)).collect()
    };
    (one.end, &one.reason, &one.came_in, &one.leaves_by, one.leg)
        == (other.end, &other.reason, &other.came_in, &other.leaves_by, other.leg)
        && steps(one) == steps(other)
}

fn join(one: &mut WalkEnd, other: WalkEnd) {
    one.share += other.share;
    if other.steps.len() > one.steps.len() {
        one.steps = other.steps;
    }
    let new: Vec<String> =
        other.unknown.into_iter().filter(|rule| !one.unknown.contains(rule)).collect();
    one.unknown.extend(new);
    let new: Vec<Supposition> =
        other.supposed.into_iter().filter(|each| !one.supposed.contains(each)).collect();
    one.supposed.extend(new);
    one.cases.extend(other.cases);
}

/// Leaves out what does not matter: where a case and the same with one answer turned about lead
/// to one end, that question is none.
fn reduce(cases: &mut Vec<Vec<Case>>) {
    while let Some((at, other, case)) = turned(cases) {
        cases[at].retain(|one| one.question != case.question);
        cases.remove(other);
    }
}

fn turned(cases: &[Vec<Case>]) -> Option<(usize, usize, Case)> {
    for (at, one) in cases.iter().enumerate() {
        for (other, two) in cases.iter().enumerate().skip(at + 1) {
            let differs = |case: &&Case| !two.contains(case);
            let mut different = one.iter().filter(differs);
            let (Some(case), None) = (different.next(), different.next()) else {
                if one.iter().all(|case| two.contains(case)) && one.len() == two.len() {
                    return Some((at, other, Case::nothing()));
                }
                continue;
            };
            let is_turned =
                |each: &Case| each.question == case.question && each.holds != case.holds;
            if one.len() == two.len() && two.iter().any(is_turned) {
                return Some((at, other, case.clone()));
            }
        }
    }
    None
}

impl Case {
    fn nothing() -> Self {
        let (rule, question, words) = (String::new(), String::new(), String::new());
        Self { rule, question, holds: true, words }
    }
}

/// The cases that lead to an end, each in words; none where all do.
fn cases(end: &WalkEnd) -> Vec<String> {
    let words = |case: &Vec<Case>| {
        case.iter().map(|one| one.words.clone()).collect::<Vec<_>>().join(", and ")
    };
    match end.cases.iter().any(Vec::is_empty) {
        true => Vec::new(),
        false => end.cases.iter().map(words).collect(),
    }
}

/// Each end with its steps.
pub fn text(ends: &[WalkEnd], style: Style) -> String {
    let mut text = String::new();
    for (i, end) in ends.iter().enumerate() {
        let mut said = end.end.to_owned();
        if let Some(by) = &end.leaves_by {
            said.push_str(&format!(" by {by}"));
        }
        if let Some(reason) = &end.reason {
            said.push_str(&format!(": {reason}"));
        }
        let heading = format!(
            "end {} of {} · {} · {said} · {} → {}",
            i + 1,
            ends.len(),
            words::share(uturn_model::Share::new(end.share)),
            place(end.leg.src),
            place(end.leg.dst)
        );
        text.push_str(&format!("{}\n", style.bold(&heading)));
        for (at, case) in cases(end).iter().enumerate() {
            let word = if at == 0 { "if" } else { "or if" };
            text.push_str(&format!("  {}\n", style.yellow(&format!("{word} {case}"))));
        }
        for step in &end.steps {
            text.push_str(&trace::line(step.kind.as_str(), step, style));
        }
        for one in &end.supposed {
            text.push_str(&format!("  {}\n", style.dim(&format!("supposed: {one}"))));
        }
    }
    text
}

/// `walk -o json`.
pub fn json(all: &[WalkEnd]) -> Value {
    let ends: Vec<Value> = all
        .iter()
        .map(|end| {
            let mut value = Map::new();
            value.insert("share".into(), json!(end.share));
            value.insert("end".into(), json!(end.end));
            value.insert("reason".into(), json!(end.reason));
            value.insert("if".into(), json!(cases(end)));
            value.insert("in".into(), json!(end.came_in));
            value.insert("out".into(), json!(end.leaves_by));
            value.insert("src".into(), json!(place(end.leg.src)));
            value.insert("dst".into(), json!(place(end.leg.dst)));
            value.insert("steps".into(), end.steps.iter().map(json::step).collect());
            value.insert("unknown".into(), json!(end.unknown));
            let supposed: Vec<String> = end.supposed.iter().map(ToString::to_string).collect();
            value.insert("supposed".into(), json!(supposed));
            Value::Object(value)
        })
        .collect();
    json!({ "ends": ends, "supposed": said(&supposed(all)) })
}

/// What any end rests on, each once.
fn supposed(ends: &[WalkEnd]) -> Vec<Supposition> {
    let mut all: Vec<Supposition> = Vec::new();
    for one in ends.iter().flat_map(|end| &end.supposed) {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
    all
}

fn said(all: &[Supposition]) -> Value {
    all.iter().map(json::supposition).collect()
}
