//! The addresses of load balancers whose status has only a name: those that Facts state of the
//! name, else addresses that stand for them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use uturn_lb::cloud::{self, Maker, Product};
use uturn_lb::controller;
use uturn_model::cluster::Provider;
use uturn_model::lb::NamedAddress;
use uturn_model::service::{LbIngress, Policy, ServiceKind};
use uturn_model::{EndpointSlice, Known, Name, NamespacedName, Node, Service, Text};

use super::Suppositions;
use super::ranges::Ranges;
use crate::decode::objects::Objects;

/// Where addresses are that stand for those of public load balancers: a range that no network
/// routes.
const PUBLIC: &str = "198.18.0.0/15";

/// Finds the addresses of each load balancer that has only a name, and that is described.
pub(super) fn derive(
    objects: &Objects,
    endpoints: &BTreeMap<NamespacedName, Vec<EndpointSlice>>,
    provider: &Known<Provider>,
    ranges: &mut Ranges,
    suppositions: &mut Suppositions,
) -> BTreeMap<Text, Vec<NamedAddress>> {
    let mut all: BTreeMap<Text, Vec<NamedAddress>> = BTreeMap::new();
    for fact in &objects.facts.load_balancers {
        let Some(host) = &fact.hostname else { continue };
        let at = NamedAddress { address: fact.vip, zone: fact.zone.clone() };
        all.entry(host.clone()).or_default().push(at);
    }
    let mut stood_for: Vec<Text> = Vec::new();
    for service in objects.services.0.values() {
        if service.kind != ServiceKind::LoadBalancer {
            continue;
        }
        let Maker::Product(product, _) = cloud::maker_of(service, provider) else { continue };
        for host in service.load_balancer.iter().filter_map(only_name) {
            let entry = all.entry(host);
            let Entry::Vacant(entry) = entry else { continue };
            let mut addresses = stated(objects, entry.key());
            if addresses.is_empty() {
                let written = product.address_of_name(service, entry.key());
                addresses.extend(written.map(|address| NamedAddress { address, zone: None }));
            }
            if addresses.is_empty() {
                stood_for.push(entry.key().clone());
                addresses = stand_ins(objects, endpoints, service, product, ranges);
            }
            entry.insert(addresses);
        }
    }
    for ingress in objects.ingresses.0.values() {
        let Some(product) = controller::product_of(ingress) else { continue };
        for host in ingress.load_balancer.iter().filter_map(only_name) {
            let Entry::Vacant(entry) = all.entry(host) else { continue };
            let mut addresses = stated(objects, entry.key());
            if addresses.is_empty() {
                stood_for.push(entry.key().clone());
                let net = network(objects, product.is_private(ingress), ranges);
                let address = ranges.address(net, 200);
                addresses = address
                    .map(|address| NamedAddress { address, zone: None })
                    .into_iter()
                    .collect();
            }
            entry.insert(addresses);
        }
    }
    if let Some(first) = stood_for.first() {
        let more = match stood_for.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let taken: Vec<String> = all[first].iter().map(|named| named.address.to_string()).collect();
        suppositions.suppose(
            format!("addresses of {first}{more}"),
            format!("{} stand for them", taken.join(", ")),
            "the status has a name and no address",
            "state them in Facts: spec.dns.outside",
        );
    }
    all
}

/// The name of an entry of a status that has no address, in lower case.
fn only_name(entry: &LbIngress) -> Option<Text> {
    let host = entry.hostname.as_deref().filter(|_| entry.ip.is_none())?;
    Some(host.trim_end_matches('.').to_ascii_lowercase().into())
}

/// What Facts state that a name leads to.
fn stated(objects: &Objects, host: &str) -> Vec<NamedAddress> {
    let is_it = |name: &str| name.trim_end_matches('.').eq_ignore_ascii_case(host);
    let outside = objects.facts.outside.iter().filter(|(name, _)| is_it(name));
    outside.map(|(_, address)| NamedAddress { address: *address, zone: None }).collect()
}

/// An address that stands for that of a load balancer; where each of its addresses serves a zone,
/// one for each zone that has a target. A zone without one leaves the name.
fn stand_ins(
    objects: &Objects,
    endpoints: &BTreeMap<NamespacedName, Vec<EndpointSlice>>,
    service: &Service,
    product: &dyn Product,
    ranges: &mut Ranges,
) -> Vec<NamedAddress> {
    let zones = zones(objects, endpoints, service, product);
    let zones: Vec<Option<&str>> = match product.serves_by_zone(service) {
        true if !zones.is_empty() => zones.into_iter().map(Some).collect(),
        _ => vec![None],
    };
    let net = network(objects, product.is_private(service).unwrap_or(false), ranges);
    let address = |zone: Option<&str>| {
        Some(NamedAddress { address: ranges.address(net, 200)?, zone: zone.map(Text::from) })
    };
    zones.into_iter().filter_map(address).collect()
}

/// The range that such an address is taken from.
fn network(objects: &Objects, is_private: bool, ranges: &mut Ranges) -> IpNet {
    match is_private {
        true => ranges.vpc(objects),
        false => PUBLIC.parse().expect("a constant range"),
    }
}

/// The zones of the nodes that are targets of a Service: under policy Local those with a ready
/// endpoint, unless there is none.
fn zones<'o>(
    objects: &'o Objects,
    endpoints: &BTreeMap<NamespacedName, Vec<EndpointSlice>>,
    service: &Service,
    product: &dyn Product,
) -> BTreeSet<&'o str> {
    let slices = endpoints.get(&service.name).into_iter().flatten();
    let ready = slices.flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.ready);
    let homes: BTreeSet<&Name> = ready.filter_map(|endpoint| endpoint.node.as_ref()).collect();
    let is_target =
        |node: &&Node| controller::is_usual_target(node) && product.takes_node(service, node);
    let nodes = || objects.nodes.0.values().filter(is_target);
    let answers = |node: &&Node| homes.contains(&node.name);
    let with_pods: BTreeSet<&str> = nodes().filter(answers).filter_map(Node::zone).collect();
    match service.external_policy == Policy::Local && !with_pods.is_empty() {
        true => with_pods,
        false => nodes().filter_map(Node::zone).collect(),
    }
}
