//! Layer 7: the load balancer asks one target after another, and answers the client itself.

use std::time::Duration;

use uturn_lb::decide::Choice;
use uturn_lb::rules;
use uturn_model::lb::Listener;
use uturn_model::route::{Leg, Step, StepKind};
use uturn_model::{Mechanism, Outcome};

use super::super::place;
use super::no_target::NotPicked;
use super::{by_listener, host_and_path};
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::balance::no_target;
use crate::exchange::failover::{Attempts, MAX_HOPS, MAX_HOPS_REDUCED};
use crate::journey;
use crate::packet::{Exchange, PacketState, Peer, Redirected, Request, ended};
use crate::population::Results;

/// The status of a request whose path is refused.
const REFUSED: u16 = 400;

impl<'e> Walk<'e, '_> {
    pub(super) fn serve_request(
        &self,
        balancer: usize,
        listener: &Listener,
        client: Peer<'e>,
        asked: Leg,
        request: &Request,
        mut state: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let seen = state.packet.leg();
        let place = place(self.engine, Peer::Balancer(balancer));
        let (host, path) = host_and_path(request, seen);
        let (path, rule) = match rules::routed(listener, &host, &path) {
            Ok(routed) => (routed.path.into_owned(), routed.rule.map(|at| &listener.rules[at])),
            Err(refused) => {
                let party = Peer::Balancer(balancer);
                state.note(
                    place,
                    Step::new(
                        StepKind::Reject,
                        refused.to_string(),
                        journey::by(self.engine, party),
                    ),
                );
                let outcome = Outcome::Status { code: REFUSED, after: Duration::ZERO };
                let mechanism = Some(Mechanism::NoRuleForPath);
                let answer = state.answer();
                return self.return_reply(party, client, asked, answer, outcome, mechanism);
            }
        };
        let Some(rule) = rule else {
            let why = format!("no rule of the listener is for {host}{path}");
            state.note(
                place,
                Step::new(
                    StepKind::Reject,
                    why,
                    journey::by(self.engine, Peer::Balancer(balancer)),
                ),
            );
            let outcome =
                Outcome::Status { code: listener.profile.statuses.no_rule, after: Duration::ZERO };
            let answer = state.answer();
            let mechanism = Some(Mechanism::NoRuleForPath);
            let party = Peer::Balancer(balancer);
            return self.return_reply(party, client, asked, answer, outcome, mechanism);
        };
        if let Some(redirect) = &rule.redirect {
            let by = by_listener(self.engine, listener, rule);
            let redirected = Redirected { redirect: redirect.clone(), host, path };
            let leg = (Peer::Balancer(balancer), client, asked);
            return self.answer_with_redirect(leg, request, redirected, by, state);
        }
        let health = self.health_of(balancer, listener, rule)?;
        let alive: Vec<bool> = health.iter().map(|target| target.alive).collect();
        let choice = Choice::new(&listener.profile, &rule.targets, &alive, seen.src.ip());
        let shares = self.first_picks(&choice);
        if shares.is_empty() {
            let outcome = Outcome::Status {
                code: listener.profile.statuses.no_target,
                after: Duration::ZERO,
            };
            let reason = if rule.targets.is_empty() {
                NotPicked::NoTarget
            } else {
                NotPicked::of(&listener.profile, &health)
            };
            let turned_away = no_target::end(self.engine, state.clone(), balancer, outcome, reason);
            return self.return_own_answer(balancer, client, asked, &state, turned_away, outcome);
        }
        let by = by_listener(self.engine, listener, rule);
        let failover = self.population.failover();
        let mut ask = || -> Result<Results, WalkError> {
            let mut results = vec![Vec::new(); rule.targets.len()];
            for target in choice.candidates() {
                let has_proxy_header = listener.profile.proxy_header.is_some();
                let plain = Request { tls: None, has_proxy_header, ..request.clone() };
                let target_there = &rule.targets[target];
                results[target] = self.exchange_with_target(
                    balancer,
                    listener,
                    target_there,
                    seen.src,
                    &plain,
                    &state,
                )?;
            }
            Ok(results.into())
        };
        let results = match failover {
            Some(failover) => failover.results(seen, &mut ask)?,
            None => ask()?,
        };
        let is_open = |exchange: &&Exchange| exchange.outcome.is_unknown();
        if let Some(open) = results.iter().flatten().find(is_open) {
            state
                .note(place, Step::new(StepKind::Unknown, "cannot tell what a target answers", by));
            return Ok(vec![ended(state, Outcome::Unknown, open.mechanisms.first().copied())]);
        }
        let begun = state.tries.delay();
        let mut attempts = Attempts {
            walk: self,
            choice,
            listener,
            rule,
            seen,
            place,
            by,
            begun,
            results,
            max_hops: if failover.is_some() { MAX_HOPS_REDUCED } else { MAX_HOPS },
            exchanges: Vec::new(),
        };
        match failover {
            Some(failover) => {
                let mut start = ended(state.clone(), Outcome::AT_ONCE, None);
                if self.options.is_brief() {
                    start.hops = Vec::new();
                }
                attempts.count(failover, start)?;
            }
            None => {
                for (target, share) in shares {
                    let mut start = state.clone();
                    start.share *= share;
                    attempts.follow(target, ended(start, Outcome::AT_ONCE, None));
                }
            }
        }
        let (place, by) = (attempts.place.clone(), attempts.by.clone());
        let exchanges = self.merged(attempts.exchanges);
        let party = Peer::Balancer(balancer);
        let answers = self.own_answer((party, client, asked), &state)?;
        if let Some(failover) = failover {
            failover.note_answers(state.share, &answers);
        }
        Ok(self.with_own_answer(exchanges, &answers, asked, (&place, &by)))
    }
}
