//! Builds a cluster: the fabric, nodes, and the links between them. [`pods`](super::pods) attaches
//! the pods, [`edge`](super::edge) adds what is outside the VPC.
//!
//! ```text
//!  pod eth0 ── cbr0 [node] eth0 ── n<i> [fabric] edge ── fabric [edge] ── eth0 [outside]
//!  pod eth0 ── pods-<j> [node] eth1 ── e<i>                          (VPC-CNI)
//!  pod eth0 ── pods-<j> [node] eth0 ── n<i>                          (routed)
//! ```
//! Every node has its own veth pair to the fabric, a host address (/32 or /128) and no neighbour
//! but the fabric: all packets that leave a node cross the fabric, as in a VPC. A bridge would
//! behave differently: it drops frames that have to leave by the port they came in by, and nodes
//! would answer each other without passing the load balancer.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use uturn_model::lb::Scope;
use uturn_model::network::{Network, NetworkMode, Transport};
use uturn_model::node::RpFilter;
use uturn_model::{Client, Cluster, Family, Name, NamespacedName, Node, Pod};

use super::edge::Edge;
use super::namespace::Namespace;
use super::netlink::{End, Index, Mac, Netlink, Via};
use super::state::Run;
use super::system::During;
use super::{pods, public, tunnel};
use crate::{LabError, Plan};

/// The link-local address of the router at the other end of each link.
pub(crate) const ROUTER: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
];

/// A cluster made of namespaces, which are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Twin {
    pub(crate) fabric: Namespace,
    pub(crate) nodes: BTreeMap<Name, Namespace>,
    pub(crate) pods: BTreeMap<NamespacedName, Namespace>,
    /// Public load balancers and clients outside, if the plan has any.
    pub(crate) edge: Option<Edge>,
}

impl Twin {
    /// Builds the nodes, and the pods for which `wanted` returns true.
    pub(crate) fn build(
        run: &Run,
        plan: &Plan<'_>,
        wanted: impl Fn(&Pod) -> bool,
    ) -> Result<Self, LabError> {
        let cluster = plan.cluster;
        let fabric = namespace(run, "fabric")?;
        fabric.run(fabric_kernel).during("set up the fabric")?;
        let mut twin = Self { fabric, nodes: BTreeMap::new(), pods: BTreeMap::new(), edge: None };
        for (number, node) in cluster.nodes.values().enumerate() {
            twin.add_node(run, cluster, number, node)?;
        }
        if cluster.network.transport.value == Transport::Tunnel {
            tunnel::add(cluster, &twin)?;
        }
        let pods = cluster.pods.values().filter(|pod| pod.is_alive() && wanted(pod));
        for (number, pod) in pods.filter(|pod| !pod.spec.host_network).enumerate() {
            let space = pods::build(run, cluster, &twin, number, pod)?;
            twin.pods.insert(pod.name.clone(), space);
        }
        if public::is_needed(plan) {
            twin.edge = Some(Edge::build(run, plan, &twin.fabric)?);
        }
        twin.fabric
            .run(|| discard_unknown_addresses(&cluster.network))
            .during("set up the fabric")?;
        Ok(twin)
    }

    /// The namespace of a pod. `None` if the pod is not built.
    pub(crate) fn of_pod(&self, pod: &Pod) -> Option<&Namespace> {
        if pod.spec.host_network {
            self.nodes.get(pod.node.as_ref()?)
        } else {
            self.pods.get(&pod.name)
        }
    }

    /// The namespace of a client. `None` if it is not built.
    pub(crate) fn of_client(&self, cluster: &Cluster, client: &Client) -> Option<&Namespace> {
        match client {
            Client::Pod(name) => self.of_pod(cluster.pods.get(name)?),
            Client::Node(name) => self.nodes.get(name),
            Client::Outside(address) => self.edge.as_ref()?.clients.get(address),
            Client::Workload(..) => None,
        }
    }

