//! Rules of nftables on a packet's way.
//!
//! `compile` resolves names and turns expressions into `value`s and sets into `lookup`s
//! once; `eval` says what a value is for a packet; `run` leads a packet through the
//! chains. Where these stand among the tables of iptables, `stage` says.

mod compile;
mod encode;
mod eval;
mod evidence;
mod index_key;
mod lookup;
mod loops;
mod numgen;
mod run;
mod value;

use std::sync::OnceLock;

use uturn_model::{By, Family, Text};

pub(super) use self::compile::compile;
pub(super) use self::encode::interface;
use self::lookup::Lookup;
use self::value::Op;
use super::index::Index;
use crate::Packet;
use crate::nft::{BaseHook, ChainKind, TableFamily};

/// All tables, made ready. Chains and sets are numbered through all tables.
#[derive(Debug, Default)]
pub(super) struct Rules {
    chains: Vec<Chain>,
    lookups: Vec<Lookup>,
    /// The chains that packets enter, in the order in which the kernel asks them.
    bases: Vec<usize>,
}

#[derive(Debug)]
struct Chain {
    /// Its table's place in the ruleset, and its own in the table.
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

/// What is said of a rule in steps, made when it is first needed.
#[derive(Debug, Default)]
struct RuleTexts {
    by: OnceLock<By>,
    /// That it did this, where there is no comment to say so.
    done: OnceLock<(&'static str, Text)>,
    /// For a step of the rule, the numbers that it tells apart.
    ranges: OnceLock<(usize, Box<[NumberRange]>)>,
}

/// One of the numbers that a step tells apart.
#[derive(Clone, Debug)]
struct NumberRange {
    share: f64,
    number: u128,
    why: Text,
}

impl Chain {
    /// The first rule from `from` on that can match.
    fn next(&self, from: usize, packet: &Packet) -> Option<usize> {
        match &self.index {
            Some(index) => index.next(from, packet),
            None => (from < self.rules.len()).then_some(from),
        }
    }
}

/// Where packets enter a chain.
#[derive(Clone, Debug)]
struct Entered {
    family: TableFamily,
    kind: ChainKind,
    hook: BaseHook,
    priority: i32,
}

/// A base chain, as the order of stages needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) chain: usize,
    pub(super) kind: ChainKind,
    pub(super) priority: i32,
}

impl Rules {
    /// The chains that packets of a family enter in a hook, first those that are asked
    /// first.
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

/// What a walk keeps of its way through these rules.
#[derive(Clone, Debug, Default)]
pub(super) struct NftPosition {
    /// Where within a rule it goes on; set in copies only.
    at: usize,
    /// What the number was that this way stands for; set in copies only.
    generated: Option<u128>,
    /// The comment of the last element that led on.
    label: Option<Text>,
    /// What rules put into sets on the way.
    added: Vec<(usize, Box<[u128]>)>,
}

impl NftPosition {
    /// Whether rules put anything into sets.
    pub(super) fn has_added(&self) -> bool {
        !self.added.is_empty()
    }
}
