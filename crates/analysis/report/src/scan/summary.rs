//! The summary below the findings of a scan: counts, and the assumptions they rest on.

use std::collections::BTreeMap;

use uturn_diagnose::{Example, Finding, Severity};
use uturn_model::network::{Network, NetworkMode, Plugin};
use uturn_model::shell::Command;
use uturn_model::{Assumption, Client, Family, Flow, NamespacedName, Skipped, Text, Unjudged};

use uturn_diagnose::analysis::Suppression;

use super::{ScanReport, cure_command};
use crate::lines::Lines as _;
use crate::style::Style;
use crate::{supposed, words};

/// Lists the findings that do not count: each ignored one with its reason, and how many are known.
fn set_aside(report: &ScanReport) -> String {
    let mut text = String::new();
    let mut known: BTreeMap<&Text, usize> = BTreeMap::new();
    for aside in &report.aside {
        match &aside.why {
            Suppression::Ignored { reason } => text.line(&format!(
                "ignored: {} {}: {reason} ({})",
                aside.finding.code,
                aside.finding.subject.short(),
                aside.origin
            )),
            Suppression::Known { baseline } => *known.entry(baseline).or_default() += 1,
        }
    }
    for (baseline, count) in known {
        text.line(&format!("known in {baseline}: {}", words::count(count, "finding")));
    }
    if report.gone > 0 {
        text.line(&format!(
            "gone since the baseline was written: {} (--write-baseline updates it)",
            words::count(report.gone, "finding")
        ));
    }
    text
}

/// Describes in one line what was not judged, with the fact that would settle most of it; then
/// lists each cause. For some causes there is no such fact.
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
    // An object may be listed for two causes.
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
    let mut first = format!("not judged: {}", all.join(", "));
    if let Some(most) = most {
        first.push_str(&format!("; {settles}: {}", most.settle));
    }
    let mut text = String::new();
    text.line(&first);
    for gap in unjudged {
        let objects: Vec<String> = gap.objects.iter().map(uturn_model::ObjectRef::short).collect();
        text.line(&format!("  {gap}: {}: {}", words::some_of(&objects), gap.because));
        let is_printed = most.is_none_or(|most| gap.settle == most.settle);
        if !is_printed && !gap.settle.is_empty() {
            text.line(&format!("    to settle it: {}", gap.settle));
        }
    }
    text
}

/// Describes the pods that cannot call yet.
pub(crate) fn without_address(pods: &[NamespacedName]) -> Option<String> {
    match pods.len() {
        0 => None,
        1 => Some(format!("the calls of 1 pod that has no address yet: {}", pods[0])),
        many => {
            let some = words::some_of(pods);
            Some(format!("the calls of {many} pods that have no address yet: {some}"))
        }
    }
}

/// Describes the pod network: in short if a plugin was recognised, always if everything is wanted.
fn network(network: Option<&Network>, style: Style) -> String {
    let Some(network) = network.filter(|network| !network.plugin.is_supposed()) else {
        return String::new();
    };
    let plugin = network.plugin.value;
    let is_usual = matches!(plugin, Plugin::OfCloud(_) | Plugin::Unknown);
    if is_usual && !style.wide {
        String::new()
    } else {
        let pods = match network.mode.value {
            NetworkMode::GlobalRouter => "pods on a bridge",
            NetworkMode::VpcCni => "pods on network cards",
            NetworkMode::Routed => "a link for each pod",
        };
        let between = match Family::BOTH.map(|family| network.is_encapsulated(family)) {
            [false, false] => "no tunnels",
            [true, true] => "tunnels between nodes",
            [true, false] => "tunnels between nodes for IPv4",
            [false, true] => "tunnels between nodes for IPv6",
        };
        format!("network: {plugin}, {pods}, {between} ({})\n", network.plugin.basis)
    }
}

