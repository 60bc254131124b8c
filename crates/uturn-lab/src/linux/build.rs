//! Builds a cluster: the fabric, nodes, pods, and the links between them.
//!
//! ```text
//!  pod eth0 ── cbr0 [node] eth0 ── n<i> [fabric]
//! ```
//! Every node has a pair of links to the fabric of its own, an address of its own length
//! and no neighbour but the fabric: whatever leaves a node crosses the fabric, as in a VPC.
//! A bridge as fabric would lie (frames that must go back where they came from vanish, and
//! nodes answer each other past the load balancer).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use uturn_model::network::NetworkMode;
use uturn_model::node::RpFilter;
use uturn_model::{Cluster, Family, Name, NamespacedName, Node, Pod};

use super::namespace::Namespace;
use super::netlink::{End, Index, Mac, Netlink, Via};
use super::state::Run;
use super::system::During;
use crate::LabError;

/// The fabric's address on every node's link: never leaves that link.
const ROUTER: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
];

/// A cluster made of namespaces. Goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Twin {
    pub(crate) fabric: Namespace,
    pub(crate) nodes: BTreeMap<Name, Namespace>,
    pub(crate) pods: BTreeMap<NamespacedName, Namespace>,
}

impl Twin {
    /// Builds the nodes, and those pods that `wanted` says.
    pub(crate) fn build(
        run: &Run,
        cluster: &Cluster,
        wanted: impl Fn(&Pod) -> bool,
    ) -> Result<Self, LabError> {
        if cluster.network.mode.value != NetworkMode::GlobalRouter {
            return Err(LabError::Plan("only Global Router networks can be built yet".into()));
        }
        let fabric = namespace(run, "fabric")?;
        fabric.run(fabric_kernel).during("set up the fabric")?;
        let mut twin = Self { fabric, nodes: BTreeMap::new(), pods: BTreeMap::new() };
        for (number, node) in cluster.nodes.values().enumerate() {
            twin.add_node(run, number, node)?;
        }
        let pods = cluster.pods.values().filter(|pod| pod.is_alive() && wanted(pod));
        for (number, pod) in pods.filter(|pod| !pod.spec.host_network).enumerate() {
            twin.add_pod(run, cluster, number, pod)?;
        }
        Ok(twin)
    }

    /// Where a pod's processes are.
    pub(crate) fn of_pod(&self, pod: &Pod) -> Option<&Namespace> {
        if pod.spec.host_network {
            self.nodes.get(pod.node.as_ref()?)
        } else {
            self.pods.get(&pod.name)
        }
    }

    fn add_node(&mut self, run: &Run, number: usize, node: &Node) -> Result<(), LabError> {
        if node.internal_ips.is_empty() {
            return Err(LabError::Plan(format!("node {} has no address", node.name)));
        }
        let doing = format!("build node {}", node.name);
        let space = namespace(run, &format!("node-{}", node.name))?;
        let link = format!("n{number}");
        let (outer, inner) = (mac(1, number), mac(2, number));
        space.run(|| node_kernel(node)).during(&doing)?;
        self.fabric
            .run(|| {
                let mut netlink = Netlink::open()?;
                let here = End { name: &link, mac: outer };
                netlink.add_pair(&here, &End { name: "eth0", mac: inner }, &space)?;
                let link = netlink.index(&link)?;
                netlink.up(link)?;
                for ip in &node.internal_ips {
                    netlink.add_neighbour(link, *ip, inner)?;
                    netlink.add_route((*ip).into(), Via::Link(link))?;
                }
                for range in &node.pod_cidrs {
                    if let Some(ip) = node.address(Family::of(range.addr())) {
                        netlink.add_route(*range, Via::Router(ip, link))?;
                    }
                }
                Ok(())
            })
            .during(&doing)?;
        space
            .run(|| {
                let mut netlink = Netlink::open()?;
                let uplink = netlink.index("eth0")?;
                netlink.up(uplink)?;
                for ip in &node.internal_ips {
                    netlink.add_address(uplink, (*ip).into())?;
                }
                for router in ROUTER {
                    netlink.add_neighbour(uplink, router, outer)?;
                    if node.address(Family::of(router)).is_some() {
                        netlink.add_route(everything(router), Via::Router(router, uplink))?;
                    }
                }
                netlink.add_bridge("cbr0", mac(3, number))?;
                let bridge = netlink.index("cbr0")?;
                for range in &node.pod_cidrs {
                    netlink.add_address(bridge, gateway(*range))?;
                }
                Ok(())
            })
            .during(&doing)?;
        self.nodes.insert(node.name.clone(), space);
        Ok(())
    }

