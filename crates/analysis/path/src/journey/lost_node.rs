//! Packets to nodes that are down.

use uturn_model::node::Loss;
use uturn_model::route::{Place, Step, StepKind};
use uturn_model::{Evidence, Mechanism, Node};

use crate::packet::{Arrival, PacketState, lost};

/// Returns whether a packet ends at a node because the node is down. Until health checks notice it,
/// they find what they found before.
pub(super) fn takes(node: &Node, state: &PacketState) -> bool {
    match node.loss {
        None => false,
        Some(Loss::Unnoticed) => !state.is_probe,
        Some(Loss::Noticed) => true,
    }
}

/// Ends a packet at a node that is down.
pub(super) fn end<'w>(node: &Node, mut state: PacketState) -> Arrival<'w> {
    let by = Evidence::object(node.object(), node.origin.clone());
    let step = Step::new(StepKind::Drop, "the node is down", by).seeing(state.packet.leg());
    state.note(Place::Node(node.name.clone()), step);
    lost(state, Mechanism::NodeDown)
}
