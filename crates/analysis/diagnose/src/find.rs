//! Turns verdicts into findings.
//!
//! Classes of clients that a target treats alike are one finding. If another object is the cause
//! (a security group, a node), the finding is about that object and lists all the targets that it
//! affects. A Service without endpoints because its workload is scaled to zero is a warning.

mod announcing;
pub(crate) mod api_server;
mod auth_urls;
mod bypass;
mod called_names;
mod captured;
mod cause;
pub(crate) mod cluster_names;
mod ejection;
mod families;
mod headless;
mod hints;
mod host_ports;
mod https_hosts;
pub(crate) mod image_ports;
mod loopback;
pub(crate) mod meant_service;
pub(crate) mod mesh_gateways;
mod no_endpoints;
mod node_clients;
mod node_condition;
pub(crate) mod node_names;
mod node_ports;
mod not_scanned;
pub(crate) mod object_faults;
pub(crate) mod open_ends;
pub(crate) mod outside_clients;
mod own_names;
mod pending;
pub(crate) mod plain_backends;
pub(crate) mod policies;
mod proxy_names;
mod relays;
mod scanned;
pub(crate) mod service_reference;
pub(crate) mod stated_checks;
mod system_callers;
mod taken;
pub(crate) mod unlike_endpoints;
mod unserved;
mod walked;
mod zones;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use uturn_model::{Cluster, Evidence, ObjectKind, ObjectRef};
use uturn_path::{Engine, WalkError, add_missing};
use uturn_scan::{ScanResult, Scanner};

use self::cause::{Causes, Fault};
use self::scanned::{Known, judge};
use crate::finding::{Finding, harm};
use crate::{Code, Observation, Severity};

/// The maximum number of nodes times Services, or nodes times listeners, that are walked pair by
/// pair.
const MAX_PAIRS: usize = 20_000;

/// Turns the results of a scan, and faults that are visible without one, into findings, the worst
/// first.
///
/// # Errors
/// Returns an error if a flow cannot be walked.
pub fn diagnose(scanner: &Scanner<'_, '_>, met: &[ScanResult]) -> Result<Vec<Finding>, WalkError> {
    let engine = scanner.engine();
    let known = Known::of(scanner, met);
    let causes = Causes::of(scanner, met)?;
    let mut found = Found {
        cluster: engine.cluster(),
        findings: Vec::new(),
        by_subject: HashMap::new(),
        merged: HashSet::new(),
    };
    for (index, result) in met.iter().enumerate() {
        for verdict in result.verdicts.iter().filter(|verdict| verdict.can_fail()) {
            let Some(new) = judge(&known, result, verdict)? else { continue };
            let faults = if new.mechanism.is_some_and(cause::is_shared) {
                causes.of_verdict(index, verdict)
            } else {
                &[]
            };
            found.add_each(&new, faults);
        }
    }
    for (new, faults) in not_scanned::find(engine)? {
        found.add_each(&new, &faults);
    }
    for (new, faults) in https_hosts::find(engine)? {
        found.add_each(&new, &faults);
    }
    for (new, faults) in node_ports::find(scanner)? {
        found.add_each(&new, &faults);
    }
    for (new, faults) in node_clients::find(scanner)? {
        found.add_each(&new, &faults);
    }
    for new in bypass::find(engine, met)? {
        found.add(new, None);
    }
    for new in ejection::find(engine, met) {
        found.add(new, None);
    }
    for new in zones::find(engine) {
        found.add(new, None);
    }
    for new in stated(engine) {
        if stated_checks::fails_calls(&new) {
            found.add_written(new);
        } else {
            found.add(new, None);
        }
    }
    // Calls that the scan found to fail for these reasons are of the same findings.
    for new in host_ports::find(engine).into_iter().chain(taken::find(engine)) {
        found.add_written(new);
    }
    for new in headless::find(engine).into_iter().chain(policies::find(engine)) {
        found.add(new, None);
    }
    let by_name = called_names::find(engine).into_iter().chain(auth_urls::find(engine));
    for new in by_name.chain(node_names::find(engine)).chain(api_server::find(engine)) {
        found.add(new, None);
    }
    // A name that something calls is told already.
    let told: Vec<ObjectRef> = found.findings.iter().map(|own| own.subject.clone()).collect();
    for new in own_names::find(engine).into_iter().filter(|new| !told.contains(&new.subject)) {
        found.add(new, None);
    }
    for new in captured::find(engine) {
        found.add(new, None);
    }
    for new in object_faults::find(engine).into_iter().chain(cluster_names::find(engine)?) {
        found.add_written(new);
    }
    let mut findings = found.into_findings();
    mesh_gateways::excuse_unused_ports(engine, &mut findings);
    no_endpoints::explain(engine, &mut findings);
    system_callers::weigh(engine.cluster(), &mut findings);
    findings.sort_by_cached_key(|finding| {
        let harm = harm(finding.share_failing, finding.clients.len());
        let order = (finding.code, finding.subject.clone(), finding.targets.clone());
        (Reverse(finding.severity), Reverse(harm), order)
    });
    Ok(findings)
}

/// Returns the faults that objects state, which are about these objects.
fn stated(engine: &Engine<'_>) -> impl Iterator<Item = Finding> {
    let all = [
        announcing::find(engine),
        families::find(engine),
        image_ports::find(engine),
        mesh_gateways::find(engine),
        open_ends::find(engine),
        pending::find(engine),
        plain_backends::find(engine),
        proxy_names::find(engine),
        relays::find(engine),
        stated_checks::find(engine),
        unlike_endpoints::find(engine),
        unserved::find(engine),
    ];
    all.into_iter().flatten()
}

