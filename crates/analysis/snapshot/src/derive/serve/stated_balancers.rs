//! Completes load balancers that Facts state, and marks addresses that a cloud's kube-proxy leaves to
//! its load balancers.

use uturn_clouds::cloud::{self, Maker};
use uturn_clouds::controller;
use uturn_model::Known;
use uturn_model::cluster::Provider;
use uturn_model::lb::{Scope, TargetNodes};
use uturn_model::service::{IpMode, LbIngress, ServiceKind};

use crate::decode::objects::Objects;
use crate::derive::Assumptions;
use crate::derive::populate::Population;
use crate::derive::populate::ranges::Ranges;

/// The range of assumed public load balancers, which is reserved for documentation.
pub(super) const PUBLIC: &str = "203.0.113.0/24";

/// Marks the addresses that the cloud's own kube-proxy leaves to the load balancer.
pub(super) fn leave_to_balancers(population: &mut Population, provider: &Known<Provider>) {
    for service in population.serving().services.values_mut() {
        if service.kind != ServiceKind::LoadBalancer
            || !cloud::is_left_to_balancer(service, provider)
        {
            continue;
        }
        for entry in service.load_balancer.iter_mut().filter(|entry| entry.mode == IpMode::Vip) {
            entry.mode = IpMode::LeftToBalancer;
        }
    }
}

/// Gives an address to each load balancer of which Facts state only the host name, and lists the
/// targets that are missing from those that no Service owns.
pub(super) fn complete(
    population: &mut Population,
    provider: &Known<Provider>,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) {
    for mut fact in std::mem::take(&mut population.serving().facts.named_balancers) {
        let host = fact.hostname.clone().unwrap_or_default();
        let stated = population.facts.outside.iter().find(|(name, _)| is_same_host(name, &host));
        let taken = stated.map(|(_, address)| *address);
        let is_private = match fact.scope {
            Some(scope) => scope == Scope::Private,
            None => is_private(population, provider, &host).unwrap_or(true),
        };
        let net = if is_private {
            ranges.vpc(population)
        } else {
            PUBLIC.parse().expect("a constant range")
        };
        let Some(vip) = taken.or_else(|| ranges.address(net, 200)) else { continue };
        if taken.is_none() {
            assumptions.assume(
                format!("the address of {host}"),
                format!("{vip} stands for it"),
                format!("{} has a host name and no address", fact.origin),
                "state its vip in Facts",
            );
        }
        fact.vip = vip;
        population.serving().facts.load_balancers.push(fact);
    }
    for fact in &population.facts.load_balancers {
        for (listener, targets) in fact.own_listeners() {
            let about = format!("targets of {} at port {}", fact.object(), listener.port);
            if let TargetNodes::Named(names) = &targets.nodes {
                for name in names.iter().filter(|name| !population.nodes.0.contains_key(*name)) {
                    let because = format!("{} names it, and there is no such node", fact.origin);
                    let taken = format!("without node {name}");
                    assumptions.assume(&*about, taken, because, "give its Node object");
                }
            }
            if !population.nodes.0.values().any(|node| fact.has_target(targets, node)) {
                let because = format!("no node is what {} asks for", fact.origin);
                assumptions.assume(&*about, "none", because, "look at names, labels and zone");
            }
        }
    }
}

/// Returns whether the Service or Ingress whose status has a host name asks for a private load
/// balancer. Returns `None` if there is none, or if nothing tells.
fn is_private(objects: &Objects, provider: &Known<Provider>, host: &str) -> Option<bool> {
    let has = |status: &[LbIngress]| {
        let mut names = status.iter().filter_map(|entry| entry.hostname.as_deref());
        names.any(|name| is_same_host(name, host))
    };
    let mut services = objects.services.0.values();
    if let Some(service) = services.find(|service| has(&service.load_balancer)) {
        return match cloud::maker_of(service, provider) {
            Maker::Product(product, _) => product.is_private(service),
            _ => None,
        };
    }
    let mut ingresses = objects.ingresses.0.values();
    let ingress = ingresses.find(|ingress| has(&ingress.load_balancer))?;
    Some(controller::product_of(ingress)?.is_private(ingress))
}

fn is_same_host(name: &str, host: &str) -> bool {
    name.trim_end_matches('.').eq_ignore_ascii_case(host)
}
