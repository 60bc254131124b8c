//! Retries of requests at one target after the other, where a target represents many.
//!
//! Each target of the reduced cluster is asked once. The results are arranged in order
//! (`retry_ring`) and added up (`failover_probability`). Requests are not followed from one target
//! to the next, except on the likeliest ways, if the steps have to be shown.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use uturn_model::lb::Target;
use uturn_model::route::Leg;
use uturn_model::{FailurePoint, Name, Outcome, Share};
use uturn_netfilter::hash::FastMap;
use uturn_path::{
    Detail, Exchange, Failover, FailoverRequest, ReasonSet, Results, TriesTargets, Waiting,
    WalkError, add_missing,
};

use super::failover_probability::KindIndex;
use super::retry_ring::{AskedTarget, RetryRing};
use super::target_list::{Round, TargetList};
use super::target_outcome::{Failure, TargetOutcome};

/// The largest number of ways whose steps are shown, the likeliest first.
const DESCRIBED_WAYS: usize = 16;
/// The largest number of attempts that are examined to find those ways.
const SOUGHT: usize = 200_000;

/// The targets of load balancers in a reduced cluster: the number that each represents, and their
/// list if the load balancer tries one after the other.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    pub(crate) counts: TargetCounts,
    pub(crate) list: Option<TargetList>,
}

/// The number of targets that each target represents, by node, and by address for endpoints.
#[derive(Debug, Default)]
pub(crate) struct TargetCounts {
    pub(crate) nodes: FastMap<Name, u32>,
    pub(crate) endpoints: FastMap<std::net::IpAddr, u32>,
}

impl TargetCounts {
    /// Returns the number of targets that this target represents: one, if it is not known.
    pub(crate) fn of(&self, target: &Target) -> u32 {
        let known = match &target.kind {
            uturn_model::lb::TargetKind::NodePort(node) => self.nodes.get(node),
            uturn_model::lb::TargetKind::Pod { .. } => self.endpoints.get(&target.address.ip()),
        };
        known.copied().unwrap_or(1)
    }
}

impl Failover for Retries {
    fn results(
        &self,
        seen: Leg,
        ask: &mut dyn FnMut() -> Result<Results, WalkError>,
    ) -> Result<Results, WalkError> {
        let Some(list) = &self.list else { return ask() };
        let is_same = |known: &&(_, _, Results)| (known.0, known.1) == (seen.src, seen.dst);
        if let Some((_, _, known)) = list.asked.borrow().iter().find(is_same) {
            return Ok(Rc::clone(known));
        }
        let results = ask()?;
        list.asked.borrow_mut().push((seen.src, seen.dst, Rc::clone(&results)));
        Ok(results)
    }

    fn exchanges(
        &self,
        request: &FailoverRequest<'_>,
        tries: &dyn TriesTargets,
    ) -> Result<Vec<Exchange>, WalkError> {
        if !request.next_target {
            return Ok(ask_one(request, tries));
        }
        let line = self.list.as_ref();
        let line = line.and_then(|list| Some((list, list.slots(&request.rule.targets)?)));
        let Some((list, slots)) = line else { return Err(WalkError::NeedsWhole) };
        let asked = request.rule.targets.iter().enumerate();
        let asked = asked.filter(|(_, target)| target.weight > 0);
        let asked = asked.filter_map(|(at, target)| -> Option<AskedTarget> {
            let kind = request.candidates.contains(&at).then(|| {
                let many = u64::from(self.counts.of(target).max(1));
                let weight = u64::from(target.weight) / many;
                kind(weight as f64, &request.results[at])
            });
            Some((list.slot(target)?, at, kind))
        });
        let asked: Vec<AskedTarget> = asked.collect();
        let mut ring = RetryRing::new(slots, list.walked.get(), &asked);
        ring.prefer_examples(&asked, |target| fails_as_shown(request, target));
        let mut start = request.start.clone();
        start.chance |= request.results.iter().flatten().any(|result| result.chance);
        let round = Rc::new(Round {
            ring,
            asked,
            timeout: request.timeout,
            chance: start.chance,
            is_all: Cell::new(false),
        });
        // There may be thousands of ways.
        let template = match request.detail {
            Detail::Worst => Exchange { hops: Vec::new(), ..start.clone() },
            Detail::Full | Detail::Brief => start.clone(),
        };
        let caller = list.speaks_for.get();
        let failures = failures(request);
        let exchange = |(outcome, reasons, share): (Outcome, ReasonSet, Share)| {
            let mut exchange = Exchange {
                share: start.share * share,
                outcome: outcome.later(request.begun),
                mechanisms: reasons.mechanisms(),
                ..template.clone()
            };
            let reasons = &exchange.mechanisms;
            let on_it = failures.iter().filter(|point| reasons.contains(&point.mechanism));
            add_missing(&mut exchange.failures, on_it.map(|point| (*point).clone()));
            exchange
        };
        let mut exchanges: Vec<Exchange> = round.ends(caller).into_iter().map(exchange).collect();
        if let Some(first) = exchanges.first_mut() {
            for result in request.results.iter().flatten() {
                add_missing(&mut first.supposed, result.supposed.clone());
            }
        }
        if request.detail != Detail::Brief {
            let kinds = round.ring.line(caller);
            let mut path_writer = PathWriter {
                request,
                tries,
                start: &start,
                ring: &round.ring,
                exchanges: &mut exchanges,
            };
            path_writer.describe(&kinds);
        }
        list.met.borrow_mut().push(round);
        Ok(exchanges)
    }

