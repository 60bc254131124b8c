//! The evidence of findings, with which they can be checked by hand.

use std::cmp::Ordering;

use uturn_model::route::{Direction, Step, StepKind};
use uturn_model::shell::{Advice, Command};
use uturn_model::{
    Evidence, FailurePoint, Hop, Mechanism, ObjectKind, ObjectRef, Origin, Place, Route, Text,
    Verdict,
};
use uturn_path::{Health, WalkError};
use uturn_scan::{Scanner, ToExplain};

use crate::Code;
use crate::clients::Example;
use crate::finding::Finding;

/// One fact on which a finding rests.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The place of the event; `None` if the fact was read from the objects.
    pub place: Option<Place>,
    /// The event or fact, in words.
    pub what: Text,
    /// The rule or object that decided, and its origin.
    pub by: Evidence,
}

impl Observation {
    /// Returns the command that shows the fact.
    ///
    /// Returns `None` if no command does.
    pub fn see(&self) -> Option<Advice> {
        match (&self.by, &self.place) {
            (Evidence::Iptables { chain, origin, .. }, Some(Place::Node(node))) => {
                let is_v6 =
                    matches!(origin, Origin::File { path, .. } if path.contains("ip6tables"));
                let program = if is_v6 { "ip6tables-save" } else { "iptables-save" };
                let chain = format!("-A {chain} ");
                let command = Command::new(program).words("| grep --").value(chain);
                Some(Advice::on(node, &command))
            }
            (Evidence::Ipvs { .. }, Some(Place::Node(node))) => {
                Some(Advice::on(node, &Command::new("ipvsadm -Ln")))
            }
            (Evidence::Object { object, .. }, _) => kubectl_get(object),
            (Evidence::HostsFile { pod, .. }, _) => kubectl_get(pod),
            _ => None,
        }
    }
}

fn kubectl_get(object: &ObjectRef) -> Option<Advice> {
    let word = match object.kind {
        ObjectKind::Node => {
            let command = Command::new("kubectl get node").value(&object.name).words("-o yaml");
            return Some(command.into());
        }
        ObjectKind::Service => "svc",
        ObjectKind::Ingress => "ingress",
        ObjectKind::Pod => "pod",
        _ => return None,
    };
    let namespace = object.namespace.as_ref()?;
    let command = Command::new("kubectl -n").value(namespace).words("get").words(word);
    Some(command.value(&object.name).words("-o yaml").into())
}

impl Finding {
    /// Returns the evidence of the finding. Walks its example again.
    ///
    /// # Errors
    /// Returns an error if the example cannot be walked.
    pub fn evidence(&self, scanner: &Scanner<'_, '_>) -> Result<Vec<Observation>, WalkError> {
        let engine = scanner.engine();
        let verdicts = match &self.example {
            Example::Scanned(result) => {
                scanner.explain_worst(ToExplain { result, shown: self.failure.as_ref() })?
            }
            Example::Flow(flow) => vec![engine.verdict_showing(flow, self.failure.as_ref())?],
            Example::Manifests => return Ok(self.other_evidence.clone()),
            Example::Probes(listener, protocol) => {
                let health = engine.health(*listener, *protocol)?.unwrap_or_default();
                let fails_so = |target: &&Health| {
                    self.failure.as_ref().is_none_or(|point| target.failures.contains(point))
                };
                let dead = health.iter().filter(|target| !target.alive).filter(fails_so);
                let dead = dead.map(|target| unanswered(target, self.failure.as_ref()));
                return Ok(dead.chain(self.other_evidence.iter().cloned()).collect());
            }
        };
        Ok(self.observations(&verdicts))
    }

    /// Returns the evidence of the finding from the verdicts on its example.
    pub(crate) fn observations(&self, verdicts: &[Verdict]) -> Vec<Observation> {
        let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
        let fits = |route: &Route| {
            let fails = |point: &FailurePoint| point.hop_in(&route.hops).is_some();
            (self.failure.as_ref().is_some_and(fails), route.outcome == self.outcome)
        };
        let bad = routes.filter(|route| route.outcome.is_bad());
        let mut bad: Vec<_> = bad.map(|route| (fits(route), route)).collect();
        bad.sort_by(|(fits_a, a), (fits_b, b)| fits_b.cmp(fits_a).then_with(|| by_share(a, b)));
        let bad = bad.into_iter().map(|(_, route)| route);
        let fine = || verdicts.first()?.routes.first();
        let of = |route: &Route| match (&self.failure, self.mechanism) {
            (Some(point), _) => of_failure(route, point),
            (None, Some(Mechanism::AsymmetricReturn)) => of_turn(route),
            _ => of_route(route),
        };
        // If there are very many routes, not all of them have hops.
        let found = bad.chain(fine()).map(of).find(|all| !all.is_empty());
        let walked = found.unwrap_or_default();
        let written = self.other_evidence.iter().cloned();
        // What is wrong in an object explains the rule at which a call ends.
        let is_of_object = self.code == Code::NoEndpoints || !self.code.replaces().is_empty();
        if is_of_object {
            written.chain(walked).collect()
        } else {
            walked.into_iter().chain(written).collect()
        }
    }
}

