//! The listeners and targets that the controller of a [`Product`] makes.

use std::net::IpAddr;

use uturn_model::lb::{BehaviourAssumption, Delivery, HealthQuestion, Listener, Rule, Target};
use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Family, IpNet, Name, Node, Service};

use super::product::{PortPlan, Product, SourceRanges, Targets};
use crate::announcers;
use crate::targets;

/// Parts of annotations with which load balancers are told to begin TLS again towards their targets.
const ENCRYPTS: [&str; 4] = ["backend", "bridging", "pool-protocol", "target-protocol"];

/// Returns whether targets get TLS behind a load balancer that ends it: no product does so unless an
/// annotation asks for it. Returns `None` if one may.
fn plain_unless_told(service: &Service) -> Option<bool> {
    let mut keys = service.annotations.iter().map(|(key, _)| key);
    let may = keys.any(|key| ENCRYPTS.iter().any(|part| key.contains(part)));
    (!may).then_some(false)
}

/// The weight that all targets have.
const WEIGHT: u32 = 1;

/// Returns the listeners of a Service at an address, with their targets of a family. An address of
/// a zone serves only targets of that zone.
pub(crate) fn listeners(
    product: &dyn Product,
    cluster: &Cluster,
    service: &Service,
    (address, zone, family): (IpAddr, Option<&str>, Family),
) -> Vec<Listener> {
    let listener = |port: &ServicePort| {
        let mut plan = product.port_in(cluster, service, port, family)?;
        if plan.protocol.ends_tls() && plan.profile.target_tls.is_none() {
            plan.profile.target_tls = plain_unless_told(service);
        }
        let unanswered = product.unanswered_check(cluster, service, port);
        if let Some(check) = &mut plan.profile.health_check
            && let Some(why) = unanswered.filter(|found| found.condition.is_none())
        {
            check.question = HealthQuestion::Unanswered(why.mechanism);
        }
        plan.profile.allowed_sources = allowed_sources(product, cluster, service);
        let mut holder = service.holder.as_ref().filter(|_| product.is_announced());
        let mut announcers = None;
        let mut is_silent = false;
        if product.is_announced() {
            let is_bound = service.vips(family).any(|vip| vip == address);
            let silent = product.nothing_announces(cluster, service, address);
            is_silent = silent.is_some_and(|silent| silent.condition.is_none());
            if announce_everywhere(&mut plan, cluster, address, is_bound) {
                holder = None;
            } else if product.reads_announcements() {
                let found = announcers::of(cluster, service, address);
                plan.profile.assumption.clone_from(&found.assumption);
                announcers = Some(found);
            }
        }
        if holder.is_some() {
            // The holder is elected among all nodes, whether they have a pod or not.
            plan.targets = Targets::Nodes;
        }
        let PortPlan { protocol, targets, profile } = plan;
        let called = match profile.delivery {
            Delivery::ToTarget => port.node_port,
            // The load balancer sends nothing to node ports.
            Delivery::KeepsAddress => Some(port.node_port.unwrap_or(port.port)),
        };
        let called = ServicePort { node_port: called, ..port.clone() };
        let may_be = |node: &Node| {
            !is_silent
                && may_be_target(product, cluster, service, node)
                && !(product.is_announced() && node.lacks_announcer)
                && announcers.as_ref().is_none_or(|announcers| announcers.has_node(node))
        };
        let mut targets = targets_of(cluster, service, &called, family, targets, &may_be);
        // The targets of such a load balancer have a family of the Service's, whichever addresses
        // nodes have: it translates what other clients send.
        let is_of_service = service.cluster_ips.is_empty()
            || service.cluster_ips.iter().any(|ip| Family::of(*ip) == family);
        if product.is_dual_stack(service) && !is_of_service {
            targets.clear();
        }
        if let Some(announcers) = &announcers {
            announcers.retain_preferred(cluster, &mut targets);
        }
        let is_held = |target: &Target| holder.is_some() && target.kind.node() == holder;
        if targets.iter().any(is_held) {
            targets.retain(is_held);
        }
        if let Some(zone) = zone {
            targets.retain(|target| {
                let node = target.kind.node().and_then(|name| cluster.nodes.get(name));
                node.and_then(Node::zone) == Some(zone)
            });
        }
        Some(Listener {
            port: port.port,
            protocol,
            profile,
            rules: vec![Rule {
                host: None,
                path: None,
                service: service.name.clone(),
                owner: service.object(),
                targets,
                redirect: None,
            }],
        })
    };
    service.ports.iter().filter_map(listener).collect()
}

