//! Random nftables rules: several base chains per hook at random priorities, sets, maps and
//! verdict maps of every type, and the statements that are modelled.

use uturn_dice::Dice;

use crate::around::{Addresses, MARKS, MASKS, NETS, PORTS, probes, set_up};
use crate::case::Case;
use crate::dice::{Words, of_case};

pub(crate) fn case(dice: &mut Dice) -> Case {
    let mut case = Case(Vec::new());
    let setup = set_up(dice);
    case.add("setup", setup.clone());
    let tables = 1 + dice.below(2);
    let lines: Vec<String> = (0..tables).flat_map(|number| table(dice, number)).collect();
    case.add("nft", lines);
    case.add("probes", probes(dice, 24, &setup));
    case
}

/// What the rules of a chain may contain.
#[derive(Clone, Copy)]
struct Place<'p> {
    hook: &'p str,
    kind: &'p str,
    /// Chains that it may call: only later ones, so that there is no loop.
    callable: &'p [String],
    inet: bool,
}

fn table(dice: &mut Dice, number: usize) -> Vec<String> {
    let inet = dice.once_in(2);
    let mut lines = vec![format!("table {} t{number} {{", if inet { "inet" } else { "ip" })];
    lines.extend(sets(dice));
    // Called from filter chains of any hook, so they contain only what is valid in all of them.
    let common: Vec<String> = (0..3).map(|at| format!("u{at}")).collect();
    for at in (0..common.len()).rev() {
        let place = Place { hook: "", kind: "", callable: &common[at + 1..], inet };
        let rules = (0..dice.below(4)).map(|_| rule(dice, place)).collect();
        lines.extend(chain(&common[at], None, rules));
    }
    // The targets of verdict maps are defined before them.
    lines.extend(verdict_maps(dice, &common));
    for base in 0..2 + dice.below(5) {
        let (kind, hook) = *dice.pick(&[
            ("filter", "prerouting"),
            ("filter", "prerouting"),
            ("filter", "input"),
            ("filter", "forward"),
            ("filter", "forward"),
            ("filter", "output"),
            ("filter", "postrouting"),
            ("route", "output"),
            ("nat", "prerouting"),
            ("nat", "prerouting"),
            ("nat", "input"),
            ("nat", "output"),
            ("nat", "postrouting"),
            ("nat", "postrouting"),
        ]);
        let priority = match kind {
            // The order of equal priorities is unspecified, also relative to the kernel's own:
            // chains have odd, unique priorities.
            "nat" => -99 + 40 * number as i32 + 2 * base as i32,
            _ => {
                let at = [-320, -280, -230, -180, -160, -140, -120, -20, 0, 20, 60, 120];
                *dice.pick(&at)
                    + 1
                    + 100 * i32::from(kind == "route")
                    + 2 * base as i32
                    + 12 * number as i32
            }
        };
        let policy = if kind == "filter" && dice.once_in(10) { "drop" } else { "accept" };
        let head = format!("type {kind} hook {hook} priority {priority}; policy {policy};");
        let place = Place { hook, kind, callable: &common, inet };
        let rules = (0..1 + dice.below(5)).map(|_| rule(dice, place)).collect();
        lines.extend(chain(&format!("b{base}"), Some(head), rules));
    }
    lines.push("}".to_owned());
    lines
}

fn chain(name: &str, head: Option<String>, rules: Vec<String>) -> Vec<String> {
    let head = head.into_iter().chain(rules);
    [format!("chain {name} {{")].into_iter().chain(head).chain(["}".to_owned()]).collect()
}

const ADDRESSES: &str = "type ipv4_addr";

