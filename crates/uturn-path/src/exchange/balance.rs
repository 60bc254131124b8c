//! The load balancer's part: an exchange within the exchange.
//!
//! On layer 4 a connection is passed on once, and nothing is tried again. On layer 7 the
//! load balancer answers the client itself, asks a target, and asks the next target if the
//! first does not answer. `uturn_lb::decide` picks the targets, as on the wire.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use uturn_lb::decide::Choice;
use uturn_lb::rules;
use uturn_model::lb::{
    Delivery, Layer, Listener, ListenerProtocol, Rule, Scheduler, Scope, Source, Target,
};
use uturn_model::route::{Leg, Place, Step, StepKind, Way};
use uturn_model::{Evidence, Hop, Mechanism, Outcome, Share};

use crate::assumed::add_new;
use crate::engine::walk::Walk;
use crate::engine::{Engine, find_listener};
use crate::error::WalkError;
use crate::exchange::failover::{Attempts, MAX_HOPS, MAX_HOPS_REDUCED, picks};
use crate::packet::{Exchange, Pace, PacketState, Peer, Redirected, Request, ended};
use crate::population::Results;

impl<'a> Walk<'_, 'a> {
    /// A packet reached a load balancer.
    pub(crate) fn balance(
        &self,
        balancer: usize,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        mut state: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let seen = state.packet.leg();
        let place = self.engine.place(Peer::Balancer(balancer));
        if let Some(step) =
            self.engine.shut_out(&self.engine.balancers()[balancer].security_groups, &state)
        {
            state.note(place, step);
            return Ok(vec![ended(state, Outcome::Hangs, Some(Mechanism::SecurityGroup))]);
        }
        let listener = find_listener(
            &self.engine.balancers()[balancer],
            seen.dst.port(),
            state.packet.protocol(),
        );
        let Some(listener) = listener else {
            let why = format!("has no listener on port {}", seen.dst.port());
            let party = Peer::Balancer(balancer);
            state.note(place, Step::new(StepKind::Reject, why, self.engine.by(party)));
            let mechanism = Some(Mechanism::WrongPort);
            return self.bring_home(
                party,
                client,
                asked,
                state.answer(),
                Outcome::Refused,
                mechanism,
            );
        };
        if let Some(outcome) = misspoken(listener, request) {
            let why = format!("speaks {} here", listener.protocol);
            let party = Peer::Balancer(balancer);
            state.note(place, Step::new(StepKind::Reject, why, self.engine.by(party)));
            let mechanism = Some(Mechanism::WrongPort);
            return self.bring_home(party, client, asked, state.answer(), outcome, mechanism);
        }
        let served = match listener.protocol.layer() {
            Layer::L4 => listener.rules.first(),
            Layer::L7 => {
                let (host, path) = asked_of(request, seen);
                rules::find(&listener.rules, &host, &path)
            }
        };
        if let Some(gap) = served.and_then(|rule| self.engine.gap_behind(rule)) {
            return Ok(vec![gap.exchange(place, state)]);
        }
        match listener.protocol.layer() {
            Layer::L4 => self.pass_on(balancer, listener, client, asked, request, &state),
            Layer::L7 => self.ask(balancer, listener, client, asked, request, state),
        }
    }

    fn pass_on(
        &self,
        balancer: usize,
        listener: &Listener,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        state: &PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let seen = state.packet.leg();
        let place = self.engine.place(Peer::Balancer(balancer));
        // Who makes connections to targets has taken the client's before it picks a target. If there
        // is none, all it can do is close it.
        let ends_tls = listener.protocol.ends_tls();
        let is_taken = listener.makes_connections();
        let turned_away = match (is_taken, request.tls) {
            (false, _) => Outcome::Hangs,
            // The handshake of who speaks TLS through it has not begun.
            (true, Some(true)) if !ends_tls => Outcome::TlsError,
            (true, _) => Outcome::EmptyReply,
        };
        let home = |ways: Vec<Exchange>| match is_taken {
            true => self.answer_itself(balancer, client, asked, state, ways, turned_away),
            false => Ok(ways),
        };
        let rule = listener.rules.first().filter(|rule| !rule.targets.is_empty());
        let Some(rule) = rule else {
            let ways = self.engine.without_target(
                state.clone(),
                balancer,
                turned_away,
                NotPicked::NoTarget,
            );
            return home(ways);
        };
        // What is passed on as it came still speaks what the client spoke.
        let tls = if ends_tls { None } else { request.tls };
        let has_proxy_header = adds_header(listener);
        let passed = Request { tls, has_proxy_header, ..request.clone() };
        let alive = self.alive(balancer, listener, rule)?;
        let choice = Choice::new(&listener.profile, &rule.targets, &alive, seen.src.ip());
        let shares = choice.shares();
        if shares.is_empty() {
            let ways = self.engine.without_target(
                state.clone(),
                balancer,
                turned_away,
                NotPicked::of(&alive),
            );
            return home(ways);
        }
        let picks_by_client = listener.profile.scheduler == Scheduler::SourceHash;
        if self.population.failover().is_some() && picks_by_client && choice.candidates().len() > 1
        {
            return Err(WalkError::NeedsWhole);
        }
        let by = self.engine.by_listener(listener, rule);
        let mut ways = Vec::new();
        for (target, share) in shares {
            let mut there = state.clone();
            there.note(place.clone(), picks(listener, rule, target, seen, by.clone()));
            let to = &rule.targets[target];
            for inner in self.ask_target(balancer, listener, to, seen.src, &passed, state)? {
                // Of what is passed on as it came, all that was sent again is in there.
                let mut state = if is_taken { there.clone() } else { there.clone().on_time() };
                state.share *= share * inner.share;
                state.chance |= inner.chance;
                state.supposed = inner.supposed;
                state.hops.extend(inner.hops);
                // Who passes packets on and only adds a header waits as long as the client does.
                let ends_connections = ends_tls || is_taken && listener.profile.ends_connections;
                let gives_up = ends_connections && inner.outcome == Outcome::Hangs;
                let outcome = match inner.outcome {
                    // A target that does not answer is given up.
                    Outcome::Hangs if gives_up => turned_away,
                    Outcome::Answered { .. } | Outcome::Hangs | Outcome::Unknown => inner.outcome,
                    // What was said on the connection to the target is said to the client.
                    Outcome::Status { .. } | Outcome::EmptyReply => inner.outcome,
                    _ if ends_tls => turned_away,
                    Outcome::Refused | Outcome::Unreachable | Outcome::Reset if is_taken => {
                        turned_away
                    }
                    other => other,
                };
                // A refusal comes back through the load balancer like any other answer.
                if matches!(outcome, Outcome::Hangs | Outcome::Unknown) {
                    state.tries.why.extend(inner.mechanisms);
                    ways.push(ended(state, outcome, None));
                    continue;
                }
                let is_last = |mechanism: &&Mechanism| !inner.lost.contains(mechanism);
                let last = inner.mechanisms.iter().find(is_last);
                let mechanism = last.or(inner.mechanisms.first()).copied();
                state.tries.why.extend(inner.lost);
                let party = Peer::Balancer(balancer);
                let mut answer = state.answer();
                answer.note(
                    place.clone(),
                    match gives_up {
                        true => closes(listener, seen, by.clone()),
                        false => passes_back(seen, by.clone()),
                    },
                );
                let waited = match gives_up {
                    true => listener.profile.connect_timeout,
                    false => inner.late,
                };
                let home = self.bring_home(party, client, asked, answer, outcome, mechanism)?;
                ways.extend(home.into_iter().map(|way| {
                    let late = way.late.max(waited);
                    Exchange { late, ..way.passing_on(outcome, inner.redirected.clone()) }
                }));
            }
        }
        Ok(self.merged(ways))
    }

    fn ask(
        &self,
        balancer: usize,
        listener: &Listener,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        mut state: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let seen = state.packet.leg();
        let place = self.engine.place(Peer::Balancer(balancer));
        let (host, path) = asked_of(request, seen);
        let Some(rule) = rules::find(&listener.rules, &host, &path) else {
            let why = format!("no rule of the listener is for {host}{path}");
            state.note(
                place,
                Step::new(StepKind::Reject, why, self.engine.by(Peer::Balancer(balancer))),
            );
            let outcome =
                Outcome::Status { code: listener.profile.statuses.no_rule, after: Duration::ZERO };
            let answer = state.answer();
            let mechanism = Some(Mechanism::NoRuleForPath);
            let party = Peer::Balancer(balancer);
            return self.bring_home(party, client, asked, answer, outcome, mechanism);
        };
        if let Some(redirect) = &rule.redirect {
            let by = self.engine.by_listener(listener, rule);
            let redirected = Redirected { redirect: redirect.clone(), host, path };
            let leg = (Peer::Balancer(balancer), client, asked);
            return self.sent_elsewhere(leg, request, redirected, by, state);
        }
        let alive = self.alive(balancer, listener, rule)?;
        let choice = Choice::new(&listener.profile, &rule.targets, &alive, seen.src.ip());
        let shares = choice.shares();
        if shares.is_empty() {
            let outcome = Outcome::Status {
                code: listener.profile.statuses.no_target,
                after: Duration::ZERO,
            };
            let reason = match rule.targets.is_empty() {
                true => NotPicked::NoTarget,
                false => NotPicked::of(&alive),
            };
            let turned_away = self.engine.without_target(state.clone(), balancer, outcome, reason);
            return self.answer_itself(balancer, client, asked, &state, turned_away, outcome);
        }
        let by = self.engine.by_listener(listener, rule);
        let failover = self.population.failover();
        let mut ask = || -> Result<Results, WalkError> {
            let mut results = vec![Vec::new(); rule.targets.len()];
            for target in choice.candidates() {
                let has_proxy_header = listener.profile.proxy_header.is_some();
                let plain = Request { tls: None, has_proxy_header, ..request.clone() };
                let target_there = &rule.targets[target];
                results[target] =
                    self.ask_target(balancer, listener, target_there, seen.src, &plain, &state)?;
            }
            Ok(results.into())
        };
        let results = match failover {
            Some(failover) => failover.results(seen, &mut ask)?,
            None => ask()?,
        };
        let is_open = |way: &&Exchange| way.outcome.is_unknown();
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
            ways: Vec::new(),
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
        let ways = self.merged(attempts.ways);
        // Every answer takes the same ways home, good or bad.
        let mut answer = state.answer().on_time();
        answer.hops.clear();
        (answer.share, answer.chance) = (Share::ALL, false);
        let party = Peer::Balancer(balancer);
        let arrivals = self.bring_home(party, client, asked, answer, Outcome::AT_ONCE, None)?;
        if let Some(failover) = failover {
            failover.note_answers(state.share, &arrivals);
        }
        let mut home = Vec::with_capacity(ways.len() * arrivals.len());
        for way in ways {
            for arrived in &arrivals {
                let mut way = way.clone();
                way.share *= arrived.share;
                way.chance |= arrived.chance;
                add_new(&mut way.supposed, arrived.supposed.clone());
                if !self.options.is_brief() {
                    let step = answers(way.outcome, asked, by.clone());
                    way.hops.push(Hop { place: place.clone(), way: Way::Back, steps: vec![step] });
                    way.hops.extend(arrived.hops.iter().cloned());
                }
                way.mechanisms.extend(&arrived.mechanisms);
                way.mechanisms.sort_unstable();
                way.mechanisms.dedup();
                if arrived.outcome != Outcome::AT_ONCE {
                    way.outcome = arrived.outcome;
                    way.redirected = None;
                }
                home.push(way);
            }
        }
        Ok(self.merged(home))
    }

    /// An answer that the load balancer itself gives takes the same way home as a target's.
    fn answer_itself(
        &self,
        balancer: usize,
        client: Peer<'a>,
        asked: Leg,
        state: &PacketState,
        answer_ways: Vec<Exchange>,
        outcome: Outcome,
    ) -> Result<Vec<Exchange>, WalkError> {
        let party = Peer::Balancer(balancer);
        let answer = state.answer().on_time();
        let home = self.bring_home(party, client, asked, answer, outcome, None)?;
        Ok(if home.iter().all(|way| way.outcome == outcome) { answer_ways } else { home })
    }

    /// The load balancer's own exchange with one target.
    fn ask_target(
        &self,
        balancer: usize,
        listener: &Listener,
        target: &Target,
        client: SocketAddr,
        request: &Request,
        state: &PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let is_itself = client.ip() == target.address.ip();
        let hairpin = listener.profile.hairpin_source.as_ref().filter(|_| is_itself);
        let src = match (&listener.profile.source, hairpin) {
            (Source::Kept, None) => client,
            (Source::Replaced(range), _) | (Source::Kept, Some(range)) => {
                let ip = range.hosts().next().unwrap_or(IpAddr::from([127, 0, 0, 1]));
                SocketAddr::new(ip, client.port())
            }
        };
        let dst = listener.profile.delivery.destination(target.address, state.packet.leg().dst);
        let leg = Leg { src, dst };
        if let Some(lost) = self.engine.lacks_bandwidth(balancer, target, leg, state) {
            return Ok(vec![lost]);
        }
        let packet = state.packet.with_leg(leg);
        let mut inner = state.another(packet, Way::Out).sent_by(balancer);
        if listener.profile.delivery == Delivery::KeepsAddress {
            inner.handed_to = target.kind.node().cloned();
        }
        add_new(&mut inner.supposed, self.engine.doubts(balancer, listener, target, client.ip()));
        if listener.makes_connections() {
            inner = inner.paced(Pace::within(listener.profile.connect_timeout));
        }
        Ok(self.merged(self.exchange(Peer::Balancer(balancer), request, inner)?))
    }
}

