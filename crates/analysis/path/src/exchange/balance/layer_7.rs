//! Layer 7: the load balancer asks one target after another, and answers the client itself.

use std::time::Duration;

use uturn_lb::decide::Choice;
use uturn_lb::rules;
use uturn_model::lb::Listener;
use uturn_model::route::{Step, StepKind};
use uturn_model::{LoadBalancer, Mechanism, Outcome};

use super::super::return_reply;
use super::no_target::NotPicked;
use super::{by_listener, exchange_with_target, first_picks, host_and_path, return_own_answer};
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::balance::no_target;
use crate::exchange::failover::{Attempts, MAX_HOPS, MAX_HOPS_REDUCED};
use crate::exchange::{health, merge, own_answer, redirect};
use crate::packet::{Call, Exchange, PacketState, Peer, Redirected, Request, ended};
use crate::population::Results;

/// The status of a request whose path is refused.
const REFUSED: u16 = 400;

/// Serves a request: finds its rule, asks the targets and answers the client.
pub(super) fn serve(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    listener: &Listener,
    call: &Call<'_>,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let (party, request) = (Peer::Balancer(balancer), call.request);
    let seen = state.packet.leg();
    let place = party.place();
    let (host, path) = host_and_path(request, seen);
    let (path, rule) = match rules::routed(listener, &host, &path) {
        Ok(routed) => (routed.path.into_owned(), routed.rule.map(|at| &listener.rules[at])),
        Err(refused) => {
            state.note(
                place,
                Step::new(StepKind::Reject, refused.to_string(), party.evidence(walk.cluster)),
            );
            let outcome = Outcome::Status { code: REFUSED, after: Duration::ZERO };
            let mechanism = Some(Mechanism::NoRuleForPath);
            let answer = state.answer();
            return return_reply(walk, party, call, answer, outcome, mechanism);
        }
    };
    let Some(rule) = rule else {
        let why = format!("no rule of the listener is for {host}{path}");
        state.note(place, Step::new(StepKind::Reject, why, party.evidence(walk.cluster)));
        let outcome =
            Outcome::Status { code: listener.profile.statuses.no_rule, after: Duration::ZERO };
        let answer = state.answer();
        let mechanism = Some(Mechanism::NoRuleForPath);
        return return_reply(walk, party, call, answer, outcome, mechanism);
    };
    if let Some(redirect) = &rule.redirect {
        let by = by_listener(walk.cluster, listener, rule);
        let redirected = Redirected { redirect: redirect.clone(), host, path };
        return redirect::answer(walk, party, call, redirected, by, state);
    }
    let health = health::of_targets(walk, balancer, listener, rule)?;
    let alive: Vec<bool> = health.iter().map(|target| target.alive).collect();
    let choice = Choice::new(&listener.profile, &rule.targets, &alive, seen.src.ip());
    let shares = first_picks(walk, &choice);
    if shares.is_empty() {
        let outcome =
            Outcome::Status { code: listener.profile.statuses.no_target, after: Duration::ZERO };
        let reason = if rule.targets.is_empty() {
            NotPicked::unregistered(walk.cluster, Some(&rule.service))
        } else {
            NotPicked::of(&listener.profile, &health)
        };
        let turned_away =
            no_target::end(walk.cluster, state.clone(), balancer, outcome, (reason, &health));
        return return_own_answer(walk, balancer, call, &state, turned_away, outcome);
    }
    let by = by_listener(walk.cluster, listener, rule);
    let failover = walk.population.failover();
    let mut ask = || -> Result<Results, WalkError> {
        let mut results = vec![Vec::new(); rule.targets.len()];
        for target in choice.candidates() {
            let has_proxy_header = listener.profile.proxy_header.is_some();
            let tls = listener.profile.target_tls;
            let plain = Request { tls, has_proxy_header, ..request.clone() };
            let target_there = &rule.targets[target];
            results[target] = exchange_with_target(
                walk,
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
        state.note(place, Step::new(StepKind::Unknown, "cannot tell what a target answers", by));
        return Ok(vec![ended(state, Outcome::Unknown, open.mechanisms.first().copied())]);
    }
    let begun = state.tries.delay();
    let mut attempts = Attempts {
        walk,
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
            if walk.options.is_brief() {
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
    let exchanges = merge::alike(walk, attempts.exchanges);
    let answers = own_answer::own_answer(walk, party, call, &state)?;
    if let Some(failover) = failover {
        failover.note_answers(state.share, &answers);
    }
    Ok(own_answer::with_own_answer(walk, exchanges, &answers, call, (&place, &by)))
}