fn sets(dice: &mut Dice) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |name: &str, head: &str, elements: Vec<String>| {
        lines.push(format!("{name} {{ {head}; elements = {{ {} }}; }}", elements.join(", ")));
    };
    let several = |dice: &mut Dice, element: fn(&mut Dice) -> String| {
        let mut all: Vec<String> = (0..1 + dice.below(5)).map(|_| element(dice)).collect();
        all.sort();
        all.dedup();
        all
    };
    add("set ips", ADDRESSES, several(dice, <Dice as Addresses>::address));
    // Overlapping elements are refused, so these are picked from disjoint ones.
    let nets = ["10.0.0.0/24", "10.1.0.6/31", "10.1.1.0-10.2.0.9", "192.0.2.0/24", "198.51.100.3"];
    add("set nets", &format!("{ADDRESSES}; flags interval"), dice.some(&nets));
    let ports = ["53", "80-443", "5000-8080", "30000", "20000-26999"];
    add("set ports", "type inet_service; flags interval", dice.some(&ports));
    let pair = |dice: &mut Dice| {
        format!("{} . {} . {}", dice.address(), dice.word(&["tcp", "udp"]), dice.word(&PORTS))
    };
    add("set pairs", "type ipv4_addr . inet_proto . inet_service", several(dice, pair));
    let spans = [
        "10.0.0.0/24 . 53-80",
        "10.1.0.0/16 . 443",
        "10.9.0.0/16 . 80-8080",
        "192.0.2.7 . 53-53",
        "198.51.0.0/16 . 5000-30000",
    ];
    add("set spans", "type ipv4_addr . inet_service; flags interval", dice.some(&spans));
    add("set links", "type ifname", dice.some(&["\"eth0\"", "\"cbr0\"", "\"lo\"", "\"br0\""]));
    let marks = ["80 : 0x1", "443 : 0x2", "53 : 0x4", "8080 : 0x10"];
    add("map byport", "type inet_service : mark", dice.some(&marks));
    let to = |dice: &mut Dice, ports: &[&str]| -> Vec<String> {
        dice.some(ports).into_iter().map(|port| format!("{port} : {}", dice.backend())).collect()
    };
    let elements = to(dice, &["53", "80", "443", "5000"]);
    add("map backends", "type inet_service : ipv4_addr", elements);
    let both = to(dice, &["53", "80", "443", "8080"]);
    let both = both.iter().map(|net| format!("{net} . {}", dice.word(&PORTS))).collect();
    add("map both", "type inet_service : ipv4_addr . inet_service", both);
    lines
}

fn verdict_maps(dice: &mut Dice, callable: &[String]) -> Vec<String> {
    let verdict = |dice: &mut Dice| match dice.below(6) {
        0 | 1 => "accept".to_owned(),
        2 => "drop".to_owned(),
        3 => "return".to_owned(),
        4 => format!("goto {}", dice.pick(callable)),
        _ => format!("jump {}", dice.pick(callable)),
    };
    let mut map = |name: &str, head: &str, keys: &[&str]| {
        let elements: Vec<String> =
            dice.some(keys).into_iter().map(|key| format!("{key} : {}", verdict(dice))).collect();
        format!("map {name} {{ {head}; elements = {{ {} }}; }}", elements.join(", "))
    };
    vec![
        map(
            "v1",
            "type ipv4_addr : verdict; flags interval",
            &["10.0.0.0/24", "10.1.0.0/16", "192.0.2.0/24"],
        ),
        map(
            "v2",
            "type ipv4_addr . inet_proto . inet_service : verdict",
            &[
                "10.9.0.10 . tcp . 80",
                "10.1.0.7 . tcp . 443",
                "192.0.2.7 . udp . 53",
                "10.0.0.2 . tcp . 8080",
            ],
        ),
        map("v3", "type inet_service : verdict; flags interval", &["53", "80-443", "5000-30000"]),
    ]
}

fn rule(dice: &mut Dice, place: Place<'_>) -> String {
    let end = end(dice, place);
    let mut words: Vec<String> = Vec::new();
    for _ in 0..dice.below(3) {
        let condition = one_match(dice, place);
        // nft refuses conditions that no packet can meet.
        let protocols =
            |condition: &str| words.iter().chain([&end]).all(|other| agree(condition, other));
        if let Some(condition) = condition.filter(|condition| protocols(condition)) {
            words.push(condition);
        }
    }
    if dice.once_in(4) {
        words.push("counter".to_owned());
    }
    words.push(end);
    let rule = words.join(" ");
    // In ICMP packets, these bytes are the checksum.
    if rule.contains("th dport") && !rule.contains("l4proto {") {
        format!("meta l4proto {{ tcp, udp, sctp }} {rule}")
    } else {
        rule
    }
}

/// Whether two parts of a rule do not require different protocols.
fn agree(part: &str, other: &str) -> bool {
    let of = |text: &str| {
        let about = |name: &&str| {
            let port = [" dport", " sport", " flags", " type"];
            (name.starts_with('{') && text.contains("th dport"))
                || port.iter().any(|field| text.contains(&format!("{name}{field}")))
                || text.contains(&format!("l4proto {name}"))
                || text.contains(&format!("l4proto != {name}"))
        };
        ["{ tcp, udp }", "tcp", "udp", "icmp", "sctp"].into_iter().find(about)
    };
    of(part).is_none() || of(other).is_none() || of(part) == of(other)
}