    /// Notes whether targets were asked for every request of the client, and all answers reached
    /// the client.
    fn note_answers(&self, sent: Share, answers: &[Exchange]) {
        let Some(list) = &self.list else { return };
        let is_home = |exchange: &Exchange| {
            exchange.outcome == Outcome::AT_ONCE && exchange.mechanisms.is_empty()
        };
        if let Some(round) = list.met.borrow().last() {
            round.is_all.set(sent.is_all() && answers.iter().all(is_home));
        }
    }
}

/// Returns the points at which requests fail at the targets.
fn failures<'r>(request: &FailoverRequest<'r>) -> Vec<&'r FailurePoint> {
    let results = request.candidates.iter().flat_map(|target| &request.results[*target]);
    let mut failures = Vec::new();
    add_missing(&mut failures, results.flat_map(|result| &result.failures));
    failures
}

/// Returns whether asking a target fails at the point that is to be shown.
fn fails_as_shown(request: &FailoverRequest<'_>, target: usize) -> bool {
    let results = &request.results[target];
    let is_among = |point| results.iter().any(|result| result.failures.contains(point));
    request.shown.is_some_and(is_among)
}

/// Returns the ends of a request without retries.
fn ask_one(request: &FailoverRequest<'_>, tries: &dyn TriesTargets) -> Vec<Exchange> {
    let weight = |target: &usize| f64::from(request.rule.targets[*target].weight);
    let all: f64 = request.candidates.iter().map(weight).sum();
    let mut exchanges = Vec::new();
    for target in request.candidates {
        let mut exchange = request.start.clone();
        exchange.share *= Share::ratio(weight(target), all);
        let (left, mut ends) = tries.attempt(vec![Waiting::new(exchange)], *target);
        ends.extend(left.into_iter().map(|waiting| tries.give_up(waiting)));
        exchanges.extend(ends);
    }
    exchanges
}

/// Adds steps to the ways of a request whose ends are known.
struct PathWriter<'t> {
    request: &'t FailoverRequest<'t>,
    tries: &'t dyn TriesTargets,
    start: &'t Exchange,
    ring: &'t RetryRing,
    exchanges: &'t mut Vec<Exchange>,
}

