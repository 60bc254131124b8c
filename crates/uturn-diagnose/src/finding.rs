//! From verdicts to findings.
//!
//! Classes of clients that a target treats alike are one finding: one cause, one row. A
//! Service that has no endpoints because its workload is scaled to nothing is still said,
//! as a warning: nobody's answer is wrong, there is none to give.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use uturn_model::ingress::{Backend, BackendPort, IngressRule};
use uturn_model::route::{By, Step, StepKind};
use uturn_model::service::ServicePort;
use uturn_model::{
    Destination, Flow, Kind, Mechanism, NamespacedName, ObjectRef, Outcome, Protocol, Route, Text,
    Verdict,
};
use uturn_path::{Cannot, Engine, Met, Pods, ScanTarget};

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
    pub clients: Pods,
    /// The share of their calls that is not answered at once.
    pub share_failing: f64,
    /// How such a call ends.
    pub outcome: Outcome,
    /// Why.
    pub mechanism: Mechanism,
    /// A flow that shows it.
    pub example: Met,
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
    let known = Known::of(engine, met);
    let mut findings: Vec<Finding> = Vec::new();
    let mut by_subject: HashMap<&ObjectRef, Vec<usize>> = HashMap::new();
    for one in met {
        for verdict in one.verdicts.iter().filter(|verdict| !verdict.is_fine()) {
            let Some(found) = judge(&known, one, verdict)? else { continue };
            let same_subject = by_subject.entry(&one.target.object).or_default();
            let alike = |at: &&usize| {
                let known = &findings[**at];
                known.code == found.code
                    && known.outcome == found.outcome
                    && (known.share_failing - found.share_failing).abs() < 1e-6
            };
            match same_subject.iter().find(alike) {
                Some(at) => {
                    let known = &mut findings[*at];
                    known.clients = known.clients.and(&found.clients);
                    let new = |target: &String| !known.targets.contains(target);
                    let targets: Vec<String> = found.targets.into_iter().filter(new).collect();
                    known.targets.extend(targets);
                    known.cures.retain(|cure| found.cures.contains(cure));
                }
                None => {
                    same_subject.push(findings.len());
                    findings.push(found);
                }
            }
        }
    }
    findings.sort_by_cached_key(|one| {
        let harm = one.share_failing * one.clients.len() as f64;
        let order = (one.code, one.subject.clone(), one.targets.clone());
        (Reverse(one.severity), Reverse(Harm(harm)), order)
    });
    Ok(findings)
}

/// A number that can be put in order.
struct Harm(f64);

impl PartialEq for Harm {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Harm {}

impl PartialOrd for Harm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Harm {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What the scan met already, by target.
struct Known<'e, 'a> {
    engine: &'e Engine<'a>,
    met: HashMap<(&'e Destination, Protocol), Vec<&'e Met>>,
}

impl<'e, 'a> Known<'e, 'a> {
    fn of(engine: &'e Engine<'a>, met: &'e [Met]) -> Self {
        let mut by_target: HashMap<_, Vec<&'e Met>> = HashMap::new();
        for one in met {
            by_target.entry((&one.target.to, one.target.protocol)).or_default().push(one);
        }
        Self { engine, met: by_target }
    }

    /// Whether a client gets its answer at once from another target.
    fn is_fine(&self, met: &Met, to: &Destination) -> Result<bool, Cannot> {
        let there = self.met.get(&(to, met.target.protocol)).into_iter().flatten();
        let mut same = there.filter(|one| one.clients.pods.has(&met.clients));
        if let Some(known) = same.next() {
            return Ok(known.verdicts.iter().all(Verdict::is_fine));
        }
        let flow = Flow { to: to.clone(), ..met.flow() };
        match self.engine.verdicts(&flow) {
            Ok(verdicts) => Ok(verdicts.iter().all(Verdict::is_fine)),
            Err(Cannot::Later(_)) => Ok(false),
            Err(why) => Err(why),
        }
    }
}

fn judge(known: &Known<'_, '_>, met: &Met, verdict: &Verdict) -> Result<Option<Finding>, Cannot> {
    let Some(worst) = worst(verdict) else { return Ok(None) };
    // The cause nearest to the client's own doing comes first in the order of mechanisms.
    let Some(mechanism) = worst.mechanisms.first().copied() else { return Ok(None) };
    let target = &met.target;
    Ok(Some(Finding {
        code: Code::of(mechanism, target.object.kind),
        severity: severity(mechanism),
        subject: target.object.clone(),
        targets: vec![target.label.clone()],
        clients: met.clients.pods.clone(),
        share_failing: verdict.share_failing(),
        outcome: worst.outcome,
        mechanism,
        example: met.clone(),
        cures: cures(known, met)?,
    }))
}

/// The likeliest of the ways that are not fine.
fn worst(verdict: &Verdict) -> Option<&Route> {
    let bad = verdict.routes.iter().filter(|route| !route.outcome.is_fine());
    bad.max_by(|a, b| a.share.total_cmp(&b.share))
}

impl Finding {
    /// What it rests on: the example is walked once more for it.
    pub fn evidence(&self, engine: &Engine<'_>) -> Result<Vec<Evidence>, Cannot> {
        let verdicts = engine.explain(&self.example)?;
        let bad = verdicts.iter().find_map(worst);
        Ok(bad.map(evidence).unwrap_or_default())
    }
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
fn cures(known: &Known<'_, '_>, met: &Met) -> Result<Vec<String>, Cannot> {
    let target = &met.target;
    let Some((service, port)) = service_behind(known.engine, target) else {
        return Ok(Vec::new());
    };
    let to = Destination::Service(service.clone(), Some(port.port.to_string().into()));
    if to == target.to {
        return Ok(Vec::new());
    }
    Ok(if known.is_fine(met, &to)? { vec![format!("call {to}")] } else { Vec::new() })
}

/// The Service and port that would answer without the load balancer.
fn service_behind<'e>(
    engine: &'e Engine<'_>,
    target: &ScanTarget,
) -> Option<(&'e NamespacedName, &'e ServicePort)> {
    let cluster = engine.cluster();
    match (&target.object.kind, &target.to) {
        (Kind::Ingress, Destination::Ingress { name, host, path }) => {
            let ingress = cluster.ingresses.get(name)?;
            let own = |rule: &&IngressRule| rule.host == *host;
            let paths = ingress.rules.iter().filter(own).flat_map(|rule| &rule.paths);
            let mut paths = paths.filter(|one| Some(&one.path) == path.as_ref());
            let backend = paths.next().map(|one| &one.backend);
            let Backend::Service { name: service, port } =
                backend.or(ingress.default_backend.as_ref())?
            else {
                return None;
            };
            let name = NamespacedName { namespace: name.namespace.clone(), name: service.clone() };
            let service = cluster.services.get(&name)?;
            let port = service.ports.iter().find(|one| match port {
                BackendPort::Number(number) => one.port == *number,
                BackendPort::Name(name) => one.name.as_ref() == Some(name),
            })?;
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
