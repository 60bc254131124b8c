//! Compares a capture with what kube-proxy would program.

use std::collections::BTreeSet;
use std::net::IpAddr;

use thiserror::Error;
use uturn_kubeproxy::{Options, Program, UnboundVip, Unsupported};
use uturn_model::proxy::NodePortAddresses;
use uturn_model::{
    Cluster, Evidence, Family, Name, ProxyMode, ProxySettings, RulesPart, SourceName,
};
use uturn_netfilter::{ParseError, ipset, iptables as tables, ipvs as servers, nft};

use crate::Code;
use crate::nodes::blocks::{Blocks, Change, Role, changes};
use crate::nodes::difference::Difference;
use crate::nodes::{Subject, iptables, ipvs, nftables, order};

/// The differences in both families.
#[derive(Default)]
pub(super) struct Compared {
    pub(super) changes: Vec<(Family, Change)>,
    pub(super) bound: Vec<Difference>,
    pub(super) sysctls: BTreeSet<(String, String)>,
    pub(super) lines: usize,
}

/// The reason why rules cannot be compared.
#[derive(Debug, Error)]
pub(super) enum Incomparable {
    /// The rules that kube-proxy would write are not known.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The rules written for kube-proxy cannot be parsed, which is a fault of uturn.
    #[error("uturn cannot read what it writes for kube-proxy: {0}")]
    Unread(String),
}

impl From<Vec<ParseError>> for Incomparable {
    fn from(errors: Vec<ParseError>) -> Self {
        Self::Unread(errors.first().map(ToString::to_string).unwrap_or_default())
    }
}

/// Compares both families. Where kube-proxy's behaviour is not documented, the variant with fewer
/// differences is used.
pub(super) fn compare(
    subject: &Subject<'_>,
    settings: &ProxySettings,
    families: &[Family],
) -> Result<Compared, Incomparable> {
    let cluster = informed(subject, settings);
    let mut best: Option<Compared> = None;
    for unbound_vip in [UnboundVip::Served, UnboundVip::Absent] {
        let mut compared = Compared::default();
        for family in families {
            let rules = match family {
                Family::V4 => &subject.state.iptables,
                Family::V6 => &subject.state.ip6tables,
            };
            let options = Options { unbound_vip, accounting: iptables::has_accounting(rules) };
            let name = &subject.node.name;
            let program =
                uturn_kubeproxy::compile_with(&cluster, name, settings, *family, options)?;
            compare_family(subject, settings.mode.value, &program, *family, &mut compared)?;
        }
        order::sort(&mut compared.changes);
        let is_better = best.as_ref().is_none_or(|best| {
            compared.changes.len() + compared.bound.len() < best.changes.len() + best.bound.len()
        });
        if is_better {
            best = Some(compared);
        }
        if settings.mode.value != ProxyMode::Ipvs {
            break;
        }
    }
    Ok(best.unwrap_or_default())
}

/// Returns the cluster with the values that kube-proxy reads from its node's kernel.
fn informed(subject: &Subject<'_>, settings: &ProxySettings) -> Cluster {
    let mut cluster = subject.cluster.programmed_on(subject.node).into_owned();
    let release = subject.manifest.as_ref().and_then(|manifest| manifest.kernel.as_deref());
    let reads_addresses = settings.mode.value == ProxyMode::Ipvs
        || matches!(settings.node_port_addresses, NodePortAddresses::Ranges(_));
    if let Some(node) = cluster.nodes.get_mut(&subject.node.name) {
        if let Some(release) = release {
            node.kernel = Some(release.into());
        }
        let own: Vec<IpAddr> = ipvs::own_addresses(&subject.state.interfaces).collect();
        if reads_addresses && !own.is_empty() {
            // Addresses that the object states too stay in the object's order.
            node.internal_ips.retain(|ip| own.contains(ip));
            let known = node.internal_ips.clone();
            node.internal_ips.extend(own.into_iter().filter(|ip| !known.contains(ip)));
        }
    }
    cluster
}

