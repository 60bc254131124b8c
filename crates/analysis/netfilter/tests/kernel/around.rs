//! The parts of a case that do not depend on the rules' language: routes and sysctls, addresses,
//! packets.

use uturn_dice::Dice;

use crate::dice::Words;

pub(crate) const DEVICES: [&str; 4] = ["eth0", "eth1", "cbr0", "br0"];
/// The node's own addresses.
pub(crate) const OWN: [&str; 6] =
    ["10.0.0.2", "10.0.0.3", "10.1.0.1", "10.2.0.1", "10.3.0.1", "10.9.9.9"];
pub(crate) const NEAR: [&str; 6] =
    ["10.0.0.1", "10.0.0.11", "10.1.0.7", "10.1.0.8", "10.2.0.9", "10.3.0.7"];
pub(crate) const FAR: [&str; 5] =
    ["192.0.2.7", "198.51.100.3", "10.1.1.5", "10.9.0.10", "10.5.5.5"];
pub(crate) const NETS: [&str; 12] = [
    "10.0.0.0/24",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.0.0/24",
    "192.0.2.0/24",
    "10.9.0.0/16",
    "10.1.0.6/31",
    "198.51.0.0/16",
    "10.2.0.0/15",
    "10.0.0.0/30",
    "127.0.0.0/8",
    "10.5.0.0/16",
];
pub(crate) const PORTS: [&str; 6] = ["53", "80", "443", "5000", "8080", "30000"];
pub(crate) const MARKS: [&str; 5] = ["0x1", "0x2", "0x4", "0x10", "0x4000"];
pub(crate) const MASKS: [&str; 4] = ["0x1", "0x3", "0xff", "0x4000"];

/// Random addresses of the test network.
pub(crate) trait Addresses {
    /// A random address.
    fn address(&mut self) -> String;

    /// A random NAT target.
    fn backend(&mut self) -> String;
}

impl Addresses for Dice {
    fn address(&mut self) -> String {
        match self.below(8) {
            0 | 1 => self.word(&OWN),
            2..=4 => self.word(&NEAR),
            _ => self.word(&FAR),
        }
    }

    fn backend(&mut self) -> String {
        match self.below(8) {
            0 => self.word(&OWN),
            1 => self.word(&FAR),
            _ => self.word(&NEAR),
        }
    }
}

/// Routes, policy rules and sysctls.
pub(crate) fn set_up(dice: &mut Dice) -> Vec<String> {
    let (mut lines, mut rules) = (Vec::new(), Vec::new());
    if !dice.once_in(8) {
        let way = dice.word(&[
            "via 10.0.0.1",
            "via 10.0.0.1",
            "via 10.0.0.1",
            "via 10.2.0.9",
            "via 10.1.0.8",
            "via 10.3.0.7",
            "dev eth1",
            "via 10.0.0.11 src 10.0.0.3",
        ]);
        lines.push(format!("ip route replace default {way}"));
    }
    if dice.once_in(3) {
        let net = dice.word(&["10.5.0.0/16", "198.51.100.0/24", "10.9.0.0/24", "192.0.2.7/32"]);
        let way =
            dice.word(&["via 10.2.0.9", "dev cbr0", "via 10.3.0.8", "via 10.1.0.7 src 10.9.9.9"]);
        lines.push(format!("ip route replace {net} {way}"));
    }
    if dice.once_in(6) {
        let kind = dice.word(&["blackhole", "unreachable", "prohibit", "throw"]);
        lines.push(format!(
            "ip route replace {kind} {}",
            dice.word(&["10.5.5.0/24", "198.51.100.3"])
        ));
    }
    if dice.once_in(6) {
        lines.push(format!(
            "ip route replace local {} dev lo",
            dice.word(&["10.9.0.0/24", "198.51.100.3"])
        ));
    }
    for dev in ["all", "eth0", "eth1", "cbr0", "br0"] {
        if dice.once_in(3) {
            lines.push(format!("sysctl -qw net.ipv4.conf.{dev}.rp_filter={}", dice.below(3)));
        }
        for switch in ["accept_local", "route_localnet", "src_valid_mark"] {
            if dice.once_in(10) {
                lines.push(format!("sysctl -qw net.ipv4.conf.{dev}.{switch}=1"));
            }
        }
    }
    if dice.once_in(15) {
        lines.push("sysctl -qw net.ipv4.ip_forward=0".to_owned());
    }
    if dice.once_in(10) {
        lines.push("sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0".to_owned());
    }
    for table in [100, 101] {
        if dice.once_in(3) {
            // Raw sockets, which send the node's packets here, have no ports.
            let rule = match dice.below(14) {
                8 => format!("iif {} ipproto {}", dice.word(&DEVICES), dice.word(&["tcp", "udp"])),
                9 => format!("iif {} dport {}", dice.word(&DEVICES), dice.word(&["80", "53-443"])),
                10 => format!("iif {} sport 20000-29999", dice.word(&DEVICES)),
                11 => format!("uidrange {}", dice.word(&["0-0", "1-99", "0-1000"])),
                12 => format!("not from {}", dice.word(&NETS)),
                13 => format!("not uidrange 0-0 to {}", dice.word(&NETS)),
                0 => format!("from {}", dice.word(&NETS)),
                1 => format!("to {}", dice.word(&NETS)),
                2 => format!("iif {}", dice.word(&["lo", "eth0", "cbr0"])),
                3 => format!("not fwmark {}", dice.word(&MARKS)),
                4 => format!("fwmark {}/{}", dice.word(&MARKS), dice.word(&MASKS)),
                _ => format!("fwmark {}", dice.word(&MARKS)),
            };
            let action = match dice.below(10) {
                0 => dice.word(&["blackhole", "unreachable", "prohibit"]),
                1 => format!("goto {}", dice.word(&["32766", "32767", "150", "250"])),
                2 => "nop".to_owned(),
                3 => "lookup main suppress_prefixlength 0".to_owned(),
                4 => format!("lookup {table} suppress_prefixlength {}", dice.word(&["0", "16"])),
                _ => format!("lookup {table}"),
            };
            rules.push(format!("ip rule add {rule} {action} pref {}", table + 100 * dice.below(2)));
            let route = dice.word(&[
                "local default dev lo",
                "local default dev lo",
                "default via 10.2.0.9",
                "default via 10.0.0.11",
                "default dev cbr0",
                "throw default",
                "10.9.0.0/16 via 10.1.0.8",
            ]);
            lines.push(format!("ip route replace {route} table {table}"));
        }
    }
    // After the routes, whose gateways are looked up by the policy rules.
    lines.append(&mut rules);
    lines
}

