//! Derives the network around the nodes.

use std::net::IpAddr;

use ipnet::IpNet;
use uturn_clouds::cloud;
use uturn_model::network::{FLANNEL_MASQUERADE, Network, NetworkMode, Plugin, covering_each};
use uturn_model::service::{Policy, ServiceKind};
use uturn_model::{Basis, Family, Known, ProxyMode, Service};

use crate::decode::facts::Fact;
use crate::decode::objects::Objects;
use crate::derive::ground::Ground;
use crate::derive::ground::plugin::{self, Transports};
use crate::derive::ground::proxy;
use crate::derive::populate::Population;
use crate::derive::populate::ranges::Ranges;
use crate::derive::{Assumptions, joined, nets};

/// Derives the network's ranges, plugin and transport.
pub(super) fn derive(
    population: &Population,
    ground: &Ground,
    ranges: &Ranges,
    assumptions: &mut Assumptions,
) -> Network {
    let objects: &Objects = population;
    let (plugin, mode) = (&ground.plugin, &ground.mode);
    let facts = &objects.facts;
    let vpc_cidrs = stated(&facts.vpc_cidrs).unwrap_or_else(|| vpc(objects, ranges, assumptions));
    let pod_cidrs = stated(&facts.pod_cidrs).unwrap_or_else(|| pods(objects, mode, &vpc_cidrs));
    let service_cidrs = stated(&facts.service_cidrs)
        .unwrap_or_else(|| services(objects, ground.proxy.mode.value, assumptions));
    let non_masquerade_cidrs = stated(&facts.non_masquerade_cidrs)
        .unwrap_or_else(|| non_masquerade(objects, plugin, &pod_cidrs, &vpc_cidrs));
    let Transports { usual: transport, v6: transport_v6 } = population.transports.clone();
    let masquerades = plugin::masquerades(objects, plugin);
    let masquerades_to_pods = plugin::masquerades_to_pods(objects, plugin, &masquerades);
    if masquerades_to_pods.is_supposed() && depends_on_masquerade(objects, ground) {
        let because = match &masquerades_to_pods.basis {
            Basis::Supposed(because) => because.to_string(),
            basis => basis.to_string(),
        };
        let settle = "state spec.network.masquerade in Facts";
        assumptions.assume(FLANNEL_MASQUERADE, "it does", because, settle);
    }
    Network {
        plugin: plugin.clone(),
        mode: mode.clone(),
        transport,
        transport_v6,
        masquerades,
        masquerades_to_pods,
        pod_cidrs,
        service_cidrs,
        vpc_cidrs,
        non_masquerade_cidrs,
        host_ports_off: plugin::host_ports_off(objects, plugin, &ground.proxy),
    }
}

/// Returns whether a call's end can depend on it: in IPVS mode, under policy Local, nodes without an
/// endpoint may send calls to other nodes' pods with the client's address.
fn depends_on_masquerade(objects: &Objects, ground: &Ground) -> bool {
    let is_local = |service: &Service| service.external_policy == Policy::Local;
    ground.proxy.mode.value == ProxyMode::Ipvs && objects.services.0.values().any(is_local)
}

fn stated(fact: &Fact<Vec<IpNet>>) -> Option<Known<Vec<IpNet>>> {
    let (nets, origin) = fact.as_ref()?;
    Some(Known::stated(nets.clone(), origin.clone()))
}

fn vpc(objects: &Objects, ranges: &Ranges, assumptions: &mut Assumptions) -> Known<Vec<IpNet>> {
    let nodes = objects.nodes.0.values().flat_map(|node| &node.internal_ips);
    let services = objects.services.0.values().flat_map(|service| &service.load_balancer);
    let ingresses = objects.ingresses.0.values().flat_map(|ingress| &ingress.load_balancer);
    let vips = services.chain(ingresses).filter_map(|entry| entry.ip.as_ref());
    let private = |ip: &&IpAddr| matches!(ip, IpAddr::V4(ip) if ip.is_private());
    let ips = nodes.chain(vips.filter(private));
    let mut nets: Vec<IpNet> = match ranges.vpc {
        Some(net) => vec![net],
        None => Vec::new(),
    };
    let outside = |ip: &&IpAddr| !nets.iter().any(|net| net.contains(*ip));
    let around = ips.filter(outside).filter_map(|ip| match Family::of(*ip) {
        Family::V4 => nets::around(*ip, 16),
        Family::V6 => IpNet::new(*ip, 64).ok().map(|net| net.trunc()),
    });
    let around: Vec<IpNet> = around.collect();
    nets.extend(around);
    nets.sort_unstable();
    nets.dedup();
    let because = "the ranges around nodes and private load balancers";
    if !nets.is_empty() && has_balancers(objects) {
        assumptions.assume(
            "VPC ranges",
            joined(&nets),
            because,
            "state spec.network.vpcCIDRs in Facts",
        );
    }
    Known::supposed(nets, because)
}

