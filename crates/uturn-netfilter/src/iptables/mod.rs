//! Rules of `iptables` and `ip6tables`, as `iptables-save` prints them.
//!
//! [`parse`] reads such text into a [`Ruleset`], whose `Display` prints what
//! `iptables-restore` loads and `iptables-save` would print again. What this model has no
//! word for is kept as it was written ([`Extension`]), so nothing is lost on the way.
//! [`parse_fragment`] loads a part onto what is there, [`catalogue`] says what a walk makes
//! of each match and target.

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

use uturn_model::{By, IpNet, Origin, Text};

use crate::packet::IpProtocol;

/// All tables of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruleset {
    /// Its tables, in the order of the text; no two are the same.
    pub tables: Vec<Table>,
}

impl Ruleset {
    /// A table, if the text has it.
    pub fn table(&self, kind: TableKind) -> Option<&Table> {
        self.tables.iter().find(|table| table.kind == kind)
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Which.
    pub kind: TableKind,
    /// Its chains, in the order of the text; no two have one name.
    pub chains: Vec<Chain>,
    /// Where it was written.
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

/// The tables there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    /// Before connection tracking.
    Raw,
    /// Changes packets.
    Mangle,
    /// Translates addresses.
    Nat,
    /// Lets packets through, or not.
    Filter,
    /// Labels packets for mandatory access control.
    Security,
}

impl TableKind {
    /// All of them, in the order in which a packet meets them.
    pub const ALL: [Self; 5] = [Self::Raw, Self::Mangle, Self::Nat, Self::Filter, Self::Security];

    /// Its name.
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

/// The chains that a packet's way begins in.
const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/// A chain.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its name.
    pub name: Text,
    /// What happens at its end; none for a chain that others jump to.
    pub policy: Option<Policy>,
    /// Packets and bytes that met the policy.
    pub counters: Counters,
    /// Its rules, in order.
    pub rules: Vec<Rule>,
    /// Where it was declared.
    pub origin: Origin,
}

impl PartialEq for Chain {
    fn eq(&self, other: &Self) -> bool {
        let key = |chain: &Self| (chain.name.clone(), chain.policy, chain.counters);
        key(self) == key(other) && self.rules == other.rules
    }
}

impl Eq for Chain {}

/// What happens to a packet that reaches the end of a built-in chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// It passes.
    Accept,
    /// It is thrown away.
    Drop,
}

impl Policy {
    /// As iptables spells it.
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

/// A rule. They come by the hundred thousand, so what is large and rare is boxed.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `[packets:bytes]` before it, where the text has them.
    pub counters: Option<Box<Counters>>,
    /// `-s`
    pub src: Option<Not<Addresses>>,
    /// `-d`
    pub dst: Option<Not<Addresses>>,
    /// `-i`; a `+` at its end stands for any rest.
    pub in_interface: Option<Box<Not<Text>>>,
    /// `-o`, likewise.
    pub out_interface: Option<Box<Not<Text>>>,
    /// `-p`
    pub protocol: Option<Not<IpProtocol>>,
    /// `-f`: second and further fragments only (false: all but these).
    pub fragment: Option<bool>,
    /// `-m …`, in order.
    pub matches: Matches,
    /// `-j …` or `-g …`; none for a rule that only counts.
    pub target: Option<Target>,
    /// Where it was written.
    pub origin: Origin,
}

impl Rule {
    /// A rule that matches everything and does nothing.
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

    /// Its comment, if it has one.
    pub fn comment(&self) -> Option<&Text> {
        self.matches.iter().find_map(|one| match one {
            Match::Comment(text) => Some(text),
            _ => None,
        })
    }

    /// The rule as evidence: as `iptables-save` prints it in `chain`.
    pub fn by(&self, chain: &str) -> By {
        By::new(self.line(chain).to_string(), self.origin.clone())
    }

    /// As `iptables-save` prints it in `chain`.
    pub fn line<'a>(&'a self, chain: &'a str) -> impl fmt::Display + 'a {
        print::Line { rule: self, chain }
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.counters == other.counters
            && self.src == other.src
            && self.dst == other.dst
            && self.in_interface == other.in_interface
            && self.out_interface == other.out_interface
            && self.protocol == other.protocol
            && self.fragment == other.fragment
            && self.matches == other.matches
            && self.target == other.target
    }
}

impl Eq for Rule {}

/// A condition, or its opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Not<T> {
    /// Whether the opposite is meant.
    pub not: bool,
    /// The condition.
    pub value: T,
}

impl<T> Not<T> {
    /// The condition itself.
    pub fn plain(value: T) -> Self {
        Self { not: false, value }
    }

    pub(crate) fn holds(&self, test: impl FnOnce(&T) -> bool) -> bool {
        test(&self.value) != self.not
    }
}

/// Addresses that `-s` and `-d` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Addresses {
    /// A network; its host bits are zero.
    Net(IpNet),
    /// Those that equal `address` in the bits of `mask`, which is no prefix.
    Masked {
        /// The bits; zero outside the mask.
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
