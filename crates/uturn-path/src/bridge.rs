//! What is special about packets that come over a bridge of pods.
//!
//! Frames that a bridge passes from pod to pod meet the node's rules only where br_netfilter
//! shows them; and a reset for any packet that came over a bridge leaves as a frame of its own.

use uturn_model::network::NetworkMode;
use uturn_model::route::{By, Leg, Place, Step, StepKind};
use uturn_model::{DerivedFrom, Family, IpNet, Mechanism, Node, Origin, Pod};
use uturn_netfilter::{Entry, Packet};

use crate::engine::Engine;
use crate::travel::{Arrival, Stay, Trip, arrive, lost};

/// The switches that show a bridge's frames to rules, for each family.
pub(crate) const BRIDGE_RULES: [&str; 2] =
    ["net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"];

impl<'a> Engine<'a> {
    /// Whether some node is known to have a bridge that shows its frames to no rule.
    pub fn has_blind_bridges(&self) -> bool {
        let is_blind = |node: &Node| {
            let world = || self.world(&node.name);
            node.bridge_rules == Some(false)
                || self.cluster.captures.contains_key(&node.name)
                    && Family::BOTH.iter().any(|family| !world().bridge_shows_rules(*family))
        };
        *self.blind_bridges.get_or_init(|| self.cluster.nodes.values().any(is_blind))
    }

    /// Whether a packet goes from a pod to another on the same bridge, which no router sees.
    pub(crate) fn is_bridged(&self, node: &Node, entry: &Entry, packet: &Packet) -> bool {
        let Entry::Interface(link) = entry else { return false };
        let is_here = |pod: &Pod| pod.node.as_ref() == Some(&node.name);
        let share = |net: &IpNet| net.contains(&packet.src) && net.contains(&packet.dst);
        self.cluster.network.mode.value == NetworkMode::GlobalRouter
            && node.pod_cidrs.iter().any(share)
            && self.pod_at(packet.dst).is_some_and(is_here)
            && self.world(&node.name).pod_link(packet.dst) == *link
    }

    /// The bridge takes a frame from pod to pod, and no rule sees it.
    pub(crate) fn past_rules(&self, node: &'a Node, mut trip: Trip) -> Vec<Arrival<'a>> {
        let Some(pod) = self.pod_at(trip.packet.dst) else {
            return vec![lost(trip, Mechanism::NoEndpoint)];
        };
        let leg = trip.packet.leg();
        let step = || {
            let by = unseen(Family::of(leg.dst.ip()));
            let why = "the bridge takes it from pod to pod, past all rules";
            Step::new(StepKind::Route, why, by).seeing(leg)
        };
        trip.tell(|| Place::Node(node.name.clone()), step);
        arrive(pod, trip)
    }

    /// Whether a pod cannot know the reset that a rule sends it. One for a packet that came over
    /// a bridge is a frame that the kernel hands straight to the bridge's port: nothing
    /// translates it back.
    pub(crate) fn resets_in_vain(&self, stay: &Stay<'a>, stopped: Leg) -> bool {
        let (entry, sent) = &stay.came;
        let Entry::Interface(link) = entry else { return false };
        let world = self.world(&stay.node.name);
        *sent != stopped
            && world.is_bridge(link, sent.src.ip())
            && world.bridge_shows_rules(Family::of(sent.src.ip()))
    }
}

/// The switch that keeps a bridge's frames from rules, switched off.
fn unseen(family: Family) -> By {
    By::new(format!("{} = 0", shows_rules(family)), Origin::Derived(DerivedFrom::Sysctl))
}

/// The switch that shows a bridge's frames to rules.
pub(crate) fn shows_rules(family: Family) -> &'static str {
    let [v4, v6] = BRIDGE_RULES;
    match family {
        Family::V4 => v4,
        Family::V6 => v6,
    }
}

/// Whether this is why a packet met no rule of its node: its bridge shows them none.
pub fn is_unseen(by: &By) -> bool {
    by.rule.starts_with("net.bridge.bridge-nf-call-")
}

/// A reset that its pod ignores.
pub(crate) fn reset_in_vain<'a>(stay: &Stay<'a>, why: Mechanism, mut trip: Trip) -> Arrival<'a> {
    let Leg { src, dst } = trip.packet.leg();
    let asked = stay.came.1.dst;
    let step = Step::new(
        StepKind::Drop,
        format!("the reset comes from {dst}, and the pod, which called {asked}, ignores it"),
        By::kernel("br_netfilter: such a reset passes neither OUTPUT nor POSTROUTING"),
    );
    trip.note(Place::Node(stay.node.name.clone()), step.seeing(Leg { src: dst, dst: src }));
    lost(trip, why)
}
