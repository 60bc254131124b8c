//! Finds health checks that cannot pass, as objects show it without a walk: what a Service asks for,
//! and what a controller reports.

use std::net::SocketAddr;
use std::time::Duration;

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
    of_services.chain(of_ingresses).chain(asked(engine)).collect()
}

/// Finds health checks of an Ingress's backends that ask for a page which the pods' probes do not ask for:
/// their servers may lack it.
pub(crate) fn asked(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let found = cluster.ingresses.values().filter_map(|ingress| {
        if ingress.load_balancer.is_empty() || !controller::is_served_by_cloud(cluster, ingress) {
            return None;
        }
        let product = controller::product_of(ingress)?;
        let services = controller::backends(cluster, ingress);
        let (service, page, probed) = services.into_iter().find_map(|service| {
            let page = product.page_asked(cluster, ingress, service)?;
            let probed = probed_page(cluster, service)?;
            (probed != page.path).then_some((service, page, probed))
        })?;
        let what = format!("{}; its pods are asked for {probed} by the kubelet", page.because);
        let mut finding = about(Code::CheckCannotPass, ingress.object(), &ingress.origin, what);
        let condition = format!(
            "{} does not answer {} with 200, and no {} is there",
            service.object(),
            page.path,
            page.kind
        );
        finding.conditions.push(condition.into());
        finding.targets = vec![format!("health checks of {}", service.object().short())];
        finding.clients = Clients::other(Clients::OF_HOSTS);
        finding.share_failing = Share::ALL;
        finding.outcome = Outcome::Status { code: page.status, after: Duration::ZERO };
        Some(finding)
    });
    found.collect()
}

/// Returns the path for which the readiness probes of a Service's pods ask, if they ask for one.
pub(crate) fn probed_page(cluster: &Cluster, service: &Service) -> Option<String> {
    let pods = cluster.selected(service);
    let mut probes = pods.iter().flat_map(|pod| &pod.spec.containers);
    probes.find_map(|container| {
        let asked = container.readiness.as_deref()?.strip_prefix("GET ")?;
        Some(asked.split(' ').next()?.to_owned())
    })
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