/// Returns whether this cause has at least half of all objects.
fn many_settled(unjudged: &[Unjudged], most: Option<&Unjudged>) -> bool {
    let all: usize = unjudged.iter().map(|gap| gap.objects.len()).sum();
    most.is_some_and(|most| most.objects.len() * 2 >= all)
}

/// Describes what was read if nothing of it is called: the number of objects, and their kinds.
fn nothing_to_judge(report: &ScanReport) -> Option<String> {
    let is_called = |kind: &Text| matches!(&**kind, "Service" | "Ingress" | "Scenario");
    if !report.findings.is_empty() || report.flows > 0 || report.seen.keys().any(is_called) {
        return None;
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, count) in &report.seen {
        *kinds.entry(kind).or_default() += count;
    }
    for skipped in &report.skipped {
        // Kinds that are read in part are counted in full among the seen ones.
        let kind = skipped.kind.rsplit('/').next().unwrap_or(&skipped.kind);
        if !report.seen.contains_key(kind) && !kind.contains(' ') {
            *kinds.entry(kind).or_default() += skipped.count;
        }
    }
    let read: usize = kinds.values().sum();
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let calls = ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"];
    let why = if report.seen.keys().any(|kind| calls.contains(&&**kind)) {
        "no Service and no Ingress among them"
    } else {
        "none of which takes part in a flow"
    };
    let read = words::count(read, "object");
    Some(format!("nothing to judge: {read} read, {why} ({})\n", kinds.join(", ")))
}

/// Counts the findings, by severity if not all are errors.
fn counted(findings: &[Finding]) -> String {
    let all = words::count(findings.len(), "finding");
    let of = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    if of(Severity::Error) == findings.len() {
        return all;
    }
    let severities = [Severity::Error, Severity::Warning, Severity::Info];
    let counts = severities.map(|severity| (severity.as_str(), of(severity)));
    let mut parts = Vec::new();
    for (word, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        parts.push(match word {
            "info" => format!("{count} {word}"),
            _ => words::count(count, word),
        });
    }
    format!("{all} ({})", parts.join(", "))
}

pub(super) fn text(report: &ScanReport, style: Style) -> String {
    if let Some(text) = nothing_to_judge(report) {
        return text + &set_aside(report);
    }
    let mut text = match report.findings.len() {
        0 => style.green("nothing found"),
        _ => counted(&report.findings),
    };
    // A finding under a condition is not about a flow of the assumed case.
    let is_if = report.findings.iter().any(|finding| !finding.conditions.is_empty());
    let is_supposed = is_if || report.policed > 0;
    text.line(&format!(
        "; {} of {} fine{}{}{}{}{}{}{}",
        report.fine,
        words::count(report.flows, "call"),
        if is_supposed { " as supposed" } else { "" },
        if report.open > 0 { format!(", {} not judged", report.open) } else { String::new() },
        if report.denied > 0 {
            format!(", {} kept apart by NetworkPolicies", report.denied)
        } else {
            String::new()
        },
        callers(report),
        if style.wide { " (pods on one node that are treated alike call once)" } else { "" },
        beside_the_calls(report),
        policies(report.policed)
    ));
    text.push_str(&not_judged(&report.unjudged));
    if let Some(calls) = without_address(&report.without_address) {
        text.line(&format!("not judged: {calls}"));
    }
    text.push_str(&network(report.network.as_ref(), style));
    text.push_str(&set_aside(report));
    text.push_str(&supposed(report, style));
    if !report.skipped.is_empty() {
        let objects = report.skipped.iter().filter(|skipped| skipped.files.is_empty());
        let kinds: Vec<String> =
            objects.map(|skipped| format!("{} {}", skipped.count, skipped.kind)).collect();
        if style.wide && !kinds.is_empty() {
            text.line(&format!("not needed: {}", kinds.join(", ")));
        }
        for skipped in report.skipped.iter().filter(|skipped| !skipped.files.is_empty()) {
            text.line(&format!("left out: {}", left_out(skipped)));
        }
    }
    text.push_str(&next(report));
    text
}