/// Returns the observations on a route that fails.
pub(crate) fn observed(route: &Route) -> Vec<Observation> {
    match route.mechanisms.first() {
        Some(Mechanism::AsymmetricReturn) => of_turn(route),
        _ => of_route(route),
    }
}

/// Returns the steps of a route that decided. If nothing stopped the call, the server took it and
/// did not understand it.
fn of_route(route: &Route) -> Vec<Observation> {
    let mut evidence = of_hops(&route.hops);
    let is_misread = route.mechanisms.first().is_some_and(|mechanism| {
        matches!(mechanism, Mechanism::ProxyHeader | Mechanism::WrongPort | Mechanism::TlsBypassed)
    });
    let mut steps = route.hops.iter().flat_map(|hop| &hop.steps);
    if !is_misread || steps.any(|step| step.kind.stops_packet()) {
        return evidence;
    }
    let out = route.hops.iter().filter(|hop| hop.direction == Direction::Out);
    let mut steps = out.flat_map(|hop| hop.steps.iter().map(move |step| (hop, step)));
    let taken = steps.rfind(|(_, step)| step.kind == StepKind::Deliver);
    evidence.extend(taken.map(|(hop, step)| Observation {
        place: Some(hop.place.clone()),
        what: step.why.clone(),
        by: step.by.clone(),
    }));
    evidence
}

/// Returns the observation that a target does not answer health checks: where they are sent, and
/// where they fail if that is known.
fn unanswered(health: &Health, point: Option<&FailurePoint>) -> Observation {
    let why: Vec<&str> = health.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
    let why = why.join(", ");
    let of_groups = |step: &&Step| matches!(step.by, Evidence::SecurityGroups { .. });
    let what = match health.stop.as_ref().filter(of_groups) {
        Some(step) => format!("no answer from {}: {}", health.asked, step.why),
        None => format!("no answer from {}: {why}", health.asked),
    };
    let what = what.into();
    match point {
        Some(point) => Observation { place: Some(point.place.clone()), what, by: point.by.clone() },
        None => {
            let place = health.node.clone().map(Place::Node);
            Observation { place, what, by: Evidence::kernel("health check") }
        }
    }
}

/// Returns the likeliest of the routes that fail.
pub(crate) fn worst(verdict: &Verdict) -> Option<&Route> {
    let bad = verdict.routes.iter().filter(|route| route.outcome.is_bad());
    bad.min_by(|a, b| by_share(a, b))
}

/// Orders routes from the likeliest to the least likely. Equally likely routes are ordered by
/// outcome, the worse first, and then by mechanisms: their shares may differ in the last digits,
/// and the order of routes follows that of addresses in rules.
fn by_share(a: &Route, b: &Route) -> Ordering {
    let shares = b.share.rounded_cmp(&a.share);
    let ends = || b.outcome.cmp(&a.outcome).then_with(|| a.mechanisms.cmp(&b.mechanisms));
    shares.then_with(ends)
}

/// Returns the steps of the tried target at which the call failed at this point.
fn of_failure(route: &Route, point: &FailurePoint) -> Vec<Observation> {
    let hops = &route.hops;
    let stops = |hop: &Hop| hop.steps.iter().any(|step| step.kind.stops_packet());
    match (hops.iter().position(stops), point.hop_in(hops)) {
        (Some(first), Some(failure)) if first < failure => {
            let from = last_pick(hops, failure);
            until_stopped(&hops[from..], failure - from)
        }
        _ => of_hops(hops),
    }
}

/// Returns the steps from the target that a load balancer tried and at which the packet turned
/// back.
fn of_turn(route: &Route) -> Vec<Observation> {
    let turns = |hop: &Hop| hop.steps.iter().any(|step| step.kind == StepKind::Turn);
    let hops = &route.hops;
    let turn = hops.iter().position(turns);
    of_hops(&hops[turn.map_or(0, |turn| last_pick(hops, turn))..])
}

/// Returns the index of the last hop before this one in which a load balancer or a controller
/// picked a target, or 0.
fn last_pick(hops: &[Hop], before: usize) -> usize {
    let picks = |hop: &Hop| {
        let is_pick = |step: &Step| step.kind == StepKind::Balance;
        matches!(hop.place, Place::LoadBalancer(_) | Place::Pod(_)) && hop.steps.iter().any(is_pick)
    };
    hops[..before].iter().rposition(picks).unwrap_or(0)
}

/// Returns the steps that decided: what was picked and translated, and how the call ended.
fn of_hops(hops: &[Hop]) -> Vec<Observation> {
    until_stopped(hops, 0)
}

/// Returns the steps that decided, up to the first step from hop `last` on that stops a packet.
fn until_stopped(hops: &[Hop], last: usize) -> Vec<Observation> {
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
    for (index, hop) in hops.iter().enumerate() {
        for step in hop.steps.iter().filter(|step| decides(step)) {
            evidence.push(Observation {
                place: Some(hop.place.clone()),
                what: step.why.clone(),
                by: step.by.clone(),
            });
            if index >= last && step.kind.stops_packet() {
                return evidence;
            }
        }
    }
    evidence
}
