//! Packets that arrive at a node from the fabric.

use uturn_model::route::Place;
use uturn_model::{Mechanism, Node, Text};
use uturn_netfilter::Entry;

use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::journey::security_groups;
use crate::packet::{Arrival, PacketState, lost};

impl<'e> Walk<'e, '_> {
    /// Follows a packet that arrives at a node from the fabric, by the interface of its
    /// destination.
    pub(crate) fn at_card(
        &self,
        node: &'e Node,
        state: PacketState,
    ) -> Result<Vec<Arrival<'e>>, WalkError> {
        let runtime = self.engine.runtime_for(&node.name, &state.packet)?;
        let card = runtime.card_for(state.packet.dst);
        self.at_interface(node, &card, state)
    }

    /// Follows a packet that arrives at a node from the fabric, by this interface.
    pub(super) fn at_interface(
        &self,
        node: &'e Node,
        interface: &Text,
        mut state: PacketState,
    ) -> Result<Vec<Arrival<'e>>, WalkError> {
        let groups = node.security_groups.as_deref();
        if let Some(step) =
            groups.and_then(|groups| security_groups::denied_inbound(self.engine, groups, &state))
        {
            state.note(Place::Fabric, step);
            return Ok(vec![lost(state, Mechanism::SecurityGroup)]);
        }
        self.at_node(node, &Entry::Interface(interface.clone()), state)
    }
}
