//! Lists what Facts state and nothing reads: a name or an address that no object has. A typo there
//! would otherwise be taken for an answer.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_model::lb::LoadBalancerFact;
use uturn_model::network::NetworkMode;
use uturn_model::wording::some_of;
use uturn_model::{AssumptionSubject, Labels, Text};

use super::Assumptions;
use super::serve::Served;
use crate::decode::facts::NodeFacts;

/// Lists the facts that name no object of the cluster.
pub(super) fn list(served: &Served, assumptions: &mut Assumptions) {
    nodes(served, assumptions);
    security_groups(served, assumptions);
    let population = &served.population;
    // Without objects, there is nothing that Facts could be compared with.
    if population.services.0.is_empty() && population.ingresses.0.is_empty() {
        return;
    }
    for fact in &served.population.facts.load_balancers {
        balancer(served, fact, assumptions);
    }
}

/// Lists the Services that nodes are stated to lack and that do not exist. A node that does not exist
/// has been supposed before.
fn nodes(served: &Served, assumptions: &mut Assumptions) {
    let population = &served.population;
    hairpin(served, assumptions);
    for (name, own) in &population.facts.nodes {
        let unprogrammed = own.unprogrammed.iter().flat_map(|(services, _)| services);
        for service in unprogrammed.filter(|name| !population.services.0.contains_key(*name)) {
            let about = format!("spec.nodes.{name}.unprogrammed of Facts: {service}");
            let because = "there is no such Service";
            no_effect(assumptions, about, because, "correct the name");
        }
    }
}

/// Lists the hairpin mode that is stated off where no bridge has it.
fn hairpin(served: &Served, assumptions: &mut Assumptions) {
    let network = &served.network;
    let is_told = network.mode.value == NetworkMode::Routed && network.plugin.value.may_bridge();
    if network.mode.value == NetworkMode::GlobalRouter || is_told {
        return;
    }
    let facts = &served.population.facts;
    let of_each = facts.nodes.iter().map(|(name, own)| (name.as_str(), own));
    let is_off = |own: &NodeFacts| matches!(own.hairpin, Some((false, _)));
    for (name, _) in of_each.chain([("*", &facts.every_node)]).filter(|(_, own)| is_off(own)) {
        let about = format!("spec.nodes.{name}.hairpin of Facts");
        let because = "the pod network has a link for each pod and no bridge with a hairpin mode";
        let settle = "state a network plugin with a bridge, or take it out";
        no_effect(assumptions, about, because, settle);
    }
}

fn security_groups(served: &Served, assumptions: &mut Assumptions) {
    let population = &served.population;
    let facts = &population.facts;
    let nodes = population.nodes.0.values().filter_map(|node| node.security_groups.as_ref());
    let balancers = facts.load_balancers.iter().filter_map(|fact| fact.security_groups.as_ref());
    let used: BTreeSet<&Text> = nodes.chain(balancers).flatten().collect();
    let names = |notes: &Labels, group: &str| {
        notes.iter().any(|(_, value)| value.split(',').any(|word| word.trim() == group))
    };
    for group in facts.security_groups.keys().filter(|group| !used.contains(group)) {
        let mut services = population.services.0.values();
        let mut ingresses = population.ingresses.0.values();
        let is_named = services.any(|service| names(&service.annotations, group))
            || ingresses.any(|ingress| {
                names(&ingress.annotations, group) || names(&ingress.class_settings, group)
            });
        if !is_named {
            let about = format!("spec.securityGroups.{group} of Facts");
            let because = "no node, no load balancer and no annotation names it";
            let settle = "name it under securityGroups of spec.nodes or spec.loadBalancers";
            no_effect(assumptions, about, because, settle);
        }
    }
}

/// Lists a load balancer at whose address no Service or Ingress has one, and its listeners for ports
/// that the Services there do not have.
fn balancer(served: &Served, fact: &LoadBalancerFact, assumptions: &mut Assumptions) {
    if fact.own_listeners().next().is_some() {
        return;
    }
    let population = &served.population;
    let at = |ip: IpAddr| ip == fact.vip;
    let by_name = |host: Option<&str>| {
        let named = host.map_or(&[][..], |host| served.dns.of_balancer(host));
        named.iter().any(|own| at(own.address))
    };
    let services = population.services.0.values().filter(|service| {
        let mut status = service.load_balancer.iter();
        status.any(|entry| entry.ip.is_some_and(at) || by_name(entry.hostname.as_deref()))
            || service.external_ips.iter().copied().any(at)
    });
    let services: Vec<_> = services.collect();
    let has_ingress = population.ingresses.0.values().any(|ingress| {
        let mut status = ingress.load_balancer.iter();
        status.any(|entry| entry.ip.is_some_and(at) || by_name(entry.hostname.as_deref()))
    });
    let about = format!("the load balancer {} of Facts ({})", fact.vip, fact.origin);
    if services.is_empty() && !has_ingress {
        let because = "no Service and no Ingress has this address, and none of its listeners has \
                       targets of its own";
        let settle = "correct its vip, or state targets of its listeners";
        no_effect(assumptions, about, because, settle);
        return;
    }
    if has_ingress {
        return;
    }
    for listener in &fact.listeners {
        let mut ports = services.iter().flat_map(|service| &service.ports);
        if !ports.any(|port| port.port == listener.port) {
            let names: Vec<_> = services.iter().map(|service| service.object()).collect();
            let because = format!("{} has no port {}", some_of(&names), listener.port);
            let about = format!("port {} of {about}", listener.port);
            no_effect(assumptions, about, because, "correct the port");
        }
    }
}

fn no_effect(
    assumptions: &mut Assumptions,
    about: String,
    because: impl Into<Text>,
    settle: impl Into<Text>,
) {
    let about = AssumptionSubject::Input(about.into());
    assumptions.assume(about, "it has no effect", because, settle);
}
