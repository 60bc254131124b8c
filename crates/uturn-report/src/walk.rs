//! One packet through one node: every end it can come to.

use serde_json::{Map, Value, json};
use uturn_model::route::Leg;
use uturn_model::{Step, Supposition};

use crate::style::Style;
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
    /// Rules that nobody models: the walk took both ways.
    pub unknown: Vec<String>,
    /// What nothing said and was taken for true.
    pub supposed: Vec<Supposition>,
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
            "end {} of {} · {} · {said} · {}",
            i + 1,
            ends.len(),
            words::share(end.share),
            end.leg
        );
        text.push_str(&format!("{}\n", style.bold(&heading)));
        for step in &end.steps {
            text.push_str(&trace::line(step.kind.as_str(), step, style));
        }
        for rule in &end.unknown {
            let what = match rule.ends_with("(not captured)") {
                true => "the capture does not say this",
                false => "nobody models this rule",
            };
            let warning = format!("{what}, both ways are shown: {rule}");
            text.push_str(&format!("  {}\n", style.yellow(&warning)));
        }
    }
    for one in supposed(ends) {
        text.push_str(&format!("supposed: {one}\n"));
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
            value.insert("in".into(), json!(end.came_in));
            value.insert("out".into(), json!(end.leaves_by));
            value.insert("src".into(), json!(end.leg.src.to_string()));
            value.insert("dst".into(), json!(end.leg.dst.to_string()));
            value.insert("steps".into(), end.steps.iter().map(json::step).collect());
            value.insert("unknown".into(), json!(end.unknown));
            value.insert("supposed".into(), said(&end.supposed));
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
