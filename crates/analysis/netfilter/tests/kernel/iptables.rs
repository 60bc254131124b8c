//! Random iptables rules: every match and target that is modelled, and some on which a walk
//! branches.

use uturn_dice::Dice;

use crate::around::{Addresses, DEVICES, MARKS, MASKS, NETS, PORTS, probes, set_up};
use crate::case::Case;
use crate::dice::{Words, of_case};
use crate::sets::{asked, sets};

/// Tables, their base chains, and the user-defined chains that these may call.
const TABLES: [(&str, &[&str], &[&str]); 6] = [
    ("raw", &["PREROUTING", "OUTPUT"], &["R0", "R1"]),
    ("mangle", &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"], &["M0", "M1", "M2"]),
    ("nat", &["PREROUTING", "OUTPUT"], &["D0", "D1", "D2"]),
    ("nat", &["POSTROUTING"], &["P0", "P1"]),
    ("nat", &["INPUT"], &["I0"]),
    ("filter", &["INPUT", "FORWARD", "OUTPUT"], &["F0", "F1", "F2"]),
];

pub(crate) fn case(dice: &mut Dice) -> Case {
    let mut case = Case(Vec::new());
    let setup = set_up(dice);
    case.add("setup", setup.clone());
    let (lines, sets) = sets(dice);
    if !lines.is_empty() {
        case.add("ipset", lines);
    }
    let tool = dice.word(&["iptables", "iptables-legacy"]);
    let mut rules = Rules { dice, sets, recent: false };
    let lines = ["raw", "mangle", "nat", "filter"]
        .iter()
        .flat_map(|table| rules.table(table))
        .collect::<Vec<_>>();
    case.add(&tool, lines);
    case.add("probes", probes(dice, 24, &setup));
    case
}

struct Rules<'d> {
    dice: &'d mut Dice,
    sets: Vec<(String, usize)>,
    recent: bool,
}

