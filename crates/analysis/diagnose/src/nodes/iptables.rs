//! The rules of iptables as blocks, and the recognition of kube-proxy's chains.

use std::collections::HashSet;

use uturn_kubeproxy::chain_names::{HASHED, OTHERS, SHARED};
use uturn_model::Text;
use uturn_netfilter::iptables::{Addresses, Chain, Match, PortRange, Rule, Ruleset, Target};

use super::blocks::{Block, Blocks, Line, Role};

/// The chains that only iptables mode has, and those that only IPVS mode has.
const OF_IPTABLES_MODE: [&str; 3] = ["KUBE-SVC-", "KUBE-SEP-", "KUBE-EXT-"];
const OF_IPVS_MODE: [&str; 3] = ["KUBE-NODE-PORT", "KUBE-LOAD-BALANCER", "KUBE-IPVS-FILTER"];

/// Returns whether only kube-proxy writes chains of this name.
pub(super) fn is_of_kube_proxy(chain: &str) -> bool {
    HASHED.iter().any(|start| chain.starts_with(start))
        || SHARED.contains(&chain)
        || OTHERS.contains(&chain)
}

/// Returns whether rules contain chains of kube-proxy in iptables mode.
pub(super) fn has_iptables_mode(rules: &Ruleset) -> bool {
    has_chain(rules, |name| OF_IPTABLES_MODE.iter().any(|start| name.starts_with(start)))
}

/// Returns whether rules contain chains of kube-proxy in IPVS mode.
pub(super) fn has_ipvs_mode(rules: &Ruleset) -> bool {
    has_chain(rules, |name| OF_IPVS_MODE.contains(&name))
}

/// Returns whether kube-proxy counts with nfacct objects, which it does if the kernel has them.
pub(super) fn has_accounting(rules: &Ruleset) -> bool {
    let chains = rules.tables.iter().flat_map(|table| &table.chains);
    let mut rules = chains.filter(|chain| is_of_kube_proxy(&chain.name)).flat_map(|own| &own.rules);
    rules.any(|rule| rule.matches.iter().any(|item| matches!(item, Match::Nfacct(_))))
}

/// Returns the first rule of kube-proxy, as evidence that it ran here.
pub(super) fn trace(rules: &Ruleset) -> Option<uturn_model::Evidence> {
    let chains = rules.tables.iter().flat_map(|table| &table.chains);
    let mut own = chains.filter(|chain| is_of_kube_proxy(&chain.name) && !chain.rules.is_empty());
    let first = own.next()?;
    first.rules.first().map(|rule| rule.by(&first.name))
}

fn has_chain(rules: &Ruleset, is_wanted: impl Fn(&str) -> bool) -> bool {
    let mut chains = rules.tables.iter().flat_map(|table| &table.chains);
    chains.any(|chain| !chain.rules.is_empty() && is_wanted(&chain.name))
}

/// Returns the chains of kube-proxy, and the rules of built-in chains that lead to them.
pub(super) fn blocks(rules: &Ruleset) -> Blocks {
    let mut blocks = Blocks::new();
    for table in &rules.tables {
        for chain in &table.chains {
            let is_own = is_of_kube_proxy(&chain.name);
            if !is_own && chain.policy.is_none() {
                continue;
            }
            let is_compared = |rule: &&Rule| is_own || leads_to_kube_proxy(rule);
            let mut lines: Vec<Line> = chain
                .rules
                .iter()
                .filter(is_compared)
                .filter_map(|rule| line(chain, rule))
                .collect();
            if !is_own {
                // A packet that returns from kube-proxy's chains once does so again, so repeated
                // jumps have no effect.
                let mut seen = HashSet::new();
                lines.retain(|line| seen.insert(line.text.clone()));
            }
            if !lines.is_empty() {
                // Only the order among rules of kube-proxy is compared.
                let is_ordered = is_own && !SHARED.contains(&&*chain.name);
                blocks
                    .insert(format!("{} {}", table.kind, chain.name), Block { lines, is_ordered });
            }
        }
    }
    blocks
}

