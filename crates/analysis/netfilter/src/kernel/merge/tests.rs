use std::net::SocketAddr;

use uturn_dice::Dice;
use uturn_model::{Family, Share};

use super::super::{Assumptions, Budget, Kernel};
use super::*;
use crate::state::NodeState;
use crate::{Entry, Packet, addr, iptables, nft, routes};

const ADDRESSES: &str = "\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 10.0.0.11/24 scope global eth0
3: cbr0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 10.1.0.1/24 scope global cbr0
";
const ROUTES: &str = "\
default via 10.0.0.1 dev eth0
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.11
10.1.0.0/24 dev cbr0 proto kernel scope link src 10.1.0.1
";

fn state() -> NodeState {
    NodeState {
        interfaces: addr::parse("addr", ADDRESSES).unwrap(),
        routes: routes::parse("route", ROUTES).unwrap(),
        ..NodeState::default()
    }
}

/// Rules of a few chains that lead to later ones only, with what splits a walk and what tells its
/// branches apart.
fn random_iptables(dice: &mut Dice) -> String {
    let mut text = String::new();
    for (table, base) in [("mangle", "PREROUTING"), ("nat", "PREROUTING"), ("filter", "FORWARD")] {
        text.push_str(&format!("*{table}\n:{base} ACCEPT [0:0]\n"));
        let chains = 1 + dice.below(4);
        for chain in 0..chains {
            text.push_str(&format!(":C{chain} - [0:0]\n"));
        }
        for chain in 0..=chains {
            let name = if chain == 0 { base.to_owned() } else { format!("C{}", chain - 1) };
            for _ in 0..1 + dice.below(3) {
                let matches = match dice.below(8) {
                    0 | 1 => "-m statistic --mode random --probability 0.50000000000 ".to_owned(),
                    2 => "-m statistic --mode nth --every 3 --packet 0 ".to_owned(),
                    3 => format!("-p tcp -m osf --genre S{} --ttl 1 ", dice.below(2)),
                    4 => format!("-m mark --mark {:#x}/0x3 ", dice.below(4)),
                    5 => format!("-m owner --uid-owner {} ", dice.below(2)),
                    _ => String::new(),
                };
                let leads = chain < chains && dice.below(2) == 0;
                let target = match dice.below(8) {
                    _ if leads => {
                        let to = chain + dice.below(chains - chain);
                        format!("-{} C{to}", if dice.below(3) == 0 { "g" } else { "j" })
                    }
                    0 if table == "nat" => "-j DNAT --to-destination 10.1.0.5-10.1.0.7".to_owned(),
                    0 => "-j DROP".to_owned(),
                    1 => "-j RETURN".to_owned(),
                    2 => "-j ACCEPT".to_owned(),
                    3 if table == "filter" => "-j NFQUEUE --queue-num 1".to_owned(),
                    4 => "-j CONNMARK --save-mark".to_owned(),
                    _ => format!("-j MARK --set-xmark {:#x}/0x3", dice.below(4)),
                };
                text.push_str(&format!("-A {name} {matches}{target}\n"));
            }
        }
        text.push_str("COMMIT\n");
    }
    text
}

/// Returns random rules of the same kind in nftables.
fn random_nft(dice: &mut Dice) -> String {
    let chains = 1 + dice.below(5);
    let mut text = "table ip t {\n".to_owned();
    for chain in (0..=chains).rev() {
        let name = if chain == 0 { "base".to_owned() } else { format!("c{}", chain - 1) };
        text.push_str(&format!("\tchain {name} {{\n"));
        if chain == 0 {
            text.push_str("\t\ttype filter hook forward priority filter; policy accept;\n");
        }
        for _ in 0..1 + dice.below(3) {
            let mut to = || {
                if chain < chains {
                    format!(
                        "{} c{}",
                        ["jump", "goto"][dice.below(2)],
                        chain + dice.below(chains - chain)
                    )
                } else {
                    "return".to_owned()
                }
            };
            let (one, two) = (to(), to());
            let rule = match dice.below(7) {
                0 => format!("numgen random mod 4 vmap {{ 0 : {one}, 1 : {two}, 2 : drop }}"),
                1 => format!("numgen random mod 2 0 {one}"),
                2 => format!("meta mark set {}", dice.below(3)),
                3 => format!("meta mark {} {one}", dice.below(3)),
                4 => "ip ttl 7 meta mark set 1".to_owned(),
                5 => one,
                _ => format!("jhash ip saddr mod 3 == 1 {one}"),
            };
            text.push_str(&format!("\t\t{rule}\n"));
        }
        text.push_str("\t}\n");
    }
    text.push_str("}\n");
    text
}

