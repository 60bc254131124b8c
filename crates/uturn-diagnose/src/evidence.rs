//! What a finding rests on, so that it can be checked by hand.

use uturn_model::route::{Step, StepKind};
use uturn_model::{By, Hop, Mechanism, Place, Route, Text, Verdict};
use uturn_path::{Engine, WalkError};

use crate::clients::Example;
use crate::finding::Finding;

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

impl Evidence {
    /// What to type to see it where it is.
    pub fn see(&self) -> Option<String> {
        let rule = &*self.by.rule;
        if let Some(rest) = rule.strip_prefix("-A ") {
            let chain = rest.split_whitespace().next()?;
            let node = self.place.strip_prefix("node/")?;
            return Some(match rest.starts_with("-t ") {
                true => format!("on {node}: ipvsadm -Ln"),
                false => format!("on {node}: iptables-save | grep -- '-A {chain} '"),
            });
        }
        let (kind, name) = rule.split_once(' ')?;
        let word = match kind {
            "Service" => "svc",
            "Ingress" => "ingress",
            "Node" => return Some(format!("kubectl get node {name} -o yaml")),
            "Pod" => "pod",
            _ => return None,
        };
        let (namespace, name) = name.split_once('/')?;
        let name = name.split_whitespace().next()?;
        Some(format!("kubectl -n {namespace} get {word} {name} -o yaml"))
    }
}

impl Finding {
    /// What it rests on: the example is walked once more for it.
    pub fn evidence(&self, engine: &Engine<'_>) -> Result<Vec<Evidence>, WalkError> {
        let verdicts = match &self.example {
            Example::Scanned(met) => engine.explain_worst(met)?,
            Example::Flow(flow) => engine.verdicts(flow)?,
            Example::Written => return Ok(self.written.clone()),
            Example::Probes(listener, protocol) => {
                let dead = engine.health(*listener, *protocol)?.unwrap_or_default();
                let dead = dead.into_iter().filter(|one| !one.alive).map(|one| {
                    let why: Vec<&str> = one.mechanisms.iter().map(|one| one.as_str()).collect();
                    Evidence {
                        place: one.node.map_or_else(String::new, |node| format!("node/{node}")),
                        what: format!("no answer from {}: {}", one.target, why.join(", ")).into(),
                        by: By::kernel("health check"),
                    }
                });
                return Ok(dead.chain(self.written.iter().cloned()).collect());
            }
        };
        let mut bad: Vec<&Route> = verdicts
            .iter()
            .flat_map(|one| &one.routes)
            .filter(|route| route.outcome.is_bad())
            .collect();
        bad.sort_by(|a, b| {
            let ends_so = |route: &Route| route.outcome == self.outcome;
            ends_so(b).cmp(&ends_so(a)).then(b.share.total_cmp(&a.share))
        });
        let fine = || verdicts.first()?.routes.first();
        let of = match self.mechanism {
            Some(Mechanism::AsymmetricReturn) => of_turn,
            _ => of_route,
        };
        // Of very many ways not all are told.
        let told = bad.into_iter().chain(fine()).map(of).find(|all| !all.is_empty());
        let mut all = told.unwrap_or_default();
        all.extend(self.written.iter().cloned());
        Ok(all)
    }
}

/// The likeliest of the ways that fail.
pub(crate) fn worst(verdict: &Verdict) -> Option<&Route> {
    let bad = verdict.routes.iter().filter(|route| route.outcome.is_bad());
    bad.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// The steps that decided: what was picked, translated, and how it ended.
pub(crate) fn of_route(route: &Route) -> Vec<Evidence> {
    of_hops(&route.hops)
}

/// Of several targets that a load balancer tried, the one at which it turned round.
fn of_turn(route: &Route) -> Vec<Evidence> {
    let turns = |hop: &Hop| hop.steps.iter().any(|step| step.kind == StepKind::Turn);
    let picks = |hop: &Hop| matches!(hop.place, Place::LoadBalancer(_));
    let hops = &route.hops;
    let from = hops.iter().position(turns).and_then(|turn| hops[..turn].iter().rposition(picks));
    of_hops(&hops[from.unwrap_or(0)..])
}

fn of_hops(hops: &[Hop]) -> Vec<Evidence> {
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
