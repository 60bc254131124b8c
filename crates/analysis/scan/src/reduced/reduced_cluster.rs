//! A small cluster in which packets of a target meet the same as in the whole one. It has only
//! representatives of equivalent nodes and endpoints, each with the number that it represents.

use std::net::IpAddr;

use uturn_model::lb::{ListenerOverrides, LoadBalancerFact};
use uturn_model::{Cluster, EndpointSlice, Labels, NamespacedName, Pod};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_path::outline;

use crate::failover::retries::Retries;
use crate::failover::target_list::TargetList;
use crate::inventory::Inventory;
use crate::partition::target_classes::TargetClasses;

/// The number of nodes and endpoints that each node or endpoint of a reduced cluster represents.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    /// The weights of endpoints from which rules pick, by address.
    pub(crate) endpoints: FastMap<IpAddr, f64>,
    /// The weights of a load balancer's targets.
    pub(crate) retries: Retries,
}

/// Makes the reduced cluster for a target's classes.
pub(crate) fn reduced_cluster(
    inventory: &Inventory<'_>,
    target_classes: &TargetClasses<'_>,
) -> (Cluster, Weights) {
    let (scope, partition) = (&target_classes.scope, &target_classes.partition);
    let mut cluster = outline(inventory.cluster);
    let mut weights = Weights::default();
    let mut homes: FastMap<u32, (u32, u32)> = FastMap::default();
    for stand in &partition.representatives {
        let node = &inventory.nodes[stand.place as usize].node;
        cluster.nodes.insert(node.name.clone(), node.clone().into_owned());
        weights.retries.counts.nodes.insert(node.name.clone(), stand.targets);
        homes.insert(stand.place, (stand.homes, stand.targets));
    }
    let mut add = |pod: &Pod| drop(cluster.pods.insert(pod.name.clone(), pod.clone()));
    for client_set in &partition.client_sets {
        add(client_set.pod);
    }
    for port in &scope.ports {
        for (place, pod) in inventory.host_ports.get(port).into_iter().flatten() {
            if homes.contains_key(place) {
                add(pod);
            }
        }
    }
    let loose: FastSet<IpAddr> = partition.loose.iter().copied().collect();
    for service in &scope.services {
        let mut slices = Vec::new();
        for slice in inventory.cluster.slices(&service.name) {
            let mut endpoints = Vec::new();
            for endpoint in &slice.endpoints {
                let home =
                    inventory.node_towards(endpoint.address).and_then(|place| homes.get(&place));
                let Some((many, targets)) =
                    home.copied().or_else(|| loose.contains(&endpoint.address).then_some((1, 1)))
                else {
                    continue;
                };
                weights.endpoints.insert(endpoint.address, f64::from(many));
                weights.retries.counts.endpoints.insert(endpoint.address, targets);
                inventory.pods_at(endpoint.address).iter().for_each(|resident| add(resident.pod));
                endpoints.push(endpoint.clone());
            }
            if !endpoints.is_empty() || slice.endpoints.is_empty() {
                slices.push(EndpointSlice { endpoints, ports: slice.ports.clone(), ..head(slice) });
            }
        }
        if !slices.is_empty() {
            cluster.endpoints.insert(service.name.clone(), slices);
        }
        cluster.services.insert(service.name.clone(), (*service).clone());
    }
    weights.retries.list =
        scope.tries_again().map(|behind| TargetList::new(inventory, target_classes, behind));
    for ingress in &scope.ingresses {
        cluster.ingresses.insert(ingress.name.clone(), ingress.clone());
    }
    let owners = scope.services.iter().map(|service| (&service.name, &service.annotations));
    let owners =
        owners.chain(scope.ingresses.iter().map(|ingress| (&ingress.name, &ingress.annotations)));
    for (owner, annotations) in owners {
        let configs = configs_of(inventory.cluster, owner, annotations);
        let configs = configs.map(|config| (config.name.clone(), config.clone()));
        cluster.listener_overrides.extend(configs);
    }
    let asked = scope.asked.to.ip();
    let is_met = |fact: &&LoadBalancerFact| {
        fact.vip == asked
            || inventory.held.contains(&fact.vip)
            || fact.own_listeners().next().is_some()
    };
    let facts = inventory.cluster.load_balancers.iter().filter(is_met);
    cluster.load_balancers.extend(facts.cloned());
    // Whether a load balancer's address is given decides from which address it sends.
    let stated = inventory.cluster.dns.outside.iter();
    let stated = stated.filter(|(_, ip)| *ip == asked || inventory.held.contains(ip));
    cluster.dns.outside.extend(stated.cloned());
    // Every pod that shares an address with a pod in this cluster must be there too.
    let shared: Vec<&Pod> = cluster
        .pods
        .values()
        .flat_map(|pod| &pod.ips)
        .map(|ip| inventory.pods_at(*ip))
        .filter(|pods| pods.len() > 1)
        .flatten()
        .map(|resident| resident.pod)
        .collect();
    for pod in shared {
        cluster.pods.insert(pod.name.clone(), pod.clone());
    }
    (cluster, weights)
}

/// Returns the settings of listeners that may be meant for an object: those of its namespace that
/// one of its annotations names, or whose name begins with the object's.
fn configs_of<'a>(
    cluster: &'a Cluster,
    owner: &'a NamespacedName,
    annotations: &'a Labels,
) -> impl Iterator<Item = &'a ListenerOverrides> {
    let configs = &cluster.listener_overrides;
    let begins = configs.range(owner..).map(|(_, config)| config).take_while(|config| {
        config.name.namespace == owner.namespace
            && config.name.name.as_str().starts_with(owner.name.as_str())
    });
    let is_any = !configs.is_empty();
    let values = annotations.iter().filter(move |_| is_any).map(|(_, value)| value);
    let named = values.filter_map(|value| {
        configs.get(&NamespacedName::new(owner.namespace.as_str(), value).ok()?)
    });
    begins.chain(named)
}

/// Returns a slice without its endpoints and ports.
fn head(slice: &EndpointSlice) -> EndpointSlice {
    EndpointSlice {
        name: slice.name.clone(),
        service: slice.service.clone(),
        family: slice.family,
        ports: Vec::new(),
        endpoints: Vec::new(),
        derived: slice.derived,
        origin: slice.origin.clone(),
    }
}
