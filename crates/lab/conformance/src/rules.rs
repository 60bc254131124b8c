//! The first judge: compares the rules that kube-proxy left in the kernel with those that uturn
//! writes.
//!
//! The judge compares chain by chain, including the order of rules. Only the parts of chains that
//! every Service adds to are sorted on both sides, since kube-proxy processes Services in no
//! particular order.

use std::collections::BTreeSet;
use std::path::Path;

use uturn_kubeproxy::{Options, compile_with};
use uturn_model::{Cluster, Family, Name};

use crate::blocks::Blocks;
use crate::dump::Dump;
use crate::fault::{Fault, Outcome};
use crate::mode::Mode;

/// The amounts compared, and the differences.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) blocks: usize,
    pub(crate) lines: usize,
    pub(crate) differences: Vec<String>,
}

/// Compares both families of a node.
pub(crate) fn compare(mode: Mode, cluster: &Cluster, node: &str, dump: &Dump) -> Outcome<Compared> {
    let cluster = &mode.informed(cluster, node, dump)?;
    let node = Name::new(node).map_err(|_| Fault::new(format!("{node} is not a valid name")))?;
    let mut compared = Compared::default();
    for family in Family::BOTH {
        let theirs = mode.rules(dump, family);
        // The kernel decides whether kube-proxy can create accounting objects.
        let options = Options { accounting: theirs.contains("-m nfacct"), ..Options::default() };
        let program = compile_with(cluster, &node, &cluster.proxy, family, options)
            .map_err(|why| Fault::new(format!("{node} {mode}: {why}")))?;
        let (ours, theirs) = mode.blocks(&program, &theirs)?;
        compared.blocks += theirs.len();
        compared.lines += theirs.values().map(Vec::len).sum::<usize>();
        let place = format!("{node} {mode} {family}");
        compared.differences.extend(differences(&place, &ours, &theirs));
    }
    Ok(compared)
}

fn differences(place: &str, ours: &Blocks, theirs: &Blocks) -> Vec<String> {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let faults = names.into_iter().filter_map(|name| {
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
    faults.collect()
}

/// Lists the lines of the first with `-`, those of the second with `+`, and common ones with a
/// blank.
fn diff(old: &[String], new: &[String]) -> String {
    // Longest common subsequence. Differing chains are short or differ in few lines.
    let mut longest = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for other in (0..new.len()).rev() {
            longest[at][other] = if old[at] == new[other] {
                longest[at + 1][other + 1] + 1
            } else {
                longest[at + 1][other].max(longest[at][other + 1])
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

/// Writes uturn's rules next to the dump of kube-proxy's.
pub(crate) fn write_ours(cluster: &Cluster, node: &str, folder: &Path) {
    let Ok(node) = Name::new(node) else { return };
    for family in Family::BOTH {
        if let Ok(program) = uturn_kubeproxy::compile(cluster, &node, &cluster.proxy, family) {
            let text = [program.iptables, program.nft, program.ipset, program.ipvs].concat();
            // The comparison has already printed what differs.
            let _ = std::fs::write(folder.join(format!("uturn-{family}")), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::iptables;

    const SAVED: &str = "*nat\n:KUBE-SERVICES - [0:0]\n:INPUT ACCEPT [0:0]\n\
        -A KUBE-SERVICES -d 2 -j B\n-A KUBE-SERVICES -d 1 -j A\n\
        -A KUBE-SERVICES -m comment --comment \"this must be the last rule\" -j C\nCOMMIT\n";

    #[test]
    fn every_difference_names_its_chain() {
        let other = SAVED.replace("-d 2 -j B", "-d 2 -j X").replace(":INPUT", ":OUTPUT");
        let found = differences("n1", &iptables(&other), &iptables(SAVED));
        let text = found.join("\n");
        assert_eq!(found.len(), 3, "{text}");
        assert!(text.contains("nat INPUT: only kube-proxy"), "{text}");
        assert!(text.contains("nat OUTPUT: only uturn"), "{text}");
        assert!(text.contains("  - -A KUBE-SERVICES -d 2 -j B"), "{text}");
        assert!(text.contains("  + -A KUBE-SERVICES -d 2 -j X"), "{text}");
    }

    #[test]
    fn nothing_differs_from_itself() {
        assert!(differences("n1", &iptables(SAVED), &iptables(SAVED)).is_empty());
    }
}