fn has_balancers(objects: &Objects) -> bool {
    let service = |service: &Service| service.kind == ServiceKind::LoadBalancer;
    objects.services.0.values().any(service)
        || objects
            .ingresses
            .0
            .values()
            .any(|ingress| cloud::any_serves(ingress, &objects.ingress_classes.0))
}

fn pods(
    objects: &Objects,
    mode: &Known<NetworkMode>,
    vpc: &Known<Vec<IpNet>>,
) -> Known<Vec<IpNet>> {
    let ranges = match proxy::cluster_cidrs(objects) {
        Some((nets, origin)) => Known::stated(nets, origin),
        None if mode.value == NetworkMode::VpcCni => {
            Known::derived(vpc.value.clone(), "vpc-cni: pods have addresses of the VPC")
        }
        None => of_nodes(objects),
    };
    // The ranges in the configuration of kube-proxy and nodes need not be those of the plugin.
    let pod_ranges_besides = match mode.value {
        NetworkMode::Routed => pod_ranges_besides(objects, &ranges.value),
        NetworkMode::GlobalRouter | NetworkMode::VpcCni => Vec::new(),
    };
    if pod_ranges_besides.is_empty() {
        return ranges;
    }
    let nets: Vec<IpNet> = ranges.value.into_iter().chain(pod_ranges_besides).collect();
    Known::supposed(IpNet::aggregate(&nets), "the ranges around the addresses that pods have")
}

fn of_nodes(objects: &Objects) -> Known<Vec<IpNet>> {
    let nets: Vec<IpNet> =
        objects.nodes.0.values().flat_map(|node| node.pod_cidrs.iter().copied()).collect();
    let nets = IpNet::aggregate(&nets);
    let all_written = objects.nodes.0.values().all(|node| !node.supposed);
    if all_written && !nets.is_empty() {
        Known::derived(nets, "the podCIDRs of the nodes")
    } else {
        Known::supposed(nets, "the pod ranges of the nodes are supposed")
    }
}

/// Returns the ranges around pods' addresses that are in none of the known ranges.
fn pod_ranges_besides(objects: &Objects, known: &[IpNet]) -> Vec<IpNet> {
    let own = objects.pods.0.values().filter(|pod| !pod.spec.host_network);
    let ips = own.flat_map(|pod| pod.ips.iter().copied());
    let unknown = ips.filter(|ip| !known.iter().any(|net| net.contains(ip)));
    let mut nets: Vec<IpNet> = unknown.filter_map(|ip| nets::around(ip, 24)).collect();
    nets.sort_unstable();
    nets.dedup();
    nets
}

/// Derives the range of Services. It is only listed as an assumption in nftables mode, the only one
/// with a rule for the whole range.
fn services(
    objects: &Objects,
    proxy: ProxyMode,
    assumptions: &mut Assumptions,
) -> Known<Vec<IpNet>> {
    let ips = objects.services.0.values().flat_map(|service| service.cluster_ips.iter().copied());
    let ips: Vec<IpNet> = ips.map(IpNet::from).collect();
    let (mut nets, mut because) =
        (covering_each(&ips), "the smallest that has every known clusterIP");
    if objects
        .given_endpoints()
        .any(|endpoint| nets.iter().any(|net| net.contains(&endpoint.address)))
    {
        (nets, because) = (
            IpNet::aggregate(&ips),
            "every known clusterIP alone: there are endpoints between them",
        );
    }
    if !nets.is_empty() && proxy == ProxyMode::Nftables {
        let settle = "state spec.network.serviceCIDRs in Facts";
        assumptions.assume("service ranges", joined(&nets), because, settle);
    }
    Known::supposed(nets, because)
}

fn non_masquerade(
    objects: &Objects,
    plugin: &Known<Plugin>,
    pods: &Known<Vec<IpNet>>,
    vpc: &Known<Vec<IpNet>>,
) -> Known<Vec<IpNet>> {
    if let Some((nets, origin)) = &objects.non_masquerade {
        return Known::stated(nets.clone(), origin.clone());
    }
    if plugin.value.usually_masquerades() {
        let because = format!("{} masquerades what leaves the pods' ranges", plugin.value);
        return Known::derived(pods.value.clone(), because);
    }
    let mut nets: Vec<IpNet> = pods.value.iter().chain(&vpc.value).copied().collect();
    nets.sort_unstable();
    nets.dedup();
    Known::supposed(nets, "the ranges of pods and of the VPC, as ip-masq-agent is set up")
}
