//! Retries of a request by a controller's pod: it asks one endpoint after the other until one
//! answers, the limit of tries is reached, or none is left.

use std::net::SocketAddr;
use std::time::Duration;

use uturn_clouds::ingress_controller::{Failure, given_up};
use uturn_model::controller::ControllerBehaviour;
use uturn_model::route::{Direction, Place, Step, StepKind};
use uturn_model::{Evidence, Hop, Mechanism, Outcome};

use crate::engine::walk::Walk;
use crate::exchange::failover::MAX_HOPS;
use crate::exchange::merge;
use crate::packet::Exchange;

/// A group of endpoints with the same results of a connection.
pub(super) struct Alike {
    /// The endpoint that is shown.
    address: SocketAddr,
    /// The number of endpoints.
    count: f64,
    /// The results of a connection to one of them.
    results: Vec<Exchange>,
}

/// The key of a connection's end: the outcome, its delay, its reasons, and the share of such ends
/// in units of 10^-9.
type End<'r> = (Outcome, Duration, &'r [Mechanism], u64);

impl Alike {
    /// Adds an endpoint that represents `count` endpoints. It joins a group with the same results,
    /// unless every way is wanted by itself.
    pub(super) fn add(
        all: &mut Vec<Self>,
        address: SocketAddr,
        count: f64,
        results: Vec<Exchange>,
        walk: &Walk<'_, '_>,
    ) {
        let is_alone = walk.options.every_way;
        let known =
            all.iter_mut().find(|known| !is_alone && ends(&known.results) == ends(&results));
        match known {
            Some(known) => known.join(address, count, results, walk),
            None => all.push(Self { address, count, results }),
        }
    }

    fn join(
        &mut self,
        address: SocketAddr,
        count: f64,
        mut results: Vec<Exchange>,
        walk: &Walk<'_, '_>,
    ) {
        self.count += count;
        for known in &mut self.results {
            let alike = results.iter_mut().find(|result| end(result) == end(known));
            if let Some(result) = alike {
                known.inherit(result);
                result.inherit(known);
            }
        }
        let is_shown = |results: &[Exchange]| results.iter().any(|one| walk.is_shown(&one.hops));
        if is_shown(&results) && !is_shown(&self.results) {
            (self.address, self.results) = (address, results);
        }
    }
}

fn ends(results: &[Exchange]) -> Vec<End<'_>> {
    let mut all: Vec<End<'_>> = results.iter().map(end).collect();
    all.sort_unstable();
    all
}

fn end(exchange: &Exchange) -> End<'_> {
    let share = (exchange.share.get() * 1e9).round() as u64;
    (exchange.outcome, exchange.late, &exchange.mechanisms, share)
}

/// A request at a controller's pod.
pub(super) struct Tries<'t, 'e, 'a> {
    pub(super) walk: &'t Walk<'e, 'a>,
    pub(super) behaviour: &'t ControllerBehaviour,
    /// The outcome of a connection that no endpoint accepts: it is closed. `None` for requests.
    pub(super) closed: Option<Outcome>,
    pub(super) groups: &'t [Alike],
    pub(super) place: Place,
    pub(super) by: Evidence,
    /// The rule and the Service, as worded in a step.
    pub(super) chosen: String,
    /// The address from which the pod connects, as worded in a step.
    pub(super) source: &'static str,
    /// The time for which the client had waited already.
    pub(super) begun: Duration,
}

/// A request that no endpoint has answered yet.
#[derive(Clone)]
struct Waiting {
    exchange: Exchange,
    /// The number of tried endpoints of each group.
    tried: Vec<u32>,
    timeouts: u32,
    last: Option<Failure>,
    /// The time that the endpoints which refused took.
    late: Duration,
}