impl<'a> Engine<'a> {
    /// Where a node pays for its own way to the internet, a public load balancer reaches it
    /// only over bandwidth of the node's own.
    fn lacks_bandwidth(
        &self,
        balancer: usize,
        target: &Target,
        leg: Leg,
        state: &PacketState,
    ) -> Option<Exchange> {
        let node = target.kind.node().and_then(|name| self.cluster.nodes.get(name))?;
        let is_public = self.balancers()[balancer].scope == Scope::Public;
        if !is_public || node.public_bandwidth != Some(false) {
            return None;
        }
        let mut state = state.another(state.packet.with_leg(leg), Way::Out);
        let why = format!("node {} has no bandwidth to the internet", node.name);
        let by = Evidence::object(node.object(), node.origin.clone());
        state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
        Some(ended(state, Outcome::Hangs, Some(Mechanism::NoBandwidth)))
    }

    /// What a load balancer's doing rests on: the listener, and the object that asked for it.
    fn by_listener(&self, listener: &Listener, rule: &Rule) -> Evidence {
        let (profile, protocol) = (&listener.profile.name, listener.protocol);
        Evidence::Listener {
            listener: format!("{profile} listener {protocol}:{}", listener.port).into(),
            owner: Arc::new(rule.owner.clone()),
            origin: self.origin_of(&rule.owner),
        }
    }

