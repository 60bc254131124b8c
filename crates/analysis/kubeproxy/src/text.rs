//! Tables and rules as text, in the words and the order of `iptables-save` 1.8.9.

use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::ops::Range;

use ipnet::IpNet;
use uturn_model::Protocol;

use crate::names::Letters;

/// The name of a chain: at most 28 letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chain {
    bytes: [u8; Self::LONGEST],
    len: usize,
}

impl Chain {
    /// The kernel's limit for the length of names.
    const LONGEST: usize = 28;

    /// Makes a name that is the same on every node.
    pub(crate) const fn named(name: &str) -> Self {
        let mut bytes = [0; Self::LONGEST];
        let (head, _) = bytes.split_at_mut(name.len());
        head.copy_from_slice(name.as_bytes());
        Self { bytes, len: name.len() }
    }

    /// Makes a name that ends in a hash: `KUBE-SVC-` and sixteen letters.
    pub(crate) fn hashed(prefix: &str, letters: Letters) -> Self {
        let mut chain = Self::named(prefix);
        chain.len += letters.len();
        chain.bytes[prefix.len()..chain.len].copy_from_slice(&letters);
        chain
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// One table: its chains and their rules.
pub(crate) struct Table {
    name: &'static str,
    /// The rules of chains that are written at once, one chain after the other.
    text: String,
    written: Vec<(Chain, Range<usize>)>,
    /// The chains to which every Service port adds rules.
    shared: Vec<(Chain, String)>,
}

impl Table {
    pub(crate) fn new(name: &'static str, shared: &[Chain]) -> Self {
        Self {
            name,
            text: String::new(),
            written: Vec::new(),
            shared: shared.iter().map(|chain| (*chain, String::new())).collect(),
        }
    }

    /// Begins a rule of a chain that was named to [`new`](Self::new).
    pub(crate) fn add(&mut self, chain: Chain) -> Rule<'_> {
        let place = self.shared.iter().position(|(shared, _)| *shared == chain);
        let place = place.unwrap_or_else(|| {
            self.shared.push((chain, String::new()));
            self.shared.len() - 1
        });
        Rule::begin(&mut self.shared[place].1, chain)
    }

    /// Writes a chain to which nothing else adds rules.
    pub(crate) fn chain(&mut self, chain: Chain, write: impl FnOnce(&mut Rules<'_>)) {
        let start = self.text.len();
        write(&mut Rules { chain, out: &mut self.text });
        self.written.push((chain, start..self.text.len()));
    }

    /// Appends the table in the format of `iptables-save`: built-in chains, then the others by
    /// name. `jumps` are the rules of the built-in chains.
    pub(crate) fn print(&self, builtin: &[&str], jumps: &str, out: &mut String) {
        let mut chains: Vec<(Chain, &str)> = self
            .written
            .iter()
            .map(|(chain, range)| (*chain, &self.text[range.clone()]))
            .chain(self.shared.iter().map(|(chain, text)| (*chain, text.as_str())))
            .collect();
        chains.sort_unstable_by_key(|(chain, _)| *chain);
        let rules: usize = chains.iter().map(|(_, text)| text.len()).sum();
        out.reserve(rules + jumps.len() + chains.len() * 36 + 256);
        push(out, &["*", self.name, "\n"]);
        for chain in builtin {
            push(out, &[":", chain, " ACCEPT [0:0]\n"]);
        }
        for (chain, _) in &chains {
            push(out, &[":", chain.as_str(), " - [0:0]\n"]);
        }
        out.push_str(jumps);
        for (_, text) in &chains {
            out.push_str(text);
        }
        out.push_str("COMMIT\n");
    }
}

/// The writer of one chain's rules.
pub(crate) struct Rules<'t> {
    chain: Chain,
    out: &'t mut String,
}

impl Rules<'_> {
    pub(crate) fn add(&mut self) -> Rule<'_> {
        Rule::begin(self.out, self.chain)
    }
}

/// Writes rules that accept replies, and packets related to accepted connections.
pub(crate) fn accept_replies(filter: &mut Table, chain: Chain, in_one_rule: bool) {
    let remarks: &[&str] = if in_one_rule {
        &["kubernetes forwarding conntrack rule"]
    } else {
        &[
            "kubernetes forwarding conntrack pod source rule",
            "kubernetes forwarding conntrack pod destination rule",
        ]
    };
    for remark in remarks {
        filter
            .add(chain)
            .comment(&[remark])
            .words("-m conntrack --ctstate RELATED,ESTABLISHED")
            .end("ACCEPT");
    }
}