fn leads_to_kube_proxy(rule: &Rule) -> bool {
    jump(rule).is_some_and(|chain| is_of_kube_proxy(chain))
}

fn jump(rule: &Rule) -> Option<&Text> {
    match &rule.target {
        Some(Target::Jump(chain) | Target::Goto(chain)) => Some(chain),
        _ => None,
    }
}

/// Converts a rule to a line. Returns `None` if the rule has no effect: it only counts or comments.
fn line(chain: &Chain, rule: &Rule) -> Option<Line> {
    rule.target.as_ref()?;
    let mut plain = rule.clone();
    plain.counters = None;
    plain.matches.retain(|item| !matches!(item, Match::Comment(_) | Match::Nfacct(_)));
    // kube-proxy leaves out the option if iptables does not know it, and it only affects source
    // ports.
    if let Some(Target::Masquerade(ports)) = &mut plain.target {
        ports.random_fully = false;
    }
    Some(Line {
        text: plain.line(&chain.name).to_string(),
        role: role(chain, rule),
        service: rule.comment().and_then(|comment| service_in(comment)),
        by: rule.by(&chain.name),
    })
}

fn role(chain: &Chain, rule: &Rule) -> Role {
    let is_to_endpoint = jump(rule).is_some_and(|chain| chain.starts_with("KUBE-SEP-"));
    if is_to_endpoint || matches!(rule.target, Some(Target::Dnat(_))) {
        return Role::Endpoint;
    }
    if !SHARED.contains(&&*chain.name) {
        return Role::Other;
    }
    let address = match rule.dst {
        Some(not) if !not.not => match not.value {
            Addresses::Net(net) if net.prefix_len() == net.max_prefix_len() => Some(net.addr()),
            _ => None,
        },
        _ => None,
    };
    match (address, port(rule)) {
        (None, None) => Role::Other,
        (address, port) => Role::Dispatch(address, port),
    }
}

fn port(rule: &Rule) -> Option<u16> {
    rule.matches.iter().find_map(|item| {
        let range: Option<PortRange> = match item {
            Match::Tcp(tcp) => tcp.dport.map(|port| port.value),
            Match::Udp(ports) | Match::Sctp(ports) => ports.dport.map(|port| port.value),
            _ => None,
        };
        range.map(|range| range.first)
    })
}

/// Returns the Service that a comment of kube-proxy names: the first word with a slash.
pub(super) fn service_in(comment: &str) -> Option<Text> {
    let mut words = comment.split(|c: char| c.is_whitespace() || c == '"');
    let word = words.find(|word| word.split('/').count() == 2 && !word.starts_with('/'))?;
    Some(word.into())
}

#[cfg(test)]
mod tests {
    use uturn_model::Family;
    use uturn_netfilter::iptables::parse;

    use super::super::blocks::changes;
    use super::*;

    /// kube-proxy iterates over its Services in no particular order.
    #[test]
    fn the_order_of_services_is_no_difference() {
        let fences = ["80", "81"].map(|port| {
            format!(
                "-A KUBE-IPVS-OUT-FILTER -s 203.0.113.12/32 -m ipvs --vproto 6 \
                 --vaddr 203.0.113.12 --vport {port} -j DROP\n"
            )
        });
        let services = ["10.0.0.1", "10.0.0.2"]
            .map(|ip| format!("-A KUBE-SERVICES -d {ip}/32 -p tcp -m tcp --dport 80 -j REJECT\n"));
        let read = |order: [usize; 2]| {
            let [fences, services] =
                [&fences, &services].map(|lines| order.map(|at| &*lines[at]).concat());
            let text = format!(
                "*filter\n:KUBE-IPVS-OUT-FILTER - [0:0]\n:KUBE-SERVICES - [0:0]\n\
                 {fences}{services}COMMIT\n"
            );
            blocks(&parse("iptables.save", &text, Family::V4).unwrap())
        };
        let differences = changes(&read([0, 1]), &read([1, 0]));
        assert!(differences.is_empty(), "{differences:?}");
    }
}
