//! Finds health checks that cannot pass, as objects show it without a walk: what a Service asks for,
//! and what a controller reports.

use uturn_clouds::cloud::{self, Maker};
use uturn_clouds::controller;
use uturn_model::ingress::Backend;
use uturn_model::service::ServiceKind;
use uturn_model::wording::some_of;
use uturn_model::{Cluster, Ingress, NamespacedName, Outcome, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::lack::has_endpoint;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let services = cluster.services.values();
    let balanced = services.filter(|service| service.kind == ServiceKind::LoadBalancer);
    let of_services = balanced.flat_map(|service| of_service(cluster, service));
    let of_ingresses = cluster.ingresses.values().filter_map(|own| of_ingress(cluster, own));
    of_services.chain(of_ingresses).collect()
}

fn of_service(cluster: &Cluster, service: &Service) -> Vec<Finding> {
    let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
        return Vec::new();
    };
    let ports = service.ports.iter();
    let unanswered =
        ports.filter_map(|port| Some((port, product.unanswered_check(cluster, service, port)?)));
    let finding = |(port, check): (_, cloud::UnansweredCheck)| {
        let port: &uturn_model::service::ServicePort = port;
        let (object, origin) = (service.object(), &service.origin);
        let mut finding = about(Code::CheckCannotPass, object, origin, check.because);
        finding.conditions.extend(check.condition.map(Into::into));
        finding.targets = vec![format!("health checks of port {}", port.port)];
        finding.clients = Clients::other(Clients::PROBES);
        finding.share_failing = Share::ALL;
        finding.outcome = Outcome::Hangs;
        finding
    };
    unanswered.map(finding).collect()
}

/// Finds backends that the controller itself reports as unhealthy, although they have endpoints.
fn of_ingress(cluster: &Cluster, ingress: &Ingress) -> Option<Finding> {
    let (backends, are_all) = controller::product_of(ingress)?.reported_unhealthy(ingress);
    if backends.is_empty() || !have_endpoints(cluster, ingress) {
        return None;
    }
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

fn have_endpoints(cluster: &Cluster, ingress: &Ingress) -> bool {
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let mut backends = paths.chain(&ingress.default_backend).filter_map(|backend| match backend {
        Backend::Service { name, .. } => {
            let namespace = ingress.name.namespace.clone();
            cluster.services.get(&NamespacedName { namespace, name: name.clone() })
        }
        _ => None,
    });
    backends.all(|service| has_endpoint(cluster, service))
}