/// Lists the commands that lead on from the worst finding that has a cure.
fn next(report: &ScanReport) -> String {
    let Some(worst) = report.findings.first() else { return String::new() };
    let is_like = |own: &&Finding| own.severity == worst.severity && !own.cures.is_empty();
    let first = report.findings.iter().find(is_like).unwrap_or(worst);
    let mut commands = vec![("what to change", cure_command(report, first))];
    // There is no call to follow for health checks.
    let flow = first.example.flow().filter(|_| !matches!(first.example, Example::Probes(..)));
    if let Some(flow) = flow {
        let from = client(first).map_or_else(|| flow.from.clone(), Client::Pod);
        let flow = Flow { from, ..flow };
        let trace = Command::new("uturn trace").with(&report.input).with(&flow.arguments());
        commands.push(("packet by packet", trace));
    }
    commands.push(("what it means", first.code.explain()));
    let mut text = match report.findings.len() {
        1 => "\nnext:\n".to_owned(),
        _ => format!("\nnext, for {} {}:\n", first.code, first.subject.short()),
    };
    for (what, command) in commands {
        text.line(&format!("  {what:<18}{command}"));
    }
    if report.findings.len() > 1 {
        let all = Command::new("uturn cure").with(&report.input);
        text.line(&format!("  {:<18}{all}", "all findings"));
    }
    text
}

/// Returns a pod whose call shows a finding: an application's before one of the system, and one in the
/// object's namespace before others.
fn client(finding: &Finding) -> Option<NamespacedName> {
    let is_away = |pod: &NamespacedName| Some(&pod.namespace) != finding.subject.namespace.as_ref();
    let is_of_system = |pod: &NamespacedName| pod.namespace.as_str().starts_with("kube-");
    finding.clients.iter().min_by_key(|pod| (is_of_system(pod), is_away(pod), *pod)).cloned()
}

/// States that no walked call fails, though there are findings.
fn beside_the_calls(report: &ScanReport) -> &'static str {
    let are_all_fine = report.flows > 0 && report.fine == report.flows;
    match report.findings.len() {
        1 if are_all_fine => "; the finding is about none of them",
        2.. if are_all_fine => "; the findings are about none of them",
        _ => "",
    }
}

/// Describes the pods whose NetworkPolicies may stop calls.
fn policies(pods: usize) -> String {
    match pods {
        0 => String::new(),
        1 => "; 1 pod has NetworkPolicies that may stop calls".to_owned(),
        many => format!("; {many} pods have NetworkPolicies that may stop calls"),
    }
}

/// Describes who makes the calls.
fn callers(report: &ScanReport) -> String {
    match (report.pods, report.nodes) {
        (0, _) => String::new(),
        (pods, nodes) => {
            format!(", from {} on {}", words::count(pods, "pod"), words::count(nodes, "node"))
        }
    }
}

/// Lists the assumptions on which the findings rest.
fn supposed(report: &ScanReport, style: Style) -> String {
    let all: Vec<&Assumption> = report.supposed.iter().collect();
    let conditions: Vec<&Text> =
        report.findings.iter().flat_map(|finding| &finding.conditions).collect();
    let decides = |assumption: &Assumption| supposed::is_condition(assumption, &conditions);
    supposed::lines(&all, decides, style)
}

/// Describes documents that are not objects: what they are, how many, and in which files.
pub(crate) fn left_out(skipped: &Skipped) -> String {
    let Skipped { kind, count, files } = skipped;
    let shown: Vec<&str> = files.iter().take(SHOWN).map(|file| &**file).collect();
    let more = match files.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" and {} more", words::count(more, "file")),
    };
    format!("{kind} ({count}): {}{more}", shown.join(", "))
}

/// The number of files without objects that are named.
const SHOWN: usize = 5;
