//! Which calls break when a node or a zone is lost, as a table.

use uturn_diagnose::Severity;
use uturn_model::{Outcome, Share};
use uturn_whatif::survive::{Break, End, LossClass, Survival, Unit};

use crate::fold::beside;
use crate::lines::Lines as _;
use crate::style::{Paint, Style};
use crate::table::{self, Cell};
use crate::words;

const HEADING: [&str; 6] = ["SEVERITY", "LOST", "WHO", "CANNOT REACH", "AT ONCE", "AFTER NOTICE"];

/// The columns of the table where no terminal is.
const PAGE: usize = 160;

/// Formats the losses, with `is_all` every call that is worse off; else a line for each call that stays broken or is lost altogether at once, then one for
/// what recovers by itself.
pub(crate) fn text(survival: &Survival, is_all: bool, style: Style) -> String {
    let mut text = String::new();
    if survival.count == 0 {
        text.line(&match survival.unit {
            Unit::Node => "no node is given: no loss to walk".to_owned(),
            Unit::Zone => {
                "no node has the label topology.kubernetes.io/zone: no zone can be lost".to_owned()
            }
        });
        return text;
    }
    let is_shown = |own: &&Break| is_all || style.wide || own.severity > Severity::Info;
    let rows: Vec<Vec<Cell>> = survival
        .losses
        .iter()
        .flat_map(|class| class.breaks.iter().filter(is_shown).map(|own| row(class, own)))
        .collect();
    if !rows.is_empty() {
        let line_limit = match style.line_limit {
            None if !style.wide => Some(style.width.max(PAGE)),
            limit => limit,
        };
        text.push_str(&table::render(&HEADING, &rows, Style { line_limit, ..style }));
        text.push('\n');
    }
    for class in &survival.losses {
        let passing: Vec<&Break> = class.breaks.iter().filter(|own| !is_shown(own)).collect();
        if let Some(line) = until_noticed(class, &passing) {
            text.push_str(&beside("info: ", &line, style.width));
        }
    }
    let lasting = survival.losses.iter().filter(|class| class.severity() > Severity::Info);
    let harmful = survival.count - survival.harmless();
    let grave: usize = lasting.map(losses_of).sum();
    let unit = survival.unit.word();
    let said = format!(
        "{} of a {unit}: {grave} with calls that stay broken or all stop, {} with calls that break \
         only until the loss is noticed, {} without any",
        if survival.count == 1 {
            "1 loss".to_owned()
        } else {
            format!("{} losses", survival.count)
        },
        harmful - grave,
        survival.harmless()
    );
    text.push_str(&beside("", &said, style.width));
    for assumed in &survival.assumed {
        text.push_str(&beside("  ", assumed, style.width));
    }
    text
}

fn losses_of(class: &LossClass) -> usize {
    if class.zone.is_some() { 1 } else { class.nodes.len() }
}

/// Returns what is lost: `n1`, `any of n1, n2 and 3 more`, `zone a`.
fn lost(class: &LossClass) -> String {
    match (&class.zone, class.nodes.as_slice()) {
        (Some(zone), nodes) => format!("zone {zone} ({})", words::count(nodes.len(), "node")),
        (None, [only]) => format!("node {only}"),
        (None, nodes) => format!("each of {}", words::some_of(nodes)),
    }
}

fn row(class: &LossClass, own: &Break) -> Vec<Cell> {
    let paint = paint(own.severity);
    let targets = match own.targets.as_slice() {
        [first] => first.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        [] => String::new(),
    };
    vec![
        Cell::painted(own.severity.as_str(), paint),
        lost(class).into(),
        who(own).into(),
        format!("{} {targets}", own.subject.short()).trim_end().to_owned().into(),
        Cell::painted(ends(&own.ends.at_once), paint),
        Cell::painted(ends(&own.ends.noticed), paint),
    ]
}

fn paint(severity: Severity) -> Paint {
    match severity {
        Severity::Error => Style::RED,
        Severity::Warning => Style::YELLOW,
        Severity::Info => Style::DIMMED,
    }
}

/// Returns the callers: `deploy/shop/web + 2 more (12 pods)`, `outside`.
fn who(own: &Break) -> String {
    if own.outside {
        return "outside".to_owned();
    }
    match (own.workloads.as_slice(), own.pods.len()) {
        ([only], 1) => only.clone(),
        ([only], pods) => format!("{only} ({pods} pods)"),
        ([first, rest @ ..], pods) => format!("{first} + {} more ({pods} pods)", rest.len()),
        ([], pods) => words::count(pods, "pod"),
    }
}

/// Returns how calls end, without those that are answered at once: `1 in 3 hangs (node-down)`.
fn ends(end: &End) -> String {
    let bad: Vec<String> = end
        .outcomes
        .iter()
        .filter(|(outcome, _)| !outcome.is_fine())
        .map(|(outcome, part)| one(*outcome, *part))
        .collect();
    if bad.is_empty() {
        return "answered".to_owned();
    }
    let why: Vec<&str> = end.mechanisms.iter().map(|own| own.as_str()).collect();
    if why.is_empty() { bad.join(", ") } else { format!("{} ({})", bad.join(", "), why.join(", ")) }
}

fn one(outcome: Outcome, part: Share) -> String {
    match words::share(part).as_str() {
        "always" => words::ending(outcome),
        share => format!("{share} {}", words::ending(outcome)),
    }
}

/// Describes the calls that are worse off only until the loss is noticed.
fn until_noticed(class: &LossClass, passing: &[&Break]) -> Option<String> {
    let worst = passing
        .iter()
        .max_by(|a, b| a.ends.at_once.unanswered().exact_cmp(&b.ends.at_once.unanswered()))?;
    let mut objects: Vec<&uturn_model::ObjectRef> =
        passing.iter().map(|own| &own.subject).collect();
    objects.sort_unstable();
    objects.dedup();
    let objects: Vec<String> = objects.into_iter().map(uturn_model::ObjectRef::short).collect();
    Some(format!(
        "losing {}: until it is noticed, calls of {} fail or wait: at worst {}",
        lost(class),
        words::some_of(&objects),
        ends(&worst.ends.at_once)
    ))
}
