//! The dual of loopback: a call that never reaches the load balancer, although the load balancer
//! would have changed or filtered the call.

use uturn_model::lb::{Layer, Listener, LoadBalancer};
use uturn_model::route::Place;
use uturn_model::{Destination, Evidence, Flow, Mechanism, ObjectKind, Outcome};
use uturn_path::{Engine, WalkError};
use uturn_scan::ScanResult;

use super::MAX_PAIRS;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Observation, call};

/// The maximum number of classes of clients that are walked.
const MAX: usize = 300;

pub(crate) fn find(engine: &Engine<'_>, met: &[ScanResult]) -> Result<Vec<Finding>, WalkError> {
    let cluster = engine.cluster();
    if cluster.nodes.len() * cluster.services.len() > MAX_PAIRS {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    let mut walked = 0;
    for result in met.iter().filter(|result| result.target.object.kind == ObjectKind::Service) {
        let Destination::Address(address) = result.target.to else { continue };
        let Some(balancer) = engine.balancer_at(address.ip()) else {
            continue;
        };
        let same = |listener: &&Listener| {
            listener.port.number() == address.port()
                && listener.protocol.transport() == result.target.protocol
                && listener.rules.iter().any(|rule| rule.owner == result.target.object)
        };
        let Some(listener) = balancer.listeners.iter().find(same) else { continue };
        let effects_of = effects_of(balancer, listener);
        if effects_of.is_empty() || walked >= MAX {
            continue;
        }
        walked += 1;
        all.extend(judge(engine, result, listener, &effects_of)?);
    }
    Ok(all)
}

/// Describes what a load balancer does to calls on the way.
fn effects_of(balancer: &LoadBalancer, listener: &Listener) -> Vec<String> {
    let mut all = Vec::new();
    if listener.protocol.ends_tls() {
        all.push("ends TLS".to_owned());
    }
    if listener.protocol.layer() == Layer::L7 {
        all.push("routes by host and path, and sets X-Forwarded-For".to_owned());
    }
    if !balancer.security_groups.is_empty() {
        let names: Vec<&str> = balancer.security_groups.iter().map(|group| &**group).collect();
        all.push(format!("asks security group {}", names.join(", ")));
    }
    all
}

fn judge(
    engine: &Engine<'_>,
    met: &ScanResult,
    listener: &Listener,
    effects_of: &[String],
) -> Result<Option<Finding>, WalkError> {
    let Destination::Address(address) = met.target.to else { return Ok(None) };
    let to = call::destination(listener, address);
    let flow = Flow { to, ..met.flow() };
    let Ok(verdict) = engine.verdict(&flow) else { return Ok(None) };
    let mut hops = verdict.routes.iter().flat_map(|route| &route.hops);
    if hops.any(|hop| matches!(hop.place, Place::LoadBalancer(_))) {
        return Ok(None);
    }
    let is_broken = verdict.mechanisms.contains(&Mechanism::TlsBypassed);
    if !is_broken && !verdict.is_fine() {
        return Ok(None);
    }
    let object = &met.target.object;
    let written = Observation {
        place: None,
        what: format!(
            "the node answers for {address} itself; the load balancer, which {}, sees nothing of it",
            effects_of.join(", and ")
        )
        .into(),
        by: Evidence::object(object.clone(), engine.origin_of(object)),
    };
    let code = if is_broken { Code::TlsBypassed } else { Code::BalancerBypassed };
    Ok(Some(Finding {
        code,
        severity: code.severity(),
        subject: object.clone(),
        targets: vec![met.target.label.clone()],
        clients: Clients::pods(met.clients.pods.clone()),
        share_failing: verdict.share_failing(),
        outcome: verdict.outcomes.first().map_or(Outcome::AT_ONCE, |(outcome, _)| *outcome),
        mechanism: is_broken.then_some(Mechanism::TlsBypassed),
        example: Example::Flow(flow),
        failure: None,
        other_evidence: vec![written],
        cures: Vec::new(),
        untried: None,
        conditions: Vec::new(),
    }))
}
