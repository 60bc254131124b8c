//! A test case: the configuration of a node, and the packets to try on it, as text that can be
//! kept in a file. `#` starts a comment; sections start with `== `.

use std::fmt;
use std::net::SocketAddr;

use uturn_model::route::Leg;
use uturn_netfilter::{Entry, Packet, Transport};

/// A case as lines, so that it can be shrunk by removing some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case(pub(crate) Vec<String>);

/// The first packet of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) entry: Entry,
    pub(crate) packet: Packet,
}

impl Case {
    pub(crate) fn read(text: &str) -> Self {
        Self(text.lines().map(str::to_owned).collect())
    }

    /// The lines of a section; `None` if the section does not exist.
    pub(crate) fn section(&self, name: &str) -> Option<Vec<&str>> {
        let head = format!("== {name}");
        let mut lines = self.0.iter().map(String::as_str);
        lines.find(|line| *line == head)?;
        let section = lines.take_while(|line| !line.starts_with("== "));
        Some(section.filter(|line| !line.starts_with('#') && !line.is_empty()).collect())
    }

    pub(crate) fn add(&mut self, section: &str, lines: impl IntoIterator<Item = String>) {
        self.0.push(format!("== {section}"));
        self.0.extend(lines);
    }

    pub(crate) fn probes(&self) -> Vec<Probe> {
        let lines = self.section("probes").unwrap_or_default();
        lines
            .into_iter()
            .map(|line| probe(line).unwrap_or_else(|| panic!("no probe: {line}")))
            .collect()
    }

    /// Whether random decisions depend on more than the packet: hashes of its addresses, counters
    /// shared by several rules.
    pub(crate) fn chance_is_bound(&self) -> bool {
        let text = self.to_string();
        let shifting = |line: &str| {
            let turns = line.contains("--mode nth") || line.contains("numgen inc");
            let base = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
            turns && !base.iter().any(|chain| line.starts_with(&format!("-A {chain} ")))
        };
        let turns = text.matches("--mode nth").count() + text.matches("numgen inc").count();
        let range = |line: &str| {
            [
                "--to-source ",
                "--to-destination ",
                "dnat to ",
                "snat to ",
                "dnat ip to ",
                "snat ip to ",
            ]
            .iter()
            .any(|word| line.split_once(word).is_some_and(|(_, to)| to.contains('-')))
        };
        turns > 1 || text.contains("hash") || text.lines().any(|line| shifting(line) || range(line))
    }

    /// Whether a chain of type nat drops packets, or translates sources at INPUT.
    pub(crate) fn nat_decides_refusals(&self) -> bool {
        let mut hook = "";
        self.0.iter().any(|line| {
            if line.starts_with("chain ") {
                hook = "";
            } else if let Some(nat) = line.strip_prefix("type nat hook ") {
                hook = nat.split(' ').next().unwrap_or_default();
            }
            let words = |word: &str| line.split(' ').any(|next| next == word);
            words("drop") && !hook.is_empty() || words("snat") && hook == "input"
        })
    }

    /// Whether rules may choose a source port.
    pub(crate) fn chooses_source_ports(&self) -> bool {
        let text = self.to_string();
        let chosen = |line: &str| {
            line.contains("random")
                || line.contains("--to-ports")
                || line.contains("masquerade to")
                || ["--to-source ", "snat to ", "snat ip to "]
                    .iter()
                    .any(|word| line.split_once(word).is_some_and(|(_, to)| to.contains(':')))
        };
        text.lines().any(chosen)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// `eth0 tcp 192.0.2.7:20000 10.0.0.2:80`, `local udp 0.0.0.0:20000 192.0.2.7:53 mark 1`.
fn probe(line: &str) -> Option<Probe> {
    let mut words = line.split_ascii_whitespace();
    let entry = match words.next()? {
        "local" => Entry::Local,
        device => Entry::Interface(device.into()),
    };
    let kind = words.next()?;
    let src: SocketAddr = words.next()?.parse().ok()?;
    let dst: SocketAddr = words.next()?.parse().ok()?;
    let mark = match (words.next(), words.next()) {
        (Some("mark"), Some(mark)) => mark.parse().ok()?,
        _ => 0,
    };
    let (src_port, dst_port) = (src.port(), dst.port());
    let tcp = |syn, ack| Transport::Tcp { src_port, dst_port, syn, ack };
    let transport = match kind {
        "tcp" => tcp(true, false),
        "tcp-answer" => tcp(true, true),
        "tcp-later" => tcp(false, true),
        "udp" => Transport::Udp { src_port, dst_port },
        "sctp" => Transport::Sctp { src_port, dst_port },
        icmp => Transport::Icmp { kind: icmp.strip_prefix("icmp-")?.parse().ok()?, code: 0 },
    };
    let packet = Packet { src: src.ip(), dst: dst.ip(), transport, mark };
    Some(Probe { entry, packet })
}

impl Probe {
    /// The same from another source port: a separate connection that no rule distinguishes.
    pub(crate) fn again(&self, port: u16) -> Self {
        let Leg { mut src, dst } = self.packet.leg();
        if src.port() > 0 {
            src.set_port(port);
        }
        Self { entry: self.entry.clone(), packet: self.packet.with_leg(Leg { src, dst }) }
    }
}
