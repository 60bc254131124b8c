//! A small cluster in which a target meets what it would meet in the whole one: of nodes and
//! endpoints that are alike, only those that stand for them, each with how many it stands for.

use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_model::dns::Dns;
use uturn_model::lb::{Target, TargetKind};
use uturn_model::{Cluster, EndpointSlice, Name, Node, Pod};
use uturn_netfilter::hash::{FastMap, FastSet};

use crate::inventory::Inventory;
use crate::signature::config_names;
use crate::target_classes::TargetClasses;
use crate::target_list::TargetList;

/// How many each node and endpoint of a small cluster stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weights {
    /// As targets of a load balancer, by node, and by address for endpoints.
    nodes: FastMap<Name, u32>,
    targets: FastMap<IpAddr, u32>,
    /// As endpoints that rules pick from, by address.
    pub(crate) endpoints: FastMap<IpAddr, f64>,
    /// All targets of a load balancer that tries one after the other.
    pub(crate) line: Option<TargetList>,
}

impl Weights {
    /// How many a load balancer's target stands for.
    pub(crate) fn of_target(&self, target: &Target) -> Option<u32> {
        match &target.kind {
            TargetKind::NodePort(node) => self.nodes.get(node).copied(),
            TargetKind::Pod { .. } => self.targets.get(&target.address.ip()).copied(),
        }
    }
}

/// Makes the small cluster of a sketch.
pub(crate) fn mini(census: &Inventory<'_>, sketch: &TargetClasses<'_>) -> (Cluster, Weights) {
    let (scope, drawn) = (&sketch.scope, &sketch.drawn);
    let mut cluster = outline(census.cluster);
    let mut weights = Weights::default();
    let mut homes: FastMap<u32, (u32, u32)> = FastMap::default();
    for stand in &drawn.stands {
        let node = &census.nodes[stand.place as usize].node;
        cluster.nodes.insert(node.name.clone(), node.clone().into_owned());
        weights.nodes.insert(node.name.clone(), stand.targets);
        homes.insert(stand.place, (stand.homes, stand.targets));
    }
    let mut add = |pod: &Pod| drop(cluster.pods.insert(pod.name.clone(), pod.clone()));
    for callers in &drawn.callers {
        add(callers.pod);
    }
    for port in &scope.ports {
        for (place, pod) in census.host_ports.get(port).into_iter().flatten() {
            if homes.contains_key(place) {
                add(pod);
            }
        }
    }
    let loose: FastSet<IpAddr> = drawn.loose.iter().copied().collect();
    for service in &scope.services {
        let mut slices = Vec::new();
        for slice in census.cluster.slices(&service.name) {
            let mut endpoints = Vec::new();
            for one in &slice.endpoints {
                let home = census.node_towards(one.address).and_then(|place| homes.get(&place));
                let Some((many, targets)) =
                    home.copied().or_else(|| loose.contains(&one.address).then_some((1, 1)))
                else {
                    continue;
                };
                weights.endpoints.insert(one.address, f64::from(many));
                weights.targets.insert(one.address, targets);
                census.pods_at(one.address).iter().for_each(|one| add(one.pod));
                endpoints.push(one.clone());
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
    weights.line = scope.tries_again().map(|behind| TargetList::new(census, sketch, behind));
    for ingress in &scope.ingresses {
        cluster.ingresses.insert(ingress.name.clone(), ingress.clone());
    }
    let owners = scope.services.iter().map(|one| (&one.name, &one.annotations));
    let owners = owners.chain(scope.ingresses.iter().map(|one| (&one.name, &one.annotations)));
    for name in owners.flat_map(|(name, annotations)| config_names(name, annotations)) {
        if let Some(config) = census.cluster.tke_service_configs.get(&name) {
            cluster.tke_service_configs.insert(name, config.clone());
        }
    }
    let asked = scope.asked.to.ip();
    let facts = census.cluster.load_balancers.iter().filter(|fact| fact.vip == asked);
    cluster.load_balancers.extend(facts.cloned());
    // Nobody who shares an address with somebody here may be missing.
    let shared: Vec<&Pod> = cluster
        .pods
        .values()
        .flat_map(|pod| &pod.ips)
        .map(|ip| census.pods_at(*ip))
        .filter(|pods| pods.len() > 1)
        .flatten()
        .map(|one| one.pod)
        .collect();
    for pod in shared {
        cluster.pods.insert(pod.name.clone(), pod.clone());
    }
    (cluster, weights)
}

/// A slice without endpoints and ports.
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

/// A cluster with all its settings and nobody in it.
pub(crate) fn outline(cluster: &Cluster) -> Cluster {
    Cluster {
        provider: cluster.provider.clone(),
        nodes: BTreeMap::new(),
        pods: BTreeMap::new(),
        workloads: BTreeMap::new(),
        services: BTreeMap::new(),
        endpoints: BTreeMap::new(),
        ingresses: BTreeMap::new(),
        ingress_classes: cluster.ingress_classes.clone(),
        tke_service_configs: BTreeMap::new(),
        load_balancers: Vec::new(),
        network: cluster.network.clone(),
        security_groups: cluster.security_groups.clone(),
        dns: Dns {
            service: None,
            domain: None,
            corefile: None,
            node_local: None,
            outside: Vec::new(),
        },
        proxy: cluster.proxy.clone(),
        controller_switches: cluster.controller_switches.clone(),
        network_policies: BTreeMap::new(),
        captures: BTreeMap::new(),
        extent: cluster.extent,
        unjudged: Vec::new(),
        supposed: Vec::new(),
        skipped: Vec::new(),
    }
}

/// A cluster's outline with one of its nodes.
pub(crate) fn outline_with(cluster: &Cluster, node: &Node) -> Cluster {
    let mut outline = outline(cluster);
    outline.nodes.insert(node.name.clone(), node.clone());
    outline
}

/// A cluster's outline with all that load balancers listen for.
pub(crate) fn outline_of_listeners(cluster: &Cluster) -> Cluster {
    let mut outline = outline(cluster);
    outline.services = cluster.services.clone();
    outline.ingresses = cluster.ingresses.clone();
    outline.load_balancers.clone_from(&cluster.load_balancers);
    outline.tke_service_configs = cluster.tke_service_configs.clone();
    outline
}
