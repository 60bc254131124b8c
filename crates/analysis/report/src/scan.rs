//! The report of a scan, as a table.

use std::collections::BTreeMap;

use uturn_diagnose::analysis::{Analysis, FlowCounts, InWords, Suppressed};
use uturn_diagnose::group::group;
use uturn_diagnose::{Finding, Group, Observation, Severity};
use uturn_model::cluster::Unread;
use uturn_model::network::Network;
use uturn_model::network_policy::Way;
use uturn_model::shell::Command;
use uturn_model::{
    Assumption, Cluster, NamespacedName, ObjectKind, Origin, Pod, Skipped, Text, Unjudged,
};
use uturn_snapshot::Loaded;
use uturn_whatif::survive::Survival;

use crate::fold::beside;
use crate::lines::Lines as _;
use crate::style::{Paint, Style};
use crate::table::Cell;
use crate::{survive, table, words};

mod changes;
pub(crate) mod groups;
mod paragraphs;
pub(crate) mod summary;

pub use changes::{Difference, FindingLines};

pub(crate) use summary::left_out;

/// The result of a scan.
#[derive(Clone, Debug)]
pub struct ScanReport {
    /// The findings.
    pub findings: Vec<Finding>,
    /// The findings grouped by cause, the worst group first.
    pub groups: Vec<Group>,
    /// Each finding in words, in the same order; empty if it was not put into words.
    pub in_words: Vec<InWords>,
    /// The evidence for each of them, in the same order; empty if it was not asked for.
    pub evidence: Vec<Vec<Observation>>,
    /// The origin of the object of each, in the same order; empty if it was not asked for.
    pub origins: Vec<Origin>,
    /// The findings that do not count.
    pub aside: Vec<Suppressed>,
    /// The number of findings of the baseline that are gone.
    pub gone: usize,
    /// The options that name the input on a command line, with a space before each.
    pub input: Command,
    /// The least severity that makes the scan fail; `None` if nothing does.
    pub fails_from: Option<Severity>,
    /// The number of flows that were examined. Equivalent pods of one node are one client.
    pub flows: usize,
    /// The number of these that are fine.
    pub fine: usize,
    /// The number of these that cannot be judged.
    pub open: usize,
    /// The number of these that NetworkPolicies stop.
    pub denied: usize,
    /// The number of pods that call.
    pub pods: usize,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of pods that NetworkPolicies select, which are not judged.
    pub policed: usize,
    /// Pods on nodes that have no address yet: their calls are not judged.
    pub without_address: Vec<NamespacedName>,
    /// The pod network as it was recognised.
    pub network: Option<Network>,
    /// The reasons why flows cannot be judged.
    pub unjudged: Vec<Unjudged>,
    /// The assumptions that were made.
    pub supposed: Vec<Assumption>,
    /// Kinds of objects that were read and not needed.
    pub skipped: Vec<Skipped>,
    /// The objects that an API server did not return.
    pub unread: Vec<Unread>,
    /// The number of objects of each kind that were read.
    pub seen: BTreeMap<Text, usize>,
    /// Which calls break when a node or a zone is lost; `None` if it was not asked for.
    pub survive: Option<Survival>,
}

impl ScanReport {
    /// Makes a report with nothing but findings.
    pub fn new(findings: Vec<Finding>) -> Self {
        Self {
            groups: group(&findings),
            findings,
            in_words: Vec::new(),
            evidence: Vec::new(),
            origins: Vec::new(),
            aside: Vec::new(),
            gone: 0,
            input: Command::default(),
            fails_from: Some(Severity::Error),
            flows: 0,
            fine: 0,
            open: 0,
            denied: 0,
            pods: 0,
            nodes: 0,
            policed: 0,
            without_address: Vec::new(),
            network: None,
            unjudged: Vec::new(),
            supposed: Vec::new(),
            skipped: Vec::new(),
            unread: Vec::new(),
            seen: BTreeMap::new(),
            survive: None,
        }
    }