fn one_match(dice: &mut Dice, place: Place<'_>) -> Option<String> {
    let hook = place.hook;
    let is = dice.word(&["", "", "", "!= "]);
    let side = dice.word(&["saddr", "daddr", "daddr"]);
    let comes_in = ["prerouting", "input", "forward"].contains(&hook);
    let goes_out = ["forward", "output", "postrouting"].contains(&hook);
    let net = |dice: &mut Dice| if dice.once_in(2) { dice.address() } else { dice.word(&NETS) };
    Some(match dice.below(26) {
        0..=2 => format!("ip {side} {is}{}", net(dice)),
        3 => format!("ip {side} {is}@{}", dice.word(&["ips", "nets"])),
        4 => format!(
            "ip {side} {is}{{ {}, 10.1.0.0/24 }}",
            dice.word(&["10.0.0.0/24", "192.0.2.7", "10.9.0.0-10.9.0.255"])
        ),
        5 => format!(
            "{} dport {is}{}",
            dice.word(&["tcp", "udp", "th"]),
            dice.word(&["80", "53", "53-443", "@ports", "{ 80, 443 }"])
        ),
        6 => format!("tcp sport {is}{}", dice.word(&["20000-29999", "@ports"])),
        7 => format!(
            "meta l4proto {is}{}",
            dice.word(&["tcp", "udp", "{ tcp, udp }", "icmp", "sctp"])
        ),
        8 => format!(
            "icmp type {is}{}",
            dice.word(&["echo-request", "{ echo-reply, timestamp-request }"])
        ),
        9 => dice.word(&[
            "tcp flags syn / fin,syn,rst,ack",
            "tcp flags & (syn | ack) == syn",
            "tcp flags ack",
            "tcp flags & (syn | ack) != ack",
            "tcp flags syn",
        ]),
        10 => format!("ip {side} . meta l4proto . th dport {is}@pairs"),
        11 => format!("ip {side} . th dport {is}@spans"),
        12 if comes_in => format!(
            "iifname {is}{}",
            dice.word(&["\"eth0\"", "\"eth*\"", "@links", "{ \"cbr0\", \"lo\" }"])
        ),
        13 if goes_out => format!(
            "oifname {is}{}",
            dice.word(&["\"eth0\"", "\"eth*\"", "@links", "{ \"cbr0\", \"lo\" }"])
        ),
        14 => format!(
            "ct state {is}{}",
            dice.some(&["new", "established", "invalid", "untracked"]).join(",")
        ),
        15 => dice.word(&[
            "ct direction original",
            "ct direction reply",
            "ct status dnat",
            "ct status snat,dnat",
        ]),
        16 => format!("ct original ip {side} {is}{}", net(dice)),
        17 => format!("meta l4proto tcp ct original proto-dst {is}{}", dice.word(&PORTS)),
        18 => {
            if dice.once_in(2) {
                format!("meta mark {is}{}", dice.word(&["0x0", "0x1", "0x2", "0x10"]))
            } else {
                format!(
                    "meta mark & {} == {}",
                    dice.word(&MASKS),
                    dice.word(&["0x0", "0x1", "0x2", "0x10"])
                )
            }
        }
        19 => format!("ct mark {is}{}", dice.word(&["0x0", "0x1", "0x2"])),
        20 => match dice.below(4) {
            0 if hook == "prerouting" => {
                format!("fib saddr . iif oif {}", dice.word(&["exists", "missing"]))
            }
            1 if hook == "prerouting" => {
                format!("fib {side} . iif type {is}{}", dice.word(&["local", "unicast"]))
            }
            2 if hook == "prerouting" => format!("fib {side} . mark type {is}local"),
            _ => format!(
                "fib {side} type {is}{}",
                dice.word(&["local", "unicast", "{ local, broadcast }"])
            ),
        },
        21 => format!("numgen random mod {} {}", 2 + dice.below(3), dice.word(&["0", "1", "< 1"])),
        22 if dice.once_in(2) => format!("numgen inc mod 2 {}", dice.below(2)),
        22 if dice.once_in(2) => format!("jhash ip saddr . ip daddr mod 2 {}", dice.below(2)),
        23 => format!(
            "ip {side} & 255.0.0.255 == {}",
            dice.word(&["10.0.0.7", "10.0.0.1", "10.0.0.9"])
        ),
        24 if ["output", "postrouting"].contains(&hook) => format!("meta skuid {is}0"),
        24 => format!("meta length {}", dice.word(&["< 40", "40", "> 40"])),
        25 if place.inet => "meta nfproto ipv4".to_owned(),
        _ => return None,
    })
}

