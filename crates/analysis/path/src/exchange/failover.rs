//! Failover of a request from one target to the next, until one answers or none is left.
//!
//! The number of ways is the product of the ends of each attempt. Requests that waited equally
//! long, for the same reasons, continue as one, unless every way is wanted.

use std::time::Duration;

use uturn_lb::decide::Choice;
use uturn_model::lb::{Delivery, Listener, Rule, Source};
use uturn_model::route::{Direction, Leg, Place, Step, StepKind};
use uturn_model::{Evidence, Hop, Outcome};
use uturn_netfilter::hash::FastMap;

use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::merge;
use crate::packet::{Exchange, Waiting};
use crate::population::{Failover, FailoverRequest, Results, TriesTargets};
use crate::reason_set::ReasonSet;

/// The number of hops of a route that are recorded. The end of a longer route is still computed.
/// The first limit is for a whole cluster, the second for a reduced one.
pub(super) const MAX_HOPS: usize = 240;
pub(super) const MAX_HOPS_REDUCED: usize = 24;

/// A layer-7 request that a load balancer passes to its targets.
pub(super) struct Attempts<'e, 'a> {
    pub(crate) walk: &'e Walk<'e, 'a>,
    pub(crate) choice: Choice<'e>,
    pub(crate) listener: &'e Listener,
    pub(crate) rule: &'e Rule,
    /// The addresses of the request as the load balancer sees them.
    pub(crate) seen: Leg,
    pub(crate) place: Place,
    pub(crate) by: Evidence,
    /// The time for which the client had waited already.
    pub(crate) begun: Duration,
    /// The result of asking each target, by its place in the rule; empty for one that is not asked.
    pub(crate) results: Results,
    /// The number of hops of a route that are recorded.
    pub(crate) max_hops: usize,
    pub(crate) exchanges: Vec<Exchange>,
}

impl Attempts<'_, '_> {
    /// Follows a request that begins at the target `first` to all its ends.
    pub(crate) fn follow(&mut self, first: usize, start: Exchange) {
        let mut tried = vec![first];
        if self.walk.options.every_way {
            return self.follow_each(&mut tried, Waiting::new(start));
        }
        let all = start.share;
        let mut waiting = vec![Waiting::new(start)];
        while let Some(target) = tried.last() {
            let (mut left, answered) = self.attempt(waiting, *target);
            self.exchanges.extend(answered);
            left.retain(|request| !request.exchange.share.is_negligible_in(all));
            waiting = left;
            match self.choice.next(&tried) {
                Some(next) if !waiting.is_empty() => tried.push(next),
                _ => break,
            }
        }
        let mut exchanges = std::mem::take(&mut self.exchanges);
        exchanges.extend(waiting.into_iter().map(|request| self.give_up(request)));
        self.exchanges = merge::alike(self.walk, exchanges);
    }

    /// Follows each way by itself. `tried` holds the targets in order; the last one is asked now.
    fn follow_each(&mut self, tried: &mut Vec<usize>, so_far: Waiting) {
        let Some(&target) = tried.last() else { return };
        let next = self.choice.next(tried);
        let (left, answered) = self.attempt(vec![so_far], target);
        self.exchanges.extend(answered);
        for request in left {
            match next {
                Some(next) => {
                    tried.push(next);
                    self.follow_each(tried, request);
                    tried.pop();
                }
                None => {
                    let given_up = self.give_up(request);
                    self.exchanges.push(given_up);
                }
            }
        }
    }

    /// Lets `failover` compute how the request ends after all its attempts.
    ///
    /// # Errors
    /// Returns [`WalkError::NeedsWhole`] if each target has to be asked.
    pub(crate) fn count(
        &mut self,
        failover: &dyn Failover,
        start: Exchange,
    ) -> Result<(), WalkError> {
        let profile = &self.listener.profile;
        let candidates = self.choice.candidates();
        let is_status = |exchange: &Exchange| matches!(exchange.outcome, Outcome::Status { .. });
        if self.results.iter().flatten().any(is_status) {
            return Err(WalkError::NeedsWhole);
        }
        let request = FailoverRequest {
            rule: self.rule,
            candidates: &candidates,
            results: &self.results,
            start,
            begun: self.begun,
            timeout: profile.connect_timeout,
            next_target: profile.next_target,
            detail: self.walk.options.detail,
            shown: self.walk.shown,
        };
        self.exchanges = failover.exchanges(&request, self)?;
        Ok(())
    }
}

