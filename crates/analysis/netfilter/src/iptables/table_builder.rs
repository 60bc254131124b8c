//! Builds a table while it is parsed: its chains by name, and rules on their way into the chains.

use uturn_model::{Origin, Text};

use super::chain_names::ChainNames;
use super::rule::Fault;
use super::token::Token;
use super::{Chain, Counters, Policy, Rule, Table, Target};

/// A table that is being parsed.
pub(super) struct TableBuilder<'a> {
    pub(super) table: Table,
    /// The chain names, numbered as the chains.
    pub(super) names: ChainNames,
    /// The chain of the latest rule, and its name in the text.
    latest: Option<(usize, &'a str)>,
    /// Buffered rules: most chains have two or three, and buffering lets each chain allocate
    /// exactly what it needs.
    waiting: Vec<Rule>,
    /// The chains of the buffered rules, and the number of rules for each.
    runs: Vec<(usize, usize)>,
    /// The buffered rules that jump to a chain, by index, with the chain's name. The names are
    /// looked up in batches, so that cache misses overlap.
    jumps: Vec<(usize, &'a str)>,
}

/// The number of rules to buffer, unless one chain has more in a row.
const WAITING: usize = 64;

impl<'a> TableBuilder<'a> {
    pub(super) fn new(table: Table, names: ChainNames) -> Self {
        Self {
            table,
            names,
            latest: None,
            waiting: Vec::new(),
            runs: Vec::new(),
            jumps: Vec::new(),
        }
    }

    /// The chain that the next rule belongs to: usually that of the latest rule, or the one after
    /// it.
    pub(super) fn find(&mut self, name: &Token<'a>) -> Option<usize> {
        let behind = match self.latest {
            Some((at, latest)) if latest == name.text => return Some(at),
            Some((at, _)) => at + 1,
            None => 0,
        };
        let is_next = self.names.name(behind).is_some_and(|known| **known == *name.text);
        let at = if is_next { behind } else { self.names.find(&name.text)? };
        self.latest = name.as_written().map(|written| (at, written));
        Some(at)
    }

    /// Declares a chain, and returns its index.
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

    /// Adds a rule to a chain after `read` has parsed it. `read` returns the name of the chain
    /// that the rule jumps to, if it still has to be looked up.
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

    /// Moves the buffered rules into their chains.
    pub(super) fn flush(&mut self) {
        self.look_up();
        let mut waiting = self.waiting.drain(..);
        for (at, count) in self.runs.drain(..) {
            let rules = &mut self.table.chains[at].rules;
            if rules.is_empty() {
                rules.reserve_exact(count);
            }
            rules.extend(waiting.by_ref().take(count));
        }
    }

    fn look_up(&mut self) {
        let waiting = &mut self.waiting;
        self.names.find_all(&self.jumps, |at, name| {
            waiting[at].target = Some(Target::Jump(name));
        });
        self.jumps.clear();
    }

    /// Removes the rules of all chains.
    pub(super) fn empty_all(&mut self) {
        self.flush();
        for chain in &mut self.table.chains {
            chain.rules.clear();
        }
    }

    /// Deletes a chain.
    pub(super) fn delete(&mut self, at: usize) {
        self.flush();
        self.table.chains[at].rules.clear();
        self.names.forget(at);
        self.latest = None;
    }

    /// Returns the table without its deleted chains.
    pub(super) fn finish(mut self) -> Table {
        self.flush();
        let mut places = 0..;
        self.table.chains.retain(|_| places.next().is_some_and(|at| self.names.is_there(at)));
        self.table
    }
}