    /// Makes the report of an analysis of loaded input. No finding of a baseline is gone.
    pub fn of(analysis: Analysis, loaded: Loaded) -> Self {
        let FlowCounts { all, fine, open, denied } = analysis.flows;
        let cluster = loaded.cluster;
        Self {
            findings: analysis.findings,
            groups: analysis.groups,
            in_words: analysis.in_words,
            evidence: analysis.evidence,
            origins: analysis.origins,
            aside: analysis.suppressed,
            gone: 0,
            input: Command::default(),
            fails_from: Some(Severity::Error),
            flows: all,
            fine,
            open,
            denied,
            pods: cluster.pods.values().filter(|pod| pod.is_alive() && !pod.ips.is_empty()).count(),
            nodes: cluster.nodes.len(),
            policed: policed(&cluster),
            without_address: analysis.without_address,
            network: Some(cluster.network),
            unjudged: cluster.unjudged.into_iter().chain(analysis.unjudged).collect(),
            supposed: analysis.supposed,
            skipped: cluster.skipped,
            unread: cluster.unread,
            seen: loaded.seen,
            survive: None,
        }
    }

    /// Keeps some of the findings, without groups.
    pub fn keep(&mut self, is_kept: impl Fn(&Finding) -> bool) {
        let kept: Vec<bool> = self.findings.iter().map(is_kept).collect();
        retain(&mut self.findings, &kept);
        retain(&mut self.in_words, &kept);
        retain(&mut self.evidence, &kept);
        retain(&mut self.origins, &kept);
        self.groups = group(&self.findings);
    }

    /// Describes the clients of a finding.
    pub(crate) fn who(&self, index: usize) -> String {
        let named = self.in_words.get(index).and_then(|words| words.who.as_deref());
        let finding = &self.findings[index];
        match named {
            Some(who) => who.to_owned(),
            None if finding.clients.is_empty() => "nobody yet".to_owned(),
            None => words::who(&finding.clients),
        }
    }

    /// Returns the reason of a finding, with its conditions.
    pub(crate) fn because(&self, index: usize) -> String {
        let finding = &self.findings[index];
        match self.in_words.get(index).and_then(|words| words.because.as_deref()) {
            Some(why) => reasoned(in_brief(why), finding),
            None => because(finding),
        }
    }

    /// Returns whether a finding is severe enough to fail the scan.
    pub fn fails(&self, finding: &Finding) -> bool {
        self.fails_from.is_some_and(|from| finding.severity >= from)
    }
}

fn retain<T>(all: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    all.retain(|_| kept.next().copied().unwrap_or(true));
}

/// Formats the findings, each with the command that tries its cures.
pub fn list(report: &ScanReport, style: Style) -> String {
    let mut text = String::new();
    if report.findings.is_empty() {
        text.line("nothing found: nothing to cure");
    }
    for (at, finding) in report.findings.iter().enumerate() {
        let severity = style.paint(paint(finding.severity), finding.severity.as_str());
        let why = format!("{}: {}", with_targets(finding), report.because(at));
        text.push_str(&beside(&format!("{severity}: "), &why, style.width));
        text.line(&format!("  {}", cure_command(report, finding)));
    }
    text
}

/// Returns the command that tries the cures of a finding.
fn cure_command(report: &ScanReport, finding: &Finding) -> Command {
    let object = match &finding.subject.namespace {
        Some(_) => finding.subject.short(),
        None => finding.subject.name.to_string(),
    };
    Command::new("uturn cure").with(&report.input).value(finding.code).value(&object)
}

/// Describes a finding in a sentence.
pub fn sentence(finding: &Finding) -> String {
    let what = format!("{} {}", finding.subject, targets(finding));
    let why = because(finding);
    if !finding.share_failing.is_none() {
        let who = words::who(&finding.clients);
        let ending = match finding.outcome {
            uturn_model::Outcome::Answered { .. } => finding.outcome.to_string(),
            other => format!("end with: {other}"),
        };
        let share = match words::share(finding.share_failing).as_str() {
            "always" => "all".to_owned(),
            share => share.to_owned(),
        };
        format!("{}: of the calls of {who}, {share} {ending}: {why}.", what.trim_end())
    } else {
        format!("{}: {why}.", what.trim_end())
    }
}

/// The listing of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// One line each; long lists grouped by cause.
    Short,
    /// One line each, however many there are.
    Every,
}

/// Formats the findings with a summary below.
pub fn text(report: &ScanReport, listing: Listing, style: Style) -> String {
    let mut text = String::new();
    let is_grouped = listing == Listing::Short && !style.wide && groups::are_worth_it(report);
    if is_grouped {
        text.push_str(&groups::text(report, style));
        text.push('\n');
    } else if !report.findings.is_empty() {
        let is_narrow = style.line_limit.is_some_and(|limit| limit < TABLE);
        let list = if is_narrow { paragraphs::text } else { rows };
        text.push_str(&list(report, style));
        text.push('\n');
    }
    if style.wide {
        let evidence = report.evidence.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        for (finding, evidence) in report.findings.iter().zip(evidence) {
            let most = words::most_names(report.findings.len());
            text.push_str(&details(finding, evidence, most, style));
        }
    }
    text.push_str(&summary::text(report, style));
    if let Some(survival) = &report.survive {
        text.push('\n');
        text.push_str(&survive::text(survival, listing == Listing::Every, style));
    }
    text
}

