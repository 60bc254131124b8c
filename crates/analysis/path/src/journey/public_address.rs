//! Translation at the edge of the nodes' network between public addresses of nodes and their own.

use std::net::{IpAddr, Ipv4Addr};

use uturn_model::addr::is_private;
use uturn_model::route::{Leg, Place, Step, StepKind};
use uturn_model::{Assumption, Evidence, FabricPart, Family, Node};
use uturn_netfilter::Connection;

use crate::add_missing::add_missing;
use crate::engine::Engine;
use crate::journey::addresses;
use crate::packet::PacketState;

/// A placeholder for nodes' public addresses that are not stated. The actual address only matters
/// to rules that name it.
const ANY_PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 254));

/// Returns whether an address is the placeholder for a node's public one.
pub fn stands_for_public_address(address: IpAddr) -> bool {
    address == ANY_PUBLIC
}

/// Gives a node's packet to a public address the node's public address as its source.
pub(super) fn go_public(engine: &Engine<'_>, state: &mut PacketState) {
    let Some((src, by)) = public_source(engine, state.packet.src) else { return };
    let leg = state.packet.leg();
    let outside = Leg { src: (src, leg.src.port()).into(), dst: leg.dst };
    let what = "leaves the VPC with the node's public address";
    translate(state, outside, what, by);
}

/// Returns the address that a packet from here has outside the nodes' network.
fn public_source(engine: &Engine<'_>, src: IpAddr) -> Option<(IpAddr, Evidence)> {
    let node = addresses::node_towards(engine, src)?;
    let stated = node.external_ips.iter().copied().find(|ip| Family::of(*ip) == Family::of(src));
    // The address itself does not matter, only that the node does not know it.
    let public = stated.unwrap_or(match src {
        IpAddr::V4(_) => ANY_PUBLIC,
        IpAddr::V6(ip) => IpAddr::V6(ip),
    });
    let by = match (stated, src) {
        (None, IpAddr::V4(_)) => Evidence::Supposed {
            what: format!("{public} stands for the public address of node {}", node.name).into(),
        },
        _ => Evidence::object(node.object(), node.origin.clone()),
    };
    Some((public, by))
}

/// Returns the node whose status lists this address as external, with the node's own address that
/// packets for it get.
pub(crate) fn behind_public_address<'e>(
    engine: &'e Engine<'_>,
    address: IpAddr,
) -> Option<(&'e Node, IpAddr)> {
    let node = engine.node_at(address)?;
    let is_its_own =
        node.internal_ips.contains(&address) || node.local_addresses.contains(&address);
    let own = node.address(Family::of(address)).filter(|own| *own != address)?;
    (!is_its_own && node.external_ips.contains(&address)).then_some((node, own))
}

/// Returns the subject of the assumption about a public address.
pub(crate) fn what_leads(address: IpAddr) -> String {
    format!("what {address} leads to")
}

/// Gives a packet for a node's public address the node's own. A packet from within leaves the
/// nodes' network first.
pub(super) fn enter_by_public_address(
    engine: &Engine<'_>,
    node: &Node,
    own: IpAddr,
    state: &mut PacketState,
) {
    let leg = state.packet.leg();
    let is_public = !is_private(leg.dst.ip());
    let source = public_source(engine, leg.src.ip()).filter(|_| is_public);
    let src = source.map_or(leg.src, |(src, _)| (src, leg.src.port()).into());
    let inside = Leg { src, dst: (own, leg.dst.port()).into() };
    let what = format!("the public address of node {} becomes the node's own", node.name);
    let by = Evidence::object(node.object(), node.origin.clone());
    translate(state, inside, &what, by);
    let supposed = Assumption {
        subject: what_leads(leg.dst.ip()).into(),
        assumed: format!("{own} of node {}", node.name).into(),
        because: "the node's status has it as ExternalIP, and most clouds translate it".into(),
        settle: format!("ip addr on node {} shows whether the node itself has it", node.name)
            .into(),
    };
    add_missing(&mut state.supposed, vec![supposed]);
}

/// Undoes the translation of a packet that belongs to a translated connection.
pub(super) fn leave_by_public_address(state: &mut PacketState) {
    let leg = state.packet.leg();
    let found = state.fabric.iter().find(|translation| translation.reply == leg).cloned();
    let Some(back) = found else { return };
    let home = Leg { src: back.original.dst, dst: back.original.src };
    let step = Step::new(
        StepKind::Untranslate,
        "the public address becomes the node's own again",
        Evidence::fabric(FabricPart::Translation),
    );
    state.note(Place::Fabric, step.changing(leg, home));
    state.packet = state.packet.with_leg(home);
}

/// Translates a packet, and remembers it for the reply.
fn translate(state: &mut PacketState, to: Leg, what: &str, by: Evidence) {
    let leg = state.packet.leg();
    state.note(Place::Fabric, Step::new(StepKind::Translate, what, by).changing(leg, to));
    state.fabric.push(Connection {
        protocol: state.packet.connection_protocol(),
        original: leg,
        reply: Leg { src: to.dst, dst: to.src },
        mark: 0,
        scheduled: None,
        seen_reply: false,
    });
    state.packet = state.packet.with_leg(to);
}
