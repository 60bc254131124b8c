//! Decides whether two kernels treat packets alike.

use uturn_model::Family;
use uturn_netfilter::ipvs::{VirtualAddress, VirtualServer, VirtualServers};
use uturn_netfilter::{NodeState, PolicyRule};

use super::addresses::Addresses;
use super::iptables::chains;
use super::nftables::tables;

/// Returns whether two kernels have rules, sets, servers and sysctls that treat packets of these
/// families alike.
pub(super) fn are_alike(
    families: &[Family],
    known: &Addresses,
    own: &NodeState,
    other: &NodeState,
) -> bool {
    let policies = |state: &NodeState| {
        let mut all: Vec<String> = state.rules.iter().map(policy).collect();
        all.sort();
        all
    };
    let counts = |line: &&str| families.contains(&Family::V6) || !line.contains(" KUBE-6-");
    let lines = |text: String| {
        // The hash size of a set does not matter.
        let without_sizes =
            |line: &str| line.split(" hashsize ").next().unwrap_or_default().to_owned();
        let mut lines: Vec<String> = text.lines().filter(counts).map(without_sizes).collect();
        lines.sort();
        lines
    };
    let switches = |state: &NodeState| {
        let all = &state.sysctls;
        (
            families.iter().map(|family| all.ip_forward(*family)).collect::<Vec<_>>(),
            [all.tcp_be_liberal(), all.tcp_loose()],
            [all.ipvs_conntrack(), all.ipvs_sloppy_tcp(), all.ipvs_snat_reroute()],
        )
    };
    let has_same_rules = |family: &Family| match family {
        Family::V4 => chains(&own.iptables) == chains(&other.iptables),
        Family::V6 => chains(&own.ip6tables) == chains(&other.ip6tables),
    };
    families.iter().all(has_same_rules)
        && tables(families, own) == tables(families, other)
        && lines(own.sets.to_string()) == lines(other.sets.to_string())
        && servers(known, own) == servers(known, other)
        && policies(own) == policies(other)
        && switches(own) == switches(other)
}

/// Returns the virtual servers that may be called. A node has those of node ports at each of its
/// addresses, and the cluster does not know them all.
fn servers(known: &Addresses, state: &NodeState) -> Vec<String> {
    let is_called = |server: &&VirtualServer| match server.at {
        VirtualAddress::Address { address, .. } => known.called.contains(&address.ip()),
        VirtualAddress::Mark { .. } => true,
    };
    let called = VirtualServers(state.ipvs.0.iter().filter(is_called).cloned().collect());
    let mut lines: Vec<String> = called.to_string().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

pub(super) fn policy(rule: &PolicyRule) -> String {
    rule.to_string()
}
