//! Determines the addresses of load balancers whose status has only a host name: those that Facts
//! state for the name, or else addresses that stand in for them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_clouds::cloud::{self, IngressProduct, Maker, Product, Targets};
use uturn_clouds::controller;
use uturn_model::cluster::Provider;
use uturn_model::ingress::Backend;
use uturn_model::lb::NamedAddress;
use uturn_model::service::{LbIngress, Policy, ServiceKind};
use uturn_model::{
    EndpointSlice, Family, Ingress, Known, Name, NamespacedName, Node, Service, Text,
};

use crate::decode::objects::Objects;
use crate::derive::Assumptions;
use crate::derive::populate::ranges::{self, Ranges};

/// The ranges of addresses that stand in for those of public load balancers: no network routes
/// them.
const PUBLIC: &str = "198.18.0.0/15";
const PUBLIC_V6: &str = "2001:2::/48";

/// Returns the addresses of each load balancer that has only a name, and whose behaviour is
/// described.
pub(super) fn derive(
    objects: &Objects,
    endpoints: &BTreeMap<NamespacedName, Vec<EndpointSlice>>,
    provider: &Known<Provider>,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) -> BTreeMap<Text, Vec<NamedAddress>> {
    let mut all: BTreeMap<Text, Vec<NamedAddress>> = BTreeMap::new();
    for fact in &objects.facts.load_balancers {
        let Some(host) = &fact.hostname else { continue };
        let at = NamedAddress { address: fact.vip, zone: fact.zone.clone() };
        all.entry(host.clone()).or_default().push(at);
    }
    for (host, address) in objects.services.0.values().flat_map(named_addresses) {
        let is_stated = !stated(objects, &host).is_empty();
        let known = all.entry(host).or_default();
        if !is_stated && known.iter().all(|at| at.address != address) {
            known.push(NamedAddress { address, zone: None });
        }
    }
    all.retain(|_, addresses| !addresses.is_empty());
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
                let is_private = product.is_private(ingress);
                let families = families_of_ingress(objects, ingress, product);
                let address = |family| {
                    let net = network(objects, is_private, family, ranges);
                    Some(NamedAddress { address: ranges.address(net, 200)?, zone: None })
                };
                addresses = families.into_iter().filter_map(address).collect();
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
        assumptions.assume(
            format!("addresses of {first}{more}"),
            format!("{} stand for them", taken.join(", ")),
            "the status has a name and no address",
            "state them in Facts: spec.dns.outside",
        );
    }
    all
}

/// Returns the host name of a status entry that has no address, in lower case.
fn only_name(entry: &LbIngress) -> Option<Text> {
    let host = entry.hostname.as_deref().filter(|_| entry.ip.is_none())?;
    Some(host.trim_end_matches('.').to_ascii_lowercase().into())
}

/// Iterates over the host names in a Service's status that have an address beside them. A word
/// without a dot is a label rather than a name that can be resolved.
fn named_addresses(service: &Service) -> impl Iterator<Item = (Text, IpAddr)> {
    let entries = service.load_balancer.iter();
    entries.filter_map(|entry| {
        let host = entry.hostname.as_deref()?.trim_end_matches('.').to_ascii_lowercase();
        let address = entry.ip.filter(|_| host.contains('.'))?;
        Some((host.into(), address))
    })
}

/// Returns the addresses that Facts state for a name.
fn stated(objects: &Objects, host: &str) -> Vec<NamedAddress> {
    let is_it = |name: &str| name.trim_end_matches('.').eq_ignore_ascii_case(host);
    let outside = objects.facts.outside.iter().filter(|(name, _)| is_it(name));
    outside.map(|(_, address)| NamedAddress { address: *address, zone: None }).collect()
}