/// Packets from the network and from the node.
pub(crate) fn probes(dice: &mut Dice, count: usize, setup: &[String]) -> Vec<String> {
    let plain = !setup.iter().any(|line| line.starts_with("ip rule"));
    (0..count)
        .map(|_| {
            let local = dice.once_in(4);
            let from = if local { "local".to_owned() } else { dice.word(&DEVICES) };
            let src = match (local, dice.below(10)) {
                (true, 0..=4) => "0.0.0.0".to_owned(),
                (true, _) => dice.word(&OWN),
                (false, 0) => dice.word(&OWN),
                (false, 1..=3) => dice.address(),
                (false, 4) => dice.word(&FAR),
                (false, _) => match &*from {
                    "eth0" => dice.word(&["10.0.0.1", "10.0.0.11", "192.0.2.7", "198.51.100.3"]),
                    "cbr0" => dice.word(&["10.1.0.7", "10.1.0.8"]),
                    "eth1" => dice.word(&["10.2.0.9", "10.5.5.5"]),
                    _ => dice.word(&["10.3.0.7", "10.3.0.8"]),
                },
            };
            let dst = match dice.below(24) {
                0 => dice.word(&["10.6.0.1", "10.6.1.1", "10.6.2.1"]),
                // The node also receives its own broadcasts, and policy rules for the route back
                // from a broadcast address are evaluated differently.
                1 if !local && plain => dice.word(&["10.0.0.255", "127.0.0.1"]),
                1 => "127.0.0.1".to_owned(),
                2..=8 => dice.word(&OWN),
                _ => dice.address(),
            };
            let kind = dice.word(&[
                "tcp",
                "tcp",
                "tcp",
                "tcp",
                "udp",
                "udp",
                "udp",
                "sctp",
                "icmp-8",
                "tcp-later",
                "tcp-answer",
                "icmp-13",
                "icmp-0",
            ]);
            let (sport, dport) = if kind.starts_with("icmp") {
                (0, "0".to_owned())
            } else {
                (20000 + 1000 * dice.below(20), dice.word(&PORTS))
            };
            let mark = if local && dice.once_in(4) {
                format!(" mark {}", dice.pick(&[1, 2, 4, 16]))
            } else {
                String::new()
            };
            format!("{from} {kind} {src}:{sport} {dst}:{dport}{mark}")
        })
        .collect()
}
