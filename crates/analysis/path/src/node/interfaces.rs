//! Interfaces, addresses and routes of a node that was not captured.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use uturn_clouds::local_addresses;
use uturn_kubeproxy::pod_network::{self, TUNNEL};
use uturn_model::network::NetworkMode;
use uturn_model::network::first_host;
use uturn_model::{Cluster, Family, Name, Node, Origin};
use uturn_netfilter::{Interface, NodeState, PolicyRule, RouteEntry, RouteKind};

/// The interface that leads to the fabric, if no capture names it.
pub(super) const UPLINK: &str = "eth0";
/// The interface that packets of pods use on a VPC-CNI node, if no capture names it, and the table
/// of routes through it. A pod's own packets are routed by that table.
pub(super) const POD_CARD: &str = "eth1";
const POD_TABLE: u32 = 2003;
/// The priorities of the policy rules for packets to a pod and from a pod.
const TO_POD: u32 = 512;
const FROM_POD: u32 = 1536;

/// The device on which kube-proxy binds addresses in IPVS mode.
const IPVS_DEVICE: &str = "kube-ipvs0";

const LOCAL: u32 = 255;
pub(super) const MAIN: u32 = 254;
const DEFAULT: u32 = 253;

/// Binds addresses as kube-proxy does in IPVS mode: on a device that carries no traffic.
pub(super) fn bind(state: &mut NodeState, bound: &[IpAddr], origin: &Origin) {
    if bound.is_empty() {
        return;
    }
    let addresses = bound.iter().map(|ip| (*ip, Family::of(*ip).bits())).collect();
    state.interfaces.push(Interface { name: IPVS_DEVICE.into(), addresses, up: false });
    for ip in bound {
        local(state, *ip, IPVS_DEVICE, origin);
    }
}

/// Adds the interfaces, addresses and routes that a node has for its pods and towards others.
pub(super) fn interfaces(cluster: &Cluster, node: &Node, state: &mut NodeState) {
    let origin = &node.origin;
    let mut uplink = Vec::new();
    let mut loopback = vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), 8)];
    state.routes.push(route("127.0.0.0/8", "lo", LOCAL, RouteKind::Local, origin));
    let has = |family| node.local_addresses.iter().any(|ip| Family::of(*ip) == family);
    if node.address(Family::V6).is_some() || has(Family::V6) {
        loopback.push((IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), 128));
        state.routes.push(route("::1/128", "lo", LOCAL, RouteKind::Local, origin));
    }
    for ip in &node.internal_ips {
        uplink.push((*ip, Family::of(*ip).bits()));
        local(state, *ip, UPLINK, origin);
    }
    for family in Family::BOTH {
        if let Some(ip) = node.address(family) {
            for net in outward(cluster, node, family) {
                let mut outward = route_to(net, UPLINK, MAIN, RouteKind::Unicast, origin);
                outward.src = Some(ip);
                state.routes.push(outward);
            }
        } else if family == Family::V6 && has(family) {
            state.routes.push(route("::/0", UPLINK, MAIN, RouteKind::Unicast, origin));
        }
    }
    for ip in local_addresses::on(cluster, node) {
        loopback.push((ip, Family::of(ip).bits()));
        local(state, ip, "lo", origin);
    }
    let link = pod_network::link(cluster);
    let mut links = vec![("lo", loopback), (UPLINK, uplink)];
    match cluster.network.mode.value {
        NetworkMode::GlobalRouter => {
            let mut bridge = Vec::new();
            for net in &node.pod_cidrs {
                let Some(gateway) = first_host(net) else { continue };
                bridge.push((gateway, net.prefix_len()));
                local(state, gateway, &link, origin);
                let mut pods = route_to(*net, &link, MAIN, RouteKind::Unicast, origin);
                pods.src = Some(gateway);
                state.routes.push(pods);
            }
            links.push((&*link, bridge));
        }
        NetworkMode::Routed => {
            for ip in own_addresses(cluster, &node.name) {
                let net = IpNet::from(ip);
                state.routes.push(route_to(net, &link, MAIN, RouteKind::Unicast, origin));
            }
            links.push((&*link, Vec::new()));
        }
        NetworkMode::VpcCni => {
            for all in ["0.0.0.0/0", "::/0"] {
                let default = route(all, POD_CARD, POD_TABLE, RouteKind::Unicast, origin);
                state.routes.push(default);
            }
            for ip in own_addresses(cluster, &node.name) {
                let net = IpNet::from(ip);
                state.routes.push(route_to(net, &link, MAIN, RouteKind::Unicast, origin));
                let to = PolicyRule { to: Some(net), ..policy(TO_POD, MAIN) };
                let from = PolicyRule { from: Some(net), ..policy(FROM_POD, POD_TABLE) };
                state.rules.extend([to, from]);
            }
            state.rules.sort_by_key(|rule| rule.priority);
            links.extend([(POD_CARD, Vec::new()), (&*link, Vec::new())]);
        }
    }
    if cluster.network.has_tunnels() {
        links.push((TUNNEL, tunnel(cluster, node, state)));
    }
    let is_bridged = cluster.network.mode.value == NetworkMode::GlobalRouter;
    state.bridges = Some(is_bridged.then(|| link.clone()).into_iter().collect());
    state.interfaces = links
        .into_iter()
        .map(|(name, addresses)| Interface { name: name.into(), addresses, up: true })
        .collect();
}

