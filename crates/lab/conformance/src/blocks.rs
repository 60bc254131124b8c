//! Splits rules as text into chains, sets and maps, so that they can be compared.

use std::collections::BTreeMap;

use uturn_kubeproxy::chain_names::SHARED;

use crate::fault::{Fault, Outcome};

/// Chains, sets and maps by name, each with its lines.
pub(crate) type Blocks = BTreeMap<String, Vec<String>>;

/// Splits the output of `iptables-save`.
pub(crate) fn iptables(text: &str) -> Blocks {
    let mut blocks = Blocks::new();
    let mut table = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        } else if let Some(rest) = line.strip_prefix(':') {
            let mut words = rest.split(' ');
            let (chain, policy) = (words.next().unwrap_or(rest), words.next().unwrap_or("-"));
            let lines = if policy == "-" { vec![] } else { vec![format!("policy {policy}")] };
            blocks.insert(format!("{table} {chain}"), lines);
        } else if let Some(rest) = line.strip_prefix("-A ") {
            let chain = rest.split(' ').next().unwrap_or(rest);
            blocks.entry(format!("{table} {chain}")).or_default().push(line.to_owned());
        }
    }
    for (name, rules) in &mut blocks {
        if SHARED.iter().any(|shared| name.ends_with(&format!(" {shared}"))) {
            let last = rules.iter().position(|rule| rule.contains("must be the last rule"));
            let end = last.unwrap_or(rules.len());
            rules[..end].sort();
            // There is one such rule for each address of the node, all to the same chain.
            rules[end..].sort();
        }
    }
    blocks
}

/// Splits the output of `nft list` for one table.
pub(crate) fn nft(text: &str) -> Blocks {
    let mut blocks = Blocks::new();
    let mut block = String::new();
    for line in text.lines() {
        if line == "\t}" {
            block.clear();
        } else if let Some(head) = line.strip_prefix('\t').filter(|rest| !rest.starts_with('\t')) {
            let head = head.strip_suffix(" {").unwrap_or(head);
            head.clone_into(&mut block);
            blocks.entry(block.clone()).or_default();
        } else if !block.is_empty() {
            blocks.entry(block.clone()).or_default().push(line.trim().to_owned());
        }
    }
    blocks
}

/// Removes the leftovers that kube-proxy is about to remove: it flushes obsolete chains at once,
/// but deletes them, and sets that only they use, with the first change at least a second later.
pub(crate) fn without_leftovers(mut theirs: Blocks, ours: &Blocks) -> Blocks {
    let used: String = theirs.values().flatten().flat_map(|line| [line.as_str(), "\n"]).collect();
    theirs.retain(|block, lines| {
        let leftover = match block.split_once(' ') {
            Some(("chain", _)) => lines.is_empty(),
            Some(("set", name)) => {
                name.starts_with("affinity-") && !used.contains(&format!("@{name} "))
            }
            _ => false,
        };
        ours.contains_key(block) || !leftover
    });
    theirs
}

/// Loads a text into a new namespace, and returns the rules that the kernel then lists.
pub(crate) fn loaded(text: &str) -> Outcome<String> {
    // Some rules name the pods' bridge, which must exist then.
    let script = "ip link add cbr0 type veth; nft -f - && nft list ruleset";
    uturn_testing::in_a_namespace(script, text).map_err(Fault::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = "*nat\n:KUBE-SERVICES - [0:0]\n:INPUT ACCEPT [0:0]\n\
        -A KUBE-SERVICES -d 2 -j B\n-A KUBE-SERVICES -d 1 -j A\n\
        -A KUBE-SERVICES -m comment --comment \"this must be the last rule\" -j C\nCOMMIT\n";

    #[test]
    fn the_order_of_services_does_not_count_but_the_last_rule_stays_last() {
        let blocks = iptables(SAVED);
        let rules = &blocks["nat KUBE-SERVICES"];
        assert!(rules[0].contains("-d 1") && rules[1].contains("-d 2"), "{rules:?}");
        assert!(rules[2].contains("last rule"), "{rules:?}");
        assert_eq!(blocks["nat INPUT"], ["policy ACCEPT"]);
    }

    #[test]
    fn what_kube_proxy_is_about_to_remove_is_no_difference() {
        let ours = nft("table ip kube-proxy {\n\tchain a {\n\t\taccept\n\t}\n}\n");
        let more = "table ip kube-proxy {\n\tset affinity-b {\n\t\ttype x\n\t}\n\n\tchain a {\n\
            \t\taccept\n\t}\n\n\tchain b {\n\t}\n}\n";
        assert_eq!(without_leftovers(nft(more), &ours), ours);
        let used = more.replace("\tchain b {\n", "\tchain b {\n\t\tupdate @affinity-b { x }\n");
        assert_eq!(without_leftovers(nft(&used), &ours).len(), 3);
        assert_eq!(without_leftovers(Blocks::new(), &ours), Blocks::new());
    }

    #[test]
    fn chains_sets_and_maps_of_nft_are_distinguished() {
        let text = "table ip kube-proxy {\n\tcomment \"c\"\n\n\tset a {\n\t\ttype x\n\t\telements = { 1,\n\
            \t\t\t     2 }\n\t}\n\n\tchain b {\n\t\taccept\n\t}\n}\n";
        let blocks = nft(text);
        assert_eq!(blocks["set a"], ["type x", "elements = { 1,", "2 }"]);
        assert_eq!(blocks["chain b"], ["accept"]);
    }
}
