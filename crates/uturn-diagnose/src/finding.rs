//! From verdicts to findings.
//!
//! Classes of clients that a target treats alike are one finding: one cause, one row. A
//! Service that has no endpoints because its workload is scaled to nothing is still said,
//! as a warning: nobody's answer is wrong, there is none to give.

use uturn_model::route::{By, Step, StepKind};
use uturn_model::service::ServicePort;
use uturn_model::{
    Client, Destination, Flow, Kind, Mechanism, Name, NamespacedName, ObjectRef, Outcome, Route,
    Text, Verdict,
};
use uturn_path::{Cannot, Engine, Met, ScanTarget};

use crate::{Code, Severity};

/// Something that people have to act on.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The object that cannot be reached as it should be.
    pub subject: ObjectRef,
    /// Where exactly: `:80 shop.example.com/`, and others that fail alike.
    pub targets: Vec<String>,
    /// The pods that are hurt.
    pub clients: Vec<NamespacedName>,
    /// The nodes they are on.
    pub nodes: Vec<Name>,
    /// The share of their calls that is not answered at once.
    pub share_failing: f64,
    /// How such a call ends.
    pub outcome: Outcome,
    /// Why.
    pub mechanism: Mechanism,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What helps, the least intrusive first.
    pub cures: Vec<String>,
}

/// One thing that a finding rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Where it happened: `node/n1`.
    pub place: String,
    /// What happened.
    pub what: Text,
    /// The rule or object, and where it is written.
    pub by: By,
}

/// What a scan met, as findings, the worst first.
pub fn diagnose(engine: &Engine<'_>, met: &[Met]) -> Result<Vec<Finding>, Cannot> {
    let mut findings: Vec<Finding> = Vec::new();
    for one in met {
        for verdict in one.verdicts.iter().filter(|verdict| !verdict.is_fine()) {
            let Some(found) = judge(engine, one, verdict)? else { continue };
            let alike = |known: &&mut Finding| {
                known.code == found.code
                    && known.subject == found.subject
                    && known.outcome == found.outcome
                    && (known.share_failing - found.share_failing).abs() < 1e-6
            };
            match findings.iter_mut().find(alike) {
                Some(known) => {
                    known.clients.extend(found.clients);
                    known.nodes.extend(found.nodes);
                    let new = |target: &String| !known.targets.contains(target);
                    let targets: Vec<String> = found.targets.into_iter().filter(new).collect();
                    known.targets.extend(targets);
                    known.cures.retain(|cure| found.cures.contains(cure));
                }
                None => findings.push(found),
            }
        }
    }
    for finding in &mut findings {
        sort_unique(&mut finding.clients);
        sort_unique(&mut finding.nodes);
    }
    findings.sort_by(|a, b| {
        let harm = |one: &Finding| one.share_failing * one.clients.len() as f64;
        b.severity
            .cmp(&a.severity)
            .then(harm(b).total_cmp(&harm(a)))
            .then_with(|| (a.code, &a.subject, &a.targets).cmp(&(b.code, &b.subject, &b.targets)))
    });
    Ok(findings)
}

fn sort_unique<T: Ord>(list: &mut Vec<T>) {
    list.sort();
    list.dedup();
}

fn judge(engine: &Engine<'_>, met: &Met, verdict: &Verdict) -> Result<Option<Finding>, Cannot> {
    let worst = verdict
        .routes
        .iter()
        .filter(|route| !route.outcome.is_fine())
        .max_by(|a, b| a.share.total_cmp(&b.share));
    let Some(worst) = worst else { return Ok(None) };
    // The cause nearest to the client's own doing comes first in the order of mechanisms.
    let Some(mechanism) = worst.mechanisms.first().copied() else { return Ok(None) };
    let target = &met.target;
    Ok(Some(Finding {
        code: Code::of(mechanism, target.object.kind),
        severity: severity(mechanism),
        subject: target.object.clone(),
        targets: vec![target.label.clone()],
        clients: met.clients.pods.clone(),
        nodes: vec![met.clients.node.clone()],
        share_failing: verdict.share_failing(),
        outcome: worst.outcome,
        mechanism,
        evidence: evidence(worst),
        cures: cures(engine, target, &met.clients.pods)?,
    }))
}

fn severity(mechanism: Mechanism) -> Severity {
    match mechanism {
        Mechanism::NoEndpoint => Severity::Warning,
        _ => Severity::Error,
    }
}

/// The steps that decided: what was picked, translated, and how it ended.
fn evidence(route: &Route) -> Vec<Evidence> {
    let decides = |step: &Step| {
        matches!(
            step.kind,
            StepKind::Balance
                | StepKind::Translate
                | StepKind::Turn
                | StepKind::Drop
                | StepKind::Reject
                | StepKind::Unknown
        )
    };
    let mut evidence = Vec::new();
    for hop in &route.hops {
        for step in hop.steps.iter().filter(|step| decides(step)) {
            evidence.push(Evidence {
                place: hop.place.to_string(),
                what: step.why.clone(),
                by: step.by.clone(),
            });
            if matches!(step.kind, StepKind::Drop | StepKind::Reject) {
                return evidence;
            }
        }
    }
    evidence
}

/// Cures that a walk confirms. So far one: call the Service by its name, which never leaves
/// the cluster's own rules.
fn cures(
    engine: &Engine<'_>,
    target: &ScanTarget,
    clients: &[NamespacedName],
) -> Result<Vec<String>, Cannot> {
    let Some((service, port)) = service_behind(engine, target) else { return Ok(Vec::new()) };
    let to = Destination::Service(service.clone(), Some(port.port.to_string().into()));
    if to == target.to {
        return Ok(Vec::new());
    }
    let Some(client) = clients.first() else { return Ok(Vec::new()) };
    let flow =
        Flow { from: Client::Pod(client.clone()), to: to.clone(), protocol: target.protocol };
    let verdicts = match engine.verdicts(&flow) {
        Ok(verdicts) => verdicts,
        Err(Cannot::Later(_)) => return Ok(Vec::new()),
        Err(why) => return Err(why),
    };
    Ok(if verdicts.iter().all(Verdict::is_fine) { vec![format!("call {to}")] } else { Vec::new() })
}

/// The Service and port that would answer without the load balancer.
fn service_behind<'e>(
    engine: &'e Engine<'_>,
    target: &ScanTarget,
) -> Option<(&'e NamespacedName, &'e ServicePort)> {
    let cluster = engine.cluster();
    match (&target.object.kind, &target.to) {
        (Kind::Ingress, Destination::Ingress { host, path, .. }) => {
            let rules =
                engine.balancers().iter().flat_map(|one| &one.listeners).flat_map(|one| &one.rules);
            let rule = rules.into_iter().find(|rule| {
                rule.owner == target.object
                    && rule.host == *host
                    && rule.path.as_ref().map(|(path, _)| path) == path.as_ref()
            })?;
            let service = cluster.services.get(&rule.service)?;
            let node_port = rule.targets.first().map(|one| one.address.port());
            let port = service
                .ports
                .iter()
                .find(|one| one.node_port.map(uturn_model::Port::number) == node_port)
                .or_else(|| service.ports.first())?;
            Some((&service.name, port))
        }
        (Kind::Service, Destination::Address(address)) => {
            let name = NamespacedName::new(
                target.object.namespace.as_ref()?.as_str(),
                &target.object.name,
            )
            .ok()?;
            let service = cluster.services.get(&name)?;
            let port = service.ports.iter().find(|one| one.port.number() == address.port())?;
            Some((&service.name, port))
        }
        _ => None,
    }
}
