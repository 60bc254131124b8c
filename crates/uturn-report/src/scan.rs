//! What a scan found, as a table.

use std::collections::BTreeMap;
use std::fmt;

use uturn_diagnose::group::group;
use uturn_diagnose::{Evidence, Example, Finding, Group, Severity};
use uturn_model::network::{Network, NetworkMode, Plugin, Transport};
use uturn_model::{Origin, Protocol, Skipped, Supposition, Text, Unjudged};

use crate::style::Style;
use crate::{table, words};

/// All that a scan has to say.
#[derive(Clone, Debug)]
pub struct ScanReport {
    /// What was found.
    pub findings: Vec<Finding>,
    /// The findings grouped by cause, the worst group first.
    pub groups: Vec<Group>,
    /// What each of them rests on, in the same order; none where nobody asked.
    pub evidence: Vec<Vec<Evidence>>,
    /// Where the object of each is written, in the same order; none where nobody asked.
    pub origins: Vec<Origin>,
    /// What was found and does not count.
    pub aside: Vec<Aside>,
    /// How many of the baseline's findings are there no more.
    pub gone: usize,
    /// How bad a finding has to be to fail; none fails where there is nothing.
    pub fails_from: Option<Severity>,
    /// How many flows were looked at (a class of clients against a target is one).
    pub flows: usize,
    /// How many of them are fine.
    pub fine: usize,
    /// How many of them cannot be judged.
    pub open: usize,
    /// The pod network as it was recognised; none where nothing was read.
    pub network: Option<Network>,
    /// What keeps flows from being judged.
    pub unjudged: Vec<Unjudged>,
    /// What was taken for true.
    pub supposed: Vec<Supposition>,
    /// Kinds that were seen and not needed.
    pub skipped: Vec<Skipped>,
    /// How many objects of each kind were read.
    pub seen: BTreeMap<Text, usize>,
}

