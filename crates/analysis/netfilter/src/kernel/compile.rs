//! Compiles iptables rules: resolves jumps and indexes long chains.

use std::collections::HashMap;
use std::sync::OnceLock;

use uturn_model::{Evidence, Text};

use super::chain_order;
use super::index::{self, Index};
use super::turns;
use super::unknown_condition::{self, ConditionNumbers, RuleId, UnknownCondition};
use crate::LoadError;
use crate::iptables::{Chain, Match, Rule, Ruleset, Table, TableKind, Target};
use crate::packet::Packet;

/// The netfilter hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Hook {
    Prerouting,
    Input,
    Forward,
    Output,
    Postrouting,
}

impl Hook {
    pub(super) const ALL: [Self; 5] =
        [Self::Prerouting, Self::Input, Self::Forward, Self::Output, Self::Postrouting];

    fn chain(self) -> &'static str {
        match self {
            Self::Prerouting => "PREROUTING",
            Self::Input => "INPUT",
            Self::Forward => "FORWARD",
            Self::Output => "OUTPUT",
            Self::Postrouting => "POSTROUTING",
        }
    }
}

/// The compiled tables of one family.
#[derive(Debug, Default)]
pub(super) struct Programs {
    tables: [Option<Program>; 5],
}

impl Programs {
    /// The compiled form of a table.
    pub(super) fn table(&self, kind: TableKind) -> Option<&Program> {
        self.tables[kind as usize].as_ref()
    }
}

/// A compiled table. Chains and rules are numbered as in the ruleset.
#[derive(Debug)]
pub(super) struct Program {
    /// The index of the table in the ruleset.
    pub(super) table: usize,
    pub(super) chains: Vec<CompiledChain>,
    /// The conditions whose answer may be unknown, for the rules that have any.
    asked: Vec<Vec<UnknownCondition>>,
    base: [Option<usize>; 5],
    ranks: OnceLock<Box<[u32]>>,
    met_again: OnceLock<Box<[bool]>>,
}

impl Program {
    /// The conditions of a rule whose answer may be unknown.
    pub(super) fn asked(&self, rule: &CompiledRule) -> &[UnknownCondition] {
        self.asked.get(rule.asks as usize).map_or(&[], Vec::as_slice)
    }

    /// The rank of each chain: jumps lead to higher ones.
    pub(super) fn ranks(&self) -> &[u32] {
        self.ranks.get_or_init(|| chain_order::ranks(&self.links()))
    }

    /// Whether a packet may come by a chain more than once.
    pub(super) fn is_met_again(&self, chain: usize) -> bool {
        self.met_again.get_or_init(|| chain_order::more_than_one_way(&self.links(), self.ranks()))
            [chain]
    }

    /// The chains that each chain leads to.
    fn links(&self) -> Vec<Vec<usize>> {
        let to = |chain: &CompiledChain| chain.rules.iter().filter_map(CompiledRule::to).collect();
        self.chains.iter().map(to).collect()
    }

    pub(super) fn base(&self, hook: Hook) -> Option<usize> {
        self.base[hook as usize]
    }
}

#[derive(Debug)]
pub(super) struct CompiledChain {
    pub(super) rules: Vec<CompiledRule>,
    index: Option<Index>,
}

#[derive(Debug)]
pub(super) struct CompiledRule {
    to: u32,
    asks: u32,
    /// Whether the rule affects no packet.
    pub(super) inert: bool,
    /// Whether the rule counts the packets that come by.
    pub(super) counts: bool,
    texts: OnceLock<Box<RuleTexts>>,
}

/// Texts for the steps of a walk, built on first use.
#[derive(Debug)]
struct RuleTexts {
    by: Evidence,
    /// For the probability with which the rule was first picked; other probabilities are rare.
    picked: OnceLock<(u64, Text)>,
}

impl CompiledRule {
    const NONE: u32 = u32::MAX;

    /// The chain that a jump or goto leads to.
    pub(super) fn to(&self) -> Option<usize> {
        (self.to != Self::NONE).then_some(self.to as usize)
    }

    /// The rule as evidence.
    pub(super) fn by(&self, rule: &Rule, chain: &Chain) -> &Evidence {
        &self.texts(rule, chain).by
    }

    /// The text for a rule that was picked with this probability; `make` builds it.
    pub(super) fn picked(
        &self,
        rule: &Rule,
        chain: &Chain,
        odds: f64,
        make: impl Fn() -> Text,
    ) -> Text {
        let (known, text) = self.texts(rule, chain).picked.get_or_init(|| (odds.to_bits(), make()));
        if *known == odds.to_bits() { text.clone() } else { make() }
    }

    fn texts(&self, rule: &Rule, chain: &Chain) -> &RuleTexts {
        self.texts.get_or_init(|| {
            Box::new(RuleTexts { by: rule.by(&chain.name), picked: OnceLock::new() })
        })
    }
}

/// Whether a rule changes neither a packet nor its path: it only counts or logs.
fn is_inert(rule: &Rule) -> bool {
    let writes = matches!(rule.target, None | Some(Target::Log(_) | Target::Trace));
    writes && !rule.matches.iter().any(|item| matches!(item, Match::Recent(_)))
}