/// Returns addresses that stand in for those of a load balancer. If each of its addresses serves a
/// zone, there is one for each zone with a target: an address without a target in its zone is
/// removed from DNS.
fn stand_ins(
    objects: &Objects,
    endpoints: &BTreeMap<NamespacedName, Vec<EndpointSlice>>,
    service: &Service,
    product: &dyn Product,
    ranges: &mut Ranges,
) -> Vec<NamedAddress> {
    let zones = zones(objects, endpoints, service, product);
    let zones: Vec<Option<&str>> = if product.serves_by_zone(service) && !zones.is_empty() {
        zones.into_iter().map(Some).collect()
    } else {
        vec![None]
    };
    let is_private = product.is_private(service).unwrap_or(false);
    let mut all = Vec::new();
    for family in families(has_families(service), product.is_dual_stack(service)) {
        let net = network(objects, is_private, family, ranges);
        let address = |zone: &Option<&str>| {
            Some(NamedAddress { address: ranges.address(net, 200)?, zone: zone.map(Text::from) })
        };
        all.extend(zones.iter().filter_map(address));
    }
    all
}

/// Returns whether a Service has IPv4 and IPv6: by its cluster IPs, or else by the families that it
/// states.
fn has_families(service: &Service) -> [bool; 2] {
    let has = |family| {
        let mut ips = service.cluster_ips.iter();
        if service.cluster_ips.is_empty() {
            service.families.contains(&family)
        } else {
            ips.any(|ip| Family::of(*ip) == family)
        }
    };
    [has(Family::V4), has(Family::V6)]
}

/// Returns the families of a load balancer for Services of these families: IPv6 beside IPv4 if it
/// is dual-stack, and IPv6 alone if its targets have no IPv4.
fn families([has_v4, has_v6]: [bool; 2], is_dual_stack: bool) -> Vec<Family> {
    match (has_v4, has_v6) {
        (true, true) if is_dual_stack => vec![Family::V4, Family::V6],
        (false, true) => vec![Family::V6],
        _ => vec![Family::V4],
    }
}

/// Returns the families of an Ingress's load balancer: those that all of its Services have.
fn families_of_ingress(
    objects: &Objects,
    ingress: &Ingress,
    product: &dyn IngressProduct,
) -> Vec<Family> {
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let backends = ingress.default_backend.iter().chain(paths);
    let names = backends.flat_map(|backend| match backend {
        Backend::Service { name, .. } => {
            let namespace = ingress.name.namespace.clone();
            vec![NamespacedName { namespace, name: name.clone() }]
        }
        Backend::Services(all) => all.iter().map(|one| one.service.clone()).collect(),
        Backend::Resource(_) | Backend::Redirect(_) => Vec::new(),
    });
    let services: Vec<_> =
        names.filter_map(|name| objects.services.0.get(&name)).map(has_families).collect();
    let all_have = |at: usize| !services.is_empty() && services.iter().all(|has| has[at]);
    families([all_have(0), all_have(1)], product.is_dual_stack(ingress))
}

/// Returns the range from which stand-in addresses are taken.
pub(super) fn network(
    objects: &Objects,
    is_private: bool,
    family: Family,
    ranges: &mut Ranges,
) -> IpNet {
    let public = || match family {
        Family::V4 => PUBLIC.parse().expect("a constant range"),
        Family::V6 => PUBLIC_V6.parse().expect("a constant range"),
    };
    match (is_private, family) {
        (true, Family::V4) => ranges.vpc(objects),
        (true, Family::V6) => ranges::vpc_v6(objects).unwrap_or_else(public),
        (false, _) => public(),
    }
}

/// Returns whether a port of a Service has all nodes as targets.
fn targets_nodes(service: &Service, product: &dyn Product) -> bool {
    service.ports.iter().any(|port| {
        let plan = product.port(service, port, Family::V4);
        plan.is_none_or(|plan| plan.targets == Targets::Nodes)
    })
}

/// Returns the zones of a Service's targets: those of all nodes, or of nodes with a ready endpoint
/// if pods are the targets or the policy is Local, unless there are no such nodes.
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
    let need_pods = service.external_policy == Policy::Local || !targets_nodes(service, product);
    if need_pods && !with_pods.is_empty() {
        with_pods
    } else {
        nodes().filter_map(Node::zone).collect()
    }
}
