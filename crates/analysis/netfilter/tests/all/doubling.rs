//! Small rules that lead a packet the same way twice on each of many levels: the work does not double
//! with each level, and what comes out is right, or said not to be known.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{from, show, small, small_state, tcp};
use uturn_model::{Share, StepKind};
use uturn_netfilter::{Assumptions, Budget, End, EndKind, Kernel, nft};

/// More rules than any of these walks needs.
const ENOUGH: u64 = 2_000_000;

/// The ends of a packet from a pod to another host, after no more work than [`ENOUGH`].
fn walked(kernel: &Kernel) -> Vec<End> {
    let budget = Budget::default();
    let before = budget.left();
    let packet = tcp("10.1.0.9:1000", "10.9.9.9:80");
    let ends = kernel.walk_within(&packet, &from("cbr0"), &[], &Assumptions::default(), &budget);
    assert!(before - budget.left() < ENOUGH, "{} rules", before - budget.left());
    assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)));
    ends
}

fn shown(kernel: &Kernel) -> Vec<String> {
    // Ends that a packet comes to in several ways count together.
    let mut ends: Vec<End> = Vec::new();
    for end in walked(kernel) {
        let known = ends.iter_mut().find(|known| {
            (&known.kind, &known.packet, &known.out) == (&end.kind, &end.packet, &end.out)
        });
        match known {
            Some(known) => known.share += end.share,
            None => ends.push(end),
        }
    }
    sorted(ends.iter().map(|end| format!("{} mark {:#x}", show(end), end.packet.mark)).collect())
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// Chains that each lead to the next one twice; the last has these rules.
fn twice_to_the_next(levels: usize, jump: &str, last: &str) -> Kernel {
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    (0..levels).for_each(|level| text.push_str(&format!(":C{level} - [0:0]\n")));
    text.push_str("-A FORWARD -j C0\n");
    for level in 1..levels {
        let rule = format!("-A C{} {jump} C{level}\n", level - 1);
        text.push_str(&rule.repeat(2));
    }
    for rule in last.lines() {
        text.push_str(&format!("-A C{} {rule}\n", levels - 1));
    }
    small(&format!("{text}COMMIT\n"))
}

const HALF: &str = "-m statistic --mode random --probability 0.50000000000";

fn out(share: &str, mark: &str) -> String {
    format!("{share} 10.1.0.9:1000 > 10.9.9.9:80 out eth0 via 10.0.0.1 mark {mark}")
}

fn dropped(share: &str, mark: &str) -> String {
    format!("{share} 10.1.0.9:1000 > 10.9.9.9:80 drop Rule mark {mark}")
}

#[test]
fn nine_chains_that_lead_to_the_next_twice() {
    for levels in [9, 12] {
        for (last, ends) in [
            (format!("{HALF} -j RETURN"), vec![out("1.000", "0x0")]),
            (
                format!("{HALF} -j MARK --xor-mark 0x1"),
                vec![out("0.500", "0x0"), out("0.500", "0x1")],
            ),
            (
                format!(
                    "-m statistic --mode nth --every 2 --packet 0 -j MARK --xor-mark 0x3\n{HALF} -j LOG"
                ),
                // The rule takes turns, and so it matches half of an even number of visits.
                vec![out("1.000", "0x0")],
            ),
            (format!("{HALF} -j DROP"), vec![out("0.000", "0x0"), dropped("1.000", "0x0")]),
            (
                "-p tcp -m osf --genre Linux --ttl 1 -j DROP".to_owned(),
                vec![out("0.500", "0x0"), dropped("0.500", "0x0")],
            ),
            (
                format!(
                    "-p tcp -m osf --genre Linux --ttl 1 -j MARK --set-mark 0x4\n{HALF} -j RETURN"
                ),
                vec![out("0.500", "0x0"), out("0.500", "0x4")],
            ),
        ] {
            let kernel = twice_to_the_next(levels, "-j", &last);
            assert_eq!(shown(&kernel), sorted(ends), "{levels} levels, {last}");
        }
    }
    // A target that is not modelled, at 256 visits.
    let ends = walked(&twice_to_the_next(9, "-j", &format!("{HALF} -j NFQUEUE --queue-num 1")));
    assert!(ends.len() <= 4, "{} ends", ends.len());
}

#[test]
fn ways_that_part_and_meet_again_many_times() {
    let head = "*filter\n:FORWARD ACCEPT [0:0]\n";
    let mut marks = head.to_owned();
    (0..60).for_each(|_| marks.push_str(&format!("-A FORWARD {HALF} -j MARK --xor-mark 0x1\n")));
    let mut calls = format!("{head}:A - [0:0]\n");
    (0..60).for_each(|_| calls.push_str(&format!("-A FORWARD {HALF} -j A\n")));
    calls.push_str("-A A -j MARK --set-mark 0x1\n-A A -j MARK --set-mark 0x0\n");
    let (mut chains, mut gotos) = (head.to_owned(), "-A FORWARD -j C0\n".to_owned());
    for i in 0..60 {
        chains.push_str(&format!(":C{i} - [0:0]\n:A{i} - [0:0]\n:B{i} - [0:0]\n"));
        // Chains are numbered in the order in which they are listed, jumps lead back and forth.
        gotos.push_str(&format!("-A C{i} {HALF} -g B{i}\n-A C{i} -g A{i}\n-A B{i} -g A{i}\n"));
        if i < 59 {
            gotos.push_str(&format!("-A A{i} -g C{}\n", i + 1));
        }
    }
    for (text, ends) in [
        (marks, vec![out("0.500", "0x0"), out("0.500", "0x1")]),
        (calls, vec![out("1.000", "0x0")]),
        (format!("{chains}{gotos}"), vec![out("1.000", "0x0")]),
    ] {
        assert_eq!(shown(&small(&format!("{text}COMMIT\n"))), ends, "{text}");
    }
}

#[test]
fn the_same_in_nftables() {
    for (jump, last, ends) in [
        ("jump", "numgen random mod 2 0 return", vec![out("1.000", "0x0")]),
        (
            "jump",
            "numgen random mod 4 < 2 meta mark set 1",
            vec![out("0.000", "0x0"), out("1.000", "0x1")],
        ),
        (
            "meta l4proto vmap { tcp : jump",
            "numgen random mod 3 vmap { 0 : return, 1 : continue }",
            vec![out("1.000", "0x0")],
        ),
        (
            "numgen random mod 2 vmap { 0 : continue, 1 : jump",
            "numgen inc mod 3 0 drop",
            vec![dropped("0.231", "0x0"), out("0.769", "0x0")],
        ),
        ("jump", "ip ttl 7 drop", vec![dropped("0.500", "0x0"), out("0.500", "0x0")]),
    ] {
        let end = if jump.contains('{') { " }" } else { "" };
        let levels = 9;
        let mut text = "table ip t {\n".to_owned();
        for level in (0..levels).rev() {
            let rules = if level + 1 == levels {
                format!("\t\t{last}\n")
            } else {
                format!("\t\t{jump} c{}{end}\n", level + 1).repeat(2)
            };
            text.push_str(&format!("\tchain c{level} {{\n{rules}\t}}\n"));
        }
        text.push_str("\tchain base {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\tjump c0\n\t}\n}\n");
        let mut state = small_state("");
        state.nft = nft::parse("rules", &text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let shown = shown(&Kernel::new(state).unwrap());
        assert_eq!(shown, sorted(ends), "{text}");
    }
}

/// Branches that all differ are not merged, and their number is limited: the walk ends with what it
/// does not know, and names the rule.
#[test]
fn branches_that_differ_are_given_up() {
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    for bit in 0..30 {
        text.push_str(&format!("-A FORWARD {HALF} -j MARK --or-mark {:#x}\n", 1_u32 << bit));
    }
    let kernel = small(&format!("{text}COMMIT\n"));
    let packet = tcp("10.1.0.9:1000", "10.9.9.9:80");
    let ends = kernel.walk_assuming(&packet, &from("cbr0"), &[], &Assumptions::default());
    assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)));
    let unsettled: Vec<&End> = ends.iter().filter(|end| end.kind == EndKind::Unsettled).collect();
    let [end] = unsettled.as_slice() else { panic!("{} are unsettled", unsettled.len()) };
    assert!(end.share.is_about(Share::ALL), "{}", end.share);
    let last = end.steps.last().unwrap();
    assert_eq!(last.kind, StepKind::Unknown);
    assert!(last.by.rule().contains("-j MARK --set-xmark"), "{}", last.by.rule());
    assert!(end.unknown.contains(&last.by));
}

#[test]
fn a_budget_ends_a_walk_at_a_rule_that_is_named() {
    let kernel = twice_to_the_next(9, "-j", "-j MARK --xor-mark 0x1");
    let packet = tcp("10.1.0.9:1000", "10.9.9.9:80");
    let walk = |rules: u64| {
        let budget = Budget::of_rules(rules);
        let ends =
            kernel.walk_within(&packet, &from("cbr0"), &[], &Assumptions::default(), &budget);
        assert!(budget.left() <= rules);
        ends
    };
    assert_eq!(walk(10_000)[0].kind, EndKind::Forward);
    for rules in [0, 1, 300] {
        let ends = walk(rules);
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0].kind, EndKind::Unsettled, "{rules} rules");
        assert!(ends[0].steps.last().unwrap().by.rule().starts_with("-A "), "{rules} rules");
        assert!(ends[0].steps.len() <= 103);
    }
}
