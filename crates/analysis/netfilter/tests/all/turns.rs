//! Rules that take turns (`-m statistic --mode nth`, `numgen inc`): each visit counts, also where one packet comes
//! by the same rule several times. The kernel was asked: of 60 packets that pass a rule with `--every 3` three times,
//! each is marked once.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::collections::BTreeMap;

use crate::common::{from, small, small_state, tcp};
use uturn_model::Share;
use uturn_netfilter::{Assumptions, EndKind, Kernel, NodeState, nft};

/// How a packet from a pod to another host ends: what becomes of it and its mark, with its share.
fn shown(kernel: &Kernel) -> Vec<String> {
    let packet = tcp("10.1.0.9:1000", "10.9.9.9:80");
    let ends = kernel.walk_assuming(&packet, &from("cbr0"), &[], &Assumptions::default());
    assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)));
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for end in &ends {
        let kind = if end.kind == EndKind::Forward { "out" } else { "drop" };
        *shares.entry(format!("{kind} {}", end.packet.mark)).or_default() += end.share;
    }
    shares.into_iter().map(|(end, share)| format!("{:.3} {end}", share.get())).collect()
}

/// A chain with these rules that is jumped to so often.
fn iptables(visits: usize, rules: &str) -> Kernel {
    let mut text = "*mangle\n:FORWARD ACCEPT [0:0]\n:A - [0:0]\n".to_owned();
    text.push_str(&"-A FORWARD -j A\n".repeat(visits));
    rules.lines().for_each(|rule| text.push_str(&format!("-A A {rule}\n")));
    small(&format!("{text}COMMIT\n"))
}

fn nftables(visits: usize, rules: &str) -> Kernel {
    let jumps = "jump a\n".repeat(visits);
    let text = format!(
        "table ip t {{\nchain a {{\n{rules}\n}}\nchain f {{\ntype filter hook forward priority -150; policy accept;\n\
         {jumps}}}\n}}\n"
    );
    let state = NodeState { nft: nft::parse("nft.txt", &text).unwrap(), ..small_state("") };
    Kernel::new(state).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

const NTH: &str = "-m statistic --mode nth --every";

#[test]
fn each_visit_counts() {
    for (visits, rules, nft_rules, ends) in [
        (
            1,
            "3 --packet 0 -j MARK --xor-mark 1",
            "3 0 meta mark set mark ^ 1",
            vec!["0.667 out 0", "0.333 out 1"],
        ),
        (
            2,
            "3 --packet 0 -j MARK --xor-mark 1",
            "3 0 meta mark set mark ^ 1",
            vec!["0.333 out 0", "0.667 out 1"],
        ),
        (3, "3 --packet 0 -j MARK --xor-mark 1", "3 0 meta mark set mark ^ 1", vec!["1.000 out 1"]),
        (
            4,
            "3 --packet 0 -j MARK --xor-mark 1",
            "3 0 meta mark set mark ^ 1",
            vec!["0.333 out 0", "0.667 out 1"],
        ),
        (6, "3 --packet 1 -j MARK --xor-mark 1", "3 1 meta mark set mark ^ 1", vec!["1.000 out 0"]),
        (2, "2 --packet 0 -j DROP", "2 0 drop", vec!["1.000 drop 0"]),
        (2, "4 --packet 0 -j DROP", "4 0 drop", vec!["0.500 drop 0", "0.500 out 0"]),
        (
            1000,
            "1000 --packet 7 -j MARK --xor-mark 1",
            "1000 7 meta mark set mark ^ 1",
            vec!["1.000 out 1"],
        ),
    ] {
        let iptables = iptables(visits, &format!("{NTH} {rules}"));
        assert_eq!(shown(&iptables), ends, "{visits} visits of {rules}");
        let nftables = nftables(visits, &format!("numgen inc mod {nft_rules}"));
        assert_eq!(shown(&nftables), ends, "{visits} visits of {nft_rules}");
    }
}

#[test]
fn a_negated_rule_takes_the_other_turns() {
    let negated = "-m statistic --mode nth ! --every 3 --packet 0 -j MARK --xor-mark 1";
    assert_eq!(shown(&iptables(1, negated)), ["0.333 out 0", "0.667 out 1"]);
    assert_eq!(shown(&iptables(3, negated)), ["1.000 out 0"]);
}

/// Ranges of numbers: after one below 2 of 4 comes one from 1 up to 2.
#[test]
fn ranges_of_numbers_go_round() {
    let rules = "numgen inc mod 4 < 2 meta mark set mark ^ 1";
    assert_eq!(shown(&nftables(1, rules)), ["0.500 out 0", "0.500 out 1"]);
    assert_eq!(shown(&nftables(2, rules)), ["0.500 out 0", "0.500 out 1"]);
    assert_eq!(shown(&nftables(4, rules)), ["1.000 out 0"]);
    let map =
        "numgen inc mod 3 vmap { 0 : continue, 1 : return, 2 : drop }\nmeta mark set mark ^ 1";
    // A packet that begins with 2 is dropped at once, and one that begins with 1 at its second visit.
    assert_eq!(shown(&nftables(2, map)), ["0.667 drop 0", "0.333 out 1"]);
}

/// Two rules have two counters, and random numbers are drawn anew.
#[test]
fn counters_are_of_a_rule_and_chance_has_no_memory() {
    let two =
        format!("{NTH} 2 --packet 0 -j MARK --xor-mark 1\n{NTH} 2 --packet 0 -j MARK --xor-mark 2");
    assert_eq!(shown(&iptables(2, &two)), ["1.000 out 3"]);
    let random = "-m statistic --mode random --probability 0.5 -j MARK --xor-mark 1";
    assert_eq!(shown(&iptables(2, random)), ["0.500 out 0", "0.500 out 1"]);
    assert_eq!(
        shown(&nftables(2, "numgen random mod 2 0 meta mark set mark ^ 1")),
        ["0.500 out 0", "0.500 out 1"]
    );
}

/// Whether a packet counts depends on the matches before.
#[test]
fn a_visit_counts_where_the_matches_before_hold() {
    let other = format!("-p udp {NTH} 2 --packet 0 -j MARK --xor-mark 1");
    assert_eq!(shown(&iptables(2, &other)), ["1.000 out 0"]);
    let own = format!("-p tcp {NTH} 2 --packet 0 -j MARK --xor-mark 1");
    assert_eq!(shown(&iptables(2, &own)), ["1.000 out 1"]);
}

/// Rules that are visited once split as ever, and merge.
#[test]
fn rules_that_are_met_once_merge() {
    let rules: String =
        (0..60).map(|_| format!("{NTH} 3 --packet 0 -j MARK --xor-mark 1\n")).collect();
    assert_eq!(shown(&iptables(1, rules.trim_end())), ["0.500 out 0", "0.500 out 1"]);
    assert_eq!(
        shown(&iptables(2, rules.trim_end())).len(),
        2,
        "no more than a few counters are remembered"
    );
}
