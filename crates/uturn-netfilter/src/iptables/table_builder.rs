//! A table that is being read: its chains by their names, and rules on their way into them.

use uturn_model::{Origin, Text};

use super::chain_names::ChainNames;
use super::rule::Fault;
use super::token::Token;
use super::{Chain, Counters, Policy, Rule, Table, Target};

/// A table that is being read.
pub(super) struct TableBuilder<'a> {
    pub(super) table: Table,
    /// Of its chains, in their order.
    pub(super) names: ChainNames,
    /// The chain that got the latest rule, and its name as it stands there.
    latest: Option<(usize, &'a str)>,
    /// Rules that are kept back, so that a chain takes no more room than it needs: most have
    /// two or three rules.
    waiting: Vec<Rule>,
    /// Where they go: chains, and how many of the rules each gets.
    runs: Vec<(usize, usize)>,
    /// Those that lead to a chain, by their places among the ones that wait. Its name is
    /// looked up with those of others: that touches memory all over the table, and is
    /// waited for once instead of each time.
    jumps: Vec<(usize, &'a str)>,
    /// Chains that have got rules, some more than once.
    filled: Vec<usize>,
}

/// How many rules wait, unless one chain has more that follow each other.
const WAITING: usize = 64;

impl<'a> TableBuilder<'a> {
    pub(super) fn new(table: Table, names: ChainNames) -> Self {
        let filled = table.chains.iter().zip(0..).filter(|(chain, _)| !chain.rules.is_empty());
        let filled = filled.map(|(_, at)| at).collect();
        Self {
            table,
            names,
            latest: None,
            waiting: Vec::new(),
            runs: Vec::new(),
            jumps: Vec::new(),
            filled,
        }
    }

    /// A chain that gets a rule: mostly the one that got the latest, or the one behind it.
    pub(super) fn find(&mut self, name: &Token<'a>) -> Option<usize> {
        let behind = match self.latest {
            Some((at, latest)) if latest == name.text => return Some(at),
            Some((at, _)) => at + 1,
            None => 0,
        };
        let is_next = self.names.name(behind).is_some_and(|one| **one == *name.text);
        let at = if is_next { behind } else { self.names.find(&name.text)? };
        self.latest = name.as_written().map(|written| (at, written));
        Some(at)
    }

    /// Declares a chain, and gives its place.
    pub(super) fn declare(
        &mut self,
        name: &str,
        policy: Option<Policy>,
        counters: Counters,
        origin: Origin,
    ) -> usize {
        let name = Text::from(name);
        let at = self.names.add(name.clone());
        self.table.chains.push(Chain { name, policy, counters, rules: Vec::new(), origin });
        at
    }

    /// Adds a rule to a chain once `read` has read it, who gives the name of the chain it
    /// jumps to, if that is yet to be looked up.
    pub(super) fn add(
        &mut self,
        chain: usize,
        origin: Origin,
        read: impl FnOnce(&mut Rule, &ChainNames) -> Result<Option<&'a str>, Fault>,
    ) -> Result<(), Fault> {
        if self.runs.last().is_none_or(|(latest, _)| *latest != chain) {
            if self.waiting.len() >= WAITING {
                self.flush();
            }
            self.runs.push((chain, 0));
        }
        let at = self.waiting.len();
        self.waiting.push(Rule::new(origin));
        match read(&mut self.waiting[at], &self.names) {
            Ok(jump) => self.jumps.extend(jump.map(|name| (at, name))),
            Err(fault) => {
                self.waiting.pop();
                return Err(fault);
            }
        }
        if let Some((_, count)) = self.runs.last_mut() {
            *count += 1;
        }
        if self.jumps.len() == WAITING {
            self.look_up();
        }
        Ok(())
    }

    /// Puts the rules that wait into their chains.
    pub(super) fn flush(&mut self) {
        self.look_up();
        let mut waiting = self.waiting.drain(..);
        for (at, count) in self.runs.drain(..) {
            let rules = &mut self.table.chains[at].rules;
            if rules.is_empty() {
                rules.reserve_exact(count);
            }
            rules.extend(waiting.by_ref().take(count));
            self.filled.push(at);
        }
    }

    fn look_up(&mut self) {
        let waiting = &mut self.waiting;
        self.names.find_all(&self.jumps, |at, name| {
            waiting[at].target = Some(Target::Jump(name));
        });
        self.jumps.clear();
    }

    /// Takes the rules out of all chains.
    pub(super) fn empty_all(&mut self) {
        self.flush();
        for at in self.filled.drain(..) {
            self.table.chains[at].rules.clear();
        }
    }

    /// Takes a chain away.
    pub(super) fn delete(&mut self, at: usize) {
        self.flush();
        self.table.chains[at].rules.clear();
        self.names.forget(at);
        self.latest = None;
    }

    /// The table without the chains that were deleted.
    pub(super) fn finish(mut self) -> Table {
        self.flush();
        let mut places = 0..;
        self.table.chains.retain(|_| places.next().is_some_and(|at| self.names.is_there(at)));
        self.table
    }
}