    /// The namespace of the load balancers of a scope: the fabric for private ones, the edge for
    /// public ones.
    pub(crate) fn of_balancers(&self, scope: Scope) -> Option<&Namespace> {
        match scope {
            Scope::Private => Some(&self.fabric),
            Scope::Public => self.edge.as_ref().map(|edge| &edge.space),
        }
    }

    fn add_node(
        &mut self,
        run: &Run,
        cluster: &Cluster,
        number: usize,
        node: &Node,
    ) -> Result<(), LabError> {
        let network = &cluster.network;
        if node.internal_ips.is_empty() {
            return Err(LabError::Plan(format!("node {} has no address", node.name)));
        }
        let doing = format!("build node {}", node.name);
        let space = namespace(run, &format!("node-{}", node.name))?;
        space.run(|| node_kernel(node)).during(&doing)?;
        let uplink = Wire { here: uplink(number), there: "eth0", mac: mac(2, number) };
        let is_ranged = node.routed != Some(false)
            && network.mode.value != NetworkMode::Routed
            && network.transport.value == Transport::Underlay;
        self.fabric
            .run(|| {
                let mut netlink = Netlink::open()?;
                let link = uplink.lay(&mut netlink, mac(1, number), &space)?;
                for ip in &node.internal_ips {
                    netlink.add_neighbour(link, *ip, uplink.mac)?;
                    netlink.add_route((*ip).into(), Via::Link(link))?;
                }
                for range in node.pod_cidrs.iter().filter(|_| is_ranged) {
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
                    netlink.add_neighbour(uplink, router, mac(1, number))?;
                    if node.address(Family::of(router)).is_some() {
                        netlink.add_route(everything(router), Via::Router(router, uplink))?;
                    }
                }
                Ok(())
            })
            .during(&doing)?;
        match network.mode.value {
            NetworkMode::GlobalRouter => pods::add_bridge(&space, cluster, number, node),
            NetworkMode::VpcCni => pods::add_card(&self.fabric, &space, number),
            NetworkMode::Routed => Ok(()),
        }
        .during(&doing)?;
        self.nodes.insert(node.name.clone(), space);
        Ok(())
    }
}

/// What a node's links are called in the fabric.
pub(crate) fn links_of(network: &Network, number: usize) -> Vec<String> {
    match network.mode.value {
        NetworkMode::GlobalRouter | NetworkMode::Routed => vec![uplink(number)],
        NetworkMode::VpcCni => vec![uplink(number), pods::card(number)],
    }
}

/// What a node's link is called in the fabric.
pub(crate) fn uplink(number: usize) -> String {
    format!("n{number}")
}

/// A veth pair, seen from one end.
pub(crate) struct Wire {
    pub(crate) here: String,
    pub(crate) there: &'static str,
    /// The other end's hardware.
    pub(crate) mac: Mac,
}

impl Wire {
    /// Creates the pair between the calling thread's namespace and another, whose end stays down.
    pub(crate) fn lay(
        &self,
        netlink: &mut Netlink,
        mac: Mac,
        other: &Namespace,
    ) -> io::Result<Index> {
        let here = End { name: &self.here, mac };
        netlink.add_pair(&here, &End { name: self.there, mac: self.mac }, other)?;
        let link = netlink.index(&self.here)?;
        netlink.up(link)?;
        Ok(link)
    }
}