    fn add_pod(
        &mut self,
        run: &Run,
        cluster: &Cluster,
        number: usize,
        pod: &Pod,
    ) -> Result<(), LabError> {
        let node = pod.node.as_ref().and_then(|name| cluster.nodes.get(name)).ok_or_else(|| {
            LabError::Plan(format!("pod {} is on a node that is not known", pod.name))
        })?;
        let addresses = addresses(pod, node)?;
        let doing = format!("build pod {}", pod.name);
        let space = namespace(run, &format!("pod{number}-{}", pod.name.name))?;
        space.run(ipv6_at_once).during(&doing)?;
        let host = &self.nodes[&node.name];
        host.run(|| {
            let mut netlink = Netlink::open()?;
            let name = format!("p{number}");
            let here = End { name: &name, mac: mac(4, number) };
            netlink.add_pair(&here, &End { name: "eth0", mac: mac(5, number) }, &space)?;
            let (bridge, port) = (netlink.index("cbr0")?, netlink.index(&name)?);
            netlink.add_port(bridge, port)?;
            netlink.up(port)
        })
        .during(&doing)?;
        space
            .run(|| {
                let mut netlink = Netlink::open()?;
                netlink.up(Index::LOOPBACK)?;
                let link = netlink.index("eth0")?;
                netlink.up(link)?;
                for (address, gateway) in addresses {
                    netlink.add_address(link, address)?;
                    netlink.add_route(everything(gateway), Via::Router(gateway, link))?;
                }
                Ok(())
            })
            .during(&doing)?;
        self.pods.insert(pod.name.clone(), space);
        Ok(())
    }
}

/// A pod's addresses, each with the length of its node's range and its gateway there.
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

/// The bridge's address: the first of the node's range.
fn gateway(range: IpNet) -> IpNet {
    let first = match range.network() {
        IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() | 1)),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() | 1)),
    };
    IpNet::new(first, range.prefix_len()).expect("the length was valid before")
}

fn everything(of: IpAddr) -> IpNet {
    match of {
        IpAddr::V4(_) => IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        IpAddr::V6(_) => IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

/// A hardware address that says what it is for, and whose.
fn mac(what: u8, number: usize) -> Mac {
    let [.., high, middle, low] = number.to_be_bytes();
    [0x02, 0x75, what, high, middle, low]
}

fn namespace(run: &Run, what: &str) -> Result<Namespace, LabError> {
    // A file name has at most 255 bytes.
    let name = run.namespace(&what[..what.len().min(200)]);
    Namespace::new(name).during(&format!("make the namespace of {what}"))
}

fn fabric_kernel() -> io::Result<()> {
    router_kernel(RpFilter::Off)?;
    // A VPC does not tell nodes of shorter ways.
    for which in ["all", "default"] {
        Namespace::set_sysctl(&format!("net/ipv4/conf/{which}/send_redirects"), "0")?;
    }
    Netlink::open()?.up(Index::LOOPBACK)
}

fn node_kernel(node: &Node) -> io::Result<()> {
    router_kernel(node.rp_filter.unwrap_or(RpFilter::Off))?;
    for family in ["iptables", "ip6tables"] {
        Namespace::set_sysctl(&format!("net/bridge/bridge-nf-call-{family}"), "1")?;
    }
    Netlink::open()?.up(Index::LOOPBACK)
}

/// Before there are links: they take these settings over.
fn router_kernel(rp_filter: RpFilter) -> io::Result<()> {
    let rp_filter = match rp_filter {
        RpFilter::Off => "0",
        RpFilter::Strict => "1",
        RpFilter::Loose => "2",
    };
    Namespace::set_sysctl("net/ipv4/ip_forward", "1")?;
    // One client stands for many: with the usual limits only its first connects would be
    // told that they are rejected.
    Namespace::set_sysctl("net/ipv4/icmp_ratemask", "0")?;
    for which in ["all", "default"] {
        Namespace::set_sysctl(&format!("net/ipv4/conf/{which}/rp_filter"), rp_filter)?;
    }
    set_ipv6("net/ipv6/conf/all/forwarding", "1")?;
    set_ipv6("net/ipv6/icmp/ratelimit", "0")?;
    ipv6_at_once()
}

/// Before there are links: their own IPv6 addresses serve at once, as nobody else can have
/// them. Without one a router asks for no neighbour.
fn ipv6_at_once() -> io::Result<()> {
    set_ipv6("net/ipv6/conf/all/accept_dad", "0")?;
    set_ipv6("net/ipv6/conf/default/accept_dad", "0")
}

/// Sets what is not there when a kernel is built or started without IPv6.
fn set_ipv6(key: &str, value: &str) -> io::Result<()> {
    match Namespace::set_sysctl(key, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
