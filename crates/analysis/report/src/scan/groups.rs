//! Formats a long list of findings, grouped by cause: for each group the number of findings, the
//! failing clients, the worst finding, and the cure that all of them share.

use uturn_diagnose::{Example, Group, GroupCure};
use uturn_model::ObjectRef;
use uturn_model::shell::Command;

use super::{ScanReport, failing, in_brief, paint, with_targets};
use crate::fold::{beside, fold};
use crate::style::{self, Style};
use crate::words;

/// The number of findings up to which a list fits on a screen and is not grouped.
const SHORT: usize = 20;
/// The approximate number of lines of a group.
const LINES: usize = 4;

/// Returns whether groups are shorter to read than a line for each finding.
pub(super) fn are_worth_it(report: &ScanReport) -> bool {
    let findings = report.findings.len();
    findings > SHORT && report.groups.len() * LINES <= findings
}

/// Formats a paragraph for each group, the worst group first.
pub(super) fn text(report: &ScanReport, style: Style) -> String {
    let heading = format!(
        "{} with {}, the worst first; --all lists every finding",
        words::count(report.findings.len(), "finding"),
        words::count(report.groups.len(), "cause")
    );
    let groups: String =
        report.groups.iter().map(|group| paragraph(report, group, style)).collect();
    format!("{}{groups}", beside("", &heading, style.width))
}

fn paragraph(report: &ScanReport, group: &Group, style: Style) -> String {
    let worst = &report.findings[group.worst()];
    let mut text = "\n".to_owned();
    for line in fold(&style::in_a_line(&title(report, group)), style.width) {
        text.push_str(&style.paint(paint(group.severity).bold(), line));
        text.push('\n');
    }
    let mut line = |label: &str, what: &str| {
        text.push_str(&beside(&format!("  {label:<10}"), what, style.width));
    };
    let count = group.members.len();
    if count > 1 {
        let mut counts = format!("{count} at {}", objects(group, &worst.subject));
        if group.targets > group.objects {
            counts.push_str(&format!(", {}", words::count(group.targets, "target")));
        }
        line("findings", &counts);
        if !group.clients.is_empty() {
            line("clients", &words::who(&group.clients));
        }
    }
    line(if count > 1 { "worst" } else { "finding" }, &in_a_line(report, group.worst()));
    let words = report.in_words.get(group.worst()).and_then(|words| words.because.as_deref());
    if let Some(why) = words {
        line("because", in_brief(why));
    }
    line("cure", &cure(report, group));
    text
}

/// Formats the title of a group: `UT101 Ingress loopback: asymmetric-return (error)`. Groups that
/// would have the same one are told apart by the kind of their objects, and by the cure.
fn title(report: &ScanReport, group: &Group) -> String {
    let own = short_title(group);
    let is_other = |other: &&Group| {
        let (cause, known) = (&group.cause, &other.cause);
        other.members != group.members
            && (cause.code, cause.mechanism, group.severity)
                == (known.code, known.mechanism, other.severity)
            && cause.conditions == known.conditions
    };
    let others: Vec<&Group> = report.groups.iter().filter(is_other).collect();
    if others.is_empty() {
        return own;
    }
    let kind = group.cause.object_kind;
    if others.iter().all(|other| other.cause.object_kind != kind) {
        return format!("{own} of {}", kinds(kind.as_str()));
    }
    match group.cause.cure {
        Some(cure) => format!("{own} of {}, cured by {cure}", kinds(kind.as_str())),
        None => format!("{own} of {}, without that cure", kinds(kind.as_str())),
    }
}

fn short_title(group: &Group) -> String {
    let (code, title) = (group.cause.code, group.cause.code.title());
    let mechanism = group.cause.mechanism.map(|mechanism| mechanism.to_string());
    let mechanism = mechanism.filter(|word| word.replace('-', " ") != title);
    let mechanism = mechanism.map_or_else(String::new, |word| format!(": {word}"));
    let conditions = match group.cause.conditions.as_slice() {
        [] => String::new(),
        all => format!(" if {}", all.join(" and ")),
    };
    format!("{code} {title}{mechanism}{conditions} ({})", group.severity)
}

/// Counts the objects of a group: `2301 Ingresses`. Names a single one.
fn objects(group: &Group, first: &ObjectRef) -> String {
    let kind = group.cause.object_kind.as_str();
    match group.objects {
        1 => first.short(),
        many => format!("{many} {}", kinds(kind)),
    }
}

/// Returns the plural of a kind.
fn kinds(kind: &str) -> String {
    match kind {
        _ if kind.ends_with("ss") => format!("{kind}es"),
        _ if kind.ends_with('s') => kind.to_owned(),
        _ => format!("{kind}s"),
    }
}

fn in_a_line(report: &ScanReport, index: usize) -> String {
    let finding = &report.findings[index];
    let mut line = format!("{}: {}", failing(finding), with_targets(finding));
    if !finding.share_failing.is_none() {
        line.push_str(&format!(", from {}", report.who(index)));
    }
    // The conditions of a walked finding are in the title.
    if matches!(finding.example, Example::Manifests) && !finding.conditions.is_empty() {
        line.push_str(&format!(", if {}", finding.conditions.join(" and ")));
    }
    line
}

/// Describes which cures were not tried on findings of a group, and why. Returns `None` if all
/// were.
pub(crate) fn untried(report: &ScanReport, group: &Group) -> Option<String> {
    let untried = group.untried(&report.findings)?;
    let is_of_all = group.members.iter().all(|index| {
        report.findings[*index].untried.as_ref().is_some_and(|untried| untried.cures.is_empty())
    });
    let which = if is_of_all { "not tried" } else { "not all were tried" };
    Some(format!("{which}: {}", untried.why))
}

