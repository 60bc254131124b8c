//! Allocates cluster IPs and node ports for Services that were never applied.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::service::ServiceKind;
use uturn_model::wording::{count, some_of};
use uturn_model::{Family, Port, Service};

use crate::decode::objects::Objects;
use crate::derive::populate::Population;
use crate::derive::populate::ranges::Ranges;
use crate::derive::{Assumptions, nets};

/// The range from which Kubernetes allocates node ports.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// Allocates the addresses and node ports that Services lack.
pub(super) fn complete(
    population: &mut Population,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) {
    cluster_ips(population, ranges, assumptions);
    node_ports(population, assumptions);
}

fn lacks_cluster_ip(service: &Service) -> bool {
    service.cluster_ips.is_empty()
        && !service.headless
        && !matches!(service.kind, ServiceKind::ExternalName(_))
}

fn cluster_ips(population: &mut Population, ranges: &mut Ranges, assumptions: &mut Assumptions) {
    let lacking: Vec<_> = population
        .services
        .0
        .values()
        .filter(|service| lacks_cluster_ip(service))
        .map(|service| service.name.clone())
        .collect();
    if lacking.is_empty() {
        return;
    }
    let mut pools: [Option<IpNet>; 2] = [None, None];
    for name in &lacking {
        let families = match population.services.0.get(name) {
            Some(service) if !service.families.is_empty() => service.families.clone(),
            _ => vec![Family::V4],
        };
        for family in families {
            let at = usize::from(family == Family::V6);
            let pool = *pools[at].get_or_insert_with(|| pool(population, ranges, family));
            let address = ranges.address(pool, 10);
            if let (Some(address), Some(service)) =
                (address, population.serving().services.get_mut(name))
            {
                service.cluster_ips.push(address);
            }
        }
    }
    let pools: Vec<String> = pools.iter().flatten().map(ToString::to_string).collect();
    assumptions.assume(
        format!("clusterIP of {}: {}", count(lacking.len(), "Service"), some_of(&lacking)),
        format!("unused addresses of {}", pools.join(" and ")),
        "no clusterIP is given",
        "give the applied Service objects",
    );
}

/// Returns the range of cluster IPs: the stated one, one around a known address, or a free one.
fn pool(objects: &Objects, ranges: &mut Ranges, family: Family) -> IpNet {
    let of = |ip: IpAddr| Family::of(ip) == family;
    let stated = objects.facts.service_cidrs.iter().flat_map(|(nets, _)| nets);
    if let Some(net) = stated.copied().find(|net| of(net.network())) {
        return net;
    }
    let known =
        objects.services.0.values().flat_map(|service| &service.cluster_ips).find(|ip| of(**ip));
    match (known, family) {
        (Some(ip), Family::V4) => nets::around(*ip, 16),
        (Some(ip), Family::V6) => IpNet::new(*ip, 112).ok().map(|net| net.trunc()),
        (None, Family::V4) => None,
        (None, Family::V6) => "fd00:10:96::/112".parse().ok(),
    }
    .unwrap_or_else(|| ranges.for_services())
}

fn node_ports(population: &mut Population, assumptions: &mut Assumptions) {
    let services = population.services.0.values();
    let mut used: HashSet<Port> =
        services.flat_map(|service| &service.ports).filter_map(|port| port.node_port).collect();
    let mut free = NODE_PORTS.filter_map(Port::new);
    let mut lacking = Vec::new();
    for service in population.serving().services.values_mut() {
        let wants = match service.kind {
            ServiceKind::NodePort => true,
            ServiceKind::LoadBalancer => service.allocates_node_ports,
            _ => false,
        };
        if !wants {
            continue;
        }
        let mut gave = false;
        for port in service.ports.iter_mut().filter(|port| port.node_port.is_none()) {
            port.node_port = free.find(|port| used.insert(*port));
            gave = true;
        }
        if gave {
            lacking.push(service.name.clone());
        }
    }
    if !lacking.is_empty() {
        assumptions.assume(
            format!("nodePorts of {}: {}", count(lacking.len(), "Service"), some_of(&lacking)),
            "unused ports from 30000 on",
            "no nodePort is given",
            "give the applied Service objects",
        );
    }
}
