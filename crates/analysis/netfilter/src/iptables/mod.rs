//! Rules of `iptables` and `ip6tables`, as `iptables-save` prints them.
//!
//! [`parse`] reads such text into a [`Ruleset`], whose `Display` prints what `iptables-restore`
//! loads and `iptables-save` would print again. Matches and targets that are not modelled are
//! kept as written ([`Extension`]), so nothing is lost. [`parse_fragment`] loads a partial dump
//! onto existing rules, [`catalogue`] lists how a walk treats each match and target.

mod allowance;
pub mod catalogue;
mod chain_names;
mod command;
mod icmp;
mod match_list;
mod match_options;
mod matches;
mod other_formats;
mod parse;
mod print;
mod print_match;
mod rule;
mod set_options;
mod table_builder;
mod target;
mod target_options;
mod token;
mod value;
mod word_end;

pub use match_list::Matches;
pub use matches::{
    AddrKind, AddrType, Conntrack, CtDirection, CtState, CtStatus, Extension, Icmp, Iprange,
    IpvsMatch, LimitInterface, MarkMatch, Match, Multiport, PortRange, PortSide, Probability,
    Recent, RecentAction, Rpfilter, SetDirection, SetMatch, Statistic, Tcp, Udp,
};
pub use parse::{parse, parse_fragment, warnings};
pub use target::{ConnmarkOp, NatPorts, NatTo, Target, Tproxy};

use std::fmt;
use std::net::IpAddr;

use uturn_model::{Evidence, IpNet, Origin, Text};

use crate::packet::IpProtocol;
use crate::rule_text::rule_text;

/// The words of a line, as `iptables-restore` splits it. Returns `None` if a quote is not closed.
pub fn rule_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    token::cut(line, 1, &mut words).ok()?;
    Some(words.into_iter().map(|word| word.text.into_owned()).collect())
}

/// All tables of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruleset {
    /// The tables, in the order of the text, without duplicates.
    pub tables: Vec<Table>,
}

impl Ruleset {
    /// A table, if present.
    pub fn table(&self, kind: TableKind) -> Option<&Table> {
        self.tables.iter().find(|table| table.kind == kind)
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Which table.
    pub kind: TableKind,
    /// The chains of the table, in the order of the text; names are unique.
    pub chains: Vec<Chain>,
    /// The place where the table was written.
    pub origin: Origin,
}

impl Table {
    /// A chain by its name.
    pub fn chain(&self, name: &str) -> Option<&Chain> {
        self.chains.iter().find(|chain| &*chain.name == name)
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.chains == other.chains
    }
}

impl Eq for Table {}

/// The iptables tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    /// Runs before connection tracking.
    Raw,
    /// Modifies packets.
    Mangle,
    /// NAT.
    Nat,
    /// Filters packets.
    Filter,
    /// Sets marks for mandatory access control.
    Security,
}

impl TableKind {
    /// All tables, in the order in which a packet traverses them.
    pub const ALL: [Self; 5] = [Self::Raw, Self::Mangle, Self::Nat, Self::Filter, Self::Security];

    /// Returns the name of the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Mangle => "mangle",
            Self::Nat => "nat",
            Self::Filter => "filter",
            Self::Security => "security",
        }
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The built-in chains.
const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/// A chain.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The name of the chain.
    pub name: Text,
    /// The verdict at its end; `None` for a user-defined chain.
    pub policy: Option<Policy>,
    /// The packets and bytes that reached the policy.
    pub counters: Counters,
    /// The rules of the chain, in order.
    pub rules: Vec<Rule>,
    /// The place where the chain was declared.
    pub origin: Origin,
}

impl PartialEq for Chain {
    fn eq(&self, other: &Self) -> bool {
        let key = |chain: &Self| (chain.name.clone(), chain.policy, chain.counters);
        key(self) == key(other) && self.rules == other.rules
    }
}

impl Eq for Chain {}

