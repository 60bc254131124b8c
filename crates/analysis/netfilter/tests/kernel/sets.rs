//! Random IP sets, and matches that use them.

use uturn_dice::Dice;

use std::sync::OnceLock;

use crate::around::{Addresses, MARKS, NETS, PORTS};
use crate::case::Case;
use crate::dice::Words;

const KINDS: [(&str, usize); 14] = [
    ("hash:ip", 1),
    ("hash:net", 1),
    ("hash:ip,port", 2),
    ("hash:net,port", 2),
    ("hash:ip,port,ip", 3),
    ("hash:ip,port,net", 3),
    ("hash:net,net", 2),
    ("hash:net,iface", 2),
    ("hash:net,port,net", 3),
    ("hash:ip,mark", 2),
    ("hash:mac", 1),
    ("bitmap:port", 1),
    ("bitmap:ip", 1),
    ("list:set", 3),
];

/// The set types that this kernel supports.
fn kinds() -> &'static [(&'static str, usize)] {
    static KNOWN: OnceLock<Vec<(&str, usize)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let loads = |(kind, _): &(&str, usize)| {
            let set = format!("create s {kind}{}", options(kind));
            match crate::tried(&Case::read(&format!("== ipset\n{set}\n"))) {
                Ok(_) => true,
                Err(why) => {
                    uturn_testing::skip(
                        uturn_testing::Requirement::KernelModules,
                        &format!("asking the kernel about {kind}"),
                        why.0,
                    );
                    false
                }
            }
        };
        KINDS.into_iter().filter(loads).collect()
    })
}

fn options(kind: &str) -> &'static str {
    match kind {
        "bitmap:port" => " range 0-65535",
        "bitmap:ip" => " range 10.0.0.0-10.0.255.255",
        "list:set" | "hash:mac" => "",
        _ => " family inet",
    }
}

/// Sets, as input of `ipset restore`, with the name and the number of parts of each.
pub(crate) fn sets(dice: &mut Dice) -> (Vec<String>, Vec<(String, usize)>) {
    let (mut lines, mut made) = (Vec::new(), Vec::<(String, usize)>::new());
    let most = if kinds().is_empty() { 0 } else { dice.below(5) };
    for number in 0..most {
        let (kind, parts) = *dice.pick(kinds());
        let name = format!("s{number}");
        lines.push(format!("create {name} {kind}{}", options(kind)));
        if kind == "list:set" {
            for (inner, _) in &made {
                // A list contains no list.
                if lines.iter().any(|line| line == &format!("create {inner} list:set")) {
                    continue;
                }
                lines.push(format!("add {name} {inner}"));
            }
            made.push((name, parts));
            continue;
        }
        for _ in 0..1 + dice.below(6) {
            let entry: Vec<String> = kind
                .split_once(':')
                .map_or("", |(_, parts)| parts)
                .split(',')
                .map(|part| part_of(dice, kind, part))
                .collect();
            let nomatch = if kind.contains("net") && dice.once_in(4) { " nomatch" } else { "" };
            lines.push(format!("add {name} {}{nomatch} -exist", entry.join(",")));
        }
        made.push((name, parts));
    }
    (lines, made)
}

fn part_of(dice: &mut Dice, kind: &str, part: &str) -> String {
    match part {
        "ip" if kind == "bitmap:ip" => dice.word(&["10.0.0.1", "10.0.0.2", "10.0.0.8/29"]),
        "ip" => dice.address(),
        "net" => {
            if dice.once_in(3) {
                dice.address()
            } else {
                dice.word(&NETS)
            }
        }
        "port" if kind == "bitmap:port" => dice.word(&["80", "443", "5000-9000", "20000-29999"]),
        "port" => {
            let protocol = dice.word(&["tcp", "tcp", "udp", "sctp"]);
            match dice.below(8) {
                0 => "icmp:echo-request".to_owned(),
                _ => format!("{protocol}:{}", dice.word(&PORTS)),
            }
        }
        "iface" => dice.word(&["eth0", "cbr0", "eth1", "lo", "br0"]),
        "mark" => dice.word(&MARKS),
        _ => format!("02:00:00:00:01:0{}", 1 + dice.below(4)),
    }
}

/// `-m set`, with any directions.
pub(crate) fn asked(dice: &mut Dice, sets: &[(String, usize)]) -> Option<String> {
    if sets.is_empty() {
        return None;
    }
    let (name, parts) = dice.pick(sets).clone();
    let directions: Vec<String> = (0..parts).map(|_| dice.word(&["src", "dst"])).collect();
    let not = dice.not();
    Some(format!("-m set {not}--match-set {name} {}", directions.join(",")))
}
