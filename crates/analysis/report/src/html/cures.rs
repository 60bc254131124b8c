//! The cures of a finding.

use uturn_diagnose::Finding;
use uturn_diagnose::cure::{Answer, Cure};

use crate::{cure, words};

/// The data of the template `cures.html`, which prints nothing if the heading is empty.
#[derive(Default)]
pub(super) struct CureList {
    pub(super) heading: String,
    /// Cures of which only the titles are known.
    pub(super) titles: Vec<String>,
    /// Cures that work.
    pub(super) offered: Vec<OfferedCure>,
    /// Cures that do not work here: title and reason.
    pub(super) refused: Vec<(String, String)>,
    /// Cures that were not tried: title and reason.
    pub(super) untried: Vec<(String, String)>,
}

/// A cure that works, with what it needs, costs and changes.
pub(super) struct OfferedCure {
    pub(super) title: String,
    pub(super) name: &'static str,
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) diffs: Vec<Vec<DiffLine>>,
}

/// A line of a diff, after the class that colours it.
type DiffLine = (&'static str, String);

impl CureList {
    /// Lists the cures that were tried; if there are none, the titles that the finding has.
    pub(super) fn new(finding: &Finding, tried: &[Cure]) -> Self {
        if tried.is_empty() {
            // The first title is among the finding's facts.
            return match finding.cures.len() {
                0 | 1 => Self::default(),
                _ => Self {
                    heading: "Cures".to_owned(),
                    titles: finding.cures.iter().map(ToString::to_string).collect(),
                    ..Self::default()
                },
            };
        }
        let (offered, others): (Vec<&Cure>, Vec<&Cure>) =
            tried.iter().partition(|cure| cure.is_offered());
        let (untried, refused): (Vec<&Cure>, Vec<&Cure>) =
            others.into_iter().partition(|cure| cure.is_untried);
        let with_reason = |cure: &Cure| (cure.title.clone(), cure::reason(cure).to_owned());
        Self {
            heading: match offered.len() {
                0 if untried.is_empty() => "No cure works here".to_owned(),
                0 => "No cure that was tried works here".to_owned(),
                count => words::count(count, "cure"),
            },
            titles: Vec::new(),
            offered: offered.into_iter().map(OfferedCure::new).collect(),
            refused: refused.into_iter().map(with_reason).collect(),
            untried: untried.into_iter().map(with_reason).collect(),
        }
    }
}

impl OfferedCure {
    fn new(cure: &Cure) -> Self {
        let mut facts = vec![("now", cure::case_state(&cure.before))];
        facts.extend(cure.after.as_ref().map(|after| ("then", cure::case_state(after))));
        for condition in &cure.conditions {
            let word = match condition.answer {
                Answer::Holds => "holds",
                Answer::Fails => "fails",
                Answer::Unknown => "make sure",
            };
            facts.push((word, format!("{}: {}", condition.what, condition.because)));
        }
        facts.extend(cure.effects.iter().map(|effect| ("costs", effect.clone())));
        facts.extend(cure.commands.iter().map(|command| ("do", command.to_string())));
        let diffs = cure.diffs.iter().map(|text| diff(text)).collect();
        Self { title: cure.title.clone(), name: cure.name, facts, diffs }
    }
}

fn diff(text: &str) -> Vec<DiffLine> {
    let class = |line: &str| match line.as_bytes().first() {
        _ if line.starts_with("---") || line.starts_with("+++") => "dim",
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "dim",
        _ => "same",
    };
    text.lines().map(|line| (class(line), line.to_owned())).collect()
}
