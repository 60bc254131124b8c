//! Finds health checks that cannot pass, as objects show it without a walk: what a Service asks for,
//! and what a controller reports.

use std::net::SocketAddr;

use uturn_clouds::cloud::{self, Maker, UnansweredCheck};
use uturn_clouds::controller::{self, Unhealthy};
use uturn_model::service::{ServiceKind, ServicePort};
use uturn_model::wording::some_of;
use uturn_model::{Cluster, Ingress, ObjectKind, Outcome, Protocol, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let services = cluster.services.values();
    let balanced = services.filter(|service| service.kind == ServiceKind::LoadBalancer);
    let of_services = balanced.flat_map(|service| of_service(cluster, service));
    let of_ingresses = cluster.ingresses.values().filter_map(|own| of_ingress(cluster, own));
    of_services.chain(of_ingresses).collect()
}

/// Returns whether calls fail because of these health checks: the controller reports that no backend
/// passes.
pub(crate) fn fails_calls(finding: &Finding) -> bool {
    finding.code == Code::CheckCannotPass && finding.severity == Severity::Error
}

/// Finds what objects show about the health checks of a listener.
pub(crate) fn at(engine: &Engine<'_>, at: SocketAddr, protocol: Protocol) -> Vec<Finding> {
    let listener = engine.listener(at, protocol.into());
    let rules = listener.map(|listener| listener.rules.as_slice()).unwrap_or_default();
    let is_its = |finding: &Finding| {
        let is_of_port = finding.targets.contains(&of_port(at.port()))
            || finding.subject.kind == ObjectKind::Ingress;
        is_of_port && rules.iter().any(|rule| rule.owner == finding.subject)
    };
    find(engine).into_iter().filter(is_its).collect()
}

/// Returns the health checks of a port of a Service in words.
fn of_port(port: u16) -> String {
    format!("health checks of port {port}")
}

/// Returns why health checks of a port of a Service cannot pass, if objects show it.
pub(crate) fn unanswered(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
) -> Option<UnansweredCheck> {
    match cloud::maker_of(service, &cluster.provider) {
        Maker::Product(product, _) => product.unanswered_check(cluster, service, port),
        _ => None,
    }
}

fn of_service(cluster: &Cluster, service: &Service) -> Vec<Finding> {
    let ports = service.ports.iter();
    let found = ports.filter_map(|port| Some((port, unanswered(cluster, service, port)?)));
    let finding = |(port, check): (&ServicePort, UnansweredCheck)| {
        let (object, origin) = (service.object(), &service.origin);
        let mut finding = about(Code::CheckCannotPass, object, origin, check.because);
        finding.conditions.extend(check.condition.map(Into::into));
        finding.targets = vec![of_port(port.port.number())];
        finding.clients = Clients::other(Clients::PROBES);
        finding.share_failing = Share::ALL;
        finding.outcome = Outcome::Hangs;
        finding
    };
    found.map(finding).collect()
}

/// Finds backends that the controller itself reports as unhealthy, although they have endpoints.
fn of_ingress(cluster: &Cluster, ingress: &Ingress) -> Option<Finding> {
    let Unhealthy { backends, are_all } = controller::reported_unhealthy(cluster, ingress)?;
    let what = format!(
        "its controller reports {} as unhealthy: the health check of the backend is not answered with 200. \
         It asks for the path of the readiness probe, or for /, unless it is set otherwise",
        some_of(&backends)
    );
    let mut finding = about(Code::CheckCannotPass, ingress.object(), &ingress.origin, what);
    finding.targets = backends.iter().map(|own| format!("health checks of {own}")).collect();
    finding.clients = Clients::other(Clients::PROBES);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Hangs;
    if are_all {
        finding.severity = Severity::Error;
        finding.clients = Clients::other(Clients::OF_HOSTS);
    }
    Some(finding)
}