impl Tries<'_, '_, '_> {
    /// Returns all ways in which the request can end.
    pub(super) fn follow(&self, start: Exchange) -> Vec<Exchange> {
        let all = start.share;
        let none = vec![0; self.groups.len()];
        let first =
            Waiting { exchange: start, tried: none, timeouts: 0, last: None, late: Duration::ZERO };
        let mut waiting = vec![first];
        let mut ended: Vec<Exchange> = Vec::new();
        let most = self.behaviour.tries.unwrap_or(1);
        for _ in 0..most {
            let mut left: Vec<Waiting> = Vec::new();
            for request in waiting {
                if request.exchange.share.is_negligible_in(all) {
                    continue;
                }
                let rest: Vec<f64> = self
                    .groups
                    .iter()
                    .zip(&request.tried)
                    .map(|(group, tried)| (group.count - f64::from(*tried)).max(0.0))
                    .collect();
                let total: f64 = rest.iter().sum();
                // Less than one endpoint is a rounding error.
                if total < 0.5 {
                    ended.push(self.give_up(request));
                    continue;
                }
                for (place, share) in rest.iter().enumerate().filter(|(_, rest)| **rest > 0.0) {
                    self.attempt(&request, place, share / total, &mut left, &mut ended);
                }
            }
            waiting = left;
            if waiting.is_empty() {
                return ended;
            }
        }
        ended.extend(waiting.into_iter().map(|request| self.give_up(request)));
        ended
    }

    /// Sends the request to an endpoint of a group, and adds its results to `left` or `ended`.
    fn attempt(
        &self,
        request: &Waiting,
        place: usize,
        part: f64,
        left: &mut Vec<Waiting>,
        ended: &mut Vec<Exchange>,
    ) {
        let group = &self.groups[place];
        for result in &group.results {
            let mut exchange = request.exchange.clone();
            exchange.share = (exchange.share * result.share).scaled(part);
            exchange.chance |= result.chance || part < 1.0;
            exchange.inherit(result);
            add_mechanisms(&mut exchange.mechanisms, &result.mechanisms);
            if !self.walk.options.is_brief() && exchange.hops.len() < MAX_HOPS {
                self.note(&mut exchange, self.pick_step(group.address));
                exchange.hops.extend(result.hops.iter().cloned());
            }
            let mut next = Waiting { exchange, tried: request.tried.clone(), ..request.clone() };
            next.tried[place] += 1;
            match result.outcome {
                Outcome::Answered { after } | Outcome::Status { after, .. } => {
                    let waited = self.waited(&next) + after;
                    next.exchange.outcome = match result.outcome {
                        Outcome::Status { code, .. } => Outcome::Status { code, after: waited },
                        _ => Outcome::Answered { after: waited },
                    };
                    next.exchange.redirected.clone_from(&result.redirected);
                    ended.push(next.exchange);
                    continue;
                }
                // An endpoint took the connection: what it sends there is passed back.
                Outcome::EmptyReply | Outcome::TlsError | Outcome::Reset
                    if self.closed.is_some() =>
                {
                    next.exchange.late = self.waited(&next) + result.late;
                    next.exchange.outcome = result.outcome;
                    ended.push(next.exchange);
                    continue;
                }
                Outcome::Hangs => {
                    next.timeouts += 1;
                    next.last = Some(Failure::TimedOut);
                    if let Some(timeout) = self.behaviour.connect_timeout {
                        let seconds = timeout.as_secs_f64();
                        let why = format!("hears nothing from {} for {seconds} s", group.address);
                        self.note(
                            &mut next.exchange,
                            Step::new(StepKind::Timeout, why, self.by.clone()),
                        );
                    }
                }
                _ => {
                    next.late += result.late;
                    next.last = Some(Failure::Refused);
                }
            }
            let is_same = |known: &&mut Waiting| {
                known.tried == next.tried
                    && known.timeouts == next.timeouts
                    && known.last == next.last
                    && known.late == next.late
                    && known.exchange.mechanisms == next.exchange.mechanisms
            };
            let are_merged = !self.walk.options.every_way;
            match left.iter_mut().find(is_same).filter(|_| are_merged) {
                Some(known) => merge::join(self.walk, &mut known.exchange, next.exchange),
                None => left.push(next),
            }
        }
    }

    /// Returns the end of a request for which no endpoint is left.
    fn give_up(&self, request: Waiting) -> Exchange {
        let last = request.last.unwrap_or(Failure::Refused);
        let waited = self.begun + request.late;
        let found = given_up(self.behaviour, last, request.timeouts).filter(|_| self.is_known());
        let mut exchange = request.exchange;
        match found {
            Some((code, timeouts)) => match self.closed {
                Some(closed) => {
                    let why = "no endpoint took the connection: closes the client's";
                    self.note(&mut exchange, Step::new(StepKind::Reject, why, self.by.clone()));
                    (exchange.outcome, exchange.late) = (closed, waited + timeouts);
                }
                None => exchange.outcome = Outcome::Status { code, after: waited + timeouts },
            },
            None => {
                let why = "how long it waits, and whether it tries another, is not known";
                self.note(&mut exchange, Step::new(StepKind::Unknown, why, self.by.clone()));
                exchange.outcome = Outcome::Unknown;
            }
        }
        exchange
    }

    /// Returns whether the end of a request that no endpoint answered is known: either the number
    /// of tries is, or all endpoints refuse.
    fn is_known(&self) -> bool {
        let refuses = |exchange: &Exchange| {
            !exchange.outcome.is_answered()
                && !matches!(exchange.outcome, Outcome::Status { .. } | Outcome::Hangs)
        };
        self.behaviour.tries.is_some()
            || self.groups.iter().flat_map(|group| &group.results).all(refuses)
    }

    fn waited(&self, request: &Waiting) -> Duration {
        let timeout = self.behaviour.connect_timeout.unwrap_or_default();
        self.begun + timeout * request.timeouts + request.late
    }

    fn pick_step(&self, to: SocketAddr) -> Step {
        let why = format!("{}: dials {to} {}", self.chosen, self.source);
        Step::new(StepKind::Balance, why, self.by.clone())
    }

    fn note(&self, exchange: &mut Exchange, step: Step) {
        if self.walk.options.is_brief() {
            return;
        }
        match exchange.hops.last_mut() {
            Some(hop) if hop.place == self.place => hop.steps.push(step),
            _ => exchange.hops.push(Hop {
                place: self.place.clone(),
                direction: Direction::Out,
                steps: vec![step],
            }),
        }
    }
}

fn add_mechanisms(own: &mut Vec<Mechanism>, others: &[Mechanism]) {
    for mechanism in others {
        if !own.contains(mechanism) {
            own.push(*mechanism);
        }
    }
    own.sort_unstable();
}
