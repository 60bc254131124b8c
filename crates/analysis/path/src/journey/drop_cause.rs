//! Finds out why a node stopped a packet, where rules and routes only drop or reject.

use std::net::SocketAddr;

use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Evidence, Family, Mechanism, Node, Service};
use uturn_netfilter::{DropReason, IpProtocol};

use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::{PacketState, Peer};

impl<'a> Walk<'_, 'a> {
    /// Returns why a rule on a node stopped a packet: kube-proxy found no endpoint or does not know
    /// the Service, or a firewall rule matched.
    pub(crate) fn why_stopped(
        &self,
        node: &'a Node,
        state: &PacketState,
    ) -> Result<Mechanism, WalkError> {
        let last = state.hops.last().and_then(|hop| hop.steps.last());
        // An iptables rule outside of kube-proxy's chains.
        let is_another = last.is_some_and(|step| {
            matches!(&step.by, Evidence::Iptables { chain, .. } if !chain.starts_with("KUBE-"))
        });
        let (to, protocol) = (state.packet.leg().dst, state.packet.connection_protocol());
        self.check_destination(to)?;
        Ok(if is_another {
            Mechanism::Firewall
        } else if self.engine.lacks_rules(Peer::Host(node, None), to, protocol) {
            Mechanism::RuleMissing
        } else if self.engine.lacks_endpoints(node, to, protocol) {
            Mechanism::NoEndpoint
        } else if self.engine.has_service(to.ip()) && !self.engine.has_port(to, protocol) {
            Mechanism::WrongPort
        } else {
            Mechanism::Firewall
        })
    }
}

impl<'a> Engine<'a> {
    /// Returns whether a node lacks the rules for a Service that answers to this address: Facts
    /// state that the node's kube-proxy has not programmed it.
    pub(crate) fn lacks_rules(&self, at: Peer<'_>, to: SocketAddr, protocol: IpProtocol) -> bool {
        let Peer::Host(node, _) = at else { return false };
        let missing = |service: &&Service| node.unprogrammed.contains(&service.name);
        self.cluster
            .services
            .values()
            .filter(missing)
            .any(|service| port_behind(service, node, to, protocol).is_some())
    }

    /// Returns whether a Service answers to this address and has no endpoint that may serve it on
    /// this node.
    fn lacks_endpoints(&self, node: &Node, to: SocketAddr, protocol: IpProtocol) -> bool {
        self.cluster.services.values().any(|service| {
            let Some(port) = port_behind(service, node, to, protocol) else { return false };
            let internal = service.cluster_ips.contains(&to.ip());
            let policy = if internal { service.internal_policy } else { service.external_policy };
            let mut serving = self
                .cluster
                .slices(&service.name)
                .iter()
                .filter(|slice| slice.family == Family::of(to.ip()))
                .filter(|slice| slice.ports.iter().any(|slice_port| slice_port.name == port.name))
                .flat_map(|slice| &slice.endpoints)
                .filter(|endpoint| endpoint.ready);
            !serving.any(|endpoint| {
                policy == Policy::Cluster || endpoint.node.as_ref() == Some(node.name_for_proxy())
            })
        })
    }
}

/// Returns the port of a Service to which an address leads on a node.
fn port_behind<'s>(
    service: &'s Service,
    node: &Node,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<&'s ServicePort> {
    // The status of a Service may list addresses of nodes.
    let (on_node, is_own) = (node.has_address(to.ip()), service.has_address(to.ip()));
    service.ports.iter().find(|port| {
        let at_node = on_node && port.node_port.is_some_and(|at| at.number() == to.port());
        let at_own = is_own && port.port.number() == to.port();
        IpProtocol::from(port.protocol) == protocol && (at_node || at_own)
    })
}

/// Returns the mechanism for the kernel's own reason for a drop.
pub(crate) fn mechanism_of(reason: &DropReason) -> Mechanism {
    match reason {
        DropReason::LocalSource => Mechanism::LocalSourceDrop,
        DropReason::ReversePathFilter => Mechanism::ReversePathFilter,
        DropReason::Rule(_) | DropReason::Policy(_) => Mechanism::Firewall,
        DropReason::NotForwarding => Mechanism::CrossNode,
        _ => Mechanism::NoRoute,
    }
}
