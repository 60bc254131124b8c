//! A request that is tried again and again, where targets stand for many.
//!
//! Each target of the small cluster is asked once; what that says is put in line (`retry_ring`)
//! and added up (`failover_probability`). No request is followed from one target to the next, but for the
//! likeliest ways where somebody wants to know them step by step.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use uturn_model::Outcome;
use uturn_model::lb::{Rule, Scheduler, Target};
use uturn_model::route::Leg;

use crate::engine::{Engine, WalkError};
use crate::exchange::{Exchange, ended};
use crate::failover::{Attempts, Waiting};
use crate::failover_probability::{Failure, Kind};
use crate::journey::{PacketState, add_new};
use crate::retry_ring::{Asked, RetryRing};
use crate::spread::{NEGLIGIBLE, ReasonSet};
use crate::target_list::{Results, Round};

/// So many ways are told step by step, the likeliest first.
const TOLD_WAYS: usize = 16;
/// So many attempts are looked at to find those ways.
const SOUGHT: usize = 200_000;

impl Engine<'_> {
    /// What asking each target gives. Where one client speaks for many, it is asked once.
    pub(crate) fn asked_once(
        &self,
        seen: Leg,
        ask: impl FnOnce() -> Result<Results, WalkError>,
    ) -> Result<Results, WalkError> {
        let Some(line) = self.weights.as_ref().and_then(|weights| weights.line.as_ref()) else {
            return ask();
        };
        let same = |one: &&(_, _, Results)| (one.0, one.1) == (seen.src, seen.dst);
        if let Some((_, _, known)) = line.asked.borrow().iter().find(same) {
            return Ok(Rc::clone(known));
        }
        let results = ask()?;
        line.asked.borrow_mut().push((seen.src, seen.dst, Rc::clone(&results)));
        Ok(results)
    }

    /// Notes that all that a client sent was asked of targets, and all answers came home.
    pub(crate) fn note_all(&self, sent: f64, arrivals: &[Exchange]) {
        let line = self.weights.as_ref().and_then(|weights| weights.line.as_ref());
        let Some(line) = line else { return };
        let is_home = |one: &Exchange| one.outcome == Outcome::AT_ONCE && one.mechanisms.is_empty();
        if let Some(round) = line.met.borrow().last() {
            round.is_all.set(sent == 1.0 && arrivals.iter().all(is_home));
        }
    }
}

impl Attempts<'_, '_> {
    /// Counts how a request ends after all its attempts, or says that it takes every target
    /// to know.
    pub(crate) fn count(
        &mut self,
        rule: &Rule,
        seen: Leg,
        trip: &PacketState,
    ) -> Result<(), WalkError> {
        let profile = &self.listener.profile;
        let candidates = self.choice.candidates();
        if profile.scheduler == Scheduler::SourceHash && candidates.len() > 1 {
            return Err(WalkError::NeedsWhole);
        }
        if !profile.next_target {
            self.ask_one(rule, seen, trip, &candidates);
            return Ok(());
        }
        let line = self.engine.weights.as_ref().and_then(|weights| weights.line.as_ref());
        let Some((line, spots)) = line.and_then(|line| Some((line, line.spots(&rule.targets)?)))
        else {
            return Err(WalkError::NeedsWhole);
        };
        let asked = rule.targets.iter().enumerate().filter(|(_, target)| target.weight > 0);
        let asked = asked.filter_map(|(at, target)| -> Option<Asked> {
            let kind = candidates.contains(&at).then(|| {
                let weight = u64::from(target.weight) / stands_for(self.engine, target);
                kind(weight as f64, &self.results[at])
            });
            Some((line.spot(target)?, at, kind))
        });
        let asked: Vec<Asked> = asked.collect();
        let ring = RetryRing::new(spots, line.walked.get(), &asked);
        let mut start = trip.clone();
        start.chance |= self.results.iter().flatten().any(|one| one.chance);
        if self.engine.is_brief {
            start.hops = Vec::new();
        }
        let round = Rc::new(Round {
            ring,
            asked,
            timeout: profile.connect_timeout,
            chance: start.chance,
            is_all: Cell::new(false),
        });
        let start = ended(start, Outcome::AT_ONCE, None);
        // There may be thousands of ways.
        let untold = match self.engine.tells_worst {
            true => Exchange { hops: Vec::new(), ..start.clone() },
            false => start.clone(),
        };
        let caller = line.speaks_for.get();
        for (outcome, why, share) in round.ends(caller) {
            let mechanisms = why.mechanisms();
            let (share, outcome) = (start.share * share, outcome.later(self.begun));
            self.ways.push(Exchange { share, outcome, mechanisms, ..untold.clone() });
        }
        if let Some(first) = self.ways.first_mut() {
            for result in self.results.iter().flatten() {
                add_new(&mut first.supposed, result.supposed.clone());
            }
        }
        if !self.engine.is_brief {
            self.tell(rule, seen, &start, &round.ring, &round.ring.line(caller));
        }
        line.met.borrow_mut().push(round);
        Ok(())
    }