impl TriesTargets for Attempts<'_, '_> {
    fn attempt(&self, waiting: Vec<Waiting>, target: usize) -> (Vec<Waiting>, Vec<Exchange>) {
        let mut left: Vec<Waiting> = Vec::new();
        let mut answered: Vec<Exchange> = Vec::new();
        let (mut waits, mut ends) = (FastMap::default(), FastMap::default());
        let are_merged = !self.walk.options.every_way;
        let results = &self.results[target];
        for mut request in waiting {
            for (at, result) in results.iter().enumerate() {
                let share = request.exchange.share * result.share;
                let chance = request.exchange.chance || result.chance;
                let why = ReasonSet::of(&request.exchange.mechanisms)
                    .and(ReasonSet::of(&result.mechanisms));
                let timed_out = matches!(result.outcome, Outcome::Hangs);
                let timeouts = request.timeouts + u32::from(timed_out);
                let late = request.late + result.late;
                let waited = self.waited(&request);
                let known: Option<&mut Exchange> = match result.outcome {
                    Outcome::Answered { .. } | Outcome::Status { .. } => {
                        let alike = (result.outcome.later(waited), result.redirected.clone(), why);
                        let at = *ends.entry(alike).or_insert(answered.len());
                        answered.get_mut(at)
                    }
                    _ => {
                        let alike = (timeouts, timed_out, late, why);
                        let at = *waits.entry(alike).or_insert(left.len());
                        left.get_mut(at).map(|known: &mut Waiting| &mut known.exchange)
                    }
                };
                if let Some(known) = known.filter(|_| are_merged) {
                    known.share += share;
                    known.chance |= chance;
                    known.has_others = true;
                    known.inherit(&request.exchange);
                    known.inherit(result);
                    if self.walk.prefers(&request.exchange.hops, &known.hops)
                        || self.walk.prefers(&result.hops, &known.hops)
                    {
                        let hops = request.exchange.hops.clone();
                        known.hops = self.asked(hops, target, result);
                    }
                    continue;
                }
                // Hops are long lists: all results but the last get a copy.
                let hops = std::mem::take(&mut request.exchange.hops);
                let mechanisms = why.mechanisms();
                let mut exchange =
                    Exchange { share, mechanisms, chance, ..request.exchange.clone() };
                if at + 1 < results.len() {
                    request.exchange.hops.clone_from(&hops);
                }
                exchange.hops = self.asked(hops, target, result);
                exchange.inherit(result);
                if matches!(result.outcome, Outcome::Answered { .. } | Outcome::Status { .. }) {
                    exchange.outcome = result.outcome.later(waited);
                    exchange.redirected.clone_from(&result.redirected);
                    answered.push(exchange);
                    continue;
                }
                left.push(Waiting { exchange, timeouts, timed_out, late });
            }
        }
        (left, answered)
    }

    fn give_up(&self, waiting: Waiting) -> Exchange {
        let code = if waiting.timed_out { 504 } else { 502 };
        let after = self.waited(&waiting);
        Exchange { outcome: Outcome::Status { code, after }, ..waiting.exchange }
    }
}

impl Attempts<'_, '_> {
    /// Returns how long the client has waited so far.
    fn waited(&self, request: &Waiting) -> Duration {
        self.begun + self.listener.profile.connect_timeout * request.timeouts + request.late
    }

    /// Returns the hops of a request after another target was asked.
    fn asked(&self, mut hops: Vec<Hop>, target: usize, result: &Exchange) -> Vec<Hop> {
        if self.walk.options.is_brief() || hops.len() >= self.max_hops {
            return hops;
        }
        let by = || self.by.clone();
        self.note(&mut hops, pick_step(self.listener, self.rule, target, self.seen, by()));
        hops.extend(result.hops.iter().cloned());
        if matches!(result.outcome, Outcome::Hangs) {
            self.note(&mut hops, timeout(self.listener, self.rule, target, by()));
        }
        hops
    }

    fn note(&self, hops: &mut Vec<Hop>, step: Step) {
        match hops.last_mut() {
            Some(hop) if hop.place == self.place => hop.steps.push(step),
            _ => hops.push(Hop {
                place: self.place.clone(),
                direction: Direction::Out,
                steps: vec![step],
            }),
        }
    }
}

/// Returns the step in which a target is picked.
pub(super) fn pick_step(
    listener: &Listener,
    rule: &Rule,
    target: usize,
    seen: Leg,
    by: Evidence,
) -> Step {
    let chosen = &rule.targets[target];
    let dst = listener.profile.delivery.destination(chosen.address, seen.dst);
    let what = match (chosen.kind.node(), listener.profile.delivery) {
        (Some(node), Delivery::ToTarget) => format!("{} on node {node}", chosen.address),
        (Some(node), Delivery::KeepsAddress) => format!("node {node} and keeps the address {dst}"),
        (None, _) => chosen.address.to_string(),
    };
    let same_family = seen.src.is_ipv4() == chosen.address.is_ipv4();
    let src = match &listener.profile.source {
        Source::Kept if same_family => "keeps the client's address",
        Source::Kept | Source::Replaced(_) => "replaces the client's address",
    };
    let why = format!("picks {what}, {src}");
    Step::new(StepKind::Balance, why, by).changing(seen, Leg { src: seen.src, dst })
}

fn timeout(listener: &Listener, rule: &Rule, target: usize, by: Evidence) -> Step {
    let seconds = listener.profile.connect_timeout.as_secs_f64();
    let why = format!("hears nothing from {} for {seconds} s", rule.targets[target].address);
    Step::new(StepKind::Timeout, why, by)
}
