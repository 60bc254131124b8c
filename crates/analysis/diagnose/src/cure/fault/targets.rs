//! Cures of load balancers without targets: ports of nodes, or pods as targets.

use std::collections::BTreeSet;

use uturn_clouds::controller;
use uturn_document::edit::{Change, Tree};
use uturn_model::ingress::Backend;
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Ingress, NamespacedName, Service};

use super::super::{Case, Proposal, way};
use super::{ingress_of, service_of};
use crate::Finding;

/// The ports that Kubernetes gives as node ports, unless it is told otherwise.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    match (service_of(case, fault), ingress_of(case, fault)) {
        (Some(service), _) => node_ports(case, service).into_iter().collect(),
        (None, Some(ingress)) => of_ingress(case, ingress),
        (None, None) => Vec::new(),
    }
}

/// Proposes that a load balancer's Service has node ports.
fn node_ports(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    let is_it = service.kind == ServiceKind::LoadBalancer
        && service.ports.iter().all(|port| port.node_port.is_none());
    let made = is_it.then(|| {
        let title = format!("allocateLoadBalancerNodePorts for svc/{}", service.name);
        let path = way!["spec", "allocateLoadBalancerNodePorts"];
        Proposal::new("node-ports", 15, title)
            .edit(service.object(), path, Change::Set(Tree::bare("true")))
            .costs("the Service gets a port on every node")
    })?;
    Some(with_node_ports(case, made, service))
}

/// Adds the node ports that Kubernetes then gives to a Service.
fn with_node_ports(case: &Case<'_>, mut made: Proposal, service: &Service) -> Proposal {
    let used = used(case.cluster());
    let free = NODE_PORTS.filter(|port| !used.contains(port));
    for (at, number) in (0..service.ports.len()).zip(free) {
        let path = way!["spec", "ports", at, "nodePort"];
        made = made.follow(service.object(), path, Change::Set(Tree::number(number)));
    }
    made
}

fn used(cluster: &Cluster) -> BTreeSet<u16> {
    let ports = cluster.services.values().flat_map(|service| &service.ports);
    ports.filter_map(|port| port.node_port).map(|port| port.number()).collect()
}

/// Proposes pods as targets of an Ingress's load balancer, or node ports for its backends.
fn of_ingress(case: &Case<'_>, ingress: &Ingress) -> Vec<Proposal> {
    let Some(product) = controller::product_of(ingress) else { return Vec::new() };
    let cluster = case.cluster();
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let backends = paths.chain(&ingress.default_backend).filter(|backend| !backend.is_action());
    let services = backends.filter_map(|backend| {
        let Backend::Service { name, .. } = backend else { return None };
        let namespace = ingress.name.namespace.clone();
        cluster.services.get(&NamespacedName { namespace, name: name.clone() })
    });
    let mut refused: Vec<&Service> =
        services.filter(|service| product.refuses(cluster, ingress, service).is_some()).collect();
    refused.sort_by_key(|service| &service.name);
    refused.dedup_by_key(|service| &service.name);
    if refused.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    if let Some((key, value)) = product.with_pods_as_targets() {
        let title = format!("annotate {} with {key}: {value}", ingress.object().short());
        let path = way!["metadata", "annotations", key];
        let made = Proposal::new("pods-as-targets", 10, title)
            .edit(ingress.object(), path, Change::Set(Tree::text(value)))
            .costs("the load balancer sends to pods, whose security groups have to let it in");
        all.push(in_its_network(cluster, made, &refused));
    }
    let names: Vec<String> =
        refused.iter().map(|service| format!("svc/{}", service.name)).collect();
    let title = format!("type NodePort for {}", names.join(" and "));
    let mut made = Proposal::new("node-port", 15, title)
        .costs("each of these Services gets a port on every node, to which the nodes' groups have to let the load balancer");
    for service in refused {
        let path = way!["spec", "type"];
        made = made.edit(service.object(), path, Change::Set(Tree::text("NodePort")));
        made = with_node_ports(case, made, service);
    }
    all.push(made);
    all
}

/// Adds the condition that pods have addresses to which the load balancer has a route.
fn in_its_network(cluster: &Cluster, made: Proposal, services: &[&Service]) -> Proposal {
    let what = "pods have addresses of the load balancer's network";
    let ranges = &cluster.network.vpc_cidrs;
    let endpoints = services.iter().flat_map(|service| cluster.slices(&service.name));
    let mut pods = endpoints.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address);
    let outside = pods.find(|ip| !ranges.value.iter().any(|net| net.contains(ip)));
    match outside {
        Some(ip) if !ranges.is_supposed() => {
            made.when(what, false, format!("{ip} is not one: there is no route to it"))
        }
        Some(ip) => made.ask(what, format!("{ip} may be one: the ranges are an assumption")),
        None => made.when(what, true, "all endpoints are in its ranges"),
    }
}