    /// Nothing is tried again.
    fn ask_one(&mut self, rule: &Rule, seen: Leg, trip: &PacketState, candidates: &[usize]) {
        let weight = |target: &usize| f64::from(rule.targets[*target].weight);
        let all: f64 = candidates.iter().map(weight).sum();
        for target in candidates {
            let mut start = trip.clone();
            start.share *= weight(target) / all;
            let way = ended(start, Outcome::AT_ONCE, None);
            let first = vec![Waiting::new(way)];
            let (left, mut ends) = self.attempt(rule, seen, first, *target);
            ends.extend(left.into_iter().map(|one| self.gives_up(one)));
            self.ways.extend(ends);
        }
    }

    /// Tells the likeliest ways step by step.
    fn tell(&mut self, rule: &Rule, seen: Leg, start: &Exchange, ring: &RetryRing, line: &[usize]) {
        let mut order: Vec<usize> = (0..self.ways.len()).collect();
        order.sort_by(|a, b| self.ways[*b].share.total_cmp(&self.ways[*a].share));
        if self.engine.tells_worst {
            order.retain(|at| !self.ways[*at].outcome.is_fine());
            let most = order.first().map_or(0.0, |at| self.ways[*at].share);
            order.retain(|at| self.ways[*at].share > most - NEGLIGIBLE);
        }
        order.truncate(TOLD_WAYS);
        let mut untold = order;
        let mut sought = 0;
        for first in 0..line.len() {
            if untold.is_empty() || sought > SOUGHT {
                break;
            }
            let asked = || (0..line.len()).map(|more| line[(first + more) % line.len()]);
            let found = self.ends_met(ring, asked(), &mut sought);
            let is_met = |at: &usize| found.contains(&end_of(&self.ways[*at]));
            if !untold.iter().any(is_met) {
                continue;
            }
            let way = Exchange { share: 1.0, ..start.clone() };
            let mut waiting = vec![Waiting::new(way)];
            let mut ends = Vec::new();
            for kind in asked() {
                if waiting.is_empty() {
                    break;
                }
                let (left, more) = self.attempt(rule, seen, waiting, ring.examples[kind]);
                ends.extend(more);
                waiting = left.into_iter().filter(|one| one.way.share >= NEGLIGIBLE).collect();
            }
            ends.extend(waiting.into_iter().map(|one| self.gives_up(one)));
            untold.retain(|at| {
                let end = end_of(&self.ways[*at]);
                let Some(told) = ends.iter().find(|one| end_of(one) == end) else { return true };
                self.ways[*at].hops.clone_from(&told.hops);
                false
            });
        }
        untold.retain(|at| !self.ways[*at].outcome.is_fine());
        self.tell_first(rule, seen, start, (ring, line), &untold);
    }