impl ScanReport {
    /// Of findings alone.
    pub fn new(findings: Vec<Finding>) -> Self {
        Self {
            groups: group(&findings),
            findings,
            evidence: Vec::new(),
            origins: Vec::new(),
            aside: Vec::new(),
            gone: 0,
            fails_from: Some(Severity::Error),
            flows: 0,
            fine: 0,
            open: 0,
            network: None,
            unjudged: Vec::new(),
            supposed: Vec::new(),
            skipped: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Whether a finding is bad enough to fail.
    pub fn fails(&self, finding: &Finding) -> bool {
        self.fails_from.is_some_and(|from| finding.severity >= from)
    }
}

/// What was found and does not count.
#[derive(Clone, Debug)]
pub struct Aside {
    /// What it is.
    pub finding: Finding,
    /// Where its object is written.
    pub origin: Origin,
    /// Why it does not count.
    pub why: Why,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// An annotation of its object says so.
    Ignored {
        /// The reason that is given there.
        reason: Text,
    },
    /// It was there before.
    Known {
        /// The file that lists it.
        baseline: Text,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored { reason } => write!(f, "ignored: {reason}"),
            Self::Known { baseline } => write!(f, "known in {baseline}"),
        }
    }
}

/// A finding in a sentence.
pub fn sentence(finding: &Finding) -> String {
    let what = format!("{} {}", finding.subject, targets(finding));
    let why = because(finding);
    if finding.share_failing > 0.0 {
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

/// The table, and what stands below it.
pub fn text(report: &ScanReport, style: Style) -> String {
    let mut text = String::new();
    if !report.findings.is_empty() {
        text.push_str(&rows(report, style));
        text.push('\n');
    }
    if style.wide {
        let evidence = report.evidence.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        for (finding, evidence) in report.findings.iter().zip(evidence) {
            let most = words::most_names(report.findings.len());
            text.push_str(&details(finding, evidence, most, style));
        }
    }
    text.push_str(&summary(report, style));
    text
}

fn rows(report: &ScanReport, style: Style) -> String {
    let rows: Vec<Vec<String>> = report
        .findings
        .iter()
        .map(|one| {
            let share = match one.share_failing {
                some if some > 0.0 => {
                    format!("{} {}", words::share(some), words::ending(one.outcome))
                }
                _ => "not yet".to_owned(),
            };
            vec![
                match one.severity {
                    Severity::Error => style.red(&share),
                    Severity::Warning | Severity::Info => style.yellow(&share),
                },
                words::who(&one.clients),
                format!("{} {}", one.subject.short(), targets(one)).trim_end().to_owned(),
                because(one),
                one.code.to_string(),
                words::first_of(&one.cures),
            ]
        })
        .collect();
    table::render(&["FAILING", "WHO", "CANNOT REACH", "BECAUSE", "CODE", "CURE"], &rows, style)
}

/// The first target, and how many more there are.
pub(crate) fn targets(finding: &Finding) -> String {
    let first = finding.targets.first().map_or("", String::as_str);
    match finding.targets.len() {
        0 | 1 => first.to_owned(),
        many => format!("{first} + {} more", many - 1),
    }
}

/// The mechanism, else what the code is called.
pub(crate) fn because(finding: &Finding) -> String {
    let why = match finding.mechanism {
        Some(mechanism) => mechanism.to_string(),
        None => finding.code.title().to_owned(),
    };
    match finding.conditions.is_empty() {
        true => why,
        false => format!("{why} if {}", finding.conditions.join(" and ")),
    }
}

fn details(finding: &Finding, evidence: &[Evidence], most: usize, style: Style) -> String {
    let mut text = style.bold(&format!(
        "{} {}{}: {}\n",
        finding.code,
        format!("{} {}", finding.subject.short(), finding.targets.join(", ")).trim_end(),
        "",
        finding.code.title()
    ));
    let some = words::pods(&finding.clients, most);
    let more = finding.clients.pod_count() - some.len();
    let others = finding.clients.others().iter().map(ToString::to_string);
    let some: Vec<String> = some.into_iter().map(ToString::to_string).chain(others).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !finding.clients.is_empty() {
        text.push_str(&format!("  clients   {}{more}\n", some.join(", ")));
    }
    for evidence in evidence {
        text.push_str(&format!(
            "  evidence  {}{}\n            {}\n",
            if evidence.place.is_empty() { String::new() } else { format!("{}: ", evidence.place) },
            evidence.what,
            style.dim(&evidence.by.to_string())
        ));
        if let Some(see) = evidence.see() {
            text.push_str(&format!("            {}\n", style.dim(&format!("see: {see}"))));
        }
    }
    for cure in &finding.cures {
        text.push_str(&format!("  cure      {cure}\n"));
    }
    text.push('\n');
    text
}

/// What does not count: each that somebody ignores, with the reason, and how many are known.
fn set_aside(report: &ScanReport) -> String {
    let mut text = String::new();
    let mut known: BTreeMap<&Text, usize> = BTreeMap::new();
    for one in &report.aside {
        match &one.why {
            Why::Ignored { reason } => text.push_str(&format!(
                "ignored: {} {}: {reason} ({})\n",
                one.finding.code,
                one.finding.subject.short(),
                one.origin
            )),
            Why::Known { baseline } => *known.entry(baseline).or_default() += 1,
        }
    }
    for (baseline, count) in known {
        text.push_str(&format!("known in {baseline}: {}\n", words::count(count, "finding")));
    }
    if report.gone > 0 {
        text.push_str(&format!(
            "no more there, of the baseline: {} (--write-baseline writes it anew)\n",
            words::count(report.gone, "finding")
        ));
    }
    text
}

/// What was not judged and what settles most of it in one line, then each cause. Some of it no
/// fact settles.
fn not_judged(unjudged: &[Unjudged]) -> String {
    if unjudged.is_empty() {
        return String::new();
    }
    let mut whole: Vec<Unjudged> = Vec::new();
    for gap in unjudged {
        match whole.iter_mut().find(|known| known.subject == gap.subject) {
            Some(known) => known.objects.extend(gap.objects.iter().cloned()),
            None => whole.push(gap.clone()),
        }
    }
    // An object may be there for two causes.
    for gap in &mut whole {
        gap.objects.sort();
        gap.objects.dedup();
    }
    let all: Vec<String> = whole.iter().map(ToString::to_string).collect();
    let settled = unjudged.iter().filter(|gap| !gap.settle.is_empty());
    let most = settled.max_by_key(|gap| gap.objects.len());
    let settles = match unjudged.len() {
        1 => "to settle it",
        _ if many_settled(unjudged, most) => "to settle most of it",
        _ => "to settle some of it",
    };
    let mut text = format!("not judged: {}", all.join(", "));
    if let Some(most) = most {
        text.push_str(&format!("; {settles}: {}", most.settle));
    }
    text.push('\n');
    for gap in unjudged {
        let objects: Vec<String> = gap.objects.iter().map(uturn_model::ObjectRef::short).collect();
        text.push_str(&format!("  {gap}: {}: {}\n", words::some_of(&objects), gap.because));
        let is_told = most.is_none_or(|most| gap.settle == most.settle);
        if !is_told && !gap.settle.is_empty() {
            text.push_str(&format!("    to settle it: {}\n", gap.settle));
        }
    }
    text
}

/// The pod network: in short where a plugin was recognised, always where all is wanted.
fn network(network: Option<&Network>, style: Style) -> String {
    let Some(network) = network.filter(|network| !network.plugin.is_supposed()) else {
        return String::new();
    };
    let plugin = network.plugin.value;
    let is_usual = matches!(plugin, Plugin::OfCloud(_) | Plugin::Unknown);
    match is_usual && !style.wide {
        true => String::new(),
        false => {
            let pods = match network.mode.value {
                NetworkMode::GlobalRouter => "pods on a bridge",
                NetworkMode::VpcCni => "pods on network cards",
                NetworkMode::Routed => "a link for each pod",
            };
            let between = match network.transport.value {
                Transport::Underlay => "no tunnels",
                Transport::Tunnel => "tunnels between nodes",
            };
            format!("network: {plugin}, {pods}, {between} ({})\n", network.plugin.basis)
        }
    }
}

/// Whether the objects of this cause are no fewer than all others.
fn many_settled(unjudged: &[Unjudged], most: Option<&Unjudged>) -> bool {
    let all: usize = unjudged.iter().map(|gap| gap.objects.len()).sum();
    most.is_some_and(|most| most.objects.len() * 2 >= all)
}

/// What was read where nothing of it is called: as many objects, of these kinds.
fn nothing_to_judge(report: &ScanReport) -> Option<String> {
    let is_called = |kind: &Text| matches!(&**kind, "Service" | "Ingress" | "Scenario");
    if !report.findings.is_empty() || report.flows > 0 || report.seen.keys().any(is_called) {
        return None;
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, count) in &report.seen {
        *kinds.entry(kind).or_default() += count;
    }
    for one in &report.skipped {
        // Of kinds that are read in part, all are among what was seen.
        let kind = one.kind.rsplit('/').next().unwrap_or(&one.kind);
        if !report.seen.contains_key(kind) && !kind.contains(' ') {
            *kinds.entry(kind).or_default() += one.count;
        }
    }
    let read: usize = kinds.values().sum();
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let calls = ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"];
    let why = match report.seen.keys().any(|kind| calls.contains(&&**kind)) {
        true => "no Service and no Ingress among them",
        false => "none of which takes part in a flow",
    };
    let read = words::count(read, "object");
    Some(format!("nothing to judge: {read} read, {why} ({})\n", kinds.join(", ")))
}

fn summary(report: &ScanReport, style: Style) -> String {
    if let Some(text) = nothing_to_judge(report) {
        return text + &set_aside(report);
    }
    let mut text = match report.findings.len() {
        0 => style.green("nothing found"),
        found => words::count(found, "finding"),
    };
    // What is found if something else holds is no flow of what is taken to hold.
    let is_if = report.findings.iter().any(|one| !one.conditions.is_empty());
    text.push_str(&format!(
        "; {} of {} fine{}{} (a class of pods × a target each)\n",
        report.fine,
        words::count(report.flows, "flow"),
        if is_if { " as supposed" } else { "" },
        if report.open > 0 { format!(", {} not judged", report.open) } else { String::new() }
    ));
    text.push_str(&not_judged(&report.unjudged));
    text.push_str(&network(report.network.as_ref(), style));
    text.push_str(&set_aside(report));
    for one in &report.supposed {
        text.push_str(&format!("supposed: {one}\n"));
    }
    if !report.skipped.is_empty() {
        let objects = report.skipped.iter().filter(|one| one.files.is_empty());
        let kinds: Vec<String> = objects.map(|one| format!("{} {}", one.count, one.kind)).collect();
        if !kinds.is_empty() {
            text.push_str(&format!("not needed: {}\n", kinds.join(", ")));
        }
        for one in report.skipped.iter().filter(|one| !one.files.is_empty()) {
            text.push_str(&format!("left out: {}\n", left_out(one)));
        }
    }
    if let Some(first) = report.findings.first() {
        text.push_str(&format!("\nuturn explain {} tells what it means", first.code));
        let at_home = |pod: &&uturn_model::NamespacedName| {
            Some(&pod.namespace) == first.subject.namespace.as_ref()
        };
        let client = first.clients.iter().filter(at_home).min().or(first.clients.iter().min());
        // Of health checks there is no call to follow.
        let flow = first.example.flow().filter(|_| !matches!(first.example, Example::Probes(..)));
        if let Some(flow) = flow {
            let from = client.map_or_else(|| flow.from.to_string(), |pod| format!("pod/{pod}"));
            let proto = match flow.protocol {
                Protocol::Tcp => String::new(),
                other => format!(" --proto {}", other.to_string().to_lowercase()),
            };
            text.push_str(&format!(
                "; uturn trace --from {from} --to {}{proto} shows the way, packet by packet",
                flow.to
            ));
        }
        text.push('\n');
    }
    text
}

/// What is no object: what it is, how many, and which files.
pub(crate) fn left_out(skipped: &Skipped) -> String {
    let Skipped { kind, count, files } = skipped;
    let shown: Vec<&str> = files.iter().take(SHOWN).map(|file| &**file).collect();
    let more = match files.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" and {} more", words::count(more, "file")),
    };
    format!("{kind} ({count}): {}{more}", shown.join(", "))
}

/// How many files are named of those that hold no object.
const SHOWN: usize = 5;
