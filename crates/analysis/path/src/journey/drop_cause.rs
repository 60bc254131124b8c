//! Finds out why a node stopped a packet, where rules and routes only drop or reject.

use uturn_model::{Evidence, Mechanism, Node};
use uturn_netfilter::DropReason;

use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::{PacketState, Peer};
use crate::services;

/// Returns why a rule on a node stopped a packet: kube-proxy found no endpoint or does not know the
/// Service, or a firewall rule matched.
pub(super) fn why_stopped(
    walk: &Walk<'_, '_>,
    node: &Node,
    state: &PacketState,
) -> Result<Mechanism, WalkError> {
    let last = state.hops.last().and_then(|hop| hop.steps.last());
    // An iptables rule outside of kube-proxy's chains.
    let is_another = last.is_some_and(
        |step| matches!(&step.by, Evidence::Iptables { chain, .. } if !chain.starts_with("KUBE-")),
    );
    let (to, protocol) = (state.packet.leg().dst, state.packet.connection_protocol());
    walk.check_destination(to)?;
    Ok(if is_another {
        Mechanism::Firewall
    } else if let Some(service) = services::called_on_loopback(walk.cluster, to, protocol) {
        if services::has_ready_endpoint(walk.cluster, service) {
            Mechanism::NotOnLoopback
        } else {
            Mechanism::NoEndpoint
        }
    } else if services::lacks_rules(walk.cluster, Peer::Host(node, None), to, protocol) {
        Mechanism::RuleMissing
    } else if services::lacks_endpoints(walk.cluster, node, to, protocol) {
        Mechanism::NoEndpoint
    } else if services::has_address(walk.cluster, to.ip())
        && !services::has_port(walk.cluster, to, protocol)
    {
        Mechanism::WrongPort
    } else {
        Mechanism::Firewall
    })
}

/// Returns the mechanism for the kernel's own reason for a drop.
pub(super) fn mechanism_of(reason: &DropReason) -> Mechanism {
    match reason {
        DropReason::LocalSource => Mechanism::LocalSourceDrop,
        DropReason::ReversePathFilter => Mechanism::ReversePathFilter,
        DropReason::Rule(_) | DropReason::Policy(_) => Mechanism::Firewall,
        DropReason::NotForwarding => Mechanism::CrossNode,
        _ => Mechanism::NoRoute,
    }
}
