//! Creates pods and connects them to their nodes.
//!
//! Global Router: a bridge (`cbr0`) on the node has the node's range of addresses, and pods are its
//! ports.
//!
//! VPC-CNI with a shared network card: pods have addresses of the VPC that belong to a second card
//! of the node (`eth1`). Each pod has a pair of links of its own (`pods-<j>` on the node, or the
//! plugin's name for them), a route to the pod in the main table, and two rules: packets to the pod
//! are routed by the main table, packets from it by the card's own table, whose number is the
//! card's index plus 2000. So pods of one node reach each other through the node, and all other
//! packets leave by the card.
//!
//! Routed: each pod has only a pair of links of its own (on the node) and a route to it. Its
//! address may be any.
//!
//! If packets to other nodes' pods are encapsulated, [`tunnel`](super::tunnel) adds the rest, and
//! the fabric has no routes to pods.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use uturn_kubeproxy::pod_network;
use uturn_model::network::{Network, NetworkMode};
use uturn_model::{Cluster, Family, Node, Pod};

use super::lab_cluster::LabCluster;
use super::links::{ROUTER, Wire, card, everything, mac, namespace, uplink};
use super::tunnel;
use crate::LabError;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Index, Mac, Netlink, Selector, Via};
use crate::linux::kernel::settings::{disable_address_detection, set_syn_retries};
use crate::linux::kernel::system::During;
use crate::linux::run::state::Run;

/// The routing table of a card is this number plus the card's index.
const FIRST_TABLE: u32 = 2000;

/// Priorities of the rules about a pod's address.
const TO_POD: u32 = 512;
const FROM_POD: u32 = 1536;

const MAIN_TABLE: u32 = 254;

/// Adds the bridge of a Global Router node.
pub(crate) fn add_bridge(
    space: &Namespace,
    cluster: &Cluster,
    number: usize,
    node: &Node,
) -> io::Result<()> {
    let name = pod_network::link(cluster);
    space.run(|| {
        let mut netlink = Netlink::open()?;
        netlink.add_bridge(&name, mac(3, number))?;
        let bridge = netlink.index(&name)?;
        node.pod_cidrs.iter().try_for_each(|range| netlink.add_address(bridge, gateway(*range)))
    })
}

/// Adds the second network card of a VPC-CNI node. The card has no address of its own.
pub(crate) fn add_card(fabric: &Namespace, space: &Namespace, number: usize) -> io::Result<()> {
    let wire = Wire { here: card(number), there: "eth1", mac: mac(7, number) };
    fabric.run(|| wire.lay(&mut Netlink::open()?, mac(6, number), space).map(drop))?;
    space.run(|| {
        let mut netlink = Netlink::open()?;
        let card = netlink.index("eth1")?;
        netlink.up(card)?;
        for router in ROUTER {
            netlink.add_neighbour(card, router, mac(6, number))?;
            let table = FIRST_TABLE + card.number();
            netlink.add_route_in(table, everything(router), Via::Router(router, card))?;
        }
        Ok(())
    })
}

/// Builds a pod on its node.
pub(crate) fn build(
    run: &Run,
    cluster: &Cluster,
    lab_cluster: &LabCluster,
    number: usize,
    pod: &Pod,
) -> Result<Namespace, LabError> {
    let place = pod
        .node
        .as_ref()
        .and_then(|name| cluster.nodes.values().enumerate().find(|(_, node)| node.name == *name));
    let (node_number, node) = place.ok_or_else(|| {
        LabError::Plan(format!("pod {} is on a node that is not known", pod.name))
    })?;
    let doing = format!("build pod {}", pod.name);
    let space = namespace(run, &format!("pod{number}-{}", pod.name.name))?;
    space
        .run(|| disable_address_detection().and_then(|()| set_syn_retries(Some(node))))
        .during(&doing)?;
    let host = &lab_cluster.nodes[&node.name];
    // No other interface's name has a hyphen.
    let link = || (format!("{}-{number}", pod_network::link(cluster)), number);
    let addresses = match cluster.network.mode.value {
        NetworkMode::GlobalRouter => {
            let addresses = addresses(pod, node)?;
            plug_in(host, &space, &pod_network::link(cluster), number, node).during(&doing)?;
            addresses
        }
        NetworkMode::Routed => {
            let ips = pod.ips.iter().filter(|ip| is_routed(&cluster.network, node, **ip));
            let place = (uplink(node_number), mac(2, node_number));
            lab_cluster.fabric.run(|| deliver(ips, &place)).during(&doing)?;
            host.run(|| attach(pod, &space, link()).map(drop)).during(&doing)?;
            whole(pod)
        }
        NetworkMode::VpcCni => {
            let place = (card(node_number), mac(7, node_number));
            lab_cluster.fabric.run(|| deliver(pod.ips.iter(), &place)).during(&doing)?;
            host.run(|| {
                attach(pod, &space, link()).and_then(|mut netlink| leave_by_card(&mut netlink, pod))
            })
            .during(&doing)?;
            whole(pod)
        }
    };
    let mtu = cluster.network.has_tunnels().then_some(tunnel::MTU);
    space
        .run(|| {
            let mut netlink = Netlink::open()?;
            netlink.up(Index::LOOPBACK)?;
            let link = netlink.index("eth0")?;
            netlink.up(link)?;
            mtu.map_or(Ok(()), |mtu| netlink.set_mtu(link, mtu))?;
            for (address, gateway) in addresses {
                netlink.add_address(link, address)?;
                if gateway == router(gateway) {
                    netlink.add_neighbour(link, gateway, mac(4, number))?;
                }
                netlink.add_route(everything(gateway), Via::Router(gateway, link))?;
            }
            Ok(())
        })
        .during(&doing)?;
    Ok(space)
}