fn rows(report: &ScanReport, style: Style) -> String {
    let row = |(at, finding): (usize, &Finding)| {
        let paint = paint(finding.severity);
        vec![
            Cell::painted(finding.severity.as_str(), paint),
            Cell::painted(failing(finding), paint),
            report.who(at).into(),
            reached(finding).into(),
            reason(report, at).into(),
            finding.code.to_string().into(),
            cures(finding).into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = report.findings.iter().enumerate().map(row).collect();
    let line_limit = match style.line_limit {
        None if !style.wide => Some(style.width.max(PAGE)),
        limit => limit,
    };
    table::render(&HEADING, &rows, Style { line_limit, ..style })
}

/// Returns what is called. Ports and hosts that belong to the object of the finding follow it.
fn reached(finding: &Finding) -> String {
    if is_elsewhere(finding) { targets(finding) } else { with_targets(finding) }
}

/// Returns the object of a finding with its first target and the number of further ones.
fn with_targets(finding: &Finding) -> String {
    format!("{} {}", finding.subject.short(), targets(finding)).trim_end().to_owned()
}

/// Returns the reason of a finding, after the object that it is about unless that is what is called.
fn reason(report: &ScanReport, index: usize) -> String {
    let finding = &report.findings[index];
    let because = report.because(index);
    let subject = &finding.subject;
    let is_named =
        || [subject.short(), subject.to_string()].iter().any(|own| because.contains(own));
    if is_elsewhere(finding) && !is_named() {
        format!("{}: {because}", subject.short())
    } else {
        because
    }
}

/// Returns whether something else is called than the object of the finding: of a Service or a route, its
/// ports, hosts and addresses are called.
fn is_elsewhere(finding: &Finding) -> bool {
    let Some(target) = finding.targets.first().filter(|target| !target.starts_with(':')) else {
        return false;
    };
    let kind = finding.subject.kind;
    let is_served = matches!(kind, ObjectKind::Service | ObjectKind::Ingress) || kind.is_route();
    let names_object = || target.split(' ').next().is_some_and(|word| word.contains('/'));
    !is_served || names_object()
}

/// The columns of a table of findings where no terminal is.
const PAGE: usize = 160;

/// The columns of a terminal from which a table of findings can be read.
const TABLE: usize = 130;

const HEADING: [&str; 7] =
    ["SEVERITY", "FAILING", "WHO", "CANNOT REACH", "BECAUSE", "CODE", "CURE"];

/// The number of characters after which a reason is cut where a sentence or a clause ends.
const BRIEF: usize = 200;

/// Returns the beginning of a long reason, up to the last end of a sentence or clause that is not far.
/// A reason begins with its cause and with what is probably meant.
fn in_brief(why: &str) -> &str {
    if why.len() <= BRIEF {
        return why;
    }
    let ends = [". ", "; "].map(|end| why.match_indices(end).map(|(at, _)| at));
    let ends: Vec<usize> = ends.into_iter().flatten().filter(|at| *at >= BRIEF / 2).collect();
    let near = ends.iter().filter(|at| **at <= BRIEF).max();
    let end = near.or_else(|| ends.iter().min());
    &why[..end.copied().unwrap_or(why.len())]
}

/// Returns the first cure with the number of further ones; without cures, whether some were not
/// tried.
pub(crate) fn cures(finding: &Finding) -> String {
    match &finding.untried {
        Some(untried) if finding.cures.is_empty() => {
            if untried.cures.is_empty() {
                "not tried".to_owned()
            } else {
                "not all were tried".to_owned()
            }
        }
        _ => words::first_of(&finding.cures),
    }
}

/// Describes how often calls fail, and how the failing ones end: `1 in 3 after 4 s`.
pub(crate) fn failing(finding: &Finding) -> String {
    let share = finding.share_failing;
    match finding.severity {
        Severity::Error if share.is_none() => "when called".to_owned(),
        _ if share.is_none() => "nothing yet".to_owned(),
        _ => format!("{} {}", words::share(share), words::ending(finding.outcome)),
    }
}

/// Returns the number of pods that NetworkPolicies select and whose calls they may stop, as far as
/// that is not judged.
fn policed(cluster: &Cluster) -> usize {
    let policies = &cluster.network_policies;
    let is_selected = |pod: &&Pod| {
        let mut ways = [Way::Ingress, Way::Egress].into_iter();
        // Policies do not apply to pods in their node's network.
        pod.is_alive()
            && !pod.spec.host_network
            && (policies.are_in_doubt() || !policies.are_judged_for(pod))
            && ways.any(|way| policies.of_pod(pod, way).next().is_some())
    };
    cluster.pods.values().filter(is_selected).count()
}

fn paint(severity: Severity) -> Paint {
    match severity {
        Severity::Error => Style::RED,
        Severity::Warning | Severity::Info => Style::YELLOW,
    }
}

/// Returns the first target with the number of further ones.
pub(crate) fn targets(finding: &Finding) -> String {
    let first = finding.targets.first().map_or("", String::as_str);
    match finding.targets.len() {
        0 | 1 => first.to_owned(),
        many => format!("{first} + {} more", many - 1),
    }
}

/// Returns the mechanism, else the title of the code, with the conditions of the finding.
pub(crate) fn because(finding: &Finding) -> String {
    // A code that replaces what walks found says more than their mechanism.
    let is_less = |mechanism| {
        !finding.code.replaces().is_empty() && !finding.code.mechanisms().contains(&mechanism)
    };
    let why = match finding.mechanism {
        Some(mechanism) if !is_less(mechanism) => mechanism.as_str(),
        _ => finding.code.title(),
    };
    match condition(finding) {
        Some(condition) => format!("{why} {condition}"),
        None => why.to_owned(),
    }
}

/// Returns a reason in words, with the mechanism and the conditions of the finding.
fn reasoned(why: &str, finding: &Finding) -> String {
    let mechanism = finding.mechanism.filter(|mechanism| !why.ends_with(mechanism.as_str()));
    match (mechanism, condition(finding)) {
        (None, None) => why.to_owned(),
        (None, Some(condition)) => format!("{why} ({condition})"),
        (Some(mechanism), None) => format!("{why} ({mechanism})"),
        (Some(mechanism), Some(condition)) => format!("{why} ({mechanism} {condition})"),
    }
}

fn condition(finding: &Finding) -> Option<String> {
    let conditions = &finding.conditions;
    (!conditions.is_empty()).then(|| format!("if {}", conditions.join(" and ")))
}

fn details(finding: &Finding, evidence: &[Observation], most: usize, style: Style) -> String {
    let mut text = String::new();
    text.line(&style.bold(&format!(
        "{} {}: {}",
        finding.code,
        format!("{} {}", finding.subject.short(), finding.targets.join(", ")).trim_end(),
        finding.code.title()
    )));
    let some = words::pods(&finding.clients, most);
    let more = finding.clients.pod_count() - some.len();
    let others = finding.clients.others().iter().map(ToString::to_string);
    let some: Vec<String> = some.into_iter().map(ToString::to_string).chain(others).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !finding.clients.is_empty() {
        text.line(&format!("  clients   {}{more}", some.join(", ")));
    }
    for evidence in evidence {
        text.line(&format!(
            "  evidence  {}{}",
            evidence.place.as_ref().map_or_else(String::new, |place| format!("{place}: ")),
            evidence.what
        ));
        text.line(&format!("            {}", style.dim(&evidence.by.to_string())));
        if let Some(see) = evidence.see() {
            text.line(&format!("            {}", style.dim(&format!("see: {see}"))));
        }
    }
    for cure in &finding.cures {
        text.line(&format!("  cure      {cure}"));
    }
    if let Some(untried) = &finding.untried {
        text.line(&format!("  cure      {}", untried.in_a_line()));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::{BRIEF, in_brief};

    #[test]
    fn a_long_reason_is_cut_at_the_last_clause_that_is_near() {
        let cause = "no Service is called dex, and Service shop/test-dex is probably meant";
        assert_eq!(in_brief(cause), cause);
        let clause = "x".repeat(BRIEF / 2);
        let long = format!("{clause}; {cause}; {clause}");
        assert_eq!(in_brief(&long), format!("{clause}; {cause}"));
        // A clause is not cut.
        let whole = "x".repeat(BRIEF + 1);
        assert_eq!(in_brief(&format!("{whole}. {cause}")), whole);
        assert_eq!(in_brief(&whole), whole);
    }
}
