//! The ports that the proxies of a service mesh's gateways open.

use crate::mesh::{has_proxy, is_gateway};
use crate::service::{ServicePort, TargetPort};
use crate::{Cluster, Pod, Service};

/// The ports that a gateway's proxy opens by itself, for its health, its metrics and its own
/// administration.
const OWN: [u16; 6] = [15_000, 15_004, 15_020, 15_021, 15_053, 15_090];

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

/// Returns whether a port of a pod is the proxy's own, for its health, its metrics or its
/// administration: never one for the calls of a Service's clients.
pub fn is_own(pod: &Pod, port: u16) -> bool {
    OWN.contains(&port) && has_proxy(&pod.spec)
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
