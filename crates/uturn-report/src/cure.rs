//! Cures: what works, with what it needs, costs and changes; then what does not, and why.

use serde_json::{Map, Value, json};
use uturn_diagnose::cure::{Answer, Cure, Standing, unified};
use uturn_model::ObjectRef;
use uturn_snapshot::edit::Tree;

use crate::style::Style;
use crate::{json as contract, words};

/// What is cured, and how.
#[derive(Clone, Debug)]
pub struct CureReport {
    /// What is wrong, by code; none where nothing is.
    pub codes: Vec<String>,
    /// How it stands.
    pub now: Standing,
    /// All cures that are known for it, those that work first.
    pub cures: Vec<Cure>,
}

/// For people.
pub fn text(reports: &[CureReport], style: Style) -> String {
    let all: Vec<String> = reports.iter().map(|one| of_one(one, style)).collect();
    all.join("\n")
}

fn of_one(report: &CureReport, style: Style) -> String {
    let mut text = style.bold(&format!("{}\n", subject(&report.now)));
    let now = standing(&report.now);
    let now = if report.now.is_fine() { style.green(&now) } else { style.red(&now) };
    text.push_str(&format!("  now       {now}"));
    if !report.codes.is_empty() {
        text.push_str(&format!("   {}", report.codes.join(" ")));
    }
    text.push('\n');
    let offered = report.cures.iter().filter(|one| one.is_offered());
    for (number, one) in offered.enumerate() {
        text.push_str(&offer(number + 1, one, style));
    }
    let refused: Vec<&Cure> = report.cures.iter().filter(|one| !one.is_offered()).collect();
    if !refused.is_empty() {
        text.push_str("\nnot here:\n");
    }
    for one in refused {
        let why = one.refused.as_deref().unwrap_or_default();
        text.push_str(&wrapped(
            &format!("  {:<22}", one.name),
            &format!("{}. {why}", one.title),
            style,
        ));
    }
    if report.cures.is_empty() && !report.now.is_fine() {
        text.push_str("\nno cure is known for this: uturn trace shows where it ends\n");
    }
    text
}

fn offer(number: usize, cure: &Cure, style: Style) -> String {
    let mut text = format!(
        "\n{}   {}\n",
        style.bold(&format!("{number}. {}", cure.title)),
        style.dim(cure.name)
    );
    if let Some(after) = &cure.after {
        let said = standing(after);
        let said = if after.is_fine() { style.green(&said) } else { style.yellow(&said) };
        text.push_str(&format!("  then      {said}\n"));
    }
    for one in &cure.conditions {
        let word = match one.answer {
            Answer::Holds => "holds",
            Answer::Fails => "fails",
            Answer::Unknown => "make sure",
        };
        text.push_str(&wrapped(
            &format!("  {word:<10}"),
            &format!("{}: {}", one.what, one.because),
            style,
        ));
    }
    for effect in &cure.effects {
        text.push_str(&wrapped("  costs     ", effect, style));
    }
    for command in &cure.commands {
        text.push_str(&format!("  do        {command}\n"));
    }
    for diff in diffs(cure) {
        for line in diff.lines() {
            let painted = match line.as_bytes().first() {
                _ if line.starts_with("---") || line.starts_with("+++") => style.bold(line),
                Some(b'+') => style.green(line),
                Some(b'-') => style.red(line),
                Some(b'@') => style.dim(line),
                _ => line.to_owned(),
            };
            text.push_str(&format!("    {painted}\n"));
        }
    }
    text
}