/// The final statements of a rule.
fn end(dice: &mut Dice, place: Place<'_>) -> String {
    let Place { hook, kind, callable, inet } = place;
    let family = if inet { " ip" } else { "" };
    if kind == "nat" && !dice.once_in(4) {
        let port = dice.word(&["tcp dport", "udp dport", "th dport"]);
        let l4 = match &*port {
            "th dport" => "meta l4proto { tcp, udp } ".to_owned(),
            _ => String::new(),
        };
        return match (hook, dice.below(8)) {
            ("prerouting" | "output", 0) => "redirect".to_owned(),
            ("prerouting" | "output", 1) => {
                format!("meta l4proto tcp redirect to :{}", dice.word(&PORTS))
            }
            ("prerouting" | "output", 2) => format!("{l4}dnat{family} to {port} map @backends"),
            ("prerouting" | "output", 3) => format!("{l4}dnat ip addr . port to {port} map @both"),
            ("prerouting" | "output", 4) => format!(
                "dnat{family} to numgen random mod 2 map {{ 0 : {}, 1 : {} }}",
                dice.backend(),
                dice.backend()
            ),
            ("prerouting" | "output", 5) => {
                format!(
                    "meta l4proto {{ tcp, udp }} dnat{family} to {}:{}",
                    dice.backend(),
                    dice.word(&PORTS)
                )
            }
            ("prerouting" | "output", _) => format!("dnat{family} to {}", dice.backend()),
            ("postrouting", 0) => "masquerade fully-random".to_owned(),
            ("postrouting", 1) => "meta l4proto { tcp, udp } masquerade to :61000-61999".to_owned(),
            ("postrouting", 2..=4) => "masquerade".to_owned(),
            (_, 5) => format!("snat{family} to {}-{}", "10.0.0.2", "10.0.0.3"),
            _ => format!("snat{family} to {}", dice.address()),
        };
    }
    match dice.below(20) {
        0 | 1 if !callable.is_empty() => format!("jump {}", dice.pick(callable)),
        2 if !callable.is_empty() => format!("goto {}", dice.pick(callable)),
        3 | 4 => "accept".to_owned(),
        5 => "drop".to_owned(),
        6 => "return".to_owned(),
        7 | 8 if !hook.is_empty() => match dice.below(4) {
            0 | 1 => format!("ip {} vmap @v1", dice.word(&["saddr", "daddr"])),
            2 => "ip daddr . meta l4proto . th dport vmap @v2".to_owned(),
            _ => "th dport vmap @v3".to_owned(),
        },
        9 => format!(
            "ct state vmap {{ invalid : {}, established : accept, new : continue }}",
            dice.word(&["drop", "return"])
        ),
        10 => format!(
            "numgen random mod 3 vmap {{ 0 : {}, 1 : {}, 2 : continue }}",
            dice.word(&["accept", "return"]),
            dice.word(&["drop", "continue"])
        ),
        11 | 12 => format!("meta mark set {}", mark(dice)),
        13 => "ct mark set meta mark".to_owned(),
        14 => format!("meta mark set ct mark & {}", dice.word(&MASKS)),
        15 => format!("ct mark set ct mark | {}", dice.word(&MARKS)),
        16 if kind == "filter" && ["prerouting", "output"].contains(&hook) && dice.once_in(3) => {
            "notrack".to_owned()
        }
        17 if kind == "filter" && hook == "prerouting" && dice.once_in(2) => {
            let mark = if dice.once_in(3) { "" } else { "meta mark set 0x1 " };
            format!("meta l4proto {{ tcp, udp }} tproxy{family} to :15001 {mark}accept")
        }
        18 | 19 if ["input", "forward", "output"].contains(&hook) && kind == "filter" => {
            match dice.below(4) {
                0 => "meta l4proto tcp reject with tcp reset".to_owned(),
                1 if inet => format!(
                    "reject with icmpx {}",
                    dice.word(&[
                        "port-unreachable",
                        "admin-prohibited",
                        "no-route",
                        "host-unreachable"
                    ])
                ),
                _ => format!(
                    "ip protocol {{ tcp, udp, icmp, sctp }} reject with icmp {}",
                    dice.word(&[
                        "port-unreachable",
                        "net-unreachable",
                        "host-unreachable",
                        "prot-unreachable",
                        "net-prohibited",
                        "host-prohibited",
                        "admin-prohibited"
                    ])
                ),
            }
        }
        _ => "counter".to_owned(),
    }
}

fn mark(dice: &mut Dice) -> String {
    let (mark, mask) = (dice.word(&MARKS), dice.word(&MASKS));
    match dice.below(8) {
        0 => format!("meta mark | {mark}"),
        1 => format!("meta mark & {mask}"),
        2 => format!("meta mark ^ {mark}"),
        3 => "tcp dport map @byport".to_owned(),
        4 => "th dport map { 80 : 0x1, 53 : 0x2, 5000-8080 : 0x4 }".to_owned(),
        5 => "numgen random mod 2".to_owned(),
        _ => mark,
    }
}

#[test]
fn one_seed_makes_one_case() {
    let made = |seed| case(&mut of_case(seed, 1));
    assert_eq!(made(7), made(7));
    assert_ne!(made(7), made(8));
}
