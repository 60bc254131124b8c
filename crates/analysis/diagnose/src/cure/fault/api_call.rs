//! Cures of calls of the API server that lead nowhere: a port or Service that is there, and what
//! gives the Service endpoints.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::api_server::{ApiServerCall, ApiServerCalls, CallReason};
use uturn_model::{Client, Destination, Flow, ObjectKind, Protocol, Service};

use super::super::ingress::is_near;
use super::super::{Case, Proposal, service, way};
use crate::Finding;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let mut all = case.cluster().api_server_calls.iter();
    let Some(calls) = all.find(|calls| calls.object() == fault.subject) else {
        return Vec::new();
    };
    calls.calls.iter().flat_map(|call| of_call(case, calls, call)).collect()
}

fn of_call(case: &Case<'_>, calls: &ApiServerCalls, call: &ApiServerCall) -> Vec<Proposal> {
    let Some(service) = case.cluster().services.get(&call.service) else {
        return other_service(case, calls, call);
    };
    let has_port = |service: &Service| {
        service.ports.iter().any(|own| own.port == call.port && own.protocol == Protocol::Tcp)
    };
    if has_port(service) { with_endpoints(case, call) } else { other_port(calls, call, service) }
}

/// Returns the path of the reference to the Service.
fn place(calls: &ApiServerCalls, call: &ApiServerCall, field: &str) -> Option<Vec<At>> {
    Some(match (&call.reason, calls.kind) {
        (CallReason::Admission { .. }, _) => {
            let named = At::Where("name".to_owned(), call.called.to_string());
            way!["webhooks", named, "clientConfig", "service", field]
        }
        (CallReason::Api, ObjectKind::ApiService) => way!["spec", "service", field],
        (CallReason::Conversion, _) => {
            way!["spec", "conversion", "webhook", "clientConfig", "service", field]
        }
        (CallReason::Api, _) => return None,
    })
}

/// Proposes the ports that the Service has.
fn other_port(calls: &ApiServerCalls, call: &ApiServerCall, service: &Service) -> Vec<Proposal> {
    let Some(path) = place(calls, call, "port") else { return Vec::new() };
    let ports = service.ports.iter().filter(|own| own.protocol == Protocol::Tcp);
    let made = ports.map(|own| {
        let title = format!(
            "port {} of svc/{} instead of {}, which it does not have",
            own.port, service.name, call.port
        );
        Proposal::new("called-port", 10, title).edit(
            calls.object(),
            path.clone(),
            Change::Set(Tree::number(own.port.number())),
        )
    });
    made.collect()
}

/// Proposes a Service with almost that name, or with that name in another namespace.
fn other_service(case: &Case<'_>, calls: &ApiServerCalls, call: &ApiServerCall) -> Vec<Proposal> {
    let wanted = &call.service;
    let has_port = |own: &&Service| own.ports.iter().any(|port| port.port == call.port);
    let services = || case.cluster().services.values().filter(has_port);
    let near = services().filter(|own| {
        own.name.namespace == wanted.namespace
            && is_near(own.name.name.as_str(), wanted.name.as_str())
    });
    let elsewhere = services().filter(|own| own.name.name == wanted.name);
    let made = near.chain(elsewhere).filter_map(|own| {
        let (field, value) = if own.name.namespace == wanted.namespace {
            ("name", own.name.name.as_str())
        } else {
            ("namespace", own.name.namespace.as_str())
        };
        let title = format!("svc/{} instead of {wanted}, which does not exist", own.name);
        Some(Proposal::new("called-service", 12, title).edit(
            calls.object(),
            place(calls, call, field)?,
            Change::Set(Tree::text(value)),
        ))
    });
    made.collect()
}

/// Proposes what gives the Service endpoints, as for any client.
fn with_endpoints(case: &Case<'_>, call: &ApiServerCall) -> Vec<Proposal> {
    let cluster = case.cluster();
    let Some(node) = cluster.nodes.keys().next() else { return Vec::new() };
    let port = cluster
        .services
        .get(&call.service)
        .and_then(|service| service.ports.iter().find(|own| own.port == call.port)?.name.clone());
    let number = call.port.to_string().into();
    let flow = Flow {
        from: Client::Node(node.clone()),
        to: Destination::Service(call.service.clone(), Some(port.unwrap_or(number))),
        protocol: Protocol::Tcp,
    };
    let case = Case::flow(case.manifests, case.engine, flow);
    case.map_or_else(|_| Vec::new(), |case| service::propose(&case))
}