/// Returns the cure that all findings share, else where to look for one.
pub(crate) fn cure(report: &ScanReport, group: &Group) -> String {
    let worst = &report.findings[group.worst()];
    let code = group.cause.code;
    match group.cure(&report.findings) {
        _ if group.members.len() == 1 && !worst.cures.is_empty() => words::first_of(&worst.cures),
        Some(GroupCure::Once(cure)) => format!("{cure} (cures all of them)"),
        Some(GroupCure::ForEach(cure)) => format!("one each; for the worst: {cure}"),
        None if !worst.cures.is_empty() => {
            let first = words::first_of(&worst.cures);
            match untried(report, group) {
                None => format!("none known for all of them; for the worst: {first}"),
                Some(untried) => format!("for the worst: {first}; {untried}"),
            }
        }
        None if matches!(worst.example, Example::Manifests) => {
            format!("uturn explain {code} says what to do")
        }
        None => {
            let object = match &worst.subject.namespace {
                Some(namespace) => format!("{namespace}/{}", worst.subject.name),
                None => worst.subject.name.to_string(),
            };
            let command = Command::new("uturn cure").with(&report.input).value(code).value(object);
            let of_all = match untried(report, group) {
                Some(untried) => format!("{untried}; "),
                None if group.members.len() > 1 => "none known for all of them; ".to_owned(),
                None => String::new(),
            };
            format!("{of_all}{command} tries what may help")
        }
    }
}

#[cfg(test)]
mod tests {
    use uturn_diagnose::{Code, CureTitle, Finding, Severity};
    use uturn_model::Mechanism;

    use super::*;
    use crate::sample::finding;
    use crate::scan::{Listing, text as whole};

    /// Makes a report of twenty-five loops, five findings of another code and a hint.
    fn report() -> ScanReport {
        let call = |of: usize| CureTitle {
            name: "call-service",
            text: format!("call svc/shop/a-service-with-a-long-name-{of:02}:80 by its name"),
        };
        let loops = (0..25).map(|at| Finding {
            share_failing: uturn_model::Share::of(1, at + 1),
            cures: vec![call(at)],
            ..finding(
                &format!("front-{at:02}"),
                &[":80 shop.example.com/", ":80 shop.example.com/x"],
            )
        });
        let others = (0..5).map(|at| Finding {
            code: Code::LocalSourceDropped,
            severity: Severity::Warning,
            mechanism: Some(Mechanism::LocalSourceDrop),
            conditions: vec!["kube-proxy mode is ipvs".into()],
            cures: Vec::new(),
            example: Example::Flow(uturn_model::Flow {
                from: uturn_model::Client::Outside(None),
                to: "http://shop.example.com/".parse().unwrap(),
                protocol: uturn_model::Protocol::Tcp,
            }),
            ..finding(&format!("other-{at}"), &[":80 /"])
        });
        let hint = Finding {
            severity: Severity::Info,
            share_failing: uturn_model::Share::NONE,
            mechanism: None,
            cures: Vec::new(),
            conditions: vec!["nothing listens on 8081".into()],
            ..finding("hint", &[])
        };
        ScanReport::new(loops.chain(others).chain([hint]).collect())
    }

    #[test]
    fn a_long_list_is_grouped() {
        let text = text(&report(), Style::PLAIN);
        assert_eq!(
            text,
            "\
31 findings with 3 causes, the worst first; --all lists every finding

UT101 Ingress loopback: asymmetric-return (error)
  findings  25 at 25 Ingresses, 50 targets
  clients   outside
  worst     always after 4 s: ingress/shop/front-00 :80 shop.example.com/ + 1 more, from outside
  cure      one each; for the worst: call svc/shop/a-service-with-a-long-name-00:80 by its name

UT104 local source dropped: local-source-drop if kube-proxy mode is ipvs (warning)
  findings  5 at 5 Ingresses
  clients   outside
  worst     1 in 2 after 4 s: ingress/shop/other-0 :80 /, from outside
  cure      none known for all of them; uturn cure UT104 shop/other-0 tries what may help

UT101 Ingress loopback (info)
  finding   nothing yet: ingress/shop/hint, if nothing listens on 8081
  cure      uturn explain UT101 says what to do
"
        );
    }

    #[test]
    fn every_line_fits_a_narrow_terminal() {
        let style = Style { width: 60, line_limit: Some(60), ..Style::PLAIN };
        let text = text(&report(), style);
        assert!(text.lines().all(|line| crate::fold::length(line) <= 60), "{text}");
    }

    #[test]
    fn a_short_list_is_a_table_and_so_is_every_line() {
        let all = report();
        let is_table = |text: &str| text.starts_with("SEVERITY");
        assert!(!is_table(&whole(&all, Listing::Short, Style::PLAIN)));
        let every = whole(&all, Listing::Every, Style::PLAIN);
        assert!(is_table(&every) && every.contains("front-24") && every.contains("other-4"));
        assert!(is_table(&whole(&all, Listing::Short, Style { wide: true, ..Style::PLAIN })));
        let few = ScanReport::new(all.findings[..SHORT].to_vec());
        assert!(is_table(&whole(&few, Listing::Short, Style::PLAIN)));
        // Many findings of as many causes: groups would be longer.
        let differ = (0..25).map(|at| Finding {
            conditions: vec![format!("it is {at}").into()],
            example: all.findings[26].example.clone(),
            ..finding("front", &[])
        });
        let differ = ScanReport::new(differ.collect());
        assert!(is_table(&whole(&differ, Listing::Short, Style::PLAIN)));
    }
}
