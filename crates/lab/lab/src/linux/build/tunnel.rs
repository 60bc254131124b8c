//! Tunnels: packets to another node's pods are encapsulated in packets between nodes, because the
//! fabric has no routes to pods.
//!
//! Each node has a VXLAN device over its card. It learns nothing and sends no ARP requests: each
//! node has permanent entries for the hardware and address of every other node, and a route to
//! its pods through the other end of the tunnel, as flannel and Calico configure it.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use uturn_kubeproxy::pod_network;
use uturn_model::network::{NetworkMode, Plugin};
use uturn_model::{Cluster, Family, Node};

use super::lab_cluster::LabCluster;
use super::links::mac;
use crate::LabError;
use crate::linux::kernel::netlink::{Index, Mac, Netlink, Via, Vxlan};
use crate::linux::kernel::system::During;

/// The name of the device on each node, which rules use.
pub(crate) const DEVICE: &str = pod_network::TUNNEL;

/// The protocol number of UDP, which carries VXLAN.
const UDP: u8 = 17;

const ID: u32 = 1;

/// The MTU of pods, so that encapsulated packets fit.
pub(crate) const MTU: u32 = 1430;

/// Adds each node's end of the tunnel and its routes to all other nodes.
pub(crate) fn add(cluster: &Cluster, lab_cluster: &LabCluster) -> Result<(), LabError> {
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
        lab_cluster.nodes[&node.name].run(build).during(&doing)?;
    }
    Ok(())
}

/// Adds a device, to find out whether the kernel can. Works only within [`Namespace::run`].
///
/// [`Namespace::run`]: crate::linux::kernel::namespace::Namespace::run
pub(crate) fn try_out() -> io::Result<()> {
    let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (name, mac, over) = (DEVICE, mac(12, 0), Index::LOOPBACK);
    Netlink::open()?.add_vxlan(&Vxlan { name, mac, id: ID, port: 4789, from, over })
}

/// Another node, as reached through the tunnel.
struct Peer<'a> {
    node: &'a Node,
    mac: Mac,
    /// The destination address of encapsulated packets.
    at: IpAddr,
}

impl Peer<'_> {
    /// Adds routes from `node` to this peer's end of the tunnel and to its pods.
    fn connect(
        &self,
        netlink: &mut Netlink,
        link: Index,
        cluster: &Cluster,
        node: &Node,
    ) -> io::Result<()> {
        netlink.add_peer(link, self.mac, self.at)?;
        let families = Family::BOTH.into_iter();
        for family in families.filter(|family| cluster.network.is_encapsulated(*family)) {
            let ends = |of: &Node| of.tunnel_ips.iter().copied().find(is_of(family));
            // If the tunnel device has no address, the node's is used.
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

    /// Returns the ranges behind this peer: its pods' addresses, or its whole range if it has a
    /// bridge, and the address of its tunnel device unless a range contains it.
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

/// Returns the outer destination of packets from one node to another: an address of the family of
/// `from`'s first address.
fn outer(from: &Node, to: &Node) -> Result<IpAddr, LabError> {
    let family = from.internal_ips.first().map(|ip| Family::of(*ip));
    family
        .and_then(|family| to.address(family))
        .ok_or_else(|| LabError::Plan(format!("a tunnel from node {} to {}", from.name, to.name)))
}

/// Returns the UDP port of encapsulated packets: the plugin's, or VXLAN's default if the plugin
/// uses another encapsulation.
fn port(plugin: Plugin) -> u16 {
    let mut ways = pod_network::wrappings(plugin).iter();
    ways.find(|way| way.protocol == UDP).map_or(4789, |way| way.port)
}

fn is_of(family: Family) -> impl Fn(&IpAddr) -> bool {
    move |ip| Family::of(*ip) == family
}