/// The verdict for packets that reach the end of a built-in chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Accepts the packet.
    Accept,
    /// Drops the packet.
    Drop,
}

impl Policy {
    /// The name that iptables uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "ACCEPT",
            Self::Drop => "DROP",
        }
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A rule. Dumps have hundreds of thousands of them, so large and rare fields are boxed.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `[packets:bytes]` before the rule, if present.
    pub counters: Option<Box<Counters>>,
    /// `-s`
    pub src: Option<Not<Addresses>>,
    /// `-d`
    pub dst: Option<Not<Addresses>>,
    /// `-i`; a trailing `+` matches any suffix.
    pub in_interface: Option<Box<Not<Text>>>,
    /// `-o`; a trailing `+` matches any suffix.
    pub out_interface: Option<Box<Not<Text>>>,
    /// `-p`
    pub protocol: Option<Not<IpProtocol>>,
    /// `-f`: second and further fragments only (false: negated).
    pub fragment: Option<bool>,
    /// `-m …`, in order.
    pub matches: Matches,
    /// `-j …` or `-g …`; `None` for a rule that only counts.
    pub target: Option<Target>,
    /// The place where the rule was written.
    pub origin: Origin,
}

impl Rule {
    /// A rule that matches every packet and has no target.
    pub fn new(origin: Origin) -> Self {
        Self {
            counters: None,
            src: None,
            dst: None,
            in_interface: None,
            out_interface: None,
            protocol: None,
            fragment: None,
            matches: Matches::default(),
            target: None,
            origin,
        }
    }

    /// Returns the rule's comment, if it has one.
    pub fn comment(&self) -> Option<&Text> {
        self.matches.iter().find_map(|item| match item {
            Match::Comment(text) => Some(text),
            _ => None,
        })
    }

    /// Whether two rules are the same but for their counters, as `-D` and `-C` compare them.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        self.src == other.src
            && self.dst == other.dst
            && self.in_interface == other.in_interface
            && self.out_interface == other.out_interface
            && self.protocol == other.protocol
            && self.fragment == other.fragment
            && self.matches == other.matches
            && self.target == other.target
    }

    /// The rule as evidence: as `iptables-save` prints it in `chain`, in short if it is very long.
    pub fn by(&self, chain: &str) -> Evidence {
        Evidence::Iptables {
            chain: chain.into(),
            rule: rule_text(self.line(chain)),
            origin: self.origin.clone(),
        }
    }

    /// Formats the rule as `iptables-save` prints it in `chain`.
    pub fn line<'a>(&'a self, chain: &'a str) -> impl fmt::Display + 'a {
        print::Line { rule: self, chain }
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.counters == other.counters && self.asks_the_same(other)
    }
}

impl Eq for Rule {}

/// A condition, possibly negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Not<T> {
    /// Whether the condition is negated.
    pub not: bool,
    /// The condition.
    pub value: T,
}

impl<T> Not<T> {
    /// A condition that is not negated.
    pub fn plain(value: T) -> Self {
        Self { not: false, value }
    }

    pub(crate) fn holds(&self, test: impl FnOnce(&T) -> bool) -> bool {
        test(&self.value) != self.not
    }
}

/// The addresses that `-s` and `-d` accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Addresses {
    /// A network; its host bits are zero.
    Net(IpNet),
    /// All addresses that equal `address` in the bits of a non-contiguous `mask`.
    Masked {
        /// The address bits; zero outside the mask.
        address: IpAddr,
        /// Which bits count.
        mask: IpAddr,
    },
}

impl Addresses {
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        match (self, ip) {
            (Self::Net(net), _) => net.contains(&ip),
            (Self::Masked { address: IpAddr::V4(a), mask: IpAddr::V4(m) }, IpAddr::V4(ip)) => {
                ip & m == *a
            }
            (Self::Masked { address: IpAddr::V6(a), mask: IpAddr::V6(m) }, IpAddr::V6(ip)) => {
                ip & m == *a
            }
            _ => false,
        }
    }
}