    /// A load balancer that picks no target.
    fn without_target(
        &self,
        mut state: PacketState,
        balancer: usize,
        outcome: Outcome,
        reason: NotPicked,
    ) -> Vec<Exchange> {
        let (why, mechanism) = match reason {
            NotPicked::NoTarget => {
                ("has no target: no node and no pod is registered", Mechanism::NoEndpoint)
            }
            NotPicked::NoneAlive => {
                ("has no target that answers its health checks", Mechanism::NoCandidate)
            }
            NotPicked::NoCandidate => (
                "has no target that it may pick: it avoids the client's own address",
                Mechanism::NoCandidate,
            ),
        };
        let peer = Peer::Balancer(balancer);
        state.note(self.place(peer), Step::new(StepKind::Drop, why, self.by(peer)));
        vec![ended(state, outcome, Some(mechanism))]
    }
}

/// Why a load balancer picks no target.
#[derive(Clone, Copy)]
enum NotPicked {
    /// No target is registered.
    NoTarget,
    /// None answers its health checks.
    NoneAlive,
    /// It may pick none of them.
    NoCandidate,
}

impl NotPicked {
    fn of(alive: &[bool]) -> Self {
        match alive.contains(&true) {
            true => Self::NoCandidate,
            false => Self::NoneAlive,
        }
    }
}

