//! The VPC's edge, where the public load balancers are, and the clients outside the VPC.
//!
//! The fabric translates private source addresses into public ones on the way to the edge
//! (`rules/edge.rs`), so the edge sees only public addresses.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use uturn_model::lb::Scope;
use uturn_model::{Client, Family};

use super::links::{ROUTER, Wire, everything, mac, namespace};
use super::public;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Index, Netlink, Via};
use crate::linux::kernel::settings::{disable_address_detection, fabric_kernel, set_syn_retries};
use crate::linux::kernel::system::During;
use crate::linux::run::state::Run;
use crate::{LabError, Plan};

/// The fabric's link to the edge, and the edge's to the fabric.
pub(crate) const TO_EDGE: &str = "edge";
pub(crate) const TO_FABRIC: &str = "fabric";

/// The mark of packets that are routed to the edge, and their routing table.
pub(crate) const FROM_EDGE: u32 = 0x2_0000;
const EDGE_TABLE: u8 = 101;

/// The cloud's own addresses, for health checks and replaced sources on either side.
const CLOUD: IpNet = IpNet::V4(ipnet::Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10));

/// The cloud's own IPv6 addresses: the discard prefix (RFC 6666).
const CLOUD_V6: IpNet =
    IpNet::V6(ipnet::Ipv6Net::new_assert(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64));

/// The edge and the clients beyond it.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) space: Namespace,
    /// The clients outside, by the address that the flow states.
    pub(crate) clients: BTreeMap<Option<IpAddr>, Namespace>,
}

impl Edge {
    pub(crate) fn build(run: &Run, plan: &Plan<'_>, fabric: &Namespace) -> Result<Self, LabError> {
        let doing = "build the VPC's edge";
        let space = namespace(run, "edge")?;
        space.run(fabric_kernel).during(doing)?;
        let wire = Wire { here: TO_EDGE.into(), there: TO_FABRIC, mac: mac(9, 0) };
        let lay = || {
            let mut netlink = Netlink::open()?;
            let link = wire.lay(&mut netlink, mac(8, 0), &space)?;
            for router in ROUTER {
                netlink.add_neighbour(link, router, mac(9, 0))?;
                let everything = everything(router);
                netlink.add_route(everything, Via::Router(router, link))?;
                netlink.add_route_in(EDGE_TABLE.into(), everything, Via::Router(router, link))?;
                netlink.add_mark_rule(everything, FROM_EDGE, EDGE_TABLE)?;
            }
            Ok(())
        };
        fabric.run(lay).during(doing)?;
        space.run(|| route_inside(plan)).during(doing)?;
        let mut edge = Self { space, clients: BTreeMap::new() };
        for flow in plan.flows {
            if let Client::Outside(address) = flow.from
                && !edge.clients.contains_key(&address)
            {
                let space = edge.add_client(run, plan, address)?;
                edge.clients.insert(address, space);
            }
        }
        Ok(edge)
    }

    fn add_client(
        &self,
        run: &Run,
        plan: &Plan<'_>,
        address: Option<IpAddr>,
    ) -> Result<Namespace, LabError> {
        let families = Family::BOTH
            .into_iter()
            .filter(|family| address.is_none_or(|ip| Family::of(ip) == *family));
        let addresses: Vec<IpAddr> =
            families.map(|family| public::outside_client_address(address, family)).collect();
        let taken = |ip: &&IpAddr| public::is_taken(plan.cluster, plan.load_balancers, **ip);
        if let Some(ip) = addresses.iter().find(taken) {
            let what = format!("a client outside with the address {ip}, which is taken");
            return Err(LabError::Plan(what));
        }
        let number = self.clients.len();
        let doing = "build a client outside";
        let space = namespace(run, &format!("outside{number}"))?;
        space
            .run(|| disable_address_detection().and_then(|()| set_syn_retries(None)))
            .during(doing)?;
        let (outer, inner) = (mac(10, number), mac(11, number));
        let wire = Wire { here: format!("o{number}"), there: "eth0", mac: inner };
        self.space
            .run(|| {
                let mut netlink = Netlink::open()?;
                let link = wire.lay(&mut netlink, outer, &space)?;
                for ip in &addresses {
                    netlink.add_neighbour(link, *ip, inner)?;
                    netlink.add_route((*ip).into(), Via::Link(link))?;
                }
                Ok(())
            })
            .during(doing)?;
        space
            .run(|| {
                let mut netlink = Netlink::open()?;
                netlink.up(Index::LOOPBACK)?;
                let link = netlink.index("eth0")?;
                netlink.up(link)?;
                for ip in &addresses {
                    netlink.add_address(link, (*ip).into())?;
                }
                for router in ROUTER {
                    netlink.add_neighbour(link, router, outer)?;
                    let has_family = |ip: &IpAddr| Family::of(*ip) == Family::of(router);
                    if addresses.iter().any(has_family) {
                        netlink.add_route(everything(router), Via::Router(router, link))?;
                    }
                }
                // Packets to a hardware address that nobody has are lost without an error.
                for ip in public::unrouted(plan, address) {
                    netlink.add_neighbour(link, ip, mac(14, number))?;
                    netlink.add_route(ip.into(), Via::Link(link))?;
                }
                Ok(())
            })
            .during(doing)?;
        Ok(space)
    }
}

/// Adds routes to all addresses inside the VPC, and discards packets to all others. Called on the
/// edge.
fn route_inside(plan: &Plan<'_>) -> io::Result<()> {
    let cluster = plan.cluster;
    let network = &cluster.network;
    let mut inside: Vec<IpNet> = [CLOUD, CLOUD_V6].into();
    inside.extend(network.vpc_cidrs.value.iter().chain(&network.pod_cidrs.value));
    for node in cluster.nodes.values() {
        let public = Family::BOTH.into_iter().filter_map(|family| public::address_of(node, family));
        let own = node.internal_ips.iter().chain(&node.external_ips).copied();
        inside.extend(own.chain(public).map(IpNet::from));
        inside.extend(&node.pod_cidrs);
    }
    let private = plan.load_balancers.iter().filter(|lb| lb.scope == Scope::Private);
    let vips = private.map(|lb| lb.vip);
    inside.extend(cluster.pods.values().flat_map(|pod| &pod.ips).copied().map(IpNet::from));
    inside.extend(vips.map(IpNet::from));
    let mut netlink = Netlink::open()?;
    let link = netlink.index(TO_FABRIC)?;
    netlink.up(link)?;
    for router in ROUTER {
        netlink.add_neighbour(link, router, mac(8, 0))?;
    }
    inside.iter_mut().for_each(|range| *range = range.trunc());
    inside.sort_unstable();
    inside.dedup();
    for range in inside {
        let router = if range.addr().is_ipv4() { ROUTER[0] } else { ROUTER[1] };
        netlink.add_route(range, Via::Router(router, link))?;
    }
    // Packets to unused addresses are discarded, as in the fabric.
    let hole = netlink.add_discarding_link()?;
    ROUTER.into_iter().try_for_each(|router| netlink.add_route(everything(router), Via::Link(hole)))
}