fn packets() -> [(Packet, Entry); 2] {
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    [
        (Packet::tcp(at("10.1.0.9:1000"), at("10.9.9.9:80")), Entry::Interface("cbr0".into())),
        (Packet::tcp(at("10.0.0.11:1000"), at("10.9.9.9:80")), Entry::Local),
    ]
}

/// The ends with the sums of their shares, whatever their steps.
fn summed(ends: &[End]) -> Vec<(End, f64)> {
    let mut all: Vec<(End, f64)> = Vec::new();
    for end in ends {
        match all.iter_mut().find(|(known, _)| is_same(known, end)) {
            Some((_, share)) => *share += end.share.get(),
            None => all.push((end.clone(), end.share.get())),
        }
    }
    all
}

fn both_ways(kernel: &Kernel, packet: &Packet, entry: &Entry) -> Option<[Vec<End>; 2]> {
    let (budget, assumed) = (Budget::default(), Assumptions::default());
    let first = || Box::new(Walk::new(packet, entry, &assumed));
    let in_turn = kernel.follow_in_turn(first(), &[], &mut OpenBranches::new(&budget, false))?;
    let merged = follow(kernel, first(), &[], &mut OpenBranches::new(&budget, true));
    Some([in_turn, merged])
}

#[test]
fn merged_branches_end_as_they_would_alone() {
    let (mut walked, mut split, mut fewer) = (0, 0, 0);
    for seed in 0..1500 {
        let mut dice = Dice::new(seed);
        let text = match seed % 2 {
            0 => random_iptables(&mut dice),
            _ => random_nft(&mut dice),
        };
        let mut state = state();
        match seed % 2 {
            0 => state.iptables = iptables::parse("rules", &text, Family::V4).unwrap(),
            _ => state.nft = nft::parse("rules", &text).unwrap(),
        }
        let kernel = Kernel::new(state).unwrap();
        for (packet, entry) in packets() {
            let Some([in_turn, merged]) = both_ways(&kernel, &packet, &entry) else { continue };
            walked += 1;
            split += usize::from(in_turn.len() > 1);
            fewer += usize::from(merged.len() < in_turn.len());
            assert!(
                Share::add_up_to_all(merged.iter().map(|end| end.share)),
                "seed {seed}\n{text}"
            );
            let (alone, together) = (summed(&in_turn), summed(&merged));
            assert_eq!(together.len(), merged.len(), "seed {seed}: ends that could be one\n{text}");
            assert_eq!(
                alone.len(),
                together.len(),
                "seed {seed}\n{text}\n{in_turn:#?}\n{merged:#?}"
            );
            for (end, share) in alone {
                let same = together.iter().find(|(other, _)| is_same(other, &end));
                let (other, sum) = same.unwrap_or_else(|| panic!("seed {seed}\n{text}\n{end:#?}"));
                assert!((share - sum).abs() < 1e-9, "seed {seed}: {share} {sum}\n{text}");
                // Steps are those of one branch that ends so.
                let shown = |one: &&End| is_same(one, &end) && steps_of(one) == steps_of(other);
                assert!(
                    in_turn.iter().any(|one| shown(&one)),
                    "seed {seed}\n{text}\n{other:#?}\n{in_turn:#?}"
                );
                for assumption in
                    in_turn.iter().filter(|one| is_same(one, &end)).flat_map(|one| &one.supposed)
                {
                    assert!(other.supposed.contains(assumption), "seed {seed}\n{text}");
                }
            }
        }
    }
    assert!(walked > 1000 && split > 500 && fewer > 200, "{walked} {split} {fewer}");
}

fn steps_of(end: &End) -> Vec<String> {
    end.steps.iter().map(|step| format!("{} {}", step.why, step.by)).collect()
}
