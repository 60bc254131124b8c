//! What a finding rests on, so that it can be checked by hand.

use std::cmp::Ordering;

use uturn_model::route::{Step, StepKind};
use uturn_model::{
    Evidence, Hop, Mechanism, ObjectKind, ObjectRef, Origin, Place, Route, Text, Verdict,
};
use uturn_path::WalkError;
use uturn_scan::Scanner;

use crate::clients::Example;
use crate::finding::Finding;

/// One thing that a finding rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Where it happened; `None` if it was read from the objects.
    pub place: Option<Place>,
    /// What happened.
    pub what: Text,
    /// The rule or object, and where it is written.
    pub by: Evidence,
}

impl Observation {
    /// The command that shows it.
    ///
    /// Returns `None` if no command does.
    pub fn see(&self) -> Option<String> {
        match (&self.by, &self.place) {
            (Evidence::Iptables { chain, origin, .. }, Some(Place::Node(node))) => {
                let is_v6 =
                    matches!(origin, Origin::File { path, .. } if path.contains("ip6tables"));
                let program = if is_v6 { "ip6tables-save" } else { "iptables-save" };
                Some(format!("on {node}: {program} | grep -- '-A {chain} '"))
            }
            (Evidence::Ipvs { .. }, Some(Place::Node(node))) => {
                Some(format!("on {node}: ipvsadm -Ln"))
            }
            (Evidence::Object { object, .. }, _) => kubectl_get(object),
            (Evidence::HostsFile { pod, .. }, _) => kubectl_get(pod),
            _ => None,
        }
    }
}

fn kubectl_get(object: &ObjectRef) -> Option<String> {
    let word = match object.kind {
        ObjectKind::Node => return Some(format!("kubectl get node {} -o yaml", object.name)),
        ObjectKind::Service => "svc",
        ObjectKind::Ingress => "ingress",
        ObjectKind::Pod => "pod",
        _ => return None,
    };
    let namespace = object.namespace.as_ref()?;
    Some(format!("kubectl -n {namespace} get {word} {} -o yaml", object.name))
}

impl Finding {
    /// What the finding rests on. Walks the example again.
    ///
    /// # Errors
    /// Returns an error if the example cannot be walked.
    pub fn evidence(&self, scanner: &Scanner<'_, '_>) -> Result<Vec<Observation>, WalkError> {
        let engine = scanner.engine();
        let verdicts = match &self.example {
            Example::Scanned(met) => scanner.explain_worst(met)?,
            Example::Flow(flow) => engine.verdicts(flow)?,
            Example::Manifests => return Ok(self.other_evidence.clone()),
            Example::Probes(listener, protocol) => {
                let dead = engine.health(*listener, *protocol)?.unwrap_or_default();
                let dead = dead.into_iter().filter(|health| !health.alive).map(|health| {
                    let why: Vec<&str> =
                        health.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
                    Observation {
                        place: health.node.map(Place::Node),
                        what: format!("no answer from {}: {}", health.target, why.join(", "))
                            .into(),
                        by: Evidence::kernel("health check"),
                    }
                });
                return Ok(dead.chain(self.other_evidence.iter().cloned()).collect());
            }
        };
        Ok(self.observations(&verdicts))
    }

    /// What the finding rests on, if these are the verdicts on its example.
    pub(crate) fn observations(&self, verdicts: &[Verdict]) -> Vec<Observation> {
        let mut bad: Vec<&Route> = verdicts
            .iter()
            .flat_map(|verdict| &verdict.routes)
            .filter(|route| route.outcome.is_bad())
            .collect();
        bad.sort_by(|a, b| {
            let ends_so = |route: &Route| route.outcome == self.outcome;
            ends_so(b).cmp(&ends_so(a)).then_with(|| by_share(a, b))
        });
        let fine = || verdicts.first()?.routes.first();
        let of = match self.mechanism {
            Some(Mechanism::AsymmetricReturn) => of_turn,
            _ => of_route,
        };
        // Of very many routes, not all have their hops.
        let found = bad.into_iter().chain(fine()).map(of).find(|all| !all.is_empty());
        let mut all = found.unwrap_or_default();
        all.extend(self.other_evidence.iter().cloned());
        all
    }
}

/// The likeliest of the ways that fail.
pub(crate) fn worst(verdict: &Verdict) -> Option<&Route> {
    let bad = verdict.routes.iter().filter(|route| route.outcome.is_bad());
    bad.min_by(|a, b| by_share(a, b))
}

/// The likeliest first. Of ways that are as likely, the one with the worse end, then by mechanism: shares
/// differ in their last digits, and the order of routes is that of addresses in rules.
fn by_share(a: &Route, b: &Route) -> Ordering {
    let shares = b.share.rounded_cmp(&a.share);
    let ends = || b.outcome.cmp(&a.outcome).then_with(|| a.mechanisms.cmp(&b.mechanisms));
    shares.then_with(ends)
}

/// The steps that decided: what was picked, translated, and how it ended.
pub(crate) fn of_route(route: &Route) -> Vec<Observation> {
    of_hops(&route.hops)
}

/// Of several targets that a load balancer tried, the one at which it turned round.
fn of_turn(route: &Route) -> Vec<Observation> {
    let turns = |hop: &Hop| hop.steps.iter().any(|step| step.kind == StepKind::Turn);
    let picks = |hop: &Hop| matches!(hop.place, Place::LoadBalancer(_));
    let hops = &route.hops;
    let from = hops.iter().position(turns).and_then(|turn| hops[..turn].iter().rposition(picks));
    of_hops(&hops[from.unwrap_or(0)..])
}

fn of_hops(hops: &[Hop]) -> Vec<Observation> {
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
    for hop in hops {
        for step in hop.steps.iter().filter(|step| decides(step)) {
            evidence.push(Observation {
                place: Some(hop.place.clone()),
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
