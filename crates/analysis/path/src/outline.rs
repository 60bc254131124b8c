//! A cluster's settings without its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use uturn_model::dns::Dns;
use uturn_model::{Cluster, Node};

/// Returns a cluster with all its settings, and without objects.
pub fn outline(cluster: &Cluster) -> Cluster {
    Cluster {
        provider: cluster.provider.clone(),
        nodes: BTreeMap::new(),
        pods: BTreeMap::new(),
        workloads: BTreeMap::new(),
        services: BTreeMap::new(),
        endpoints: BTreeMap::new(),
        ingresses: BTreeMap::new(),
        ingress_classes: cluster.ingress_classes.clone(),
        controllers: cluster.controllers.clone(),
        listener_overrides: BTreeMap::new(),
        load_balancers: Vec::new(),
        network: cluster.network.clone(),
        security_groups: cluster.security_groups.clone(),
        dns: Dns {
            service: None,
            domain: None,
            corefile: None,
            mounted: None,
            node_local: None,
            of_pods: Vec::new(),
            outside: Vec::new(),
            node_searches: Vec::new(),
            balancers: cluster.dns.balancers.clone(),
        },
        proxy: cluster.proxy.clone(),
        controller_switches: cluster.controller_switches.clone(),
        balancer_arguments: cluster.balancer_arguments.clone(),
        announcements: cluster.announcements.clone(),
        mesh_gateways: cluster.mesh_gateways.clone(),
        mesh_routes: cluster.mesh_routes.clone(),
        network_policies: Arc::clone(&cluster.network_policies),
        api_server_calls: Vec::new(),
        volume_servers: Vec::new(),
        captures: BTreeMap::new(),
        extent: cluster.extent,
        awaited: cluster.awaited.clone(),
        unjudged: Vec::new(),
        supposed: Vec::new(),
        skipped: Vec::new(),
        unread: cluster.unread.clone(),
        read_at: cluster.read_at.clone(),
    }
}

/// Returns an outline of a cluster with one of its nodes.
pub fn outline_with(cluster: &Cluster, node: &Node) -> Cluster {
    let mut outline = outline(cluster);
    outline.nodes.insert(node.name.clone(), node.clone());
    outline
}

/// Returns an outline of a cluster with all objects for which load balancers listen.
pub fn outline_of_listeners(cluster: &Cluster) -> Cluster {
    let mut outline = outline(cluster);
    outline.services = cluster.services.clone();
    outline.ingresses = cluster.ingresses.clone();
    outline.load_balancers.clone_from(&cluster.load_balancers);
    outline.dns.outside.clone_from(&cluster.dns.outside);
    outline.listener_overrides = cluster.listener_overrides.clone();
    outline
}