    /// Tells ways of thousands of attempts by the first that hears nothing.
    fn tell_first(
        &mut self,
        rule: &Rule,
        seen: Leg,
        start: &Exchange,
        (ring, line): (&RetryRing, &[usize]),
        untold: &[usize],
    ) {
        let hears_nothing =
            |kind: &&usize| ring.kinds[**kind].failures.iter().any(|one| one.is_timeout);
        let Some(kind) = line.iter().find(hears_nothing).filter(|_| !untold.is_empty()) else {
            return;
        };
        let way = Exchange { share: 1.0, ..start.clone() };
        let waiting = vec![Waiting::new(way)];
        let (left, _) = self.attempt(rule, seen, waiting, ring.examples[*kind]);
        let Some(first) = left.into_iter().find(|one| one.timed_out) else { return };
        for at in untold {
            self.ways[*at].hops.clone_from(&first.way.hops);
        }
    }

    /// The ends that requests meet which ask targets of such kinds.
    fn ends_met(
        &self,
        ring: &RetryRing,
        asked: impl Iterator<Item = usize>,
        sought: &mut usize,
    ) -> HashSet<(Outcome, ReasonSet)> {
        let begun = self.begun;
        let after = |timeouts: u32| begun + self.listener.profile.connect_timeout * timeouts;
        let mut ends = HashSet::new();
        let mut waiting: HashSet<(u32, bool, ReasonSet)> =
            HashSet::from([(0, false, ReasonSet::default())]);
        let mut share = 1.0;
        for kind in asked {
            let kind = &ring.kinds[kind];
            *sought += waiting.len();
            for (timeouts, _, why) in std::mem::take(&mut waiting) {
                for (more, _) in &kind.answers {
                    let why = why.and(*more);
                    let after = after(timeouts) + why.late();
                    ends.insert((Outcome::Answered { after }, why.on_time()));
                }
                for one in &kind.failures {
                    let timeouts = timeouts + u32::from(one.is_timeout);
                    waiting.insert((timeouts, one.is_timeout, why.and(one.why)));
                }
            }
            share *= kind.fails();
            if share < NEGLIGIBLE || *sought > SOUGHT {
                return ends;
            }
        }
        for (timeouts, timed_out, why) in waiting {
            let code = if timed_out { 504 } else { 502 };
            let after = after(timeouts) + why.late();
            ends.insert((Outcome::Status { code, after }, why.on_time()));
        }
        ends
    }
}

/// How many targets this one stands for.
fn stands_for(engine: &Engine<'_>, target: &Target) -> u64 {
    let many = engine.weights.as_ref().and_then(|weights| weights.of_target(target));
    many.map_or(1, |many| u64::from(many).max(1))
}

/// By what ways are told apart.
fn end_of(way: &Exchange) -> (Outcome, ReasonSet) {
    (way.outcome, ReasonSet::of(&way.mechanisms))
}

/// How asking a target ends.
fn kind(weight: f64, results: &[Exchange]) -> Kind {
    let mut kind = Kind { weight, ..Kind::default() };
    for one in results {
        let (mut why, share) = (ReasonSet::of(&one.mechanisms), one.share);
        if let Outcome::Answered { after } = one.outcome {
            why = why.after(after);
            match kind.answers.iter_mut().find(|known| known.0 == why) {
                Some(known) => known.1 += share,
                None => kind.answers.push((why, share)),
            }
        } else {
            let is_timeout = matches!(one.outcome, Outcome::Hangs);
            why = why.after(one.late);
            let same = |known: &&mut Failure| known.is_timeout == is_timeout && known.why == why;
            match kind.failures.iter_mut().find(same) {
                Some(known) => known.share += share,
                None => kind.failures.push(Failure { is_timeout, why, share }),
            }
        }
    }
    let all: f64 = results.iter().map(|one| one.share).sum();
    kind.answers.iter_mut().for_each(|one| one.1 /= all);
    kind.failures.iter_mut().for_each(|one| one.share /= all);
    kind.answers.sort_by_key(|one| one.0);
    kind.failures.sort_by_key(|one| (one.is_timeout, one.why));
    kind
}
