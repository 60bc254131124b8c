//! Packets that arrive at a node from the fabric.

use uturn_model::route::Place;
use uturn_model::{Mechanism, Node, Text};
use uturn_netfilter::Entry;

use super::at_node;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::journey::security_groups;
use crate::packet::{Arrival, PacketState, lost};

/// Follows a packet that arrives at a node from the fabric, by the interface of its destination.
pub(super) fn at_card<'w>(
    walk: &'w Walk<'_, '_>,
    node: &'w Node,
    state: PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    let runtime = walk.engine.runtime_for(&node.name, &state.packet)?;
    let card = runtime.card_for(state.packet.dst);
    at_interface(walk, node, &card, state)
}

/// Follows a packet that arrives at a node from the fabric, by this interface.
pub(super) fn at_interface<'w>(
    walk: &'w Walk<'_, '_>,
    node: &'w Node,
    interface: &Text,
    mut state: PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    let groups = node.security_groups.as_deref();
    if let Some(step) =
        groups.and_then(|groups| security_groups::denied_inbound(walk.cluster, groups, &mut state))
    {
        state.note(Place::Fabric, step);
        return Ok(vec![lost(state, Mechanism::SecurityGroup)]);
    }
    at_node(walk, node, &Entry::Interface(interface.clone()), state)
}