/// Words in lines that fit, the first after a heading and the others below it.
fn wrapped(heading: &str, words: &str, style: Style) -> String {
    let (indent, mut text, mut line) = (heading.chars().count(), String::new(), heading.to_owned());
    let mut is_empty = true;
    for word in words.split_whitespace() {
        let fits =
            line.chars().count() + usize::from(!is_empty) + word.chars().count() <= style.width;
        if !fits && !is_empty {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(&line);
    text.push('\n');
    text
}

fn diffs(cure: &Cure) -> impl Iterator<Item = String> {
    cure.changed.iter().map(|one| unified(&one.name, one.before.as_deref(), &one.after))
}

fn subject(now: &Standing) -> String {
    match now {
        Standing::Flow { flow, .. } => format!("{} → {} ({})", flow.from, flow.to, flow.protocol),
        Standing::Probes { listener, protocol, .. } => {
            format!("health checks of {listener} ({protocol})")
        }
    }
}

/// How something stands: `1 in 3 answered after 4 s, 2 in 3 answered at once`.
pub fn standing(one: &Standing) -> String {
    match one {
        Standing::Flow { outcomes, mechanisms, conditions, .. } => {
            let parts = outcomes.iter().map(|(outcome, part)| match words::share(*part).as_str() {
                "always" => outcome.to_string(),
                part => format!("{part} {outcome}"),
            });
            let case = match conditions.as_slice() {
                [] => String::new(),
                some => format!("if {}: ", some.join(" and ")),
            };
            let said = format!("{case}{}", parts.collect::<Vec<_>>().join(", "));
            match mechanisms.as_slice() {
                [] => said,
                some => {
                    let some: Vec<&str> = some.iter().map(|one| one.as_str()).collect();
                    format!("{said} ({})", some.join(", "))
                }
            }
        }
        Standing::Probes { alive, of, .. } => format!("{alive} of {of} targets answer"),
    }
}

/// `cure -o json`.
pub fn json(reports: &[CureReport]) -> Value {
    let all: Vec<Value> = reports
        .iter()
        .map(|one| {
            json!({
                "codes": one.codes,
                "now": standing_json(&one.now),
                "cures": one.cures.iter().map(cure_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "cases": all })
}

/// A cure, for a program.
pub fn cure_json(cure: &Cure) -> Value {
    json!({
        "name": cure.name,
        "title": cure.title,
        "rank": cure.rank,
        "offered": cure.is_offered(),
        "refused": cure.refused,
        "conditions": cure.conditions.iter().map(|one| json!({
            "what": one.what,
            "answer": one.answer.as_str(),
            "because": one.because,
        })).collect::<Vec<_>>(),
        "effects": cure.effects,
        "commands": cure.commands,
        "before": standing_json(&cure.before),
        "after": cure.after.as_ref().map(standing_json),
        "diff": diffs(cure).collect::<String>(),
        "objects": cure.objects.iter().map(|(_, tree)| value(tree)).collect::<Vec<_>>(),
    })
}

fn standing_json(one: &Standing) -> Value {
    match one {
        Standing::Flow { flow, outcomes, mechanisms, conditions } => json!({
            "flow": contract::flow(flow),
            "if": conditions.iter().map(|one| &**one).collect::<Vec<_>>(),
            "outcomes": outcomes.iter().map(|(outcome, share)| contract::share_of((*outcome, share.get()))).collect::<Vec<_>>(),
            "mechanisms": mechanisms.iter().map(|one| one.as_str()).collect::<Vec<_>>(),
        }),
        Standing::Probes { listener, protocol, alive, of } => json!({
            "listener": listener.to_string(),
            "protocol": protocol.lower(),
            "alive": alive,
            "targets": of,
        }),
    }
}

/// Objects as manifests to apply, one document each.
pub fn manifests<'o>(objects: impl Iterator<Item = &'o (ObjectRef, Tree)>) -> String {
    let all: Vec<String> = objects.map(|(_, tree)| tree.document()).collect();
    all.join("---\n")
}

fn value(tree: &Tree) -> Value {
    match tree {
        Tree::Text(text) => json!(text),
        Tree::Bare(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Tree::List(items) => items.iter().map(value).collect(),
        Tree::Map(entries) => {
            let entries = entries.iter().map(|(key, one)| (key.clone(), value(one)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}
