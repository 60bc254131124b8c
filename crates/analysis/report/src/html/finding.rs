//! The full view of one finding.

use uturn_diagnose::{Code, Example, Finding, Observation};

use super::cures::CureList;
use crate::markup::Markup;
use crate::scan::{self, ScanReport};
use crate::{svg, words};
use uturn_diagnose::analysis::InFull;

/// The largest number of names in a list; the rest is counted.
const MAX_NAMES: usize = 60;
/// The number of names beyond which a list is folded.
const MAX_UNFOLDED: usize = 4;
/// The largest number of names by which the filter finds a finding.
const MAX_FOUND: usize = 180;
/// The largest number of pods whose names are sorted to choose from.
const MAX_PODS: usize = 1000;

/// The data of the template `finding.html`.
pub(super) struct FindingView<'a> {
    /// Its number on the page, from 1.
    pub(super) number: usize,
    pub(super) code: Code,
    pub(super) subject: String,
    /// How often calls fail, and how they end.
    pub(super) failing: String,
    pub(super) clients: String,
    pub(super) client_names: Names,
    pub(super) targets: Names,
    pub(super) because: String,
    pub(super) origin: Option<String>,
    /// The first cure, and how many more there are.
    pub(super) cure: Option<String>,
    pub(super) evidence: &'a [Observation],
    pub(super) route: RouteView,
    pub(super) cures: CureList,
    /// The text by which the filter finds it.
    pub(super) find: String,
}

/// The view of the route of a finding's packet.
pub(super) enum RouteView {
    /// Nothing was walked.
    None,
    /// A picture.
    Drawn { picture: Markup, command: String, is_open: bool },
    /// A reference to the picture of another finding with the same route.
    DrawnAt { number: usize, code: Code, subject: String },
    /// A command that draws the picture, because there is no room for it.
    Command(String),
}

/// Names of clients or targets.
pub(super) struct Names {
    pub(super) listed: Vec<String>,
    pub(super) total: usize,
    pub(super) is_long: bool,
}

impl<'a> FindingView<'a> {
    pub(super) fn new(
        report: &'a ScanReport,
        index: usize,
        details: Option<&InFull>,
        route: RouteView,
    ) -> Self {
        let finding = &report.findings[index];
        let pods: Vec<String> =
            words::pods(&finding.clients, MAX_PODS).iter().map(ToString::to_string).collect();
        Self {
            number: index + 1,
            code: finding.code,
            subject: finding.subject.short(),
            failing: scan::failing(finding),
            clients: report.who(index),
            because: report.because(index),
            origin: report.origins.get(index).map(ToString::to_string),
            cure: Some(scan::cures(finding)).filter(|text| !text.is_empty()),
            evidence: report.evidence.get(index).map_or(&[], Vec::as_slice),
            route,
            cures: CureList::new(finding, details.map_or(&[], |details| &details.cures)),
            find: find(finding, &pods),
            targets: Names::new(&finding.targets, finding.targets.len()),
            client_names: Names::new(&pods, finding.clients.pod_count()),
        }
    }
}

impl RouteView {
    /// Returns the number of bytes of the picture.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Drawn { picture, .. } => picture.len(),
            Self::None | Self::DrawnAt { .. } | Self::Command(_) => 0,
        }
    }
}

impl Names {
    fn new(names: &[String], total: usize) -> Self {
        Self {
            listed: names.iter().take(MAX_NAMES).cloned().collect(),
            total,
            is_long: names.len() > MAX_UNFOLDED,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    pub(super) fn omitted(&self) -> usize {
        self.total - self.listed.len()
    }
}

/// Returns the route of the finding's packet as a picture. Returns `None` if none was walked.
pub(super) fn picture(finding: &Finding, index: usize, details: &InFull) -> Option<Markup> {
    let flow = details.flow.as_ref()?;
    if details.verdicts.is_empty() || matches!(finding.example, Example::Probes(..)) {
        return None;
    }
    let name = format!("w{}", index + 1);
    Some(svg::picture(flow, &details.verdicts, &[finding.code.to_string()], &name))
}

/// Returns the text by which the filter finds a finding: its subject, targets and clients.
fn find(finding: &Finding, pods: &[String]) -> String {
    let mut text = format!("{} {}", finding.subject.short(), words::who(&finding.clients));
    let nodes: Vec<String> = finding.clients.nodes().iter().map(ToString::to_string).collect();
    for name in finding.targets.iter().chain(&nodes).chain(pods).take(MAX_FOUND) {
        text.push(' ');
        text.push_str(name);
    }
    text.to_lowercase()
}
