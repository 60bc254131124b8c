//! Why calls fail, in a clause that begins with the object that has to change: one text for scans,
//! checklists and traces.

use std::slice;

use uturn_model::{Cluster, Evidence, Flow, Mechanism, ObjectRef, Place, Service, Text, Verdict};
use uturn_path::Engine;

use crate::Observation;
use crate::called::Called;
use crate::clients::{Clients, Example};
use crate::evidence::{observed, worst};
use crate::finding::Finding;
use crate::lack::Lack;

/// Returns the reason of a finding, given its evidence. Without evidence of a walk, the reason is
/// what the objects show; `None` if they show nothing.
pub(crate) fn of_finding(finding: &Finding, evidence: &[Observation]) -> Option<Text> {
    let written = finding.other_evidence.first();
    let walked = || of_walk(finding.mechanism?, evidence);
    let stated = || Some(said(written?, Some(&finding.subject)));
    if is_walk_better(finding) { walked().or_else(stated) } else { stated().or_else(walked) }
        .map(Text::from)
}

/// Returns whether a walk has to be looked at for the reason of a finding.
pub(crate) fn needs_walk(finding: &Finding) -> bool {
    let is_walked = !matches!(finding.example, Example::Manifests);
    is_walked && (is_walk_better(finding) || finding.other_evidence.is_empty())
}

/// Returns whether the objects of a finding show who calls, and only a walk shows why that fails.
fn is_walk_better(finding: &Finding) -> bool {
    let is_of_api_server = finding.clients.others().contains(&Clients::API_SERVER);
    let is_walked = !matches!(finding.example, Example::Manifests | Example::Probes(..));
    is_walked && (is_of_api_server || finding.mechanism == Some(Mechanism::NotOnLoopback))
}

/// Returns the reason why a Service has no endpoint; `None` if it has some.
pub(crate) fn of_service(cluster: &Cluster, service: &Service) -> Option<Text> {
    let because = Lack::of(cluster, service)?.because?;
    Some(said(&because, Some(&service.object())).into())
}

/// Returns the reason why a flow can fail, from a verdict that has its hops.
pub fn of_verdict(engine: &Engine<'_>, flow: &Flow, verdict: &Verdict) -> Option<Text> {
    let route = worst(verdict)?;
    let mechanism = route.mechanisms.first().copied()?;
    let lack = || {
        let called = Called::of(engine, flow, slice::from_ref(verdict));
        let service = engine.cluster().services.get(&called.service?)?;
        Lack::of(engine.cluster(), service)?.because
    };
    if mechanism == Mechanism::NoEndpoint
        && let Some(why) = lack()
    {
        return Some(of_object(&why));
    }
    of_walk(mechanism, &observed(route)).map(Text::from)
}

/// Describes what an object states, which is named.
pub(crate) fn of_object(written: &Observation) -> Text {
    said(written, None).into()
}

/// Describes what an object states. The object is named unless it is the subject.
fn said(written: &Observation, subject: Option<&ObjectRef>) -> String {
    let what = &*written.what;
    match &written.by {
        Evidence::Object { object, .. } if subject != Some(&**object) && !names(what, object) => {
            format!("{object}: {what}")
        }
        _ => what.to_owned(),
    }
}

/// Returns whether a text names an object, and not another one that is called alike.
fn names(text: &str, object: &ObjectRef) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    let has =
        |name: &str| text.match_indices(name).any(|(at, _)| !goes_on(&text[at + name.len()..]));
    match object.namespace {
        Some(_) => has(&object.to_string()) || has(&object.short()),
        None => has(&object.name),
    }
}

/// Describes the step at which a walk ends.
fn of_walk(mechanism: Mechanism, evidence: &[Observation]) -> Option<String> {
    if mechanism == Mechanism::AsymmetricReturn
        && let Some(why) = of_return(evidence)
    {
        return Some(why);
    }
    let end = evidence.iter().rfind(|seen| seen.place.is_some())?;
    let place = end.place.as_ref()?;
    Some(match (mechanism, place) {
        (Mechanism::NoEndpoint, Place::Node(node)) if end.what.ends_with("no local endpoints") => {
            let service = end.what.split_once(" has ").map_or("the Service", |(name, _)| name);
            format!(
                "externalTrafficPolicy of svc/{service} is Local, and node {node} has no endpoint \
                 of it"
            )
        }
        (Mechanism::NoEndpoint, Place::Node(_)) if end.what.ends_with("has no endpoints") => {
            format!("Service {}{}", end.what, rule_of(end))
        }
        (Mechanism::Firewall, Place::Node(node)) => of_firewall(node.as_str(), end),
        _ => placed(place, end),
    })
}

/// Describes where an answer leaves the way that the call came.
fn of_return(evidence: &[Observation]) -> Option<String> {
    let turns = |seen: &&Observation| seen.what.starts_with("goes straight to the pod");
    let turn = evidence.iter().rfind(turns)?;
    let Some(Place::Node(node)) = &turn.place else { return None };
    let balancer = evidence.iter().rev().find_map(|seen| match &seen.place {
        Some(Place::LoadBalancer(name)) => Some(name),
        _ => None,
    });
    Some(match balancer {
        Some(name) => format!(
            "load balancer {name} keeps the caller's address, so on node {node} the answer {}",
            turn.what
        ),
        None => format!("on node {node} the answer {}{}", turn.what, rule_of(turn)),
    })
}

/// Describes the rule of a node that stops a packet.
fn of_firewall(node: &str, end: &Observation) -> String {
    if end.what.contains(", which wraps ") {
        return format!("node {node} {}{}", end.what, rule_of(end));
    }
    let Evidence::Iptables { chain, .. } = &end.by else {
        return format!("node {node} drops it{}", rule_of(end));
    };
    match &**chain {
        "KUBE-IPVS-FILTER" => format!(
            "node {node} has this address for kube-proxy's IPVS, which serves another port or has \
             no endpoint for it there: {chain} rejects the rest"
        ),
        "KUBE-PROXY-FIREWALL" => {
            let service = end.what.split(':').next().unwrap_or_default();
            format!(
                "spec.loadBalancerSourceRanges of svc/{service} leaves these clients out ({chain})"
            )
        }
        "KUBE-FORWARD" => format!(
            "node {node} knows no connection that this answer belongs to, and drops it ({chain})"
        ),
        _ => format!("node {node} drops it{}", rule_of(end)),
    }
}

/// Describes an event with its place.
fn placed(place: &Place, end: &Observation) -> String {
    let what = &*end.what;
    let with = |name: String| {
        let verbs = ["has ", "picks ", "speaks ", "knows ", "expects ", "does not ", "answers "];
        if verbs.iter().any(|verb| what.starts_with(verb)) {
            format!("{name} {what}")
        } else {
            format!("{name}: {what}")
        }
    };
    match place {
        Place::Node(node) if !what.contains(node.as_str()) => {
            format!("{}{}", with(format!("node {node}")), rule_of(end))
        }
        Place::LoadBalancer(name) => with(format!("load balancer {name}")),
        Place::Pod(name) => with(format!("pod {name}")),
        _ => what.to_owned(),
    }
}

/// Returns the rule or the setting that decided, in brackets.
fn rule_of(end: &Observation) -> String {
    match &end.by {
        Evidence::Iptables { chain, .. } => format!(" ({chain})"),
        Evidence::IptablesPolicy { .. } | Evidence::Nftables { .. } | Evidence::Sysctl { .. } => {
            format!(" ({})", end.by.rule())
        }
        _ => String::new(),
    }
}
