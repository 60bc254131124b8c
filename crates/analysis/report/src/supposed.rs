//! Lists assumptions: each of a few; of many only those that decide, and the subjects of others.

use uturn_model::{Assumption, AssumptionSubject, Text};

use crate::lines::Lines as _;
use crate::style::Style;
use crate::words;

/// The number of assumptions up to which each has a line.
const FEW: usize = 4;

/// Formats assumptions, a line each. Of many, those that decide have a line.
pub(crate) fn lines(
    all: &[&Assumption],
    decides: impl Fn(&Assumption) -> bool,
    style: Style,
) -> String {
    let mut text = String::new();
    let is_short = style.wide || all.len() <= FEW;
    let (shown, others): (Vec<&Assumption>, Vec<&Assumption>) =
        all.iter().partition(|assumption| is_short || decides(assumption));
    if !others.is_empty() {
        let others: Vec<&AssumptionSubject> = others.iter().map(|other| &other.subject).collect();
        let decisive = match shown.len() {
            0 => String::new(),
            some => format!(", {some} would change this"),
        };
        text.line(&format!(
            "supposed: {}{decisive} (-o wide lists all: {})",
            words::count(all.len(), "assumption"),
            words::some_of(&others)
        ));
    }
    for assumption in &shown {
        text.line(&format!("supposed: {assumption}"));
    }
    text
}

/// Returns whether something is said under the condition that an assumption holds.
pub(crate) fn is_condition(assumption: &Assumption, conditions: &[&Text]) -> bool {
    let AssumptionSubject::Named(subject) = &assumption.subject else { return true };
    conditions.iter().any(|condition| condition.contains(&**subject))
}
