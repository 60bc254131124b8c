//! The places in the input where objects are written.

use uturn_model::{Cluster, DerivedFrom, LoadBalancer, ObjectKind, ObjectRef, Origin};

/// Returns the origin of an object.
pub(crate) fn of(cluster: &Cluster, object: &ObjectRef) -> Origin {
    let mut stated = cluster.load_balancers.iter();
    if object.kind == ObjectKind::LoadBalancer
        && let Some(fact) = stated.find(|fact| fact.object() == *object)
    {
        return fact.origin.clone();
    }
    let mut of_server = cluster.api_server_calls.iter();
    if let Some(calls) = of_server.find(|calls| calls.object() == *object) {
        return calls.origin.clone();
    }
    let mut volumes = cluster.volume_servers.iter();
    if object.kind == ObjectKind::PersistentVolume
        && let Some(volume) = volumes.find(|volume| *volume.name.as_str() == *object.name)
    {
        return volume.origin.clone();
    }
    let found = object.namespaced_name().and_then(|name| match object.kind {
        ObjectKind::Service => cluster.services.get(&name).map(|service| &service.origin),
        kind if kind == ObjectKind::Ingress || kind.is_route() => {
            cluster.ingress_of(object).map(|ingress| &ingress.origin)
        }
        ObjectKind::Pod => cluster.pods.get(&name).map(|pod| &pod.origin),
        _ => None,
    });
    found.cloned().unwrap_or_else(|| Origin::object(object.clone()))
}

/// Returns the origin of the object that asked for a load balancer.
pub(crate) fn of_balancer(cluster: &Cluster, balancer: &LoadBalancer) -> Origin {
    let mut rules = balancer.listeners.iter().flat_map(|listener| &listener.rules);
    let first = rules.next();
    first.map_or_else(|| Origin::Derived(DerivedFrom::Cloud), |rule| of(cluster, &rule.owner))
}