impl CompiledChain {
    /// The index of the first rule at or after `from` that can match.
    pub(super) fn next(&self, from: usize, packet: &Packet) -> Option<usize> {
        match &self.index {
            Some(index) => index.next(from, packet),
            None => (from < self.rules.len()).then_some(from),
        }
    }
}

pub(super) fn programs(ruleset: &Ruleset, errors: &mut Vec<LoadError>) -> Programs {
    let mut programs = Programs::default();
    let mut numbers = ConditionNumbers::default();
    for (at, table) in ruleset.tables.iter().enumerate() {
        programs.tables[table.kind as usize] = Some(program(at, table, &mut numbers, errors));
    }
    programs
}

fn program(
    at: usize,
    table: &Table,
    asked_alike: &mut ConditionNumbers,
    errors: &mut Vec<LoadError>,
) -> Program {
    let numbers: HashMap<&str, usize> =
        table.chains.iter().enumerate().map(|(i, chain)| (&*chain.name, i)).collect();
    let mut asked: Vec<Vec<UnknownCondition>> = Vec::new();
    let mut asks = |rule: &Rule| {
        let own = asked.len() as u32;
        let id = RuleId { table: at, number: own };
        let all = unknown_condition::of_rule(rule, id, asked_alike);
        if all.is_empty() {
            return CompiledRule::NONE;
        }
        asked.push(all);
        own
    };
    let chains: Vec<CompiledChain> = table
        .chains
        .iter()
        .map(|chain| CompiledChain {
            rules: chain
                .rules
                .iter()
                .map(|rule| {
                    check(rule, chain, table.kind, &numbers, errors);
                    let to = match &rule.target {
                        Some(Target::Jump(to) | Target::Goto(to)) => numbers.get(&**to).copied(),
                        _ => None,
                    };
                    CompiledRule {
                        to: to.map_or(CompiledRule::NONE, |to| to as u32),
                        asks: asks(rule),
                        inert: is_inert(rule),
                        counts: turns::counts(rule),
                        texts: OnceLock::new(),
                    }
                })
                .collect(),
            index: Index::new(&chain.rules, |rule| {
                if is_inert(rule) { index::Key::Inert } else { index::key(rule) }
            }),
        })
        .collect();
    find_loops(table, &chains, errors);
    let base = Hook::ALL.map(|hook| {
        let base = numbers.get(hook.chain()).copied();
        base.filter(|chain| table.chains[*chain].policy.is_some())
    });
    Program { table: at, chains, asked, base, ranks: OnceLock::new(), met_again: OnceLock::new() }
}

fn check(
    rule: &Rule,
    chain: &Chain,
    table: TableKind,
    numbers: &HashMap<&str, usize>,
    errors: &mut Vec<LoadError>,
) {
    let mut error = |message: String| errors.push(LoadError::at(rule.origin.clone(), message));
    match &rule.target {
        Some(Target::Jump(to) | Target::Goto(to)) => match numbers.get(&**to) {
            None => error(format!(
                "chain {} of table {table} leads to {to}, and there is no such chain",
                chain.name
            )),
            // Base chains are no valid jump target: a packet would not return from them.
            Some(_) if Hook::ALL.iter().any(|hook| hook.chain() == &**to) => {
                error(format!(
                    "chain {} of table {table} leads to the built-in chain {to}",
                    chain.name
                ));
            }
            Some(_) => {}
        },
        Some(
            Target::Dnat(_)
            | Target::Snat(_)
            | Target::Masquerade(_)
            | Target::Redirect(_)
            | Target::Netmap(_),
        ) if table != TableKind::Nat => {
            error(format!("table {table} cannot translate addresses, only table nat can"));
        }
        Some(Target::Tproxy(_)) if table != TableKind::Mangle => {
            error(format!("table {table} cannot give packets to a proxy, only table mangle can"));
        }
        Some(Target::Notrack { .. }) if table != TableKind::Raw => {
            error(format!(
                "table {table} cannot keep connection tracking away, only table raw can"
            ));
        }
        _ => {}
    }
}

fn find_loops(table: &Table, chains: &[CompiledChain], errors: &mut Vec<LoadError>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        OnTheWay,
        Done,
    }
    let mut seen = vec![Seen::Not; chains.len()];
    for start in 0..chains.len() {
        // The path from `start`: each chain with the index of its next rule.
        let mut way = vec![(start, 0)];
        while let Some((chain, rule)) = way.last_mut() {
            let at = *chain;
            if *rule == 0 && seen[at] == Seen::Done {
                way.pop();
                continue;
            }
            seen[at] = Seen::OnTheWay;
            let Some(next) = chains[at].rules.get(*rule) else {
                seen[at] = Seen::Done;
                way.pop();
                continue;
            };
            *rule += 1;
            let Some(to) = next.to() else { continue };
            if seen[to] == Seen::OnTheWay {
                let origin = table.chains[at].rules[way[way.len() - 1].1 - 1].origin.clone();
                let from = way.iter().position(|(chain, _)| *chain == to).unwrap_or(0);
                let names: Vec<&str> = way[from..]
                    .iter()
                    .map(|(chain, _)| *chain)
                    .chain([to])
                    .map(|chain| &*table.chains[chain].name)
                    .collect();
                let message =
                    format!("a loop of chains in table {}: {}", table.kind, names.join(" → "));
                errors.push(LoadError::at(origin, message));
            } else if seen[to] == Seen::Not {
                way.push((to, 0));
            }
        }
    }
}
