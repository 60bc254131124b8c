//! The effect of a capture's iptables rules, and the rules that kube-proxy did not write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use uturn_kubeproxy::chain_names::SHARED;
use uturn_netfilter::iptables::{Chain, Match, Rule, Ruleset, TableKind};

/// Returns the part of `whole` that is not in `base`, as a dump that is loaded onto `base`. Returns
/// `None` if `whole` lacks some rule of one of kube-proxy's chains.
pub(super) fn beyond(base: &Ruleset, whole: &Ruleset) -> Option<String> {
    let mut text = String::new();
    for table in &whole.tables {
        let known = base.table(table.kind);
        let (mut heads, mut rules) = (String::new(), String::new());
        for chain in &table.chains {
            let below = known.and_then(|table| table.chain(&chain.name));
            match (chain.policy, below) {
                (Some(policy), _) => {
                    let _ = writeln!(heads, ":{} {} [0:0]", chain.name, policy.as_str());
                }
                (None, None) => {
                    let _ = writeln!(heads, ":{} - [0:0]", chain.name);
                }
                (None, Some(_)) => {}
            }
            let there = below.map_or(&[][..], |chain| chain.rules.as_slice());
            let of = |rules| lines(&chain.name, rules);
            let rest = match chain.rules.split_at_checked(there.len()) {
                Some((first, rest)) if of(first) == of(there) => rest,
                // kube-proxy's rules in these chains are the same for all Services.
                _ if chain.policy.is_some() => {
                    let _ = writeln!(rules, "-F {}", chain.name);
                    chain.rules.as_slice()
                }
                _ => return None,
            };
            for rule in rest {
                let _ = writeln!(rules, "{}", rule.line(&chain.name));
            }
        }
        let says_nothing = |line: &str| line.ends_with(" ACCEPT [0:0]");
        if !rules.is_empty() || !heads.lines().all(says_nothing) {
            let _ = write!(text, "*{}\n{heads}{rules}COMMIT\n", table.kind);
        }
    }
    Some(text)
}

/// Returns the rules of a chain in a form that can be compared: those of Services in a shared chain
/// are sorted.
fn lines(chain: &str, rules: &[Rule]) -> Vec<String> {
    let mut lines: Vec<String> = rules.iter().map(|rule| bare_line(chain, rule)).collect();
    if SHARED.contains(&chain) {
        // The rule for node ports is the last, and has several lines on some nodes.
        let is_last = |line: &String| line.contains("-j KUBE-NODEPORTS");
        let end = lines.iter().position(is_last).unwrap_or(lines.len());
        let matches = |line: &String| line.split(" -j ").next().unwrap_or_default().to_owned();
        let distinct: BTreeSet<String> = lines[..end].iter().map(matches).collect();
        // If two rules match the same packets, the first one counts.
        if distinct.len() == end {
            lines[..end].sort();
        }
    }
    lines
}

/// Returns a rule's line without its comments and counters.
fn bare_line(chain: &str, rule: &Rule) -> String {
    let asks = |matched: &&Match| !matches!(matched, Match::Comment(_) | Match::Nfacct(_));
    let matches: Vec<Match> = rule.matches.iter().filter(asks).cloned().collect();
    Rule { matches: matches.into(), ..rule.clone() }.line(chain).to_string()
}

/// Returns the chains that have an effect, with their policy and rules.
pub(super) fn chains(rules: &Ruleset) -> BTreeMap<(TableKind, &str), (String, Vec<String>)> {
    let all = rules.tables.iter().flat_map(|table| {
        table.chains.iter().map(move |chain: &Chain| {
            let policy = chain.policy.map_or("", |policy| policy.as_str()).to_owned();
            ((table.kind, &*chain.name), (policy, lines(&chain.name, &chain.rules)))
        })
    });
    // Jumping to a chain without rules has no effect, so its presence makes no difference.
    all.filter(|(_, (policy, lines))| !lines.is_empty() || !matches!(&**policy, "" | "ACCEPT"))
        .collect()
}

#[cfg(test)]
mod tests {
    use uturn_model::Family;

    use super::*;

    fn rules(text: &str) -> Ruleset {
        uturn_netfilter::iptables::parse("x", text, Family::V4).unwrap()
    }

    #[test]
    fn what_a_node_has_beside_kube_proxys_rules_is_its_own() {
        let base = "*filter\n:FORWARD ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n\
            -A FORWARD -m comment --comment \"a \\\"b\\\" c\" -j KUBE-SERVICES\n\
            -A KUBE-SERVICES -d 10.0.0.1/32 -j ACCEPT\n\
            -A KUBE-SERVICES -d 10.0.0.2/32 -j ACCEPT\nCOMMIT\n";
        let whole = "*filter\n:FORWARD DROP [1:2]\n:OWN - [0:0]\n:KUBE-SERVICES - [0:0]\n\
            -A FORWARD -m comment --comment other -j KUBE-SERVICES\n-A FORWARD -j OWN\n\
            -A OWN -s 10.9.9.9/32 -j DROP\n\
            -A KUBE-SERVICES -d 10.0.0.2/32 -j ACCEPT\n\
            -A KUBE-SERVICES -d 10.0.0.1/32 -j ACCEPT\nCOMMIT\n";
        let own = beyond(&rules(base), &rules(whole)).unwrap();
        assert_eq!(
            own,
            "*filter\n:FORWARD DROP [0:0]\n:OWN - [0:0]\n-A FORWARD -j OWN\n\
             -A OWN -s 10.9.9.9/32 -j DROP\nCOMMIT\n"
        );
        let again =
            uturn_netfilter::iptables::parse_fragment(rules(base), "x", &own, Family::V4).unwrap();
        assert_eq!(chains(&again), chains(&rules(whole)));
        assert_eq!(beyond(&rules(base), &rules(base)).unwrap(), "");
    }

    const BASE: &str = "*filter\n:FORWARD ACCEPT [0:0]\n:K - [0:0]\n-A FORWARD -j K\n\
        -A K -j DROP\nCOMMIT\n";

    #[test]
    fn what_stands_before_kube_proxys_rules_is_its_own_too() {
        let whole = BASE.replace("-A FORWARD", "-A FORWARD -s 10.9.9.9/32 -j ACCEPT\n-A FORWARD");
        let own = beyond(&rules(BASE), &rules(&whole)).unwrap();
        let again =
            uturn_netfilter::iptables::parse_fragment(rules(BASE), "x", &own, Family::V4).unwrap();
        assert_eq!(chains(&again), chains(&rules(&whole)), "{own}");
    }

    #[test]
    fn a_chain_of_kube_proxys_that_lacks_a_rule_is_none() {
        let found = beyond(&rules(BASE), &rules(&BASE.replace("-A K -j DROP\n", "")));
        assert!(found.is_none(), "{found:?}");
        // A chain that is not there at all is only met when all is put together.
        let lacking = rules("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
        assert_ne!(chains(&rules(BASE)), chains(&lacking));
    }

    #[test]
    fn of_two_rules_for_the_same_packets_the_first_counts() {
        let text = |first: &str, second: &str| {
            rules(&format!(
                "*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -d 10.0.0.1/32 -j {first}\n\
                 -A KUBE-SERVICES -d 10.0.0.1/32 -j {second}\nCOMMIT\n"
            ))
        };
        assert_ne!(chains(&text("ACCEPT", "RETURN")), chains(&text("RETURN", "ACCEPT")));
    }
}
