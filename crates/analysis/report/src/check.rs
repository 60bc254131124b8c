//! Formats checklists as text: a line for each check, with its evidence and what to check next.

use uturn_diagnose::check::{Check, Checklist, State};
use uturn_model::Assumption;

use crate::lines::Lines as _;
use crate::style::Style;
use crate::supposed;

/// Formats all checklists, the numbers of checks that are ok, failed and unknown, and the
/// assumptions.
pub fn text(lists: &[Checklist], supposed: &[Assumption], style: Style) -> String {
    let mut text = String::new();
    for list in lists {
        text.line(&style.bold(&list.subject));
        for check in &list.checks {
            text.push_str(&line(check, style));
        }
        text.push('\n');
    }
    text.push_str(&summary(lists));
    let all: Vec<&Assumption> = supposed.iter().collect();
    text.push_str(&supposed::lines(&all, |own| supposed::is_condition(own, &[]), style));
    text
}

fn line(check: &Check, style: Style) -> String {
    let word = format!("{:<8}", check.state.as_str());
    let word = match check.state {
        State::Ok => style.green(&word),
        State::Failed => style.red(&word),
        State::Unknown => style.yellow(&word),
    };
    let mut text = String::new();
    text.line(&format!("  {word}{}", check.what));
    for evidence in &check.evidence {
        text.line(&format!("          {}", style.dim(evidence)));
    }
    if let Some(next) = check.next.as_ref().filter(|_| check.state != State::Ok || style.wide) {
        text.line(&format!("          next: {next}"));
    }
    text
}

fn summary(lists: &[Checklist]) -> String {
    let count = |state: State| {
        lists.iter().flat_map(|list| &list.checks).filter(|check| check.state == state).count()
    };
    let (ok, failed, unknown) = (count(State::Ok), count(State::Failed), count(State::Unknown));
    format!("{ok} ok, {failed} failed, {unknown} unknown\n")
}
