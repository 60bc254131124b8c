//! Finds NetworkPolicies that forbid calls which objects state: of the cluster's DNS by pods that may
//! call others, and of Services that a command line, a variable or a ConfigMap names.
//!
//! That policies keep pods apart is what they are for. So a call that nothing states is no fault.

use std::collections::HashSet;
use std::sync::Arc;

use uturn_model::network_policy::{PolicyPeer, Way};
use uturn_model::pod::{Container, PodSpec};
use uturn_model::{
    Client, Destination, Evidence, Flow, Mechanism, Name, NamespacedName, ObjectKind, ObjectRef,
    Outcome, Pod, Protocol, Share, Verdict,
};
use uturn_path::Engine;

use super::called_names::MAX_LOOKUPS;
use super::object_faults::about;
use super::service_reference::ServiceReference;
use crate::clients::{Clients, Example};
use crate::evidence::worst;
use crate::finding::Finding;
use crate::{Code, Severity};

/// The port at which the cluster's DNS is asked.
pub(crate) const DNS_PORT: u16 = 53;

pub(super) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    if !cluster.network_policies.are_enforced() {
        return Vec::new();
    }
    let mut known: HashSet<(&Name, *const PodSpec)> = HashSet::new();
    let pods = cluster.pods.values().filter(|pod| {
        pod.is_alive()
            && !pod.ips.is_empty()
            && cluster.network_policies.are_judged_for(pod)
            && known.insert((&pod.name.namespace, Arc::as_ptr(&pod.spec)))
    });
    let mut all: Vec<Finding> = Vec::new();
    for pod in pods.take(MAX_LOOKUPS) {
        let new = of_names(engine, pod).into_iter().chain(of_calls(engine, pod));
        for finding in new {
            let is_it = |own: &&mut Finding| {
                (own.code, &own.subject, own.clients.others(), own.severity)
                    == (finding.code, &finding.subject, finding.clients.others(), finding.severity)
                    && own.outcome == finding.outcome
            };
            match all.iter_mut().find(is_it) {
                Some(own) => own.take(finding),
                None => all.push(finding),
            }
        }
    }
    all
}

/// Finds that a pod may call others, and not the DNS in which it would look up their names.
fn of_names(engine: &Engine<'_>, pod: &Pod) -> Option<Finding> {
    let cluster = engine.cluster();
    let mut egress = cluster.network_policies.of_pod(pod, Way::Egress).peekable();
    egress.peek()?;
    let rules: Vec<_> = egress.flat_map(|(_, rules)| rules).collect();
    // Pods that may call nothing are shut in on purpose.
    if rules.is_empty() || !pod.spec.asks_cluster_dns() {
        return None;
    }
    let service = cluster.services.get(cluster.dns.service.as_ref()?)?;
    let (flow, verdict) = denied(engine, pod, &service.name, DNS_PORT, Protocol::Udp)?;
    let mut peers = rules.iter().flat_map(|rule| &rule.peers);
    let may_call_pods = peers.any(|peer| matches!(peer, PolicyPeer::Pods { .. }));
    let calls_names = pod.spec.containers.iter().any(|own: &Container| !own.called.is_empty());
    let what = format!(
        "pods that it restricts may call others, and not the cluster's DNS ({} port {DNS_PORT}): the \
         names of Services do not resolve there",
        service.object().short()
    );
    let mut finding = of_flow(engine, flow, &verdict, what)?;
    finding.targets = vec![format!("{} :{DNS_PORT}/UDP", service.object().short())];
    finding.clients = Clients::other(Clients::ITS_PODS);
    if !may_call_pods && !calls_names {
        finding.severity = Severity::Warning;
    }
    Some(finding)
}

/// Finds Services that containers of a pod name, and that policies do not let it call.
fn of_calls(engine: &Engine<'_>, pod: &Pod) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut all = Vec::new();
    for container in &pod.spec.containers {
        for called in &container.called {
            let named = ServiceReference::of(cluster, &pod.name.namespace, &called.host);
            let Some(named) = named.filter(|named| !named.is_of_pod && !named.service.headless)
            else {
                continue;
            };
            let Some((port, protocol)) = named.port(called.port) else { continue };
            let service = &named.service.name;
            let Some((flow, verdict)) = denied(engine, pod, service, port.number(), protocol)
            else {
                continue;
            };
            let whose = pod.owner.clone().unwrap_or_else(|| pod.object());
            let what =
                format!("container {} of {whose} names {}:{port}", container.name, called.host);
            let Some(mut finding) = of_flow(engine, flow, &verdict, what) else { continue };
            finding.targets = vec![format!("{} :{port}", named.service.object().short())];
            finding.clients = Clients::other(Clients::SET_TO_CALL);
            // A file may be of another container, or a part of it unused.
            if called.is_supposed || called.stated_in.is_some() && !named.is_qualified {
                finding.severity = Severity::Warning;
            }
            all.push(finding);
        }
    }
    all
}

/// Returns the flow of a pod to a Service, if policies stop each such call.
fn denied(
    engine: &Engine<'_>,
    pod: &Pod,
    service: &NamespacedName,
    port: u16,
    protocol: Protocol,
) -> Option<(Flow, Verdict)> {
    let to = Destination::Service(service.clone(), Some(port.to_string().into()));
    let flow = Flow { from: Client::Pod(pod.name.clone()), to, protocol };
    let verdict = engine.verdict(&flow).ok()?;
    let is_denied = verdict.mechanisms == [Mechanism::NetworkPolicy]
        && verdict.outcomes.iter().all(|(outcome, _)| outcome.is_bad());
    is_denied.then_some((flow, verdict))
}

/// Returns the finding about the policy that stops a flow.
fn of_flow(engine: &Engine<'_>, flow: Flow, verdict: &Verdict, what: String) -> Option<Finding> {
    let route = worst(verdict)?;
    let steps = route.hops.iter().flat_map(|hop| &hop.steps);
    let by =
        steps.rev().find_map(|step| policy_of(&step.by).filter(|_| step.kind.stops_packet()))?;
    let policy = engine.cluster().network_policies.get(&by.namespaced_name()?)?;
    let mut finding = about(Code::NetworkPolicy, by.clone(), &policy.origin, what);
    finding.share_failing = Share::ALL;
    finding.outcome = route.outcome;
    finding.mechanism = Some(Mechanism::NetworkPolicy);
    finding.failure = route.failures.first().cloned();
    finding.example = Example::Flow(flow);
    Some(finding)
}

/// Returns the policy that is the evidence for a step.
pub(crate) fn policy_of(by: &Evidence) -> Option<&ObjectRef> {
    match by {
        Evidence::Object { object, .. } if object.kind == ObjectKind::NetworkPolicy => Some(object),
        _ => None,
    }
}

/// Returns whether a call that policies stop is one that an object states: what a controller does
/// for an Ingress, after it took the client's request.
pub(super) fn is_stated(target: ObjectKind, outcome: Outcome) -> bool {
    let is_published = target == ObjectKind::Ingress || target.is_route();
    is_published && matches!(outcome, Outcome::Status { .. })
}
