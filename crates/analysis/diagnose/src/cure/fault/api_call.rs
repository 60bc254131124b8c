//! Cures of calls of the API server that lead nowhere: a port or Service that is there, a Service in
//! place of a URL with its name, and what gives the Service endpoints.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::api_server::{ApiServerCall, ApiServerCalls, CallReason};
use uturn_model::{Client, Destination, Flow, Name, ObjectKind, Protocol, Service, Text, UrlCall};
use uturn_scan::FewCalls;

use super::super::ingress::is_near;
use super::super::{Case, Proposal, service, way};
use crate::Finding;
use crate::find::service_reference::ServiceReference;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let mut all = case.cluster().api_server_calls.iter();
    let Some(calls) = all.find(|calls| calls.object() == fault.subject) else {
        return Vec::new();
    };
    let of_services = calls.calls.iter().flat_map(|call| of_call(case, calls, call));
    let by_url = calls.by_url.iter().filter_map(|call| by_service(case, calls, call));
    of_services.chain(by_url).collect()
}

/// Proposes the Service itself in place of a URL with its name. The API server looks up the
/// Service's address, and asks no name server.
fn by_service(case: &Case<'_>, calls: &ApiServerCalls, call: &UrlCall) -> Option<Proposal> {
    let default = Name::new("default").ok()?;
    let named = ServiceReference::of(case.cluster(), &default, &call.host)?;
    if named.is_of_pod || !named.is_qualified {
        return None;
    }
    let service = named.service;
    let (port, _) = named.port(Some(call.port))?;
    let config = config(calls, &call.called, &call.reason)?;
    let in_config =
        |field: &str| -> Vec<At> { config.iter().cloned().chain([At::from(field)]).collect() };
    let object = calls.object();
    let url = case.manifests.text_at(&object, &in_config("url"))?;
    let rest = url.split_once("://").map_or(&*url, |(_, rest)| rest);
    let path = rest.find('/').map(|at| &rest[at..]);
    let name = &service.name;
    let mut fields = vec![
        ("namespace".to_owned(), Tree::text(name.namespace.as_str())),
        ("name".to_owned(), Tree::text(name.name.as_str())),
    ];
    if port.number() != 443 {
        fields.push(("port".to_owned(), Tree::number(port.number())));
    }
    if let Some(path) = path {
        fields.push(("path".to_owned(), Tree::text(path)));
    }
    let title = format!("clientConfig.service {name} in place of the url {url}");
    let mut made = Proposal::new("called-service", 10, title)
        .edit(object.clone(), in_config("service"), Change::Set(Tree::Map(fields)))
        .edit(object, in_config("url"), Change::Remove)
        .costs(format!(
            "the server's certificate has to be for {}.{}.svc, and caBundle has to have its issuer",
            name.name, name.namespace
        ));
    made.then = case.walked().map(|flow| Flow {
        to: Destination::Service(name.clone(), Some(port.to_string().into())),
        ..flow.clone()
    });
    Some(made)
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

/// Returns the path of the configuration that says whom to call.
fn config(calls: &ApiServerCalls, called: &Text, reason: &CallReason) -> Option<Vec<At>> {
    Some(match (reason, calls.kind) {
        (CallReason::Admission { .. }, _) => {
            let named = At::Where("name".to_owned(), called.to_string());
            way!["webhooks", named, "clientConfig"]
        }
        (CallReason::Api, ObjectKind::ApiService) => way!["spec"],
        (CallReason::Conversion, _) => way!["spec", "conversion", "webhook", "clientConfig"],
        (CallReason::Api, _) => return None,
    })
}

/// Returns the path of a field of the reference to the Service.
fn place(calls: &ApiServerCalls, call: &ApiServerCall, field: &str) -> Option<Vec<At>> {
    let config = config(calls, &call.called, &call.reason)?;
    Some(config.into_iter().chain(way!["service", field]).collect())
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
    let case = Case::flow(case.manifests, &FewCalls::new(case.engine), flow);
    case.map_or_else(|_| Vec::new(), |case| service::propose(&case))
}