/// Returns the faults that objects state and that make calls fail which a walk supposes to be
/// answered, or does not know: under a condition, or because nothing serves a host or an address.
pub(crate) fn unwalked(engine: &Engine<'_>) -> impl Iterator<Item = Finding> {
    let all = [
        announcing::find(engine),
        headless::find(engine),
        image_ports::find(engine),
        open_ends::find(engine),
        plain_backends::find(engine),
        stated_checks::asked(engine),
        unlike_endpoints::find(engine),
    ];
    let all = all.into_iter().flatten().filter(|finding| !finding.conditions.is_empty());
    all.chain(unserved::find(engine))
        .chain(pending::find(engine))
        .chain(taken::on_segment(engine))
        .chain(auth_urls::of_hosts(engine))
        .filter(|finding| !finding.share_failing.is_none())
}

/// Returns the faults that objects show without a scan: those of an edited cluster tell whether the
/// edit cures them.
///
/// # Errors
/// Returns an error if a name cannot be looked up.
pub(crate) fn written(engine: &Engine<'_>) -> Result<Vec<Finding>, WalkError> {
    let mut all: Vec<Finding> = stated(engine).chain(api_server::stated(engine)).collect();
    all.extend(host_ports::find(engine));
    all.extend(taken::find(engine));
    all.extend(object_faults::find(engine));
    all.extend(cluster_names::find(engine)?);
    Ok(all)
}

/// The findings so far, with one finding for each cause.
struct Found<'e> {
    cluster: &'e Cluster,
    findings: Vec<Finding>,
    by_subject: HashMap<ObjectRef, Vec<usize>>,
    /// The positions of findings that became part of another.
    merged: HashSet<usize>,
}

impl Found<'_> {
    /// Adds a finding for each object at fault, or a finding about its subject if none is known.
    fn add_each(&mut self, new: &Finding, faults: &[Fault]) {
        if faults.is_empty() {
            self.add(new.clone(), None);
        }
        for fault in faults {
            let mut new = Finding { failure: Some(fault.point.clone()), ..new.clone() };
            // A Service that states its allowed clients keeps others out on purpose, as far as is
            // known, so this is a warning.
            if fault.is_asked_for {
                new.severity = new.severity.min(Severity::Warning);
                new.other_evidence.extend(self.source_ranges(&new.subject));
            }
            self.add(new, fault.object.clone());
        }
    }

    /// States the ranges from which a Service may be called by its load balancer's address.
    fn source_ranges(&self, subject: &ObjectRef) -> Option<Observation> {
        let is_service = subject.kind == ObjectKind::Service;
        let service = self.cluster.services.get(&subject.namespaced_name()?)?;
        let ranges: Vec<String> = service.source_ranges.iter().map(ToString::to_string).collect();
        let what = format!(
            "its spec.loadBalancerSourceRanges has {} and leaves these clients out",
            ranges.join(", ")
        );
        let by = Evidence::object(subject.clone(), service.origin.clone());
        (is_service && !ranges.is_empty()).then(|| Observation {
            place: None,
            what: what.into(),
            by,
        })
    }

    fn add(&mut self, mut new: Finding, cause: Option<ObjectRef>) {
        let is_cause = cause.is_some();
        if let Some(cause) = cause {
            let whose = new.subject.short();
            new.targets.iter_mut().for_each(|target| *target = format!("{whose} {target}"));
            new.subject = cause;
        }
        let same_subject = self.by_subject.entry(new.subject.clone()).or_default();
        let alike = |at: &&usize| {
            let known = &self.findings[**at];
            known.code == new.code
                && known.conditions == new.conditions
                && (is_cause
                    || known.outcome == new.outcome
                        && known.share_failing.is_about(new.share_failing))
        };
        match same_subject.iter().find(alike) {
            Some(at) => self.findings[*at].take(new),
            None => {
                same_subject.push(self.findings.len());
                self.findings.push(new);
            }
        }
    }

    /// Adds a finding about a mistake in an object's text. It is more specific than what walks
    /// found for the same object, and replaces all of that.
    fn add_written(&mut self, new: Finding) {
        let vague = new.code.replaces();
        let replaces = new.replaces_walked();
        // Walks find the same as the text of the object.
        let is_walked_too =
            matches!(new.code, Code::NoTargets | Code::AddressTaken | Code::HostPortOff);
        let is_replaced = |at: &usize| {
            let known = &self.findings[*at];
            let is_same = is_walked_too && known.code == new.code;
            replaces && (is_same || vague.contains(&known.code)) && !self.merged.contains(at)
        };
        let same_subject = self.by_subject.get(&new.subject).into_iter().flatten();
        let replaced: Vec<usize> = same_subject.copied().filter(is_replaced).collect();
        let Some((first, others)) = replaced.split_first() else {
            return self.add(new, None);
        };
        for other in others {
            let other = self.findings[*other].clone();
            self.findings[*first].take(other);
        }
        self.merged.extend(others);
        let known = &mut self.findings[*first];
        if known.code == new.code {
            add_missing(&mut known.targets, new.targets.clone());
            known.clients = known.clients.and(&new.clients);
        }
        known.code = new.code;
        known.severity =
            if new.conditions.is_empty() { known.severity.max(new.severity) } else { new.severity };
        known.conditions.extend(new.conditions);
        known.other_evidence.extend(new.other_evidence);
    }

    /// Returns the findings without those that became part of another.
    fn into_findings(self) -> Vec<Finding> {
        let all = self.findings.into_iter().enumerate();
        all.filter(|(at, _)| !self.merged.contains(at)).map(|(_, finding)| finding).collect()
    }
}
