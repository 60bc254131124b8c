//! Classifies changes of kube-proxy's rules, and describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uturn_model::Cluster;

use super::blocks::{Change, Line, Role};
use super::difference::Difference;
use crate::Code;

/// The addresses and ports of the cluster's Services.
pub(super) struct Claims {
    addresses: BTreeSet<IpAddr>,
    node_ports: BTreeSet<u16>,
}

impl Claims {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let mut claims = Self { addresses: BTreeSet::new(), node_ports: BTreeSet::new() };
        for service in cluster.services.values() {
            claims.addresses.extend(&service.cluster_ips);
            claims.addresses.extend(&service.external_ips);
            claims.addresses.extend(service.load_balancer.iter().filter_map(|entry| entry.ip));
            let own = service.ports.iter().filter_map(|port| port.node_port);
            let own = own.chain(service.health_check_node_port);
            claims.node_ports.extend(own.map(|port| port.number()));
        }
        claims
    }

    /// Returns whether a Service has the address or node port.
    fn has(&self, address: Option<IpAddr>, port: Option<u16>) -> bool {
        match (address, port) {
            (Some(address), _) if self.addresses.contains(&address) => true,
            (_, Some(port)) => self.node_ports.contains(&port),
            _ => false,
        }
    }
}

/// Returns the differences in a change: missing rules, other endpoints, or a Service that is gone.
pub(super) fn judge(change: &Change, claims: &Claims) -> Vec<Difference> {
    let code_of = |line: &Line, is_extra: bool| match line.role {
        _ if change.is_gone => Code::RulesMissing,
        Role::Endpoint => Code::EndpointsDiffer,
        Role::Dispatch(address, port) if is_extra && !claims.has(address, port) => {
            Code::StaleService
        }
        Role::Dispatch(..) | Role::Other => Code::RulesMissing,
    };
    let mut parts: BTreeMap<Code, [Vec<&Line>; 2]> = BTreeMap::new();
    for line in &change.missing {
        parts.entry(code_of(line, false)).or_default()[0].push(line);
    }
    for line in &change.extra {
        parts.entry(code_of(line, true)).or_default()[1].push(line);
    }
    let difference = |(code, [missing, extra]): (Code, [Vec<&Line>; 2])| {
        let what = shown(&change.block, &missing, &extra);
        let line = extra.first().or(missing.first())?;
        Some(Difference::new(code, what, line.by.clone()))
    };
    let mut differences: Vec<Difference> = parts.into_iter().filter_map(difference).collect();
    if let Some(first) = &change.reordered {
        let what = format!("{}: its rules are in another order", change.block);
        differences.push(Difference::new(Code::RulesMissing, what, first.by.clone()));
    }
    differences
}

/// The maximum number of lines of a block that are shown.
pub(super) const SHOWN: usize = 3;

/// Describes the expected and found lines of a block.
pub(super) fn shown(block: &str, missing: &[&Line], extra: &[&Line]) -> String {
    let service = missing.iter().chain(extra).find_map(|line| line.service.as_ref());
    let service = service.map(|service| format!(" ({service})")).unwrap_or_default();
    let lines = |lines: &[&Line]| match lines {
        [] => "nothing".to_owned(),
        some => {
            let first: Vec<&str> = some.iter().take(SHOWN).map(|line| line.text.trim()).collect();
            let more = some.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            format!("{}{more}", first.join("; "))
        }
    };
    format!("{block}{service}: expected: {}; found: {}", lines(missing), lines(extra))
}
