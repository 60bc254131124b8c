//! Chains and their rules.

use std::fmt;

use uturn_model::{Evidence, Origin, Text};

use super::{Statement, TableFamily, print_rule};
use crate::iptables::Policy;
use crate::rule_text::rule_text;

/// A chain.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The name of the chain.
    pub name: Text,
    /// The hook of a base chain; `None` for a regular chain.
    pub base: Option<Base>,
    /// The comment of the chain.
    pub comment: Option<Text>,
    /// The rules of the chain, in order.
    pub rules: Vec<Rule>,
    /// The place where the chain was written.
    pub origin: Origin,
}

/// The hook and priority of a base chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The chain type.
    pub kind: ChainKind,
    /// The hook.
    pub hook: BaseHook,
    /// The devices, for `ingress` and `egress`.
    pub devices: Vec<Text>,
    /// Lower priorities run first; symbolic priorities are resolved (`dstnat - 10` is -110).
    pub priority: i32,
    /// The verdict at its end.
    pub policy: Policy,
}

/// The type of a base chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChainKind {
    /// Any rules except NAT.
    Filter,
    /// NAT: sees only the first packet of a connection.
    Nat,
    /// Locally generated packets that it changes are rerouted.
    Route,
}

impl ChainKind {
    /// The name that nft uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Nat => "nat",
            Self::Route => "route",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Filter, Self::Nat, Self::Route].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The hook of a base chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the hook of that name")]
pub enum BaseHook {
    Ingress,
    Prerouting,
    Input,
    Forward,
    Output,
    Postrouting,
    Egress,
}

impl BaseHook {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ingress,
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
        Self::Egress,
    ];

    /// The name that nft uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Prerouting => "prerouting",
            Self::Input => "input",
            Self::Forward => "forward",
            Self::Output => "output",
            Self::Postrouting => "postrouting",
            Self::Egress => "egress",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.as_str() == word)
    }
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The conditions and actions of the rule, in order.
    pub statements: Vec<Statement>,
    /// The comment of the rule.
    pub comment: Option<Text>,
    /// The place where the rule was written.
    pub origin: Origin,
}

impl Rule {
    /// The rule as evidence: as `nft list ruleset` prints it in a table of `family`, in short if it is very long.
    pub fn by(&self, family: TableFamily) -> Evidence {
        Evidence::Nftables { rule: rule_text(self.line(family)), origin: self.origin.clone() }
    }

    /// Formats the rule as `nft list ruleset` prints it in a table of `family`.
    pub fn line(&self, family: TableFamily) -> impl fmt::Display + '_ {
        print_rule::Line { rule: self, family }
    }
}
