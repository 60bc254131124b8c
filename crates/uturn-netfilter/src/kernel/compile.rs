//! Rules made ready: jumps are resolved, long chains have an index.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::OnceLock;

use uturn_model::By;

use crate::LoadError;
use crate::iptables::{Addresses, Chain, Match, Not, Rule, Ruleset, Table, TableKind, Target};
use crate::packet::{IpProtocol, Packet};

/// Shorter chains are read from top to bottom.
const INDEX_FROM: usize = 16;

/// Where in its way a packet meets tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Prerouting,
    Input,
    Forward,
    Output,
    Postrouting,
}

impl Hook {
    const ALL: [Self; 5] =
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

/// One family's tables.
#[derive(Debug, Default)]
pub(super) struct Programs {
    tables: [Option<Program>; 5],
}

impl Programs {
    /// A table's program, with the table's place in the ruleset.
    pub(super) fn table(&self, kind: TableKind) -> Option<&Program> {
        self.tables[kind as usize].as_ref()
    }
}

/// A table, made ready. Chains and rules are numbered as in the ruleset.
#[derive(Debug)]
pub(super) struct Program {
    /// The table's place in the ruleset.
    pub(super) table: usize,
    pub(super) chains: Vec<CompiledChain>,
    base: [Option<usize>; 5],
}

impl Program {
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
    /// The chain that a jump or goto leads to.
    pub(super) to: Option<usize>,
    /// The matches that nobody models, by number: equal ones have one number.
    pub(super) unmodelled: Option<u32>,
    by: OnceLock<By>,
}

impl CompiledRule {
    pub(super) fn by(&self, rule: &Rule, chain: &Chain) -> &By {
        self.by.get_or_init(|| rule.by(&chain.name))
    }
}

/// Finds the rules of a chain that can match at all. Every list is in order.
#[derive(Debug, Default)]
struct Index {
    /// Rules for one destination address.
    by_address: HashMap<IpAddr, Vec<u32>>,
    /// Rules for one destination port, whatever the address.
    by_port: HashMap<(IpProtocol, u16), Vec<u32>>,
    /// All others.
    rest: Vec<u32>,
}

impl CompiledChain {
    /// The first rule from `from` on that can match.
    pub(super) fn next(&self, from: usize, packet: &Packet) -> Option<usize> {
        let Some(index) = &self.index else {
            return (from < self.rules.len()).then_some(from);
        };
        let first =
            |list: &[u32]| list.get(list.partition_point(|at| (*at as usize) < from)).copied();
        let port = (packet.protocol(), packet.transport.ports().1);
        let lists =
            [index.by_address.get(&packet.dst), index.by_port.get(&port), Some(&index.rest)];
        lists.into_iter().flatten().filter_map(|list| first(list)).min().map(|at| at as usize)
    }
}

pub(super) fn programs(ruleset: &Ruleset, errors: &mut Vec<LoadError>) -> Programs {
    let mut programs = Programs::default();
    let mut unmodelled = HashMap::new();
    for (at, table) in ruleset.tables.iter().enumerate() {
        programs.tables[table.kind as usize] = Some(program(at, table, &mut unmodelled, errors));
    }
    programs
}

fn program(
    at: usize,
    table: &Table,
    unmodelled: &mut HashMap<String, u32>,
    errors: &mut Vec<LoadError>,
) -> Program {
    let numbers: HashMap<&str, usize> =
        table.chains.iter().enumerate().map(|(i, chain)| (&*chain.name, i)).collect();
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
                    CompiledRule { to, unmodelled: number(rule, unmodelled), by: OnceLock::new() }
                })
                .collect(),
            index: (chain.rules.len() >= INDEX_FROM).then(|| index(&chain.rules)),
        })
        .collect();
    find_loops(table, &chains, errors);
    let base = Hook::ALL.map(|hook| {
        let base = numbers.get(hook.chain()).copied();
        base.filter(|chain| table.chains[*chain].policy.is_some())
    });
    Program { table: at, chains, base }
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
            // Those have no policy of their own: a packet would not come back.
            Some(_) if Hook::ALL.iter().any(|hook| hook.chain() == &**to) => {
                error(format!(
                    "chain {} of table {table} leads to the built-in chain {to}",
                    chain.name
                ));
            }
            Some(_) => {}
        },
        Some(Target::Dnat(_) | Target::Snat(_) | Target::Masquerade(_) | Target::Redirect(_))
            if table != TableKind::Nat =>
        {
            error(format!("table {table} cannot translate addresses, only table nat can"));
        }
        Some(Target::Notrack { .. }) if table != TableKind::Raw => {
            error(format!(
                "table {table} cannot keep connection tracking away, only table raw can"
            ));
        }
        _ => {}
    }
}

/// The number of the matches of a rule that nobody models.
fn number(rule: &Rule, numbers: &mut HashMap<String, u32>) -> Option<u32> {
    let mut text = String::new();
    for one in &rule.matches {
        if let Match::Other(extension) = one {
            text.push_str(&extension.name);
            for word in &extension.words {
                text.push(' ');
                text.push_str(word);
            }
            text.push('\n');
        }
    }
    let next = numbers.len() as u32;
    (!text.is_empty()).then(|| *numbers.entry(text).or_insert(next))
}

fn index(rules: &[Rule]) -> Index {
    let mut index = Index::default();
    for (rule, at) in rules.iter().zip(0u32..) {
        if let Some(address) = one_address(rule) {
            index.by_address.entry(address).or_default().push(at);
        } else if let Some(port) = one_port(rule) {
            index.by_port.entry(port).or_default().push(at);
        } else {
            index.rest.push(at);
        }
    }
    index
}

fn one_address(rule: &Rule) -> Option<IpAddr> {
    match rule.dst {
        Some(Not { not: false, value: Addresses::Net(net) })
            if net.prefix_len() == net.max_prefix_len() =>
        {
            Some(net.addr())
        }
        _ => None,
    }
}

fn one_port(rule: &Rule) -> Option<(IpProtocol, u16)> {
    rule.matches.iter().find_map(|one| {
        let (protocol, ports) = match one {
            Match::Tcp(tcp) => (IpProtocol::TCP, tcp.dport?),
            Match::Udp(udp) => (IpProtocol::UDP, udp.dport?),
            Match::Sctp(sctp) => (IpProtocol::SCTP, sctp.dport?),
            _ => return None,
        };
        let single = !ports.not && ports.value.first == ports.value.last;
        single.then_some((protocol, ports.value.first))
    })
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
        // The way from `start` on: each chain with the next of its rules.
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
            let Some(to) = next.to else { continue };
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
