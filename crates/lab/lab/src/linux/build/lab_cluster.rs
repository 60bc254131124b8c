//! Builds a cluster: the fabric, nodes, and the links between them. [`pods`](super::pods) attaches
//! the pods, and [`edge`](super::edge) adds the network outside the VPC.
//!
//! ```text
//!  pod eth0 ── cbr0 [node] eth0 ── n<i> [fabric] edge ── fabric [edge] ── eth0 [outside]
//!  pod eth0 ── pods-<j> [node] eth1 ── e<i>                          (VPC-CNI)
//!  pod eth0 ── pods-<j> [node] eth0 ── n<i>                          (routed)
//! ```
//! Every node has its own veth pair to the fabric, a host address (/32 or /128) and no neighbour
//! but the fabric: all packets that leave a node cross the fabric, as in a VPC. A bridge would
//! behave differently: it drops frames that have to leave by the port by which they came, and nodes
//! would answer each other without passing the load balancer.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use uturn_clouds::local_addresses;
use uturn_model::lb::Scope;
use uturn_model::network::{Network, NetworkMode};
use uturn_model::{Client, Cluster, Family, Name, NamespacedName, Node, Pod};

use super::edge::Edge;
use super::links::{ROUTER, Wire, everything, mac, namespace, uplink};
use super::{handover, pods, public, tunnel};
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Index, Netlink, Via};
use crate::linux::kernel::settings::{fabric_kernel, node_kernel};
use crate::linux::kernel::system::During;
use crate::linux::run::state::Run;
use crate::{LabError, Plan};

/// A cluster made of namespaces, which are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct LabCluster {
    pub(crate) fabric: Namespace,
    pub(crate) nodes: BTreeMap<Name, Namespace>,
    pub(crate) pods: BTreeMap<NamespacedName, Namespace>,
    /// Public load balancers and clients outside, if the plan has any.
    pub(crate) edge: Option<Edge>,
}

impl LabCluster {
    /// Builds the nodes, and the pods for which `wanted` returns true.
    pub(crate) fn build(
        run: &Run,
        plan: &Plan<'_>,
        wanted: impl Fn(&Pod) -> bool,
    ) -> Result<Self, LabError> {
        let cluster = plan.cluster;
        let fabric = namespace(run, "fabric")?;
        fabric.run(fabric_kernel).during("set up the fabric")?;
        let mut lab_cluster =
            Self { fabric, nodes: BTreeMap::new(), pods: BTreeMap::new(), edge: None };
        for (number, node) in cluster.nodes.values().enumerate() {
            lab_cluster.add_node(run, plan, number, node)?;
        }
        if cluster.network.has_tunnels() {
            tunnel::add(cluster, &lab_cluster)?;
        }
        let pods = cluster.pods.values().filter(|pod| pod.is_alive() && wanted(pod));
        for (number, pod) in pods.filter(|pod| !pod.spec.host_network).enumerate() {
            let space = pods::build(run, cluster, &lab_cluster, number, pod)?;
            lab_cluster.pods.insert(pod.name.clone(), space);
        }
        if public::is_needed(plan) {
            lab_cluster.edge = Some(Edge::build(run, plan, &lab_cluster.fabric)?);
        }
        handover::build(plan, &lab_cluster.fabric, lab_cluster.edge.as_ref())?;
        lab_cluster
            .fabric
            .run(|| discard_unknown_addresses(&cluster.network))
            .during("set up the fabric")?;
        Ok(lab_cluster)
    }

    /// Returns the namespace of a pod. `None` if the pod is not built.
    pub(crate) fn of_pod(&self, pod: &Pod) -> Option<&Namespace> {
        if pod.spec.host_network {
            self.nodes.get(pod.node.as_ref()?)
        } else {
            self.pods.get(&pod.name)
        }
    }

    /// Returns the namespace of a client. `None` if it is not built.
    pub(crate) fn of_client(&self, cluster: &Cluster, client: &Client) -> Option<&Namespace> {
        match client {
            Client::Pod(name) => self.of_pod(cluster.pods.get(name)?),
            Client::Node(name) => self.nodes.get(name),
            Client::Outside(address) => self.edge.as_ref()?.clients.get(address),
            Client::Workload(..) => None,
        }
    }

    /// Returns the namespace of the load balancers of a scope: the fabric for private ones, the
    /// edge for public ones.
    pub(crate) fn of_balancers(&self, scope: Scope) -> Option<&Namespace> {
        match scope {
            Scope::Private => Some(&self.fabric),
            Scope::Public => self.edge.as_ref().map(|edge| &edge.space),
        }
    }

    fn add_node(
        &mut self,
        run: &Run,
        plan: &Plan<'_>,
        number: usize,
        node: &Node,
    ) -> Result<(), LabError> {
        let cluster = plan.cluster;
        let network = &cluster.network;
        if node.internal_ips.is_empty() {
            return Err(LabError::Plan(format!("node {} has no address", node.name)));
        }
        let doing = format!("build node {}", node.name);
        let space = namespace(run, &format!("node-{}", node.name))?;
        space.run(|| node_kernel(node)).during(&doing)?;
        let uplink = Wire { here: uplink(number), there: "eth0", mac: mac(2, number) };
        let is_ranged = node.routed != Some(false) && network.mode.value != NetworkMode::Routed;
        self.fabric
            .run(|| {
                let mut netlink = Netlink::open()?;
                let link = uplink.lay(&mut netlink, mac(1, number), &space)?;
                for ip in &node.internal_ips {
                    netlink.add_neighbour(link, *ip, uplink.mac)?;
                    netlink.add_route((*ip).into(), Via::Link(link))?;
                }
                for ip in held_alone(plan, node) {
                    netlink.add_neighbour(link, ip, uplink.mac)?;
                    netlink.add_route(ip.into(), Via::Link(link))?;
                }
                for range in node.pod_cidrs.iter().filter(|_| is_ranged) {
                    let family = Family::of(range.addr());
                    let ip = node.address(family).filter(|_| !network.is_encapsulated(family));
                    if let Some(ip) = ip {
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
                for ip in local_addresses::on(cluster, node) {
                    netlink.add_address(Index::LOOPBACK, ip.into())?;
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

/// Returns the addresses that only this node is stated to hold, and that no load balancer has.
fn held_alone(plan: &Plan<'_>, node: &Node) -> Vec<IpAddr> {
    let is_here = |holder: &Node| holder.name == node.name;
    let is_balanced = |ip: IpAddr| plan.load_balancers.iter().any(|balancer| balancer.vip == ip);
    let held = local_addresses::stated(plan.cluster).into_iter();
    let alone = held.filter(|(ip, holder)| holder.is_some_and(is_here) && !is_balanced(*ip));
    alone.map(|(ip, _)| ip).collect()
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
