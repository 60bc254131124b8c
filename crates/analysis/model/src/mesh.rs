//! Gateways of a service mesh.

use crate::pod::PodSpec;
use crate::service::{ServicePort, TargetPort};
use crate::{Cluster, Labels, NamespacedName, ObjectKind, ObjectRef, Origin, Pod, Port, Service};

/// The ports that a gateway's proxy opens by itself, for its health, its metrics and its own
/// administration.
const OWN: [u16; 6] = [15_000, 15_004, 15_020, 15_021, 15_053, 15_090];

/// A Gateway of a service mesh: the proxies that it selects open its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshGateway {
    /// Its name.
    pub name: NamespacedName,
    /// The labels of the pods that it configures.
    pub selector: Labels,
    /// The numbers of its servers: ports of a Service of the pods, or of the pods themselves.
    pub ports: Vec<Port>,
    /// Where it was written.
    pub origin: Origin,
}

impl MeshGateway {
    /// Returns a reference to the Gateway.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(ObjectKind::Gateway, &self.name)
    }

    /// Returns whether the Gateway configures pods with this spec.
    pub fn selects(&self, spec: &PodSpec) -> bool {
        self.selector.iter().all(|(key, value)| spec.labels.is(key, value))
    }
}

/// The labels of gateways that the mesh itself makes for Gateways of the Gateway API.
const MADE: [&str; 2] = ["gateway.networking.k8s.io/gateway-name", "istio.io/gateway-name"];

/// Returns whether pods with this spec are gateways of a mesh that users make.
pub fn is_gateway(spec: &PodSpec) -> bool {
    if MADE.iter().any(|label| spec.labels.get(label).is_some()) {
        return false;
    }
    let is_injected = |templates: &str| templates.split(',').any(|one| one.trim() == "gateway");
    spec.annotations.get("inject.istio.io/templates").is_some_and(is_injected)
        || spec.containers.iter().any(|container| {
            &*container.name == "istio-proxy"
                && container.arguments.iter().any(|argument| &**argument == "router")
        })
}

/// Returns whether a gateway's pod opens a port. Returns `None` for other pods, and if it is not
/// known.
pub fn opens(cluster: &Cluster, pod: &Pod, port: u16) -> Option<bool> {
    let is_known = !cluster.mesh_gateways.is_empty() && cluster.extent.pods;
    // Ingresses and routes open ports too.
    if !is_known || !is_gateway(&pod.spec) || cluster.controller_of(pod).is_some() {
        return None;
    }
    if OWN.contains(&port) {
        return Some(true);
    }
    let own = cluster.mesh_gateways.iter().filter(|gateway| gateway.selects(&pod.spec));
    let numbers: Vec<u16> =
        own.flat_map(|gateway| &gateway.ports).map(|number| number.number()).collect();
    let leads_here = |service: &ServicePort| {
        numbers.contains(&service.port.number()) && is_target(pod, service, port)
    };
    let by_service = services_of(cluster, pod).any(|service| service.ports.iter().any(leads_here));
    Some(numbers.contains(&port) || by_service)
}

/// Iterates over the Services that select a pod.
pub fn services_of<'c>(cluster: &'c Cluster, pod: &'c Pod) -> impl Iterator<Item = &'c Service> {
    cluster.services.values().filter(|service| {
        service.name.namespace == pod.name.namespace
            && service.selector.as_ref().is_some_and(|own| own.matches(&pod.spec.labels))
    })
}

fn is_target(pod: &Pod, service: &ServicePort, port: u16) -> bool {
    match &service.target {
        TargetPort::Number(number) => number.number() == port,
        TargetPort::Name(name) => {
            pod.spec.ports().any(|own| own.name.as_ref() == Some(name) && own.port.number() == port)
        }
    }
}
