//! Finds load balancers with an address for each zone, of which each serves only the targets of its
//! zone, and which have a zone without a target.

use std::collections::BTreeSet;

use uturn_clouds::cloud::{self, Maker, Product, Targets};
use uturn_clouds::{controller, targets};
use uturn_model::service::{Policy, ServiceKind};
use uturn_model::{Cluster, Family, Node, Service};
use uturn_path::Engine;

use super::MAX_PAIRS;
use super::object_faults::about;
use crate::Code;
use crate::finding::Finding;

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    if cluster.nodes.len() * cluster.services.len() > MAX_PAIRS {
        return Vec::new();
    }
    cluster.services.values().filter_map(|service| of_service(cluster, service)).collect()
}

fn of_service(cluster: &Cluster, service: &Service) -> Option<Finding> {
    if service.kind != ServiceKind::LoadBalancer || !service.unjudged.is_empty() {
        return None;
    }
    let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
        return None;
    };
    if !product.serves_by_zone(service) {
        return None;
    }
    let (addresses, where_from) = addresses(cluster, service, product)?;
    let zones = zones_with_target(cluster, service, product)?;
    if zones.is_empty() || addresses <= zones.len() {
        return None;
    }
    let names: Vec<&str> = zones.iter().copied().collect();
    let what = format!(
        "it has {addresses} addresses ({where_from}), one for each zone, and targets in {} only ({}): each \
         address serves its own zone, so clients that still have the address of another zone get no answer",
        zones.len(),
        names.join(", ")
    );
    let mut finding = about(Code::ZoneWithoutTarget, service.object(), &service.origin, what);
    // Manifests are usually only a part of a cluster.
    if !cluster.extent.pods || cluster.nodes.values().any(|node| node.supposed) {
        finding.conditions.push("no target is in another zone".into());
    }
    Some(finding)
}

/// Returns the number of a load balancer's addresses, and the source of the number.
fn addresses(
    cluster: &Cluster,
    service: &Service,
    product: &dyn Product,
) -> Option<(usize, &'static str)> {
    let asked = product.address_count(service).map(|count| (count, "its annotations ask for them"));
    let names = service.load_balancer.iter().filter_map(|entry| entry.hostname.as_deref());
    let known = names.map(|name| cluster.dns.of_balancer(&name.to_ascii_lowercase()));
    // Addresses that stand in for a load balancer's are only made for zones with a target.
    let stated = known.filter(|all| all.iter().all(|at| at.zone.is_none())).map(<[_]>::len).max();
    asked.or(stated.filter(|count| *count > 1).map(|count| (count, "Facts state them")))
}

/// Returns the zones of targets that health checks find alive. Returns `None` if the zone of a
/// target is not known.
fn zones_with_target<'c>(
    cluster: &'c Cluster,
    service: &Service,
    product: &dyn Product,
) -> Option<BTreeSet<&'c str>> {
    let to_pods = service.ports.iter().any(|port| {
        product.port(service, port, Family::V4).is_some_and(|plan| plan.targets != Targets::Nodes)
    });
    let has_pod = |node: &&Node| targets::has_ready_pod(cluster, service, &node.name);
    let needs_pod = to_pods || service.external_policy == Policy::Local;
    let nodes = cluster.nodes.values().filter(|node| controller::is_usual_target(node));
    nodes.filter(|node| !needs_pod || has_pod(node)).map(Node::zone).collect()
}
