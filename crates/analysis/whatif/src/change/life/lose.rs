//! Nodes that are lost: their machines neither answer nor forward anything.
//!
//! At first nothing knows of it. Then health checks of load balancers find it, and the node's Ready
//! condition becomes Unknown: its pods are not ready, so their endpoints are not ready either, and
//! the cloud's controller no longer has the node as a target.

use std::collections::BTreeSet;

use uturn_model::node::Loss;
use uturn_model::{Cluster, Name, Text};

use super::Changed;
use super::error::{LifeError, likest};
use super::pods::{self, PodSet};

pub(super) fn node(cluster: &Cluster, node: &Name, loss: Loss) -> Result<Changed, LifeError> {
    known(cluster, node)?;
    Ok(lost(cluster, &BTreeSet::from([node.clone()]), loss))
}

pub(super) fn zone(cluster: &Cluster, zone: &Text, loss: Loss) -> Result<Changed, LifeError> {
    let nodes = nodes_of_zone(cluster, zone);
    if nodes.is_empty() {
        let known = likest(zones(cluster).into_iter(), zone);
        return Err(LifeError::NoZone { zone: zone.clone(), known });
    }
    Ok(lost(cluster, &nodes, loss))
}

/// Fails if there is no such node.
pub(super) fn known(cluster: &Cluster, node: &Name) -> Result<(), LifeError> {
    if cluster.nodes.contains_key(node) {
        return Ok(());
    }
    let given = cluster.nodes.values().filter(|own| !own.supposed);
    let known = likest(given.map(|own| own.name.as_str().into()), node.as_str());
    Err(LifeError::NoNode { node: node.clone(), known })
}

/// Returns the zones of the nodes.
pub fn zones(cluster: &Cluster) -> BTreeSet<Text> {
    cluster.nodes.values().filter_map(|node| Some(node.zone()?.into())).collect()
}

/// Returns the nodes of a zone.
pub fn nodes_of_zone(cluster: &Cluster, zone: &str) -> BTreeSet<Name> {
    let there = cluster.nodes.values().filter(|node| node.zone() == Some(zone));
    there.map(|node| node.name.clone()).collect()
}

/// Returns the cluster without the machines of these nodes.
pub fn lost(cluster: &Cluster, nodes: &BTreeSet<Name>, loss: Loss) -> Changed {
    let mut after = cluster.clone();
    let mut assumed: Vec<Text> = Vec::new();
    for node in after.nodes.values_mut().filter(|node| nodes.contains(&node.name)) {
        node.loss = Some(loss);
        node.ready &= loss == Loss::Unnoticed;
    }
    if loss == Loss::Unnoticed {
        assumed.push("endpoints and load balancers still have what was lost".into());
        return Changed { cluster: after, assumed };
    }
    let is_there = |own: &&uturn_model::Pod| own.node.as_ref().is_some_and(|on| nodes.contains(on));
    let names = cluster.pods.values().filter(is_there).map(|own| own.name.clone()).collect();
    let pods = PodSet::of(cluster, names);
    if !pods.is_empty() {
        assumed.push("the pods that were lost run nowhere else yet".into());
    }
    pods::make_unready(&mut after, &pods);
    drop_lost_endpoints(&mut after, nodes);
    for service in after.services.values_mut() {
        if service.holder.as_ref().is_some_and(|holder| nodes.contains(holder)) {
            service.holder = None;
        }
    }
    if pods::forget_captures(&mut after) {
        assumed.push(pods::WITHOUT_CAPTURES.into());
    }
    Changed { cluster: after, assumed }
}

/// Makes endpoints not ready that are on lost nodes but belong to no pod that is given, and removes
/// API servers there, which leave the list of endpoints when they no longer renew it.
fn drop_lost_endpoints(cluster: &mut Cluster, lost: &BTreeSet<Name>) {
    let addresses: BTreeSet<_> = lost
        .iter()
        .filter_map(|name| cluster.nodes.get(name))
        .flat_map(|node| node.internal_ips.iter().chain(&node.external_ips).copied())
        .collect();
    let api_server = Cluster::api_server();
    for (name, slices) in &mut cluster.endpoints {
        let is_api_server = *name == api_server;
        let Some(service) = cluster.services.get(name) else { continue };
        for slice in slices {
            if is_api_server {
                slice.endpoints.retain(|endpoint| !addresses.contains(&endpoint.address));
            }
            if service.selector.is_none() || service.publishes_not_ready {
                continue;
            }
            let is_lost = |on: &Option<Name>| on.as_ref().is_some_and(|on| lost.contains(on));
            for endpoint in slice.endpoints.iter_mut().filter(|endpoint| is_lost(&endpoint.node)) {
                (endpoint.ready, endpoint.serving) = (false, false);
            }
        }
    }
}