/// Returns the ranges of a family that a node reaches by its card: everything, or what Facts state
/// beside its own network, and where the pod network writes routes on nodes, the pods'.
fn outward(cluster: &Cluster, node: &Node, family: Family) -> Vec<IpNet> {
    let Some(stated) = &node.routes else {
        return vec![family.everything()];
    };
    let network = &cluster.network;
    let by_plugin = network.mode.value == NetworkMode::Routed && !network.is_encapsulated(family);
    let pods = network.pod_cidrs.value.iter().filter(|_| by_plugin);
    let all = stated.iter().chain(&network.vpc_cidrs.value).chain(pods);
    let mut nets: Vec<IpNet> =
        all.copied().filter(|net| Family::of(net.addr()) == family).collect();
    nets.sort_unstable();
    nets.dedup();
    nets
}

/// Returns the addresses of a node's own pods.
pub(super) fn own_addresses(cluster: &Cluster, node: &Name) -> Vec<IpAddr> {
    let own = cluster.pods_on(node).filter(|pod| !pod.spec.host_network);
    own.flat_map(|pod| pod.ips.iter().copied()).collect()
}

/// Routes the pods' ranges, except for the node's own pods, into the tunnel. Returns the addresses
/// of the node's end of the tunnel.
fn tunnel(cluster: &Cluster, node: &Node, state: &mut NodeState) -> Vec<(IpAddr, u8)> {
    let origin = &node.origin;
    for net in &cluster.network.pod_cidrs.value {
        let is_plain = !cluster.network.is_encapsulated(Family::of(net.addr()));
        // On a cluster of one node, all pods are its own.
        if is_plain || state.routes.iter().any(|route| route.dst == *net) {
            continue;
        }
        let mut others = route_to(*net, TUNNEL, MAIN, RouteKind::Unicast, origin);
        let is_of = |ip: &&IpAddr| Family::of(**ip) == Family::of(net.addr());
        others.src = node.tunnel_ips.iter().find(is_of).copied();
        state.routes.push(others);
    }
    for ip in &node.tunnel_ips {
        local(state, *ip, TUNNEL, origin);
    }
    node.tunnel_ips.iter().map(|ip| (*ip, Family::of(*ip).bits())).collect()
}

fn local(state: &mut NodeState, ip: IpAddr, dev: &str, origin: &Origin) {
    state.routes.push(route_to(IpNet::from(ip), dev, LOCAL, RouteKind::Local, origin));
}

fn route(dst: &str, dev: &str, table: u32, kind: RouteKind, origin: &Origin) -> RouteEntry {
    route_to(dst.parse().expect("a constant range"), dev, table, kind, origin)
}

fn route_to(dst: IpNet, dev: &str, table: u32, kind: RouteKind, origin: &Origin) -> RouteEntry {
    RouteEntry {
        dst,
        via: None,
        dev: Some(dev.into()),
        table,
        kind,
        src: None,
        metric: 0,
        origin: origin.clone(),
    }
}

/// Returns the policy rules that every Linux has.
pub(super) fn usual_rules() -> Vec<PolicyRule> {
    [(0, LOCAL), (32766, MAIN), (32767, DEFAULT)]
        .into_iter()
        .map(|(priority, table)| policy(priority, table))
        .collect()
}

/// Makes a rule by which every packet is looked up in a table.
fn policy(priority: u32, table: u32) -> PolicyRule {
    PolicyRule::lookup(priority, table, Origin::Kernel)
}
