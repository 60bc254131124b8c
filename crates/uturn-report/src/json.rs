//! The JSON contract.

use serde_json::{Map, Value, json};
use uturn_diagnose::{Finding, Observation};
use uturn_model::network::Network;
use uturn_model::route::{Hop, Leg, Route, Step};
use uturn_model::{Client, Flow, Outcome, Skipped, Supposition, Unjudged, Verdict};

use crate::scan::{Aside, ScanReport, Why};
use crate::words;

/// `scan -o json`.
pub fn scan(report: &ScanReport) -> Value {
    let most = words::most_names(report.findings.len());
    let evidence = |at: usize| report.evidence.get(at).map_or(&[][..], Vec::as_slice);
    json!({
        "findings": report.findings.iter().enumerate()
            .map(|(at, one)| finding(one, evidence(at), most))
            .collect::<Vec<_>>(),
        "ignored": report.aside.iter().filter_map(|one| match &one.why {
            Why::Ignored { reason } => Some(aside(one, json!({ "reason": &**reason }))),
            Why::Known { .. } => None,
        }).collect::<Vec<_>>(),
        "known": report.aside.iter().filter_map(|one| match &one.why {
            Why::Known { baseline } => Some(aside(one, json!({ "baseline": &**baseline }))),
            Why::Ignored { .. } => None,
        }).collect::<Vec<_>>(),
        "flows": report.flows,
        "fine": report.fine,
        "open": report.open,
        "network": report.network.as_ref().map(network),
        "not_judged": report.unjudged.iter().map(unjudged).collect::<Vec<_>>(),
        "supposed": report.supposed.iter().map(supposition).collect::<Vec<_>>(),
        "skipped": report.skipped.iter().map(skipped).collect::<Vec<_>>(),
        "seen": report.seen.iter().map(|(kind, count)| (kind.to_string(), json!(count)))
            .collect::<Map<_, _>>(),
    })
}

fn network(network: &Network) -> Value {
    json!({
        "plugin": network.plugin.value.word(),
        "because": network.plugin.basis.to_string(),
        "mode": network.mode.value.to_string(),
        "transport": network.transport.value.to_string(),
        "masquerade": network.masquerades.value,
    })
}

fn unjudged(gap: &Unjudged) -> Value {
    json!({
        "what": gap.to_string(),
        "objects": gap.objects.iter().map(uturn_model::ObjectRef::short).collect::<Vec<_>>(),
        "because": &*gap.because,
        "settle": &*gap.settle,
    })
}

/// What does not count, and why.
fn aside(one: &Aside, why: Value) -> Value {
    let mut value = json!({
        "code": one.finding.code.to_string(),
        "severity": one.finding.severity.as_str(),
        "subject": subject(&one.finding),
        "targets": one.finding.targets,
        "at": one.origin.to_string(),
    });
    extend(&mut value, why);
    value
}

fn subject(one: &Finding) -> Map<String, Value> {
    let mut subject = Map::new();
    subject.insert("kind".into(), json!(one.subject.kind.as_str()));
    if let Some(namespace) = &one.subject.namespace {
        subject.insert("namespace".into(), json!(namespace.as_str()));
    }
    subject.insert("name".into(), json!(&*one.subject.name));
    subject
}

/// With the names of at most so many pods and nodes; the counts say how many there are.
fn finding(one: &Finding, evidence: &[Observation], most: usize) -> Value {
    let nodes = one.clients.nodes();
    let mut value = json!({
        "code": one.code.to_string(),
        "severity": one.severity.as_str(),
        "title": one.code.title(),
        "subject": subject(one),
        "targets": one.targets,
        "clients": words::pods(&one.clients, most).into_iter()
            .map(|pod| Client::Pod(pod.clone()).to_string())
            .chain(one.clients.others().iter().map(ToString::to_string))
            .collect::<Vec<_>>(),
        "client_count": one.clients.len(),
        "nodes": nodes.iter().take(most).map(ToString::to_string).collect::<Vec<_>>(),
        "node_count": nodes.len(),
        "if": one.conditions.iter().map(|one| &**one).collect::<Vec<_>>(),
        "share_failing": one.share_failing.get(),
        "mechanism": one.mechanism.map(|one| one.as_str()),
        "evidence": evidence.iter().map(|evidence| json!({
            "place": words::place(evidence),
            "what": &*evidence.what,
            "by": by(&evidence.by),
            "see": evidence.see(),
        })).collect::<Vec<_>>(),
        "cures": one.cures.iter().map(|cure| &cure.text).collect::<Vec<_>>(),
    });
    extend(&mut value, outcome(one.outcome));
    value
}

