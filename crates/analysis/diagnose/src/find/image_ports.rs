//! Finds target ports at which the program of a well-known image does not listen, unless it is told
//! to.

use std::collections::HashSet;

use uturn_model::service::TargetPort;
use uturn_model::{Mechanism, Name, Outcome, Pod, Port, Protocol, Service, Share};
use uturn_path::Engine;

use super::object_faults::{PodsByNamespace, about};
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

/// Official images, with the ports at which their programs listen without a configuration.
const USUAL: &[(&str, &[u16])] = &[
    ("nginx", &[80]),
    ("httpd", &[80]),
    ("redis", &[6379]),
    ("valkey/valkey", &[6379]),
    ("memcached", &[11_211]),
    ("mysql", &[3306, 33_060]),
    ("mariadb", &[3306]),
    ("postgres", &[5432]),
    ("mongo", &[27_017]),
    ("registry", &[5000]),
    ("rabbitmq", &[4369, 5671, 5672, 15_672, 15_691, 15_692, 25_672]),
    ("grafana/grafana", &[3000]),
    ("prom/prometheus", &[9090]),
    ("traefik/whoami", &[80]),
    ("nginxinc/nginx-unprivileged", &[8080]),
];

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    if cluster.extent.listeners {
        return Vec::new();
    }
    // Most clusters have such pods in a few namespaces, if any.
    let alive = cluster.pods.values().filter(|pod| pod.is_alive());
    let homes: HashSet<&Name> =
        alive.filter(|pod| usual_ports(pod).is_some()).map(|pod| &pod.name.namespace).collect();
    if homes.is_empty() {
        return Vec::new();
    }
    let pods = PodsByNamespace::of(cluster);
    let services = cluster.services.values();
    let services = services.filter(|service| homes.contains(&service.name.namespace));
    services.filter_map(|service| of_service(&pods, service)).collect()
}

/// A target port at which the program of an image does not listen.
pub(crate) struct SilentPort {
    /// The index of the Service's port.
    pub(crate) at: usize,
    /// The target port.
    pub(crate) wanted: Port,
    /// The ports at which the image listens.
    pub(crate) usual: &'static [u16],
}

/// Returns the first such port of a Service that selects these pods.
pub(crate) fn silent_port(service: &Service, pods: &[&Pod]) -> Option<SilentPort> {
    let usual = usual_ports(pods.first()?)?;
    service.ports.iter().enumerate().find_map(|(at, port)| {
        let TargetPort::Number(wanted) = port.target else { return None };
        let is_silent = |pod: &&Pod| {
            usual_ports(pod) == Some(usual)
                && !pod.spec.is_probed(wanted)
                && !pod.spec.containers.iter().any(|own| own.mentions(wanted))
        };
        let is_it = port.protocol == Protocol::Tcp
            && !usual.contains(&wanted.number())
            && pods.iter().all(is_silent);
        is_it.then_some(SilentPort { at, wanted, usual })
    })
}

fn of_service(pods: &PodsByNamespace<'_>, service: &Service) -> Option<Finding> {
    let pods = pods.selected(service);
    let first = pods.first()?;
    silent_port(service, &pods).map(|SilentPort { at, wanted, usual }| {
        let port = &service.ports[at];
        let known: Vec<String> = usual.iter().map(ToString::to_string).collect();
        let what = format!(
            "targetPort {wanted} is declared by no container of the pods that it selects, and image {} \
             listens on {} unless it is told otherwise (declaredPortsOnly in Facts settles it)",
            first.spec.containers[0].image,
            known.join(", ")
        );
        let mut finding = about(Code::WrongPort, service.object(), &service.origin, what);
        finding.severity = Severity::Warning;
        finding.conditions.push(format!("nothing listens on {wanted}").into());
        finding.targets = vec![format!(":{}", port.port)];
        finding.clients = Clients::other(Clients::OTHERS);
        finding.share_failing = Share::ALL;
        finding.outcome = Outcome::Refused;
        finding.mechanism = Some(Mechanism::WrongPort);
        finding
    })
}

/// Returns the usual ports of a pod's only container, if it declares none and nothing tells it to
/// listen elsewhere.
fn usual_ports(pod: &Pod) -> Option<&'static [u16]> {
    let [container] = pod.spec.containers.as_slice() else { return None };
    let is_told = !container.arguments.is_empty()
        || !container.configured.is_empty()
        || !pod.spec.files.is_empty();
    if is_told || !container.ports.is_empty() {
        return None;
    }
    let image = container.image.split('@').next().unwrap_or_default();
    let image = image.strip_prefix("docker.io/").unwrap_or(image);
    let image = image.strip_prefix("library/").unwrap_or(image);
    let name = image.rsplit_once(':').map_or(image, |(name, _)| name);
    USUAL.iter().find(|(known, _)| *known == name).map(|(_, ports)| *ports)
}
