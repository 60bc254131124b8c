//! Tunnels: where the fabric does not know pods, packets to another node's pods are wrapped in
//! packets from node to node.
//!
//! Each node has a VXLAN device over its card. Nothing is learned and no ARP request is sent: each node
//! is told of every other one's hardware and address, and has a route to its pods by its end of
//! the tunnel, as flannel and Calico do it.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use uturn_kubeproxy::pod_network;
use uturn_model::network::{NetworkMode, Plugin};
use uturn_model::{Cluster, Family, Node};

use super::build::{Twin, mac};
use super::netlink::{Index, Mac, Netlink, Via, Vxlan};
use super::system::During;
use crate::LabError;

/// What the device is called on each node.
pub(crate) const DEVICE: &str = "vxlan0";

/// The protocol that VXLAN is carried by.
const UDP: u8 = 17;

const ID: u32 = 1;

/// How long packets of pods may be so that they fit when they are wrapped.
pub(crate) const MTU: u32 = 1430;

/// Adds each node's end of the tunnel, and the ways to all others'.
pub(crate) fn add(cluster: &Cluster, twin: &Twin) -> Result<(), LabError> {
    for (number, node) in cluster.nodes.values().enumerate() {
        let doing = format!("build the tunnel of node {}", node.name);
        let from = outer(node, node)?;
        let others =
            cluster.nodes.values().enumerate().filter(|(_, other)| other.name != node.name);
        let peers = others.map(|(number, other)| {
            Ok(Peer { mac: mac(12, number), at: outer(node, other)?, node: other })
        });
        let peers: Vec<Peer<'_>> = peers.collect::<Result<_, LabError>>()?;
        let build = || {
            let mut netlink = Netlink::open()?;
            let over = netlink.index("eth0")?;
            let port = port(cluster.network.plugin.value);
            let device = Vxlan { name: DEVICE, mac: mac(12, number), id: ID, port, from, over };
            netlink.add_vxlan(&device)?;
            let link = netlink.index(DEVICE)?;
            netlink.set_mtu(link, MTU)?;
            netlink.up(link)?;
            node.tunnel_ips.iter().try_for_each(|ip| netlink.add_address(link, (*ip).into()))?;
            peers.iter().try_for_each(|peer| peer.connect(&mut netlink, link, cluster, node))
        };
        twin.nodes[&node.name].run(build).during(&doing)?;
    }
    Ok(())
}

/// Makes a device, to see whether the kernel can. Only from within [`Namespace::run`].
///
/// [`Namespace::run`]: super::namespace::Namespace::run
pub(crate) fn try_out() -> io::Result<()> {
    let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (name, mac, over) = (DEVICE, mac(12, 0), Index::LOOPBACK);
    Netlink::open()?.add_vxlan(&Vxlan { name, mac, id: ID, port: 4789, from, over })
}

/// Another node, as it is reached through the tunnel.
struct Peer<'a> {
    node: &'a Node,
    mac: Mac,
    /// Where packets to it are sent when they are wrapped.
    at: IpAddr,
}

impl Peer<'_> {
    /// The way from `node` to its end of the tunnel and to its pods.
    fn connect(
        &self,
        netlink: &mut Netlink,
        link: Index,
        cluster: &Cluster,
        node: &Node,
    ) -> io::Result<()> {
        netlink.add_peer(link, self.mac, self.at)?;
        for family in Family::BOTH {
            let ends = |of: &Node| of.tunnel_ips.iter().copied().find(is_of(family));
            // Where an end has no address of its own, its node's stands for it.
            let Some(gateway) = ends(self.node).or_else(|| self.node.address(family)) else {
                continue;
            };
            netlink.add_neighbour(link, gateway, self.mac)?;
            let from = ends(node);
            for to in self.ranges(cluster).into_iter().filter(|net| is_of(family)(&net.addr())) {
                netlink.add_route_from(from, to, Via::Router(gateway, link))?;
            }
        }
        Ok(())
    }

    /// What is there: its pods, or all of its range where that is its bridge's; and its end of
    /// the tunnel, where that is in no such range.
    fn ranges(&self, cluster: &Cluster) -> Vec<IpNet> {
        let ranges: Vec<IpNet> = match cluster.network.mode.value {
            NetworkMode::GlobalRouter => self.node.pod_cidrs.iter().map(IpNet::trunc).collect(),
            NetworkMode::Routed | NetworkMode::VpcCni => {
                let own = cluster.pods_on(&self.node.name);
                let own = own.filter(|pod| pod.is_alive() && !pod.spec.host_network);
                own.flat_map(|pod| &pod.ips).copied().map(IpNet::from).collect()
            }
        };
        let ends = self.node.tunnel_ips.iter().copied().map(IpNet::from);
        let is_new = |end: &IpNet| !ranges.iter().any(|range| range.contains(end));
        let ends: Vec<IpNet> = ends.filter(is_new).collect();
        [ranges, ends].concat()
    }
}

/// Where a node sends what it wraps for another: the first of its addresses of the family that
/// `from` has first.
fn outer(from: &Node, to: &Node) -> Result<IpAddr, LabError> {
    let family = from.internal_ips.first().map(|ip| Family::of(*ip));
    family
        .and_then(|family| to.address(family))
        .ok_or_else(|| LabError::Plan(format!("a tunnel from node {} to {}", from.name, to.name)))
}

/// The port that wrapped packets go to: the plugin's, or VXLAN's own where it wraps otherwise.
fn port(plugin: Plugin) -> u16 {
    let mut ways = pod_network::wrappings(plugin).iter();
    ways.find(|way| way.protocol == UDP).map_or(4789, |way| way.port)
}

fn is_of(family: Family) -> impl Fn(&IpAddr) -> bool {
    move |ip| Family::of(*ip) == family
}
