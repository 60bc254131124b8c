//! What two nodes' own rules do with the packet in which one wraps another for a pod of the other.

use std::net::{IpAddr, SocketAddr};

use uturn_kubeproxy::pod_network;
use uturn_model::route::{Leg, Step, StepKind};
use uturn_model::{Family, Node, Place, Protocol};
use uturn_netfilter::{DropReason, End, EndKind, Entry, Packet};

use crate::add_missing::add_missing;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::PacketState;

/// The source port of wrapped packets. The kernel derives one from the inner packet; any serves.
const PORT: u16 = 50_000;

/// Returns where rules of the nodes stop what one wraps for the other, with the step there. Only nodes
/// whose rules are captured or stated are asked: kube-proxy's own let these packets pass. If a plugin
/// has several encapsulations, one that passes is enough.
pub(super) fn stopped(
    walk: &Walk<'_, '_>,
    from: &Node,
    to: &Node,
    state: &mut PacketState,
) -> Result<Option<(Place, Step)>, WalkError> {
    let has_rules = |node: &Node| {
        let is_captured = walk.cluster.captures.contains_key(&node.name);
        (is_captured || node.firewall.is_some()) && !node.is_windows
    };
    if !has_rules(from) && !has_rules(to) {
        return Ok(None);
    }
    let Some(family) = from.internal_ips.first().map(|ip| Family::of(*ip)) else {
        return Ok(None);
    };
    let (Some(src), Some(dst)) = (from.address(family), to.address(family)) else {
        return Ok(None);
    };
    let leg = state.packet.leg();
    let mut first = None;
    for way in pod_network::wrappings(walk.cluster.network.plugin.value) {
        // Only UDP is walked.
        if !way.is_udp() {
            return Ok(None);
        }
        let wrapped = wrapped((src, dst), way.port);
        let mut stop = None;
        for (node, is_sender) in [(from, true), (to, false)] {
            if stop.is_none() && has_rules(node) {
                stop = stopped_at(walk, node, is_sender, &wrapped, leg)?;
            }
        }
        match stop {
            None => return Ok(None),
            Some(stop) => first = first.or(Some(stop)),
        }
    }
    let Some((place, step, last)) = first else { return Ok(None) };
    add_missing(&mut state.supposed, last.supposed);
    Ok(Some((place, step)))
}

fn wrapped((src, dst): (IpAddr, IpAddr), port: u16) -> Packet {
    Packet::new(Protocol::Udp, SocketAddr::new(src, PORT), SocketAddr::new(dst, port))
}

/// Returns the stop of a wrapped packet by a node's rules, if they stop it in any case.
fn stopped_at(
    walk: &Walk<'_, '_>,
    node: &Node,
    is_sender: bool,
    packet: &Packet,
    leg: Leg,
) -> Result<Option<(Place, Step, End)>, WalkError> {
    let runtime = walk.engine.runtime_for(&node.name, packet)?;
    let entry = if is_sender { Entry::Local } else { Entry::Interface(runtime.uplink.clone()) };
    let ends = walk.walk_rules(&runtime.kernel, packet, &entry, &[]);
    let is_stopped = |end: &End| {
        matches!(
            end.kind,
            EndKind::Reject(_) | EndKind::Drop(DropReason::Rule(_) | DropReason::Policy(_))
        )
    };
    if !ends.iter().all(is_stopped) {
        return Ok(None);
    }
    let Some(end) = ends.into_iter().next() else { return Ok(None) };
    let Some(by) = end.steps.last().map(|step| step.by.clone()) else { return Ok(None) };
    let (src, dst) = (packet.leg().src.ip(), packet.leg().dst);
    let why =
        format!("stops UDP port {}, which wraps what goes from {src} to {}", dst.port(), dst.ip());
    let step = Step::new(StepKind::Drop, why, by).seeing(leg);
    Ok(Some((Place::Node(node.name.clone()), step, end)))
}