/// Discards packets to unused addresses of the cluster's ranges and to Service addresses, as the
/// cloud does. If there is an edge, packets to addresses outside the VPC go there first.
fn discard_unknown_addresses(network: &Network) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let hole = netlink.add_discarding_link()?;
    let Network { vpc_cidrs, pod_cidrs, service_cidrs, .. } = network;
    let known = [vpc_cidrs, pod_cidrs, service_cidrs].into_iter().flat_map(|ranges| &ranges.value);
    for range in known.copied().chain(ROUTER.map(everything)) {
        match netlink.add_route(range.trunc(), Via::Link(hole)) {
            // A node has the whole range, or it was named twice.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    Ok(())
}

pub(crate) fn everything(of: IpAddr) -> IpNet {
    match of {
        IpAddr::V4(_) => IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        IpAddr::V6(_) => IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

/// A hardware address that encodes its purpose and the number of its owner.
pub(crate) fn mac(what: u8, number: usize) -> Mac {
    let [.., high, middle, low] = number.to_be_bytes();
    [0x02, 0x75, what, high, middle, low]
}

pub(crate) fn namespace(run: &Run, what: &str) -> Result<Namespace, LabError> {
    // A file name has at most 255 bytes.
    let name = run.namespace(&what[..what.len().min(200)]);
    Namespace::new(name).during(&format!("make the namespace of {what}"))
}

/// Kernel settings of the fabric and the edge, which forward packets between nodes.
pub(crate) fn fabric_kernel() -> io::Result<()> {
    router_kernel(RpFilter::Off)?;
    set_syn_retries(None)?;
    // A VPC sends no ICMP redirects, and it forwards packets with a load balancer's source
    // address that a node sends. The kernel would drop these as its own, since the lab has the
    // load balancer in the same namespace.
    for which in ["all", "default"] {
        Namespace::set_sysctl(&format!("net/ipv4/conf/{which}/send_redirects"), "0")?;
        Namespace::set_sysctl(&format!("net/ipv4/conf/{which}/accept_local"), "1")?;
    }
    Netlink::open()?.up(Index::LOOPBACK)
}

fn node_kernel(node: &Node) -> io::Result<()> {
    set_syn_retries(Some(node))?;
    router_kernel(node.rp_filter.unwrap_or(RpFilter::Off))?;
    let sees = if node.bridge_rules == Some(false) { "0" } else { "1" };
    for family in ["iptables", "ip6tables"] {
        Namespace::set_sysctl(&format!("net/bridge/bridge-nf-call-{family}"), sees)?;
    }
    if node.forwards == Some(false) {
        Namespace::set_sysctl("net/ipv4/ip_forward", "0")?;
        set_ipv6("net/ipv6/conf/all/forwarding", "0")?;
    }
    Netlink::open()?.up(Index::LOOPBACK)
}

/// Sets when this namespace retransmits a SYN: as the node's kernel does or, if its version is
/// not known, as kernels before Linux 6.5.
pub(crate) fn set_syn_retries(node: Option<&Node>) -> io::Result<()> {
    let version = node.and_then(Node::kernel_version);
    let is_steady = version.is_some_and(|version| version >= (6, 5));
    let value = if is_steady { "4" } else { "0" };
    match Namespace::set_sysctl("net/ipv4/tcp_syn_linear_timeouts", value) {
        // Kernels before 6.5 have no such setting.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Must be called before links are created, which inherit these settings.
fn router_kernel(rp_filter: RpFilter) -> io::Result<()> {
    let rp_filter = match rp_filter {
        RpFilter::Off => "0",
        RpFilter::Strict => "1",
        RpFilter::Loose => "2",
    };
    Namespace::set_sysctl("net/ipv4/ip_forward", "1")?;
    // One client stands for many: with the default rate limits only its first connects would get
    // an ICMP error.
    Namespace::set_sysctl("net/ipv4/icmp_ratemask", "0")?;
    for which in ["all", "default"] {
        Namespace::set_sysctl(&format!("net/ipv4/conf/{which}/rp_filter"), rp_filter)?;
    }
    set_ipv6("net/ipv6/conf/all/forwarding", "1")?;
    set_ipv6("net/ipv6/icmp/ratelimit", "0")?;
    disable_address_detection()
}

/// Disables duplicate address detection, so that IPv6 addresses are usable immediately. Must be
/// called before links are created. (A router without a usable address sends no neighbour
/// solicitations.)
pub(crate) fn disable_address_detection() -> io::Result<()> {
    set_ipv6("net/ipv6/conf/all/accept_dad", "0")?;
    set_ipv6("net/ipv6/conf/default/accept_dad", "0")
}

/// Sets an IPv6 sysctl. Does nothing if the kernel has no IPv6.
fn set_ipv6(key: &str, value: &str) -> io::Result<()> {
    match Namespace::set_sysctl(key, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
