//! `scan -o html`: one page that needs no network and no other file.
//!
//! Findings are grouped by cause. A table names every cause; below it each group shows its worst
//! finding in full (evidence, route as a picture, cures with their diffs) and folds the others.
//! The picture of the first finding is open. Everything can be read without scripts: they only
//! filter. What would make the page too large is left out and counted ([`room`]).
//!
//! The templates are in `templates/`; this module and its children prepare what they print.

mod cures;
mod finding;
mod group;
mod markdown;
mod page;
mod room;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use uturn_diagnose::Cure;
use uturn_model::{Flow, Verdict};

use crate::markup::Markup;
use crate::scan::ScanReport;

/// What the page shows of a finding beside the finding itself.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// A flow that shows it.
    pub flow: Option<Flow>,
    /// The verdicts on that flow, with their routes.
    pub verdicts: Vec<Verdict>,
    /// The cures that were tried, with those that do not work here.
    pub cures: Vec<Cure>,
}

/// Renders the page. `details` are keyed by the index of their finding; a finding without
/// details takes a line.
pub fn scan(report: &ScanReport, details: &BTreeMap<usize, Details>) -> String {
    let articles = group::articles(report, details);
    Markup::of(&page::Page::new(report, articles)).into_string()
}
