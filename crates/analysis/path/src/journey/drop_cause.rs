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
    let is_filter = last.is_some_and(
        |step| matches!(&step.by, Evidence::Iptables { chain, .. } if &**chain == IPVS_FILTER),
    );
    let (to, protocol) = (state.packet.leg().dst, state.packet.connection_protocol());
    walk.check_destination(to)?;
    Ok(if is_another {
        Mechanism::Firewall
    } else if is_filter && services::with_local_external_ip(walk.cluster, to, protocol).is_some() {
        Mechanism::ProxyFilter
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
        match services::taken_by(walk.engine, node, to, protocol) {
            Some(_) => Mechanism::AddressTaken,
            None => Mechanism::WrongPort,
        }
    } else {
        Mechanism::Firewall
    })
}

/// Returns what a rule of kube-proxy does not say about a packet that it stopped: the Service, its
/// policy, and where its endpoints are. The evidence is given if it is another than the rule.
pub(super) fn explain(
    walk: &Walk<'_, '_>,
    node: &Node,
    state: &PacketState,
    why: Mechanism,
) -> Option<(String, Option<Evidence>)> {
    let cluster = walk.cluster;
    let (to, protocol) = (state.packet.leg().dst, state.packet.connection_protocol());
    match why {
        Mechanism::NoEndpoint => {
            let service = services::served_elsewhere(cluster, node, to, protocol)?;
            let mut what = format!(
                "{} has policy Local, and kube-proxy on {} knows no endpoint there: {}",
                service.object(),
                node.name,
                services::places(cluster, service)
            );
            if let Some(name) = &node.proxy_name {
                what.push_str(&format!("; this kube-proxy takes itself for that of {name}"));
            }
            Some((what, None))
        }
        Mechanism::AddressTaken => {
            services::taken_by(walk.engine, node, to, protocol).map(|(why, by)| (why, Some(by)))
        }
        Mechanism::ProxyFilter => {
            let service = services::with_local_external_ip(cluster, to, protocol)?;
            let what = format!(
                "kube-proxy {} lets no packet in to external IPs under policy Local: {} is one of {}",
                cluster.proxy.version.value,
                to.ip(),
                service.object()
            );
            Some((what, None))
        }
        _ => None,
    }
}

/// The chain in which kube-proxy in IPVS mode rejects packets to addresses that it binds, unless a
/// set has them.
const IPVS_FILTER: &str = "KUBE-IPVS-FILTER";

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
