//! Conditions of nodes under which a finding of a scan is true, if no object states what their pod
//! network does.

use uturn_clouds::cloud;
use uturn_model::network::Plugin;
use uturn_model::{Cluster, Destination, Mechanism, Place, ProxyMode, Text, Verdict};
use uturn_path::WalkError;
use uturn_scan::{ScanResult, ScanTarget, Scanner};

use crate::{Severity, policy_chains};

/// Returns the condition, and the highest severity of a finding that depends on it.
pub(super) fn node_condition(
    scanner: &Scanner<'_, '_>,
    met: &ScanResult,
    mechanism: Mechanism,
) -> Result<Option<(Text, Severity)>, WalkError> {
    let cluster = scanner.engine().cluster();
    if is_of_policy(scanner, met, mechanism)? {
        return Ok(Some((POLICY_NOT_MEANT.into(), Severity::Info)));
    }
    if rests_on_plugin(scanner, met, mechanism)? {
        return Ok(Some((MASQUERADES_NOTHING.into(), Severity::Warning)));
    }
    Ok(rests_on_masquerading(cluster, &met.target, mechanism).then(|| {
        let plugin = cluster.network.plugin.value;
        (format!("{plugin} does not masquerade IPv6").into(), Severity::Warning)
    }))
}

/// The condition if an unknown network plugin decides.
const MASQUERADES_NOTHING: &str =
    "the pod network does not masquerade what nodes send to other nodes' pods";

/// Returns whether the finding depends on a network plugin that nothing states. In IPVS mode,
/// packets from a node to another node's pod have the address of the Service as their source, which
/// that node has too; flannel, Weave and Calico's tunnels replace it.
fn rests_on_plugin(
    scanner: &Scanner<'_, '_>,
    met: &ScanResult,
    mechanism: Mechanism,
) -> Result<bool, WalkError> {
    let cluster = scanner.engine().cluster();
    let is_bound = cluster.proxy.mode.value == ProxyMode::Ipvs;
    // If nothing states a plugin, the usual one of the modelled cloud is assumed.
    let is_unknown = match cluster.network.plugin.value {
        Plugin::OfCloud(_) => cloud::model(cluster).is_none(),
        plugin => plugin == Plugin::Unknown,
    };
    if mechanism != Mechanism::LocalSourceDrop || !is_bound || !is_unknown {
        return Ok(false);
    }
    let passes_balancer = |verdict: &Verdict| {
        let mut hops = verdict.routes.iter().flat_map(|route| &route.hops);
        hops.any(|hop| matches!(hop.place, Place::LoadBalancer(_)))
    };
    Ok(!scanner.explain_worst(met)?.iter().any(passes_balancer))
}

/// Returns whether the finding depends on a plugin's rules for IPv6, of which only those for IPv4
/// are known: in IPVS mode they replace the source of packets from nodes to pods.
fn rests_on_masquerading(cluster: &Cluster, target: &ScanTarget, mechanism: Mechanism) -> bool {
    let ip = match &target.to {
        Destination::Address(at) => Some(at.ip()),
        Destination::Service(name, _) => {
            cluster.services.get(name).and_then(|service| service.cluster_ips.first().copied())
        }
        _ => None,
    };
    matches!(mechanism, Mechanism::AsymmetricReturn | Mechanism::LocalSourceDrop)
        && ip.is_some_and(|ip| ip.is_ipv6())
        && cluster.network.masquerades.value
        && cluster.proxy.mode.value == ProxyMode::Ipvs
}

/// The condition if rules of a network policy stop calls.
const POLICY_NOT_MEANT: &str = "no network policy is meant to stop it";

/// Returns whether rules of network policies stop all calls that fail.
fn is_of_policy(
    scanner: &Scanner<'_, '_>,
    met: &ScanResult,
    mechanism: Mechanism,
) -> Result<bool, WalkError> {
    if mechanism != Mechanism::Firewall || scanner.engine().cluster().captures.is_empty() {
        return Ok(false);
    }
    Ok(scanner.explain_worst(met)?.iter().all(policy_chains::stop))
}