/// Whether connections to targets begin with a PROXY header. Datagrams do not.
fn adds_header(listener: &Listener) -> bool {
    listener.profile.proxy_header.is_some()
        && listener.protocol.transport() == uturn_model::Protocol::Tcp
}

/// The host and path that a request asks for.
fn asked_of(request: &Request, seen: Leg) -> (String, String) {
    match &request.http {
        Some((host, path)) => (host.clone(), path.clone()),
        None => (seen.dst.ip().to_string(), "/".to_owned()),
    }
}

/// What comes of speaking to a listener what it does not speak. On layer 4 without TLS it
/// speaks nothing: it passes on what comes.
fn misspoken(listener: &Listener, request: &Request) -> Option<Outcome> {
    match (listener.protocol, request.tls?) {
        (ListenerProtocol::Http, true) => Some(Outcome::TlsError),
        (ListenerProtocol::Https, false) => {
            Some(Outcome::Status { code: 400, after: Duration::ZERO })
        }
        (ListenerProtocol::TcpSsl, false) => Some(Outcome::Reset),
        _ => None,
    }
}

fn answers(outcome: Outcome, asked: Leg, by: Evidence) -> Step {
    let home = Leg { src: asked.dst, dst: asked.src };
    Step::new(StepKind::Answer, format!("{outcome}"), by).seeing(home)
}

/// Who has taken the client's connection closes it where there is none to a target.
fn closes(listener: &Listener, seen: Leg, by: Evidence) -> Step {
    let home = Leg { src: seen.dst, dst: seen.src };
    let seconds = listener.profile.connect_timeout.as_secs_f64();
    let why = format!("gives the target up after {seconds} s: closes the client's connection");
    Step::new(StepKind::Answer, why, by).seeing(home)
}

fn passes_back(seen: Leg, by: Evidence) -> Step {
    let home = Leg { src: seen.dst, dst: seen.src };
    Step::new(StepKind::Untranslate, "passes the answer back", by).seeing(home)
}