impl PathWriter<'_> {
    /// Adds steps to the likeliest ways. `line` has the kinds of targets in the order in which they
    /// are asked.
    fn describe(&mut self, line: &[KindIndex]) {
        let mut remaining = self.likeliest();
        let mut sought = 0;
        let is_shown: Vec<bool> =
            self.ring.examples.iter().map(|at| fails_as_shown(self.request, *at)).collect();
        let (shown, others): (Vec<usize>, Vec<usize>) =
            (0..line.len()).partition(|at| is_shown[line[*at].index()]);
        for first in shown.into_iter().chain(others) {
            if remaining.is_empty() || sought > SOUGHT {
                break;
            }
            let asked = || (0..line.len()).map(|more| line[(first + more) % line.len()]);
            let found = self.ends_met(asked(), &mut sought);
            let is_met = |at: &usize| found.contains(&end_of(&self.exchanges[*at]));
            if !remaining.iter().any(is_met) {
                continue;
            }
            let ends = self.follow(asked());
            remaining.retain(|at| {
                let end = end_of(&self.exchanges[*at]);
                let alike = || ends.iter().filter(|exchange| end_of(exchange) == end);
                let shown = self.request.shown.and_then(|point| {
                    alike().find(|exchange| point.hop_in(&exchange.hops).is_some())
                });
                let Some(found) = shown.or_else(|| alike().next()) else { return true };
                self.exchanges[*at].hops.clone_from(&found.hops);
                false
            });
        }
        remaining.retain(|at| !self.exchanges[*at].outcome.is_fine());
        self.describe_by_first_timeout(line, &remaining);
    }

    /// Returns the places of the likeliest ways, which lack steps.
    fn likeliest(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.exchanges.len()).collect();
        order.sort_by(|a, b| self.exchanges[*b].share.exact_cmp(&self.exchanges[*a].share));
        if self.request.detail == Detail::Worst {
            order.retain(|at| !self.exchanges[*at].outcome.is_fine());
            let most = order.first().map_or(Share::NONE, |at| self.exchanges[*at].share);
            order.retain(|at| self.exchanges[*at].share.get() > most.get() - Share::NEGLIGIBLE);
        }
        order.truncate(DESCRIBED_WAYS);
        order
    }

    /// Returns all ends of a request that asks one target of each of these kinds.
    fn follow(&self, kinds: impl Iterator<Item = KindIndex>) -> Vec<Exchange> {
        let exchange = Exchange { share: Share::ALL, ..self.start.clone() };
        let mut waiting = vec![Waiting::new(exchange)];
        let mut ends = Vec::new();
        for kind in kinds {
            if waiting.is_empty() {
                break;
            }
            let (left, more) = self.tries.attempt(waiting, self.ring.examples[kind.index()]);
            ends.extend(more);
            waiting = left
                .into_iter()
                .filter(|request| !request.exchange.share.is_negligible())
                .collect();
        }
        ends.extend(waiting.into_iter().map(|request| self.tries.give_up(request)));
        ends
    }

    /// Gives ways of thousands of attempts the steps of the first target that times out.
    fn describe_by_first_timeout(&mut self, line: &[KindIndex], remaining: &[usize]) {
        let times_out = |kind: &&KindIndex| {
            self.ring.kinds[kind.index()].failures.iter().any(|failure| failure.is_timeout)
        };
        let example = |kind: &KindIndex| self.ring.examples[kind.index()];
        let is_shown = |kind: &&KindIndex| fails_as_shown(self.request, example(kind));
        let shown = line.iter().filter(times_out).find(is_shown);
        let kind = shown.or_else(|| line.iter().find(times_out));
        let Some(kind) = kind.filter(|_| !remaining.is_empty()) else { return };
        let exchange = Exchange { share: Share::ALL, ..self.start.clone() };
        let (left, _) = self.tries.attempt(vec![Waiting::new(exchange)], example(kind));
        let Some(first) = left.into_iter().find(|request| request.timed_out) else { return };
        for at in remaining {
            self.exchanges[*at].hops.clone_from(&first.exchange.hops);
        }
    }

    /// Returns the ends of requests that ask targets of these kinds.
    fn ends_met(
        &self,
        asked: impl Iterator<Item = KindIndex>,
        sought: &mut usize,
    ) -> HashSet<(Outcome, ReasonSet)> {
        let after =
            |timeouts: u32| -> Duration { self.request.begun + self.request.timeout * timeouts };
        let mut ends = HashSet::new();
        let mut waiting: HashSet<(u32, bool, ReasonSet)> =
            HashSet::from([(0, false, ReasonSet::default())]);
        let mut share = Share::ALL;
        for kind in asked {
            let kind = &self.ring.kinds[kind.index()];
            *sought += waiting.len();
            for (timeouts, _, reasons) in std::mem::take(&mut waiting) {
                for (more, _) in &kind.answers {
                    let reasons = reasons.and(*more);
                    let after = after(timeouts) + reasons.late();
                    ends.insert((Outcome::Answered { after }, reasons.on_time()));
                }
                for failure in &kind.failures {
                    let timeouts = timeouts + u32::from(failure.is_timeout);
                    waiting.insert((timeouts, failure.is_timeout, reasons.and(failure.why)));
                }
            }
            share *= kind.fails();
            if share.is_negligible() || *sought > SOUGHT {
                return ends;
            }
        }
        for (timeouts, timed_out, reasons) in waiting {
            let code = if timed_out { 504 } else { 502 };
            let after = after(timeouts) + reasons.late();
            ends.insert((Outcome::Status { code, after }, reasons.on_time()));
        }
        ends
    }
}

/// Returns the key that distinguishes ways.
fn end_of(exchange: &Exchange) -> (Outcome, ReasonSet) {
    (exchange.outcome, ReasonSet::of(&exchange.mechanisms))
}

/// Returns the kind of a target by the results of asking it.
fn kind(weight: f64, results: &[Exchange]) -> TargetOutcome {
    let mut kind = TargetOutcome { weight, ..TargetOutcome::default() };
    for result in results {
        let (mut reasons, share) = (ReasonSet::of(&result.mechanisms), result.share);
        if let Outcome::Answered { after } = result.outcome {
            reasons = reasons.after(after);
            match kind.answers.iter_mut().find(|known| known.0 == reasons) {
                Some(known) => known.1 += share,
                None => kind.answers.push((reasons, share)),
            }
        } else {
            let is_timeout = matches!(result.outcome, Outcome::Hangs);
            reasons = reasons.after(result.late);
            let is_same =
                |known: &&mut Failure| known.is_timeout == is_timeout && known.why == reasons;
            match kind.failures.iter_mut().find(is_same) {
                Some(known) => known.share += share,
                None => kind.failures.push(Failure { is_timeout, why: reasons, share }),
            }
        }
    }
    let all: f64 = results.iter().map(|result| result.share.get()).sum();
    kind.answers.iter_mut().for_each(|answer| answer.1 = Share::ratio(answer.1.get(), all));
    kind.failures
        .iter_mut()
        .for_each(|failure| failure.share = Share::ratio(failure.share.get(), all));
    kind.answers.sort_by_key(|answer| answer.0);
    kind.failures.sort_by_key(|failure| (failure.is_timeout, failure.why));
    kind
}