/// Writes the same rules for connections of pods only.
pub(crate) fn accept_replies_of_pods(filter: &mut Table, chain: Chain, range: &IpNet) {
    for (side, end) in [(" -s ", "source"), (" -d ", "destination")] {
        filter
            .add(chain)
            .display(side, range)
            .comment(&["kubernetes forwarding conntrack pod ", end, " rule"])
            .words("-m conntrack --ctstate RELATED,ESTABLISHED")
            .end("ACCEPT");
    }
}

/// A rule under construction. Parts are written in the order of the calls, so call them in the
/// order of `iptables-save`: source, destination, protocol, then matches.
#[must_use = "a rule ends with what becomes of the packet"]
pub(crate) struct Rule<'t>(&'t mut String);

impl<'t> Rule<'t> {
    fn begin(out: &'t mut String, chain: Chain) -> Self {
        push(out, &["-A ", chain.as_str()]);
        Self(out)
    }

    /// Adds words verbatim.
    pub(crate) fn words(self, words: &str) -> Self {
        push(self.0, &[" ", words]);
        self
    }

    /// Adds `-s address/32`, from text.
    pub(crate) fn source(self, address: &str) -> Self {
        let length = if address.contains(':') { "/128" } else { "/32" };
        push(self.0, &[" -s ", address, length]);
        self
    }

    /// Adds `-s range`; adds nothing for the range of all addresses.
    pub(crate) fn source_range(self, range: &IpNet) -> Self {
        if range.prefix_len() == 0 { self } else { self.display(" -s ", range) }
    }

    /// Adds `-d address/32`.
    pub(crate) fn destination(self, address: IpAddr) -> Self {
        self.display(" -d ", IpNet::from(address))
    }

    /// Adds `-p tcp`.
    pub(crate) fn protocol(self, protocol: Protocol) -> Self {
        push(self.0, &[" -p ", protocol.lower()]);
        self
    }

    /// Adds `-m tcp`.
    pub(crate) fn with_protocol(self, protocol: Protocol) -> Self {
        push(self.0, &[" -m ", protocol.lower()]);
        self
    }

    /// Adds `-m tcp --dport 80`.
    pub(crate) fn destination_port(self, protocol: Protocol, port: uturn_model::Port) -> Self {
        self.with_protocol(protocol).display(" --dport ", port)
    }

    /// Adds a comment, given in parts.
    pub(crate) fn comment(self, parts: &[&str]) -> Self {
        self.0.push_str(" -m comment --comment \"");
        parts.iter().for_each(|part| push_quoted(self.0, part));
        self.0.push('"');
        self
    }

    /// Adds words followed by a value.
    pub(crate) fn display(self, words: &str, value: impl fmt::Display) -> Self {
        let written = write!(self.0, "{words}{value}");
        debug_assert!(written.is_ok(), "a string takes all");
        self
    }

    /// Ends the rule with a jump to a chain.
    pub(crate) fn jump(self, chain: Chain) {
        self.end(chain.as_str());
    }

    /// Ends the rule with a target.
    pub(crate) fn end(self, target: &str) {
        push(self.0, &[" -j ", target, "\n"]);
    }

    /// Ends a rule without a target, or whose target is already written.
    pub(crate) fn finish(self) {
        self.0.push('\n');
    }
}

/// A mark and its mask: `0x4000/0x4000`.
pub(crate) struct Mark(pub(crate) u32, pub(crate) u32);

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}/{:#x}", self.0, self.1)
    }
}

fn push(out: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| out.push_str(part));
}

/// Replaces characters that would end a quoted text or its line.
fn push_quoted(out: &mut String, text: &str) {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte) && !b"\"\\'".contains(&byte)) {
        return out.push_str(text);
    }
    for letter in text.chars() {
        match letter {
            '"' | '\\' | '\'' => out.extend(['\\', letter]),
            _ if letter.is_control() => out.push('?'),
            _ => out.push(letter),
        }
    }
}
