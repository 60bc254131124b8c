//! `scan -o html`: one page that needs no network and no other file.
//!
//! Findings are grouped by cause. A table names every cause; below it each group shows its worst
//! finding in full (evidence, route as a picture, cures with their diffs) and folds the others. The
//! picture of the first finding is open. Everything can be read without scripts, which only filter.
//! Whatever would make the page too large is omitted and counted (`room`).
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

use uturn_diagnose::analysis::InFull;

use crate::markup::Markup;
use crate::scan::ScanReport;

/// Renders the page. `details` are keyed by the index of their finding; a finding without
/// details takes a line.
pub fn scan(report: &ScanReport, details: &BTreeMap<usize, InFull>) -> String {
    let articles = group::articles(report, details);
    Markup::of(&page::Page::new(report, articles)).into_string()
}