impl Rules<'_> {
    fn table(&mut self, name: &str) -> Vec<String> {
        let mut lines = vec![format!("*{name}")];
        let mut rules = Vec::new();
        // A zone changes the connection for the `raw` rules after it, so it is generated alone.
        if name == "raw" && self.dice.once_in(10) {
            let chain = self.dice.word(&["PREROUTING", "OUTPUT"]);
            lines.push(format!(":{chain} ACCEPT [0:0]"));
            lines.push(format!("-A {chain} -j CT --zone 7"));
            lines.push("COMMIT".to_owned());
            return lines;
        }
        for (_, bases, own) in TABLES.iter().filter(|(table, ..)| *table == name) {
            for base in *bases {
                let policy =
                    if name == "filter" && self.dice.once_in(8) { "DROP" } else { "ACCEPT" };
                lines.push(format!(":{base} {policy} [0:0]"));
            }
            lines.extend(own.iter().map(|chain| format!(":{chain} - [0:0]")));
            for (at, chain) in own.iter().enumerate() {
                // Only later chains are called, so that there is no loop.
                for _ in 0..self.dice.below(4) {
                    rules.push(self.rule(name, chain, bases, &own[at + 1..]));
                }
            }
            for base in *bases {
                for _ in 0..self.dice.below(4) {
                    rules.push(self.rule(name, base, bases, own));
                }
            }
        }
        lines.append(&mut rules);
        lines.push("COMMIT".to_owned());
        lines
    }

    fn rule(&mut self, table: &str, chain: &str, bases: &[&str], callable: &[&str]) -> String {
        let base = bases.contains(&chain);
        let protocol = match self.dice.below(8) {
            0 | 1 => Some("tcp"),
            2 => Some("udp"),
            3 => Some("icmp"),
            4 if self.dice.once_in(2) => Some("sctp"),
            _ => None,
        };
        let (words, protocol) = self.target(table, chain, bases, callable, protocol);
        let mut rule = format!("-A {chain}");
        if let Some(protocol) = protocol {
            rule += &format!(" -p {protocol}");
        }
        for _ in 0..self.dice.below(3) {
            let new_match = self.one_match(table, if base { chain } else { "" }, bases, protocol);
            // An option may be given only once.
            let twice = |new_match: &str| {
                let mut words = new_match.split(' ').filter(|word| *word != "!" && *word != "-m");
                words.next().is_some_and(|first| rule.split(' ').any(|word| word == first))
            };
            if let Some(new_match) = new_match.filter(|new_match| !twice(new_match)) {
                rule += &format!(" {new_match}");
            }
        }
        rule + " " + &words
    }

    fn one_match(
        &mut self,
        table: &str,
        base: &str,
        bases: &[&str],
        protocol: Option<&str>,
    ) -> Option<String> {
        let dice = &mut *self.dice;
        let not = dice.not();
        let before = ["PREROUTING", "INPUT", "FORWARD"].contains(&base);
        let after = ["OUTPUT", "POSTROUTING", "FORWARD"].contains(&base);
        let address =
            |dice: &mut Dice| if dice.once_in(2) { dice.address() } else { dice.word(&NETS) };
        Some(match dice.below(24) {
            0 | 1 => format!("{not}-s {}", address(dice)),
            2..=4 => format!("{not}-d {}", address(dice)),
            5 if before => format!("{not}-i {}", dice.word(&["eth0", "eth+", "cbr0", "lo", "br0"])),
            6 if after => format!("{not}-o {}", dice.word(&["eth0", "eth+", "cbr0", "lo", "br0"])),
            7..=9 => match protocol? {
                "icmp" => {
                    format!("-m icmp {not}--icmp-type {}", dice.word(&["8", "0", "13", "8/0"]))
                }
                "tcp" if dice.once_in(4) => format!(
                    "-m tcp {not}--tcp-flags {}",
                    dice.word(&[
                        "SYN,ACK SYN",
                        "SYN,ACK ACK",
                        "SYN SYN",
                        "ACK NONE",
                        "FIN,SYN,RST,ACK SYN"
                    ])
                ),
                name => {
                    let side = dice.word(&["dport", "dport", "sport"]);
                    let range = match &*side {
                        "sport" => dice.word(&["20000:29999", "30000:39999", "25000:34999"]),
                        _ => dice.word(&["53", "80", "443", "80:443", "5000:65535", "8080"]),
                    };
                    format!("-m {name} {not}--{side} {range}")
                }
            },
            10 => match protocol? {
                "icmp" => return None,
                _ => {
                    let side = dice.word(&["dports", "ports", "sports"]);
                    let ports =
                        dice.some(&["53", "80", "443", "5000:8080", "20000:26999"]).join(",");
                    format!("-m multiport {not}--{side} {ports}")
                }
            },
            11 => {
                let side = dice.word(&["src", "dst"]);
                let range = dice.word(&[
                    "10.0.0.0-10.0.0.8",
                    "10.1.0.7-10.2.0.9",
                    "192.0.2.7-198.51.100.3",
                ]);
                format!("-m iprange {not}--{side}-range {range}")
            }
            12 | 13 => asked(dice, &self.sets)?,
            14 => {
                let states = dice
                    .some(&["NEW", "ESTABLISHED", "INVALID", "UNTRACKED", "DNAT", "SNAT"])
                    .join(",");
                format!("-m conntrack {not}--ctstate {states}")
            }
            15 => match dice.below(6) {
                0 => format!(
                    "-m conntrack {not}--ctstatus {}",
                    dice.some(&["SEEN_REPLY", "CONFIRMED", "NONE"]).join(",")
                ),
                1 => format!("-m conntrack --ctdir {}", dice.word(&["ORIGINAL", "REPLY"])),
                2 => format!("-m conntrack {not}--ctorigdst {}", address(dice)),
                3 => format!("-m conntrack {not}--ctreplsrc {}", address(dice)),
                4 => format!("-m conntrack {not}--ctorigdstport {}", dice.word(&PORTS)),
                _ => format!("-m conntrack {not}--ctreplsrcport {}", dice.word(&PORTS)),
            },
            16 => {
                let kind = dice.word(&["mark", "connmark"]);
                if dice.once_in(2) {
                    format!("-m {kind} {not}--mark {}/{}", dice.word(&MARKS), dice.word(&MASKS))
                } else {
                    format!("-m {kind} {not}--mark {}", dice.word(&["0x0", "0x1", "0x2", "0x10"]))
                }
            }
            17 => {
                let limit = match (base, dice.below(3)) {
                    ("PREROUTING" | "INPUT", 0) => " --limit-iface-in",
                    ("POSTROUTING", 0) => " --limit-iface-out",
                    _ => "",
                };
                let side = dice.word(&["src", "dst"]);
                let kinds = dice.some(&["LOCAL", "UNICAST", "BROADCAST"]).join(",");
                format!("-m addrtype {not}--{side}-type {kinds}{limit}")
            }
            18 if before => match dice.below(4) {
                0 => format!("-m mac {not}--mac-source 02:00:00:00:01:0{}", 1 + dice.below(4)),
                1 => format!(
                    "-m pkttype {not}--pkt-type {}",
                    dice.word(&["unicast", "broadcast", "multicast"])
                ),
                2 => format!("-m physdev {not}--physdev-in p0"),
                _ => format!("-m physdev {not}--physdev-is-in"),
            },
            18 if ["OUTPUT", "POSTROUTING"].contains(&base) => {
                let who = dice.word(&["uid-owner 0", "uid-owner 1000", "uid-owner 0-99"]);
                match dice.below(6) {
                    0 => format!("-m owner {not}--gid-owner {}", dice.word(&["0", "7"])),
                    1 => format!("-m owner {not}--socket-exists"),
                    2 => format!("-m owner {not}--gid-owner 77 --suppl-groups"),
                    3 => format!("-m owner {not}--{who} ! --gid-owner 7"),
                    _ => format!("-m owner {not}--{who}"),
                }
            }
            19 if base == "PREROUTING" && (table == "raw" || table == "mangle") => {
                let options = dice.some(&["--loose", "--validmark", "--accept-local", "--invert"]);
                format!("-m rpfilter {}", options.join(" "))
            }
            19 if base == "PREROUTING" && bases.contains(&"INPUT") => "-m socket".to_owned(),
            20 => format!(
                "-m statistic --mode random {not}--probability {}",
                dice.word(&["0.5", "0.33333333349", "0.25", "0.8"])
            ),
            21 if dice.once_in(2) => {
                let every = 2 + dice.below(3);
                format!(
                    "-m statistic --mode nth {not}--every {every} --packet {}",
                    dice.below(every)
                )
            }
            22 => {
                self.recent = true;
                let action = dice.word(&[
                    "--set",
                    "--rcheck",
                    "--update",
                    "--remove",
                    "--rcheck --seconds 60",
                ]);
                let side = dice.word(&["--rsource", "--rdest"]);
                format!("-m recent {not}{action} --name list{} {side}", dice.below(2))
            }
            23 => match dice.below(3) {
                0 => "-m limit --limit 3/sec".to_owned(),
                1 => format!(
                    "-m length {not}--length {}",
                    dice.word(&["0:39", "40", "41:60", "0:100"])
                ),
                _ => "-m comment --comment \"a remark\"".to_owned(),
            },
            _ => return None,
        })
    }

    fn target<'p>(
        &mut self,
        table: &str,
        chain: &str,
        bases: &[&str],
        callable: &[&str],
        protocol: Option<&'p str>,
    ) -> (String, Option<&'p str>) {
        let dice = &mut *self.dice;
        if !callable.is_empty() && dice.once_in(3) {
            let how = if dice.once_in(3) { "-g" } else { "-j" };
            return (format!("{how} {}", dice.word(callable)), protocol);
        }
        let ports = protocol.is_some_and(|name| name != "icmp");
        let plain = |dice: &mut Dice| match dice.below(12) {
            0..=2 => "-j ACCEPT".to_owned(),
            3 => "-j DROP".to_owned(),
            4 | 5 => "-j RETURN".to_owned(),
            6..=8 => format!(
                "-j MARK {}",
                match dice.below(5) {
                    0 => format!("--set-mark {}/{}", dice.word(&MARKS), dice.word(&MASKS)),
                    1 => format!("--or-mark {}", dice.word(&MARKS)),
                    2 => format!("--and-mark {}", dice.word(&MASKS)),
                    3 => format!("--xor-mark {}", dice.word(&MARKS)),
                    _ => format!("--set-xmark {}/0xffffffff", dice.word(&MARKS)),
                }
            ),
            9 | 10 => format!(
                "-j CONNMARK {}",
                match dice.below(4) {
                    0 => "--save-mark".to_owned(),
                    1 => "--restore-mark".to_owned(),
                    2 => format!(
                        "--restore-mark --nfmask {} --ctmask {}",
                        dice.word(&MASKS),
                        dice.word(&MASKS)
                    ),
                    _ => format!("--set-mark {}", dice.word(&MARKS)),
                }
            ),
            _ => String::new(),
        };
        // A user-defined chain may do only what every chain that calls it may do.
        let only = |wanted: &str| bases.len() == 1 && bases[0] == wanted || chain == wanted;
        let words = match table {
            "raw" if dice.once_in(3) => dice.word(&["-j CT --notrack", "-j NOTRACK"]),
            "mangle"
                if only("PREROUTING") && ports && protocol != Some("sctp") && dice.once_in(4) =>
            {
                let mark = if dice.once_in(3) { "" } else { " --tproxy-mark 0x1/0x1" };
                format!("-j TPROXY --on-port 15001{mark}")
            }
            "filter" if dice.once_in(4) => match (protocol, dice.below(3)) {
                (Some("tcp"), 0 | 1) => "-j REJECT --reject-with tcp-reset".to_owned(),
                _ => format!(
                    "-j REJECT --reject-with {}",
                    dice.word(&[
                        "icmp-port-unreachable",
                        "icmp-host-unreachable",
                        "icmp-net-unreachable",
                        "icmp-proto-unreachable",
                        "icmp-net-prohibited",
                        "icmp-host-prohibited",
                        "icmp-admin-prohibited",
                    ])
                ),
            },
            "nat" if !dice.once_in(4) => match bases[0] {
                "PREROUTING" => match dice.below(8) {
                    0 if ports => format!("-j REDIRECT --to-ports {}", dice.word(&PORTS)),
                    0 | 1 => "-j REDIRECT".to_owned(),
                    2 => format!("-j NETMAP --to {}", dice.word(&["10.1.0.0/24", "10.2.0.0/28"])),
                    3 if ports => format!("-j DNAT --to-destination :{}", dice.word(&PORTS)),
                    4 if dice.once_in(2) => "-j DNAT --to-destination 10.1.0.7-10.1.0.8".to_owned(),
                    5 | 6 if ports => {
                        format!("-j DNAT --to-destination {}:{}", dice.backend(), dice.word(&PORTS))
                    }
                    _ => format!("-j DNAT --to-destination {}", dice.backend()),
                },
                "POSTROUTING" => match dice.below(8) {
                    0 if ports => "-j MASQUERADE --to-ports 61000-61999".to_owned(),
                    1 => "-j MASQUERADE --random-fully".to_owned(),
                    2 => format!("-j NETMAP --to {}", dice.word(&["10.5.0.0/24", "192.0.2.0/28"])),
                    3 => format!("-j SNAT --to-source {}", dice.address()),
                    4 => "-j SNAT --to-source 10.0.0.2-10.0.0.3".to_owned(),
                    5 if ports => {
                        format!("-j SNAT --to-source {}:61000-61999", dice.word(&DEVICES_OWN))
                    }
                    _ => "-j MASQUERADE".to_owned(),
                },
                _ => match dice.below(3) {
                    0 => format!("-j NETMAP --to {}", "10.5.0.0/24"),
                    _ => format!("-j SNAT --to-source {}", dice.address()),
                },
            },
            "nat" => dice.word(&[
                "-j ACCEPT",
                "-j RETURN",
                "-j MARK --or-mark 0x10",
                "-j CONNMARK --save-mark",
            ]),
            _ => plain(dice),
        };
        (words, protocol)
    }
}

const DEVICES_OWN: [&str; 3] = ["10.0.0.2", "10.0.0.3", "10.9.9.9"];

#[test]
fn one_seed_makes_one_case() {
    let made = |seed| case(&mut of_case(seed, 1));
    assert_eq!(made(7), made(7));
    assert_ne!(made(7), made(8));
    assert!(DEVICES.iter().any(|device| made(7).to_string().contains(device)));
}