fn compare_family(
    subject: &Subject<'_>,
    mode: ProxyMode,
    program: &Program,
    family: Family,
    compared: &mut Compared,
) -> Result<(), Incomparable> {
    let state = &subject.state;
    let has_seconds = ipvs::have_seconds(&state.ipvs);
    let expected = expected(&subject.node.name, program, family, has_seconds)?;
    let mut found = match (mode, family) {
        (ProxyMode::Nftables, _) => {
            nftables::table(&state.nft, family).map(nftables::blocks).unwrap_or_default()
        }
        (_, Family::V4) => iptables::blocks(&state.iptables),
        (_, Family::V6) => iptables::blocks(&state.ip6tables),
    };
    if mode == ProxyMode::Ipvs {
        found.extend(ipvs::blocks(&state.sets, &state.ipvs, family, has_seconds));
        compared.bound.extend(bound(subject, program, family));
    }
    compared.lines += expected.values().map(|block| block.lines.len()).sum::<usize>();
    compared.changes.extend(changes(&expected, &found).into_iter().map(|change| (family, change)));
    compared
        .changes
        .extend(stale_servers(subject, &expected, &found).map(|change| (family, change)));
    compared.sysctls.extend(program.sysctls.iter().cloned());
    Ok(())
}

/// Returns what kube-proxy would program, read by the parsers that read the capture.
fn expected(
    node: &Name,
    program: &Program,
    family: Family,
    has_seconds: bool,
) -> Result<Blocks, Vec<ParseError>> {
    let source = |part| SourceName::Generated(node.clone(), part);
    let mut blocks =
        iptables::blocks(&tables::parse(source(RulesPart::Iptables), &program.iptables, family)?);
    let rules = nft::parse(source(RulesPart::Nftables), &program.nft)?;
    if let Some(table) = nftables::table(&rules, family) {
        blocks.extend(nftables::blocks(table));
    }
    let sets = ipset::parse(source(RulesPart::Ipset), &program.ipset)?;
    let servers = servers::parse(source(RulesPart::Ipvs), &program.ipvs)?;
    blocks.extend(ipvs::blocks(&sets, &servers, family, has_seconds));
    Ok(blocks)
}

/// Iterates over virtual servers that no Service has, if they are kube-proxy's, which binds their
/// addresses. Others may belong to another program.
fn stale_servers<'a>(
    subject: &'a Subject<'_>,
    expected: &'a Blocks,
    found: &'a Blocks,
) -> impl Iterator<Item = Change> + 'a {
    let of_families = Family::BOTH.map(|family| ipvs::bound(&subject.state, family));
    let bound: Vec<IpAddr> = of_families.into_iter().flatten().flatten().collect();
    let beyond = found.iter().filter(|(name, _)| !expected.contains_key(*name));
    beyond.filter(|(name, _)| name.starts_with(ipvs::SERVER)).filter_map(move |(name, block)| {
        let line = block.lines.first()?;
        let Role::Dispatch(Some(address), _) = line.role else { return None };
        let extra = vec![line.clone()];
        bound.contains(&address).then(|| Change {
            block: name.clone(),
            is_ordered: block.is_ordered,
            missing: Vec::new(),
            extra,
            is_gone: false,
            reordered: None,
        })
    })
}

/// Returns differences between the addresses that kube-proxy would bind and those that are bound.
fn bound(subject: &Subject<'_>, program: &Program, family: Family) -> Vec<Difference> {
    let by = || Evidence::object(subject.node.object(), subject.node.origin.clone());
    let Some(found) = ipvs::bound(&subject.state, family) else {
        if program.bound.is_empty() {
            return Vec::new();
        }
        let what = format!("expected: {} addresses; found: no device", program.bound.len());
        return vec![Difference::new(Code::BoundAddresses, what, by())];
    };
    let missing = program.bound.iter().filter(|ip| !found.contains(ip));
    let missing = missing.map(|ip| format!("expected: {ip}; found: it is not bound"));
    // An address with a virtual server is reported as a Service that is gone.
    let is_served = |ip: &IpAddr| {
        let servers = subject.state.ipvs.0.iter().filter_map(ipvs::address);
        servers.map(|(address, _)| address).any(|address| address == *ip)
    };
    let extra = found.iter().filter(|ip| !program.bound.contains(ip) && !is_served(ip));
    let extra = extra.map(|ip| format!("found: {ip}; expected: no Service has it"));
    missing.chain(extra).map(|what| Difference::new(Code::BoundAddresses, what, by())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_read_are_not_taken_for_none() {
        let node = Name::new("n1").unwrap();
        let written = Program { iptables: "*nat\n-A\n".to_owned(), ..Program::default() };
        let why = expected(&node, &written, Family::V4, true).map(|_| ()).unwrap_err();
        let why = Incomparable::from(why).to_string();
        assert!(why.starts_with("uturn cannot read what it writes for kube-proxy: "), "{why}");
        assert!(expected(&node, &Program::default(), Family::V4, true).unwrap().is_empty());
    }
}
