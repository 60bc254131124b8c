//! nftables rules within a walk.
//!
//! `compile` resolves names and turns expressions into `value`s and sets into `lookup`s once;
//! `eval` evaluates them for a packet; `run` moves a packet through the chains. `stages` orders
//! the base chains among the iptables tables.

mod branch;
mod compile;
mod compile_value;
mod encode;
mod eval;
mod evidence;
mod index_key;
mod lookup;
mod loops;
mod nat;
mod numgen;
mod run;
mod value;

use std::sync::OnceLock;

use uturn_model::{Evidence, Family, Share, Text};

pub(super) use self::compile::compile;
use self::lookup::Lookup;
use self::value::Op;
use super::chain_order;
use super::index::Index;
use crate::Packet;
use crate::nft::{BaseHook, ChainKind, TableFamily};

/// All compiled tables. Chains and sets are numbered across tables.
#[derive(Debug, Default)]
pub(super) struct Rules {
    chains: Vec<Chain>,
    lookups: Vec<Lookup>,
    /// The base chains, in the order in which the kernel runs them.
    bases: Vec<usize>,
    ranks: OnceLock<Box<[u32]>>,
    met_again: OnceLock<Box<[bool]>>,
}

#[derive(Debug)]
struct Chain {
    /// The index of its table in the ruleset, and its own index in the table.
    table: usize,
    at: usize,
    rules: Vec<Rule>,
    index: Option<Index>,
    base: Option<Entered>,
}

#[derive(Debug)]
struct Rule {
    ops: Vec<Op>,
    texts: RuleTexts,
}

/// Texts for the steps of a walk, built on first use.
#[derive(Debug, Default)]
struct RuleTexts {
    by: OnceLock<Evidence>,
    /// The text for this action, if the rule has no comment.
    done: OnceLock<(&'static str, Text)>,
    /// For a step of the rule, the ranges of a generated number that it distinguishes.
    ranges: OnceLock<(usize, Box<[NumberRange]>)>,
}

/// A range of a generated number that a step treats alike.
#[derive(Clone, Debug)]
struct NumberRange {
    share: Share,
    number: u128,
    /// The count of numbers from this one on.
    count: u64,
    why: Text,
}

impl Chain {
    /// The index of the first rule at or after `from` that can match.
    fn next(&self, from: usize, packet: &Packet) -> Option<usize> {
        match &self.index {
            Some(index) => index.next(from, packet),
            None => (from < self.rules.len()).then_some(from),
        }
    }
}

/// The hook of a base chain.
#[derive(Clone, Debug)]
struct Entered {
    family: TableFamily,
    kind: ChainKind,
    hook: BaseHook,
    priority: i32,
}

/// A base chain as `stages` needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) chain: usize,
    pub(super) kind: ChainKind,
    pub(super) priority: i32,
}

impl Rules {
    /// The rank of each chain, and then of each set: jumps lead to higher ones.
    pub(super) fn ranks(&self) -> &[u32] {
        self.ranks.get_or_init(|| chain_order::ranks(&loops::linked(self)))
    }

    /// Whether a packet may come by a chain more than once.
    fn is_met_again(&self, chain: usize) -> bool {
        self.met_again
            .get_or_init(|| chain_order::more_than_one_way(&loops::linked(self), self.ranks()))
            [chain]
    }

    /// The base chains of a hook and family, in the order in which they run.
    pub(super) fn bases(&self, family: Family, hook: BaseHook) -> Vec<Base> {
        let fits = |entered: &Entered| match (entered.family, family) {
            (TableFamily::Inet, _) => true,
            (TableFamily::Netdev, _) => matches!(hook, BaseHook::Ingress | BaseHook::Egress),
            (TableFamily::Ip, Family::V4) | (TableFamily::Ip6, Family::V6) => true,
            _ => false,
        };
        let of = |chain: &usize| {
            let entered = self.chains[*chain].base.as_ref()?;
            (entered.hook == hook && fits(entered)).then_some(Base {
                chain: *chain,
                kind: entered.kind,
                priority: entered.priority,
            })
        };
        self.bases.iter().filter_map(of).collect()
    }
}
