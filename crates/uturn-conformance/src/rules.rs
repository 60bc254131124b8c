//! The first judge: what kube-proxy left in the kernel against what uturn writes.
//!
//! Chain by chain, with the order inside a chain kept. Only where every Service adds to one
//! chain is that part sorted on both sides: kube-proxy goes through Services in no order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use uturn_kubeproxy::{Options, compile_with};
use uturn_model::{Cluster, Family, Name, ProxyMode};

use crate::dump::Dump;
use crate::fault::{Fault, Outcome};
use crate::world::run;

/// Chains, sets and maps by name, each with its lines.
type Blocks = BTreeMap<String, Vec<String>>;

/// Chains of iptables to which every Service adds.
const SHARED: [&str; 4] =
    ["KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL"];

/// What was compared and what differed.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) blocks: usize,
    pub(crate) lines: usize,
    pub(crate) differences: Vec<String>,
}

/// Holds both families of a node against each other.
pub(crate) fn compare(cluster: &Cluster, node: &str, dump: &Dump) -> Outcome<Compared> {
    let mode = cluster.proxy.mode.value;
    let node = Name::new(node).map_err(|_| Fault::new(format!("{node} is no name")))?;
    let mut compared = Compared::default();
    for family in Family::BOTH {
        let theirs = dump.rules(mode, family);
        // Whether kube-proxy could make accounting objects is up to the kernel.
        let options = Options { accounting: theirs.contains("-m nfacct"), ..Options::default() };
        let program = compile_with(cluster, &node, &cluster.proxy, family, options)
            .map_err(|why| Fault::new(format!("{node} {mode}: {why}")))?;
        let (ours, theirs) = match mode {
            // Loaded and listed again, since nft joins ranges of its own accord.
            ProxyMode::Nftables => {
                let ours = nft(&loaded(&program.nft)?);
                let theirs = without_leftovers(nft(&loaded(theirs)?), &ours);
                (ours, theirs)
            }
            _ => (iptables(&program.iptables), iptables(theirs)),
        };
        compared.blocks += theirs.len();
        compared.lines += theirs.values().map(Vec::len).sum::<usize>();
        let place = format!("{node} {mode} {family}");
        compared.differences.extend(differences(&place, &ours, &theirs));
    }
    Ok(compared)
}

fn differences(place: &str, ours: &Blocks, theirs: &Blocks) -> Vec<String> {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let said = names.into_iter().filter_map(|name| {
        let title = |what: &str| format!("{place} {name}: {what}");
        match (ours.get(name), theirs.get(name)) {
            (Some(ours), Some(theirs)) if ours == theirs => None,
            (Some(ours), Some(theirs)) => Some(format!(
                "{}\n{}",
                title("differs (- kube-proxy, + uturn)"),
                diff(theirs, ours)
            )),
            (Some(ours), None) => {
                Some(format!("{}\n{}", title("only uturn has it"), diff(&[], ours)))
            }
            (None, theirs) => {
                let theirs = theirs.map_or(&[][..], Vec::as_slice);
                Some(format!("{}\n{}", title("only kube-proxy has it"), diff(theirs, &[])))
            }
        }
    });
    said.collect()
}

/// Lines of the first with `-`, of the second with `+`, common ones with a blank.
fn diff(old: &[String], new: &[String]) -> String {
    // Longest common subsequence; the chains that differ are short or differ in little.
    let mut longest = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for other in (0..new.len()).rev() {
            longest[at][other] = match old[at] == new[other] {
                true => longest[at + 1][other + 1] + 1,
                false => longest[at + 1][other].max(longest[at][other + 1]),
            };
        }
    }
    let (mut at, mut other, mut lines) = (0, 0, Vec::new());
    while at < old.len() || other < new.len() {
        let both = at < old.len() && other < new.len();
        if both && old[at] == new[other] {
            lines.push(format!("    {}", old[at]));
            (at, other) = (at + 1, other + 1);
        } else if at < old.len() && (!both || longest[at + 1][other] >= longest[at][other + 1]) {
            lines.push(format!("  - {}", old[at]));
            at += 1;
        } else {
            lines.push(format!("  + {}", new[other]));
            other += 1;
        }
    }
    lines.join("\n")
}

/// What `iptables-save` prints, taken apart.
fn iptables(text: &str) -> Blocks {
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
        }
    }
    blocks
}

/// What `nft list` prints of one table, taken apart.
fn nft(text: &str) -> Blocks {
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

/// kube-proxy empties chains that it needs no more, and removes them, and sets that only
/// they looked into, with the first change after another second.
fn without_leftovers(mut theirs: Blocks, ours: &Blocks) -> Blocks {
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

/// What the kernel holds after loading a text into a namespace of its own.
fn loaded(text: &str) -> Outcome<String> {
    // Some rules name the bridge of the node's pods, and then it must be there.
    let script = "ip link add cbr0 type dummy 2>/dev/null; nft -f - && nft list ruleset";
    run(Command::new("unshare").args(["--net", "sh", "-c", script]), text)
}

/// Keeps what uturn writes beside what kube-proxy left.
pub(crate) fn write_ours(cluster: &Cluster, node: &str, folder: &Path) {
    let Ok(node) = Name::new(node) else { return };
    for family in Family::BOTH {
        if let Ok(program) = uturn_kubeproxy::compile(cluster, &node, &cluster.proxy, family) {
            let text = format!("{}{}", program.iptables, program.nft);
            // The comparison has already said what differs.
            let _ = std::fs::write(folder.join(format!("uturn-{family}")), text);
        }
    }
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
    fn every_difference_is_said_with_its_chain() {
        let other = SAVED.replace("-d 2 -j B", "-d 2 -j X").replace(":INPUT", ":OUTPUT");
        let said = differences("n1", &iptables(&other), &iptables(SAVED));
        let text = said.join("\n");
        assert_eq!(said.len(), 3, "{text}");
        assert!(text.contains("nat INPUT: only kube-proxy"), "{text}");
        assert!(text.contains("nat OUTPUT: only uturn"), "{text}");
        assert!(text.contains("  - -A KUBE-SERVICES -d 2 -j B"), "{text}");
        assert!(text.contains("  + -A KUBE-SERVICES -d 2 -j X"), "{text}");
    }

    #[test]
    fn nothing_differs_from_itself() {
        assert!(differences("n1", &iptables(SAVED), &iptables(SAVED)).is_empty());
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
    fn chains_sets_and_maps_of_nft_are_told_apart() {
        let text = "table ip kube-proxy {\n\tcomment \"c\"\n\n\tset a {\n\t\ttype x\n\t\telements = { 1,\n\
            \t\t\t     2 }\n\t}\n\n\tchain b {\n\t\taccept\n\t}\n}\n";
        let blocks = nft(text);
        assert_eq!(blocks["set a"], ["type x", "elements = { 1,", "2 }"]);
        assert_eq!(blocks["chain b"], ["accept"]);
    }
}