/// Makes a pod a port of its node's bridge.
fn plug_in(
    host: &Namespace,
    space: &Namespace,
    bridge: &str,
    number: usize,
    node: &Node,
) -> io::Result<()> {
    host.run(|| {
        let mut netlink = Netlink::open()?;
        let wire = Wire { here: format!("p{number}"), there: "eth0", mac: mac(5, number) };
        let port = wire.lay(&mut netlink, mac(4, number), space)?;
        let bridge = netlink.index(bridge)?;
        netlink.add_port(bridge, port, node.hairpin != Some(false))
    })
}

/// Routes a pod's addresses to this link of its node, with this hardware address. Called in the
/// fabric.
fn deliver<'a>(
    ips: impl Iterator<Item = &'a IpAddr>,
    (link, mac): &(String, Mac),
) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let link = netlink.index(link)?;
    for ip in ips {
        netlink.add_neighbour(link, *ip, *mac)?;
        netlink.add_route((*ip).into(), Via::Link(link))?;
    }
    Ok(())
}

/// Returns whether the fabric has a route to this address of a pod in routed mode. Addresses of the
/// VPC need no route to the node's range.
fn is_routed(network: &Network, node: &Node, ip: IpAddr) -> bool {
    let is_in = |nets: &[IpNet]| nets.iter().any(|net| net.contains(&ip));
    let needs_route = is_in(&node.pod_cidrs) || !is_in(&network.vpc_cidrs.value);
    !network.is_encapsulated(Family::of(ip)) && (node.routed != Some(false) || !needs_route)
}

/// Creates a pod's link and the routes to its addresses. Called on the node.
fn attach(pod: &Pod, space: &Namespace, (name, number): (String, usize)) -> io::Result<Netlink> {
    let mut netlink = Netlink::open()?;
    let wire = Wire { here: name, there: "eth0", mac: mac(5, number) };
    let link = wire.lay(&mut netlink, mac(4, number), space)?;
    for ip in &pod.ips {
        netlink.add_neighbour(link, *ip, mac(5, number))?;
        netlink.add_route((*ip).into(), Via::Link(link))?;
    }
    Ok(netlink)
}

/// Makes a pod's packets leave by the second card, except those to the node's own pods. Called on
/// the node.
fn leave_by_card(netlink: &mut Netlink, pod: &Pod) -> io::Result<()> {
    let card = netlink.index("eth1")?;
    for ip in &pod.ips {
        netlink.add_rule(Selector::To(*ip), MAIN_TABLE, TO_POD)?;
        netlink.add_rule(Selector::From(*ip), FIRST_TABLE + card.number(), FROM_POD)?;
    }
    Ok(())
}

/// Returns a pod's addresses as host routes, each with its gateway.
fn whole(pod: &Pod) -> Vec<(IpNet, IpAddr)> {
    pod.ips.iter().map(|ip| (IpNet::from(*ip), router(*ip))).collect()
}

fn router(of: IpAddr) -> IpAddr {
    if of.is_ipv4() { ROUTER[0] } else { ROUTER[1] }
}

/// Returns a pod's addresses, each with the length of its node's range and its gateway there.
fn addresses(pod: &Pod, node: &Node) -> Result<Vec<(IpNet, IpAddr)>, LabError> {
    let placed = |ip: &IpAddr| {
        let range = node.pod_cidrs.iter().find(|range| range.contains(ip)).ok_or_else(|| {
            LabError::Plan(format!(
                "the address {ip} of pod {} is in no range of node {}",
                pod.name, node.name
            ))
        })?;
        let net = IpNet::new(*ip, range.prefix_len()).map_err(|_| {
            LabError::Plan(format!("the range {range} of node {} is none", node.name))
        })?;
        Ok((net, gateway(*range).addr()))
    };
    pod.ips.iter().map(placed).collect()
}

/// Returns the bridge's address: the first of the node's range.
fn gateway(range: IpNet) -> IpNet {
    let first = match range.network() {
        IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() | 1)),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() | 1)),
    };
    IpNet::new(first, range.prefix_len()).expect("the length was valid before")
}
