//! Special cases of packets that come over a bridge of pods.
//!
//! Frames that a bridge passes from pod to pod meet the node's rules only if br_netfilter shows
//! them, and a reset for any packet that came over a bridge leaves as a separate frame.

use uturn_model::network::NetworkMode;
use uturn_model::route::{Leg, Place, Step, StepKind};
use uturn_model::{Evidence, FabricPart, Family, IpNet, Mechanism, Node, Pod, Text};
use uturn_netfilter::{Connection, Entry, Packet, RejectWith};

use crate::engine::Engine;
use crate::error::WalkError;
use crate::node::switches::shows_rules;
use crate::packet::{Arrival, NodeVisit, PacketState, arrive, lost};

/// Returns whether a packet goes from a pod to another on the same bridge, past all routers.
pub(super) fn is_bridged(
    engine: &Engine<'_>,
    node: &Node,
    entry: &Entry,
    packet: &Packet,
) -> Result<bool, WalkError> {
    let Entry::Interface(link) = entry else { return Ok(false) };
    let is_here = |pod: &Pod| pod.node.as_ref() == Some(&node.name);
    let share = |net: &IpNet| net.contains(&packet.src) && net.contains(&packet.dst);
    Ok(engine.cluster.network.mode.value == NetworkMode::GlobalRouter
        && node.pod_cidrs.iter().any(share)
        && engine.pod_at(packet.dst).is_some_and(is_here)
        && engine.runtime(&node.name)?.pod_link(packet.dst) == *link)
}

/// Delivers a frame from pod to pod over the bridge, past all rules.
pub(super) fn past_rules<'e>(
    engine: &'e Engine<'_>,
    node: &'e Node,
    mut state: PacketState,
) -> Vec<Arrival<'e>> {
    let Some(pod) = engine.pod_at(state.packet.dst) else {
        return vec![lost(state, Mechanism::NoEndpoint)];
    };
    let leg = state.packet.leg();
    let step = || {
        let by = unseen(Family::of(leg.dst.ip()));
        let why = "the bridge takes it from pod to pod, past all rules";
        Step::new(StepKind::Route, why, by).seeing(leg)
    };
    state.note_unless_brief(|| Place::Node(node.name.clone()), step);
    arrive(pod, state)
}

/// Returns whether the reset that a rule sends to a pod bypasses all rules. A reset for a packet
/// that came over a bridge is a frame that the kernel hands straight to the bridge's port: it is
/// not translated back, so the pod does not recognize it if the packet was translated.
pub(super) fn resets_past_rules(
    engine: &Engine<'_>,
    visit: &NodeVisit<'_>,
) -> Result<bool, WalkError> {
    let (entry, sent) = &visit.came;
    let Entry::Interface(link) = entry else { return Ok(false) };
    let runtime = engine.runtime(&visit.node.name)?;
    Ok(runtime.is_bridge(link, sent.src.ip())
        && runtime.bridge_shows_rules(Family::of(sent.src.ip())))
}

/// Returns whether the pod ignores a rule's reset for a packet that has these addresses by then:
/// the reset comes from an address that the pod did not call.
pub(super) fn resets_in_vain(
    engine: &Engine<'_>,
    visit: &NodeVisit<'_>,
    how: RejectWith,
    leg: Leg,
) -> Result<bool, WalkError> {
    Ok(how == RejectWith::TcpReset && visit.came.1 != leg && resets_past_rules(engine, visit)?)
}

/// Returns whether a pod's packet that rules translated to the pod's own address is lost. If rules
/// see a bridge's frames, such a frame stays on the bridge, and without hairpin mode no link sends
/// back a frame that came by it. A packet that IPVS sends is no longer the bridge's frame; the
/// answer to it is, if the packet was masqueraded.
pub(super) fn is_lost(
    engine: &Engine<'_>,
    visit: &NodeVisit<'_>,
    out: &Option<Text>,
    connection: &Option<Connection>,
    leaves: Leg,
) -> Result<bool, WalkError> {
    let (entry, sent) = &visit.came;
    let (Entry::Interface(link), Some(out)) = (entry, out) else { return Ok(false) };
    let is_request = |known: &Connection| known.original == *sent;
    let is_scheduled =
        connection.as_ref().is_some_and(|known| known.scheduled.is_some() && is_request(known));
    if visit.node.hairpin != Some(false)
        || link != out
        || is_scheduled
        || sent.dst == leaves.dst
        || sent.src.ip() != leaves.dst.ip()
    {
        return Ok(false);
    }
    let runtime = engine.runtime(&visit.node.name)?;
    let pod = leaves.dst.ip();
    // The mode of a bridge's links that is stated tells that there is a bridge.
    let network = &engine.cluster.network;
    let is_told = network.mode.value == NetworkMode::Routed && network.plugin.value.may_bridge();
    let is_bridge = is_told || runtime.is_bridge(link, pod);
    Ok(is_bridge && runtime.bridge_shows_rules(Family::of(pod)))
}

/// Returns the loss of a frame that would have to leave by the link that it came by.
pub(super) fn lost_at_bridge<'a>(visit: &NodeVisit<'a>, mut state: PacketState) -> Arrival<'a> {
    let leg = state.packet.leg();
    let origin = visit.node.hairpin_origin.as_ref().unwrap_or(&visit.node.origin).clone();
    let by = Evidence::Fabric { part: FabricPart::PodNetwork, origin: Some(origin) };
    let why = "the bridge does not send it back to the pod that it came from: hairpin mode is off";
    let step = Step::new(StepKind::Drop, why, by).seeing(leg);
    state.note(Place::Node(visit.node.name.clone()), step);
    lost(state, Mechanism::HairpinOff)
}

/// Returns the evidence that the sysctl which shows a bridge's frames to rules is off.
fn unseen(family: Family) -> Evidence {
    Evidence::sysctl(shows_rules(family), "0")
}

/// Returns the loss of a reset that its pod ignores.
pub(super) fn reset_in_vain<'a>(
    visit: &NodeVisit<'a>,
    why: Mechanism,
    mut state: PacketState,
) -> Arrival<'a> {
    let Leg { src, dst } = state.packet.leg();
    let asked = visit.came.1.dst;
    let step = Step::new(
        StepKind::Drop,
        format!("the reset comes from {dst}, and the pod, which called {asked}, ignores it"),
        Evidence::kernel("br_netfilter: such a reset passes neither OUTPUT nor POSTROUTING"),
    );
    state.note(Place::Node(visit.node.name.clone()), step.seeing(Leg { src: dst, dst: src }));
    lost(state, why)
}
