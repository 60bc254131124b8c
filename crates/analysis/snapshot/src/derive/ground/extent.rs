//! Determines whether the input is a whole cluster or a part of one.
//!
//! Objects that the input lacks are known not to exist only if this is stated (`--complete`, a
//! bundle, a Scenario, an API server), or if the input is a listing of a whole cluster. A listing
//! is recognised by objects that are never written by hand: those of kube-system beside others. So
//!
//! - pods are complete if there are nodes with addresses and running pods of kube-system;
//! - Services are complete if `default/kubernetes`, which API servers create, and one Service of
//!   kube-system are given with their addresses: two namespaces were listed;
//! - endpoints are complete if those of `default/kubernetes` and some of kube-system are given.
//!
//! Manifests beside a listing are about to be applied to that cluster: the listing cannot contain
//! what will be made of them.

use std::collections::BTreeSet;

use uturn_model::{Cluster, Extent, Name, NamespacedName};

use crate::decode::objects::Objects;

/// Returns the kinds of which all objects were read.
pub(super) fn of(objects: &Objects) -> Extent {
    let seen = as_seen(objects);
    Extent { services: seen.services || objects.listing.has_all_services, ..seen }
}

fn as_seen(objects: &Objects) -> Extent {
    let listeners = objects.facts.declared_ports_only.as_ref().is_some_and(|(only, _)| *only);
    if objects.complete {
        return Extent { listeners, ..Extent::OBJECTS };
    }
    if let Some(extent) = objects.listing.extent {
        return Extent { listeners, ..extent };
    }
    let of_system = |namespace: &Name| namespace.as_str() == "kube-system";
    let api = Cluster::api_server();
    let has_nodes = objects.nodes.0.values().any(|node| !node.internal_ips.is_empty());
    let has_pods = objects
        .pods
        .0
        .values()
        .any(|pod| of_system(&pod.name.namespace) && pod.node.is_some() && !pod.ips.is_empty());
    let applied = objects.services.0.values().filter(|service| !service.cluster_ips.is_empty());
    let has_service = applied.clone().any(|service| of_system(&service.name.namespace));
    let has_api = applied.into_iter().any(|service| service.name == api);
    let slices = objects.slices.0.values().map(|slice| &slice.service);
    let mut ended = slices.chain(objects.endpoints.0.keys());
    let endpoints =
        ended.clone().any(|name| *name == api) && ended.any(|name| of_system(&name.namespace));
    Extent { pods: has_nodes && has_pods, services: has_service && has_api, endpoints, listeners }
}

/// Returns the Services that are still to be applied: no cluster has given them an address.
pub(super) fn unapplied(objects: &Objects) -> BTreeSet<NamespacedName> {
    let services = objects.services.0.values();
    let waiting = services.filter(|service| service.cluster_ips.is_empty());
    waiting.map(|service| service.name.clone()).collect()
}

/// The objects that a listing cannot contain because manifests are still to be applied.
pub(in crate::derive) struct Coming {
    /// Services without an address.
    pub(in crate::derive) services: BTreeSet<NamespacedName>,
    /// The namespaces of custom resources, in which operators will create objects.
    pub(in crate::derive) namespaces: BTreeSet<Name>,
}

/// Returns the objects that are still to be applied.
pub(super) fn coming(objects: &Objects) -> Coming {
    if objects.complete {
        return Coming { services: BTreeSet::new(), namespaces: BTreeSet::new() };
    }
    let services = objects.services.0.values().filter(|service| {
        let is_written = !service.headless || objects.written_services.contains(&service.name);
        service.cluster_ips.is_empty() && is_written
    });
    Coming {
        services: services.map(|service| service.name.clone()).collect(),
        namespaces: objects.awaited.clone(),
    }
}
