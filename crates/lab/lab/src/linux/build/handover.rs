//! Forwards packets to nodes with the address that clients called ([`Delivery::KeepsAddress`]). The
//! destination says nothing about the node then, so each node has a mark and a routing table that
//! leads to it.
//!
//! A public load balancer has a link to the fabric for each node (`k<i>`), because marks do not
//! cross links. The fabric does not track packets that come over these links: a client inside whose
//! address was translated on the way out has the same addresses and ports on the way in.
//!
//! [`Delivery::KeepsAddress`]: uturn_model::lb::Delivery::KeepsAddress

use std::io;

use uturn_model::lb::{Delivery, Listener, Scope, Target};
use uturn_model::{Cluster, Family, LoadBalancer, Name, Node};

use super::edge::Edge;
use super::links::{ROUTER, Wire, everything, mac, uplink};
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Masked, Netlink, Via};
use crate::linux::kernel::system::During;
use crate::{LabError, Plan};

/// The bits of a mark that name a node.
pub(crate) const MASK: u32 = 0xfff0_0000;
const SHIFT: u32 = MASK.trailing_zeros();

/// The routing table of the first node.
const FIRST_TABLE: u32 = 10_000;

/// Returns whether a listener forwards packets with the address that was called.
pub(crate) fn is_handed(listener: &Listener) -> bool {
    listener.profile.delivery == Delivery::KeepsAddress
}

/// Returns whether a load balancer of a scope does so.
pub(crate) fn is_needed(all: &[LoadBalancer], scope: Option<Scope>) -> bool {
    let of_scope = all.iter().filter(|lb| scope.is_none_or(|scope| lb.scope == scope));
    of_scope.flat_map(|lb| &lb.listeners).any(is_handed)
}

/// Returns the name of a public load balancer's link to a node, on the edge and in the fabric.
pub(crate) fn link(number: usize) -> String {
    format!("k{number}")
}

/// Returns the mark of a node, by its number.
pub(crate) fn mark_of(number: usize) -> u32 {
    (number as u32 + 1) << SHIFT
}

/// The nodes that packets are forwarded to, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes(Vec<Name>);

impl Nodes {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        Self(cluster.nodes.keys().cloned().collect())
    }

    /// Returns the number of the node that a target is on.
    pub(crate) fn number(&self, target: &Target) -> Option<usize> {
        let name = target.kind.node()?;
        self.0.iter().position(|node| node == name)
    }
}

/// Sets up the routes to nodes in the fabric and, for public load balancers, from the edge.
pub(crate) fn build(
    plan: &Plan<'_>,
    fabric: &Namespace,
    edge: Option<&Edge>,
) -> Result<(), LabError> {
    if !is_needed(plan.load_balancers, None) {
        return Ok(());
    }
    let doing = "set up the load balancers' routes to nodes";
    let nodes = || plan.cluster.nodes.values().enumerate();
    let route = |netlink: &mut Netlink, number: usize, node: &Node, by: &str| {
        let link = netlink.index(by)?;
        let ways = ROUTER.iter().filter_map(|router| {
            let family = Family::of(*router);
            // If the node itself is not at the other end, the router is.
            let to = if by == uplink(number) { node.address(family) } else { Some(*router) };
            Some((everything(*router), node.address(family).and(to)?))
        });
        for (all, to) in ways {
            let table = FIRST_TABLE + number as u32;
            netlink.add_route_in(table, all, Via::Router(to, link))?;
            netlink.add_early_rule(all, Masked { mark: mark_of(number), mask: MASK }, table)?;
        }
        io::Result::Ok(())
    };
    let lower = |netlink: &mut Netlink| {
        ROUTER.iter().try_for_each(|router| netlink.lower_local_rule(everything(*router)))
    };
    let in_fabric = || {
        let mut netlink = Netlink::open()?;
        lower(&mut netlink)?;
        nodes().try_for_each(|(number, node)| route(&mut netlink, number, node, &uplink(number)))
    };
    fabric.run(in_fabric).during(doing)?;
    let Some(edge) = edge.filter(|_| is_needed(plan.load_balancers, Some(Scope::Public))) else {
        return Ok(());
    };
    let on_edge = || {
        let mut netlink = Netlink::open()?;
        lower(&mut netlink)?;
        for (number, node) in nodes() {
            let wire = Wire { here: link(number), there: "handed", mac: mac(13, number) };
            let link = wire.lay(&mut netlink, mac(12, number), fabric)?;
            for router in ROUTER {
                netlink.add_neighbour(link, router, wire.mac)?;
            }
            route(&mut netlink, number, node, &wire.here)?;
            fabric.run(|| {
                let mut netlink = Netlink::open()?;
                let there = netlink.index(wire.there)?;
                netlink.rename(there, &wire.here)?;
                netlink.up(there)
            })?;
        }
        Ok(())
    };
    edge.space.run(on_edge).during(doing)
}