/// `trace -o json`.
pub fn trace(flow_walked: &Flow, verdicts: &[Verdict], findings: &[String]) -> Value {
    let routes: Vec<Value> =
        verdicts.iter().flat_map(|verdict| &verdict.routes).map(route).collect();
    json!({
        "flow": flow(flow_walked),
        "verdicts": verdicts.iter().map(verdict).collect::<Vec<_>>(),
        "routes": routes,
        "findings": findings,
    })
}

/// A flow.
pub fn flow(flow: &Flow) -> Value {
    json!({
        "from": flow.from.to_string(),
        "to": flow.to.to_string(),
        "protocol": flow.protocol.lower(),
    })
}

/// An outcome with whatever belongs to it.
pub fn outcome(outcome: Outcome) -> Value {
    let mut value = json!({ "outcome": outcome.word() });
    if let Outcome::Status { code, .. } = outcome {
        extend(&mut value, json!({ "status": code }));
    }
    if let Some(after) = outcome.after() {
        extend(&mut value, json!({ "after_ms": after.as_millis() as u64 }));
    }
    value
}

/// An outcome and its share.
pub fn share_of(one: (Outcome, f64)) -> Value {
    let mut value = outcome(one.0);
    extend(&mut value, json!({ "share": one.1 }));
    value
}

/// Adds the fields of one object to another.
pub fn extend(value: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (value, more) {
        fields.extend(more);
    }
}

fn verdict(verdict: &Verdict) -> Value {
    json!({
        "if": verdict.conditions.iter().map(|one| &**one).collect::<Vec<_>>(),
        "outcomes": verdict.outcomes.iter().map(|(outcome, share)| share_of((*outcome, share.get()))).collect::<Vec<_>>(),
        "mechanisms": verdict.mechanisms.iter().map(|one| one.as_str()).collect::<Vec<_>>(),
        "supposed": verdict.supposed.iter().map(supposition).collect::<Vec<_>>(),
    })
}

fn route(route: &Route) -> Value {
    let mut value = share_of((route.outcome, route.share.get()));
    extend(
        &mut value,
        json!({
            "mechanisms": route.mechanisms.iter().map(|one| one.as_str()).collect::<Vec<_>>(),
            "hops": route.hops.iter().map(hop).collect::<Vec<_>>(),
        }),
    );
    value
}

fn hop(hop: &Hop) -> Value {
    json!({
        "place": hop.place.to_string(),
        "way": hop.way.to_string(),
        "steps": hop.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

pub(crate) fn step(step: &Step) -> Value {
    let mut value = json!({ "kind": step.kind.as_str(), "why": &*step.why, "by": by(&step.by) });
    if let Some(before) = step.before {
        extend(&mut value, json!({ "before": leg(before) }));
    }
    if let Some(after) = step.after {
        extend(&mut value, json!({ "after": leg(after) }));
    }
    value
}

fn by(by: &uturn_model::Evidence) -> Value {
    json!({ "rule": &*by.rule(), "source": by.origin().to_string() })
}

fn leg(leg: Leg) -> Value {
    json!({ "src": leg.src.to_string(), "dst": leg.dst.to_string() })
}

pub(crate) fn supposition(one: &Supposition) -> Value {
    json!(one.to_string())
}

fn skipped(skipped: &Skipped) -> Value {
    let mut shown = json!({"kind": &*skipped.kind, "count": skipped.count});
    if !skipped.files.is_empty() {
        shown["files"] = skipped.files.iter().map(|file| &**file).collect();
    }
    shown
}
