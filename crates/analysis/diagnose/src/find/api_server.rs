//! Finds calls of the API server that lead nowhere: admission webhooks, aggregated APIs and
//! conversion webhooks whose Service or port does not exist, or has no endpoint.

mod by_url;
mod walked;

use uturn_model::Text;
use uturn_model::api_server::{ApiServerCall, ApiServerCalls, CallReason, FailurePolicy};
use uturn_model::service::ServiceKind;
use uturn_model::wording::{count, some_of};
use uturn_model::{Client, Cluster, Mechanism, Outcome, Protocol, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) use self::walked::{server_pods, without_route};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let mut all = stated(engine);
    all.extend(walked::find(engine));
    all
}

/// Returns the API servers of a cluster, as clients.
pub(crate) fn servers(cluster: &Cluster) -> Vec<Client> {
    match walked::callers(cluster) {
        walked::Callers::Nodes(nodes) => nodes.into_iter().map(Client::Node).collect(),
        walked::Callers::Outside(addresses) => {
            addresses.into_iter().map(|ip| Client::Outside(Some(ip))).collect()
        }
    }
}

/// Returns the calls that lead nowhere, whichever way they take.
pub(crate) fn stated(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut all = Vec::new();
    for calls in &cluster.api_server_calls {
        for call in &calls.calls {
            if let Some(fault) = fault(cluster, call) {
                all.push(finding(calls, call, &fault));
            }
        }
    }
    all.extend(by_url::find(engine));
    all
}

/// The reason why a call leads nowhere, and how it ends.
struct Fault {
    what: String,
    outcome: Outcome,
    mechanism: Option<Mechanism>,
}

fn fault(cluster: &Cluster, call: &ApiServerCall) -> Option<Fault> {
    let name = &call.service;
    let Some(service) = cluster.services.get(name) else {
        // The Service may exist elsewhere.
        return (!cluster.may_have_service(name)).then(|| Fault {
            what: format!("Service {name} does not exist"),
            outcome: Outcome::NameNotFound,
            mechanism: None,
        });
    };
    if !service.unjudged.is_empty() || matches!(service.kind, ServiceKind::ExternalName(_)) {
        return None;
    }
    let port = service.ports.iter().find(|own| own.port == call.port);
    if port.is_none_or(|port| port.protocol != Protocol::Tcp) {
        let own: Vec<String> = service.ports.iter().map(|own| own.port.to_string()).collect();
        return Some(Fault {
            what: format!("Service {name} has no port {}; it has {}", call.port, own.join(", ")),
            outcome: Outcome::Refused,
            mechanism: None,
        });
    }
    let mut endpoints = cluster.slices(name).iter().flat_map(|slice| &slice.endpoints);
    if endpoints.any(|endpoint| endpoint.ready || endpoint.serving && endpoint.terminating) {
        return None;
    }
    Some(Fault {
        what: format!("Service {name} has no endpoint that is ready: {}", pods(cluster, service)),
        outcome: Outcome::Refused,
        mechanism: Some(Mechanism::NoEndpoint),
    })
}

/// Describes the pods of a Service without ready endpoints.
fn pods(cluster: &Cluster, service: &Service) -> String {
    let pods = cluster.selected(service);
    let names: Vec<String> = pods.iter().map(|pod| pod.name.to_string()).collect();
    match (&service.selector, pods.iter().filter(|pod| !pod.ready).count()) {
        (None, _) => "it has no selector, and no slice lists one".to_owned(),
        (Some(_), _) if pods.is_empty() => "its selector matches no pod".to_owned(),
        (Some(_), 0) => format!("no slice lists {}", some_of(&names)),
        (Some(_), some) => format!("{} not ready ({})", count(some, "pod"), some_of(&names)),
    }
}

fn finding(calls: &ApiServerCalls, call: &ApiServerCall, fault: &Fault) -> Finding {
    let what = format!(
        "{}, and the API server calls svc/{}:{}. {}",
        fault.what,
        call.service,
        call.port,
        effect(&call.called, &call.reason)
    );
    let mut finding = about(Code::ApiServerCallFails, calls.object(), &calls.origin, what);
    finding.severity = severity(&call.reason);
    finding.targets = vec![target(call)];
    finding.clients = Clients::other(Clients::API_SERVER);
    finding.share_failing = Share::ALL;
    (finding.outcome, finding.mechanism) = (fault.outcome, fault.mechanism);
    finding
}

/// Returns the target of a call as findings list it.
fn target(call: &ApiServerCall) -> String {
    format!(":{} svc/{}", call.port, call.service)
}

/// A failure that the API server ignores loses only what the webhook would have done.
fn severity(reason: &CallReason) -> Severity {
    match reason {
        CallReason::Admission { policy: FailurePolicy::Ignore, .. } => Severity::Warning,
        _ => Severity::Error,
    }
}

/// Describes what is called, and what a failure means: the beginning of a sentence about the call.
fn caller(called: &Text, reason: &CallReason) -> String {
    format!("{}. The API server", effect(called, reason))
}

/// Describes what is called, and what a failure means.
fn effect(called: &Text, reason: &CallReason) -> String {
    match reason {
        CallReason::Admission { policy: FailurePolicy::Fail, resources } => format!(
            "webhook {called} has failurePolicy Fail: while it cannot be called, no object that its \
             rules match ({}) can be created or changed",
            some_of(resources)
        ),
        CallReason::Admission { policy: FailurePolicy::Ignore, resources } => format!(
            "webhook {called} has failurePolicy Ignore: while it cannot be called, objects that its \
             rules match ({}) pass unseen",
            some_of(resources)
        ),
        CallReason::Api => format!("API {called} is not available while it cannot be called"),
        CallReason::Conversion => format!(
            "objects of {called} cannot be read in other versions while the conversion webhook \
             cannot be called"
        ),
    }
}
