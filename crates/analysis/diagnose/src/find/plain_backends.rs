//! Finds Services that Kong calls in plain HTTP although the name or number of their port is that of
//! TLS. Kong asks the Service's annotation, and nothing else.

use uturn_model::ingress::Backend;
use uturn_model::service::{ServicePort, TargetPort};
use uturn_model::{Cluster, Ingress, NamespacedName, Outcome, Protocol, Service, Share};
use uturn_path::{Engine, Tls, tls_of};

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

/// The annotations of a Service that state what Kong speaks to it; the second is that of old
/// releases.
pub(crate) const PROTOCOLS: [&str; 2] =
    ["konghq.com/protocol", "configuration.konghq.com/protocol"];

/// The status with which servers that speak TLS answer plain requests.
const BAD_REQUEST: u16 = 400;

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut all: Vec<Finding> = Vec::new();
    for ingress in cluster.ingresses.values().filter(|ingress| ingress.route.is_none()) {
        let own = cluster.controller_for(ingress);
        if own.is_none_or(|own| &*own.product != "Kong") {
            continue;
        }
        for (service, port) in called_plainly(cluster, ingress) {
            let short = service.object().short();
            let what = format!(
                "Kong speaks plain HTTP to {short} port {}, as no {} of it says otherwise, and the \
                 port's name or number is that of TLS: servers answer 400",
                port.port, PROTOCOLS[0]
            );
            let mut finding = about(Code::WrongPort, ingress.object(), &ingress.origin, what);
            finding.severity = Severity::Warning;
            finding.targets = vec![format!("{short} :{}", port.port)];
            finding.clients = Clients::other(Clients::OF_HOSTS);
            finding.share_failing = Share::ALL;
            finding.outcome =
                Outcome::Status { code: BAD_REQUEST, after: std::time::Duration::ZERO };
            finding.conditions = vec![format!("the pods of {short} speak TLS there").into()];
            all.push(finding);
        }
    }
    all
}

/// Returns the ports of an Ingress's backends that look like ones with TLS, which nothing tells Kong, each
/// once.
pub(crate) fn called_plainly<'c>(
    cluster: &'c Cluster,
    ingress: &Ingress,
) -> Vec<(&'c Service, &'c ServicePort)> {
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let called = paths.chain(&ingress.default_backend).filter_map(|backend| {
        let Backend::Service { name, port } = backend else { return None };
        let namespace = ingress.name.namespace.clone();
        let service = cluster.services.get(&NamespacedName { namespace, name: name.clone() })?;
        let port = service.port_named(port)?;
        is_plain_by_mistake(cluster, service, port).then_some((service, port))
    });
    let mut all: Vec<(&Service, &ServicePort)> = Vec::new();
    for (service, port) in called {
        let is_it = |(own, known): &(&Service, &ServicePort)| {
            own.name == service.name && known.port == port.port
        };
        if !all.iter().any(is_it) {
            all.push((service, port));
        }
    }
    all
}

/// Returns whether nothing tells Kong that a port speaks TLS, and the port looks like it.
fn is_plain_by_mistake(cluster: &Cluster, service: &Service, port: &ServicePort) -> bool {
    let is_stated = PROTOCOLS.iter().any(|key| service.annotations.get(key).is_some());
    if is_stated || port.app_protocol.is_some() || port.protocol != Protocol::Tcp {
        return false;
    }
    let slices = cluster.slices(&service.name).iter().flat_map(|slice| &slice.ports);
    let mut targets = slices.filter(|own| own.name == port.name).map(|own| own.port.number());
    let of_pods = |number: u16| {
        let pods = cluster.selected(service);
        let name = pods
            .iter()
            .flat_map(|pod| pod.spec.ports())
            .find_map(|own| (own.port.number() == number).then(|| own.name.clone()).flatten());
        let asked = match &port.target {
            TargetPort::Name(asked) => Some(asked.clone()),
            TargetPort::Number(_) => None,
        };
        tls_of(name.or(asked).as_deref(), number)
    };
    match targets.next().map(of_pods) {
        Some(Tls::Spoken) => true,
        Some(Tls::Plain) => false,
        Some(Tls::Unknown) | None => {
            tls_of(port.name.as_deref(), port.port.number()) == Tls::Spoken
        }
    }
}
