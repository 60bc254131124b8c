//! A request that is tried again and again, where targets stand for many.
//!
//! Only numbers matter here: how many candidates there are, and how asking each ends. That
//! is enough as long as at most one of them is unlike all others: seen from a target that is
//! picked first, the odd one is as often next as it is last.

use std::time::Duration;

use uturn_model::lb::{Rule, Scheduler, Target};
use uturn_model::route::Leg;
use uturn_model::{Mechanism, Outcome};

use crate::balance::Attempts;
use crate::engine::{Engine, Fault};
use crate::exchange::{Exchange, ended};
use crate::travel::{Trip, add_new};

/// Ways less likely than this are left out.
const NEGLIGIBLE: f64 = 1e-14;
/// Attempts after these are counted, not told.
const TOLD: usize = 24;

/// A request that nobody has answered yet.
struct Waiting {
    way: Exchange,
    waited: Duration,
    timed_out: bool,
}

impl Attempts<'_, '_> {
    /// Follows a request through all its attempts, or says that it takes every target to
    /// know how it ends.
    pub(crate) fn count(&mut self, rule: &Rule, seen: Leg, trip: &Trip) -> Result<(), Fault> {
        let profile = &self.listener.profile;
        let candidates = self.choice.candidates();
        if profile.scheduler == Scheduler::SourceHash && candidates.len() > 1 {
            return Err(Fault::NeedsAll);
        }
        let engine = self.engine;
        let count = |target: &usize| stands_for(engine, &rule.targets[*target]);
        let weight = |target: &usize| u64::from(rule.targets[*target].weight) / count(target);
        if candidates.windows(2).any(|pair| weight(&pair[0]) != weight(&pair[1])) {
            return Err(Fault::NeedsAll);
        }
        let Some(bulk) = candidates.iter().copied().max_by_key(count) else { return Ok(()) };
        let usual = kinds(&self.results[bulk]);
        let unlike = |target: &&usize| !alike(&usual, &kinds(&self.results[**target]));
        let odd: Vec<usize> = candidates.iter().filter(unlike).copied().collect();
        let all: u64 = candidates.iter().map(count).sum();
        let first = |share: f64| {
            let mut start = trip.clone();
            start.share *= share;
            vec![Waiting {
                way: ended(start, Outcome::AT_ONCE, None),
                waited: Duration::ZERO,
                timed_out: false,
            }]
        };
        if !profile.next_target {
            for target in candidates {
                let start = first(count(&target) as f64 / all as f64);
                let left = self.attempt(rule, seen, start, target);
                self.give_up(left);
            }
            return Ok(());
        }
        let odd = match odd.as_slice() {
            [] => None,
            [one] if count(one) == 1 => Some(*one),
            _ => return Err(Fault::NeedsAll),
        };
        let Some(odd) = odd else {
            let left = self.repeat(rule, seen, first(1.0), bulk, all);
            self.give_up(left);
            return Ok(());
        };
        let one = 1.0 / all as f64;
        let left = self.attempt(rule, seen, first(one), odd);
        let left = self.repeat(rule, seen, left, bulk, all - 1);
        self.give_up(left);
        let answers =
            |target: usize| self.results[target].iter().any(|one| one.outcome.is_answered());
        if !answers(bulk) && !answers(odd) {
            // All are asked in any case; only who is last makes a difference.
            let left = self.repeat(rule, seen, first(one * (all - 2) as f64), bulk, 1);
            let left = self.attempt(rule, seen, left, odd);
            let left = self.repeat(rule, seen, left, bulk, all - 2);
            self.give_up(left);
            let left = self.repeat(rule, seen, first(one), bulk, all - 1);
            let left = self.attempt(rule, seen, left, odd);
            self.give_up(left);
            return Ok(());
        }
        // The odd one is met after so many others. What these answered is answered however
        // far away it is.
        let mut so_far = first(one * (all - 1) as f64);
        for before in 1..all {
            so_far = self.attempt(rule, seen, so_far, bulk);
            if total(&so_far) < NEGLIGIBLE {
                break;
            }
            // Of all that are still on their way, this part meets it now.
            let part = 1.0 / (all - before) as f64;
            let mut here = Vec::with_capacity(so_far.len());
            for one in &mut so_far {
                let mut way = one.way.clone();
                way.share *= part;
                one.way.share *= 1.0 - part;
                here.push(Waiting { way, waited: one.waited, timed_out: one.timed_out });
            }
            let left = self.attempt(rule, seen, here, odd);
            let left = self.repeat(rule, seen, left, bulk, all - 1 - before);
            self.give_up(left);
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        rule: &Rule,
        seen: Leg,
        mut waiting: Vec<Waiting>,
        target: usize,
        times: u64,
    ) -> Vec<Waiting> {
        for _ in 0..times {
            if total(&waiting) < NEGLIGIBLE {
                return Vec::new();
            }
            waiting = self.attempt(rule, seen, waiting, target);
        }
        waiting
    }

    /// Asks a target once.
    fn attempt(
        &mut self,
        rule: &Rule,
        seen: Leg,
        waiting: Vec<Waiting>,
        target: usize,
    ) -> Vec<Waiting> {
        let results = std::mem::take(&mut self.results[target]);
        let mut left: Vec<Waiting> = Vec::new();
        for one in waiting {
            for result in &results {
                let mut way = one.way.clone();
                way.share *= result.share;
                way.chance |= result.chance;
                for mechanism in &result.mechanisms {
                    if !way.mechanisms.contains(mechanism) {
                        way.mechanisms.push(*mechanism);
                    }
                }
                way.mechanisms.sort_unstable();
                let is_told = way.hops.len() < TOLD;
                if is_told {
                    add_new(&mut way.supposed, result.supposed.clone());
                    self.note_pick(&mut way, rule, target, seen);
                    way.hops.extend(result.hops.iter().cloned());
                }
                if result.outcome.is_answered() {
                    way.outcome = Outcome::Answered { after: one.waited };
                    self.keep(way);
                    continue;
                }
                let timed_out = matches!(result.outcome, Outcome::Hangs);
                let mut waited = one.waited;
                if timed_out {
                    waited += self.listener.profile.connect_timeout;
                    if is_told {
                        self.note_timeout(&mut way, rule, target);
                    }
                }
                let same = |known: &&mut Waiting| {
                    known.waited == waited
                        && known.timed_out == timed_out
                        && known.way.mechanisms == way.mechanisms
                };
                match left.iter_mut().find(same) {
                    Some(known) => {
                        known.way.share += way.share;
                        known.way.chance |= way.chance;
                    }
                    None => left.push(Waiting { way, waited, timed_out }),
                }
            }
        }
        self.results[target] = results;
        left
    }

    /// Nobody is left to be asked.
    fn give_up(&mut self, waiting: Vec<Waiting>) {
        for one in waiting {
            let code = if one.timed_out { 504 } else { 502 };
            let outcome = Outcome::Status { code, after: one.waited };
            self.keep(Exchange { outcome, ..one.way });
        }
    }

    fn keep(&mut self, way: Exchange) {
        if way.share < NEGLIGIBLE {
            return;
        }
        let same = |known: &&mut Exchange| {
            known.outcome == way.outcome && known.mechanisms == way.mechanisms
        };
        match self.ways.iter_mut().find(same) {
            Some(known) => {
                known.share += way.share;
                known.chance |= way.chance;
            }
            None => self.ways.push(way),
        }
    }
}

/// How many targets this one stands for.
fn stands_for(engine: &Engine<'_>, target: &Target) -> u64 {
    let weights = engine.weights.as_ref();
    let many = weights.and_then(|weights| weights.targets.get(target.kind.node()?));
    many.map_or(1, |many| u64::from(*many).max(1))
}

fn total(waiting: &[Waiting]) -> f64 {
    waiting.iter().map(|one| one.way.share).sum()
}

/// How asking a target ends, with the share of each ending.
fn kinds(results: &[Exchange]) -> Vec<(Outcome, Vec<Mechanism>, f64)> {
    let mut kinds: Vec<(Outcome, Vec<Mechanism>, f64)> = Vec::new();
    for one in results {
        match kinds.iter_mut().find(|kind| kind.0 == one.outcome && kind.1 == one.mechanisms) {
            Some(kind) => kind.2 += one.share,
            None => kinds.push((one.outcome, one.mechanisms.clone(), one.share)),
        }
    }
    kinds.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    kinds
}

type Kind = (Outcome, Vec<Mechanism>, f64);

fn alike(one: &[Kind], other: &[Kind]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(a, b)| a.0 == b.0 && a.1 == b.1 && (a.2 - b.2).abs() < 1e-12)
}
