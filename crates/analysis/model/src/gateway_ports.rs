//! The ports that the proxies of a service mesh's gateways open.

use crate::mesh::{has_proxy, is_gateway};
use crate::service::{ServicePort, TargetPort};
use crate::{Cluster, MeshGateway, MeshRoute, NamespacedName, Pod, Service};

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

/// Returns whether a gateway's pod has no route for requests of a host at a port that a Gateway
/// opens. It answers them with 404.
pub fn has_no_route(cluster: &Cluster, pod: &Pod, port: u16, host: &str) -> bool {
    let is_open = opens(cluster, pod, port) == Some(true) && !OWN.contains(&port);
    // Without any, the kind may not have been listed.
    if !is_open || cluster.mesh_routes.is_empty() {
        return false;
    }
    let host = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let own = || cluster.mesh_gateways.iter().filter(|gateway| gateway.selects(&pod.spec));
    let is_read = |route: &&MeshRoute| own().any(|known| route.gateways.contains(&known.name));
    !cluster.mesh_routes.iter().filter(is_read).any(|route| route.may_be_for(host))
}

/// Returns why no Gateway reads a route: each of those that it names is missing, and one with the
/// same name in another namespace is there.
pub fn misplaced<'c>(cluster: &'c Cluster, route: &MeshRoute) -> Option<&'c MeshGateway> {
    let has = |name: &NamespacedName| cluster.mesh_gateways.iter().any(|own| own.name == *name);
    if route.is_for_mesh || route.gateways.is_empty() || route.gateways.iter().any(has) {
        return None;
    }
    let is_alike =
        |own: &&MeshGateway| route.gateways.iter().any(|name| name.name == own.name.name);
    let mut alike = cluster.mesh_gateways.iter().filter(is_alike);
    alike.next().filter(|_| alike.next().is_none())
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