/// Returns the sources that a Service's load balancer allows. Returns `None` if it does not apply
/// the Service's ranges.
fn allowed_sources(
    product: &dyn Product,
    cluster: &Cluster,
    service: &Service,
) -> Option<Vec<IpNet>> {
    if service.source_ranges.is_empty() {
        return None;
    }
    let mut allowed = service.source_ranges.clone();
    match product.source_ranges(service) {
        SourceRanges::Ignored => return None,
        SourceRanges::Applied => {}
        SourceRanges::AppliedWithNodes => {
            let nodes = cluster.nodes.values();
            let addresses =
                nodes.flat_map(|node| node.internal_ips.iter().chain(&node.external_ips));
            allowed.extend(addresses.copied().map(IpNet::from));
        }
    }
    Some(allowed)
}

/// Returns whether every node answers ARP requests for an address. Any node may then get packets
/// for an address that only some nodes should announce, so the plan gets all nodes as targets.
fn announce_everywhere(
    plan: &mut PortPlan,
    cluster: &Cluster,
    address: IpAddr,
    is_bound: bool,
) -> bool {
    let is_answered = cluster.proxy.arp_ranges.iter().any(|range| range.contains(&address));
    let is_everywhere = is_bound && is_answered;
    if is_everywhere && plan.targets == Targets::NodesWithPods {
        plan.targets = Targets::Nodes;
        plan.profile.assumption = Some(BehaviourAssumption {
            assumed: format!("every node answers ARP requests for {address}").into(),
            because: "IPVS mode binds it on every node, and strictARP is off".into(),
            settle: "arping the address from its segment, and count who answers".into(),
        });
    }
    is_everywhere
}

/// Returns the targets of a Service's port, chosen from the nodes that may be targets.
pub(super) fn targets_of(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
    family: Family,
    targets: Targets,
    may_be: &dyn Fn(&Node) -> bool,
) -> Vec<Target> {
    let has_pod = |name: &Name| targets::has_ready_pod(cluster, service, name);
    // A Service has node ports of its own families only.
    let is_served = service.families.is_empty() || service.families.contains(&family);
    let nodes = cluster.nodes.values().filter(|node| is_served && may_be(node));
    match targets {
        Targets::Nodes => targets::node_ports(nodes.collect(), port, family, WEIGHT),
        Targets::NodesWithPods => {
            let with_pods = nodes.filter(|node| has_pod(&node.name)).collect();
            targets::node_ports(with_pods, port, family, WEIGHT)
        }
        Targets::NodesByPods => {
            let mut by_pods = targets::node_ports(nodes.collect(), port, family, WEIGHT);
            by_pods.retain_mut(|target| {
                target.weight = targets::pods_behind(cluster, service, target);
                target.weight > 0
            });
            by_pods
        }
        Targets::Pods => targets::pods(cluster, service, port, family, |endpoint| {
            (endpoint.ready && !endpoint.terminating).then_some(WEIGHT)
        }),
    }
}

/// Returns whether a node may be a target of a Service's load balancer.
pub(crate) fn may_be_target(
    product: &dyn Product,
    cluster: &Cluster,
    service: &Service,
    node: &Node,
) -> bool {
    let is_excluded = node.excluded_from_load_balancers() && product.reads_exclusion(cluster);
    node.ready && !is_excluded && product.takes_node(service, node)
}

/// Returns whether most controllers make a node a target: the node is ready, and no label excludes
/// it.
pub(crate) fn is_target(node: &Node) -> bool {
    node.ready && !node.excluded_from_load_balancers()
}
