//! The part of a controller in the cluster: its pod takes the request, and makes a connection of
//! its own to an endpoint of the Service behind the rule.
//!
//! Endpoints that take connections alike are counted together: of those that are left, each is
//! as likely to be tried next as any other.

mod attempts;

use std::time::Duration;

use uturn_lb::in_cluster::{self, ControllerRule, Dialled, RuleBackend, Served};
use uturn_model::controller::{ControllerListener, IngressController};
use uturn_model::lb::Target;
use uturn_model::route::{Leg, Place, Step, StepKind, Way};
use uturn_model::{Evidence, Family, Hop, Mechanism, Outcome, Share};
use uturn_netfilter::Packet;

use crate::assumed::add_new;
use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::{Exchange, Pace, PacketState, Peer, Redirected, Request, ended};
use attempts::{Alike, Tries};

/// The port that a controller's pods connect from: none that a client has.
pub(crate) const CONTROLLER_PORT: u16 = 41_000;

/// Requests that pass more controllers than these go round.
const MOST: u8 = 4;

/// A controller's pod that has a request.
#[derive(Clone, Copy)]
pub(crate) struct AtController<'a> {
    pub(crate) controller: &'a IngressController,
    /// Its place among the cluster's controllers.
    place: usize,
    /// The port that was called.
    listener: &'a ControllerListener,
}

impl<'a> Engine<'a> {
    /// The controller whose pod takes a request on this port.
    pub(crate) fn controller_at(&self, at: Peer<'a>, port: u16) -> Option<AtController<'a>> {
        let (Peer::Pod(pod) | Peer::Host(_, Some(pod))) = at else { return None };
        let all = self.cluster.controllers.iter().enumerate();
        let (place, controller) = all.into_iter().find(|(_, known)| known.has_pod(pod))?;
        let listener = controller.listener(port)?;
        Some(AtController { controller, place, listener })
    }
}

impl<'a> Walk<'_, 'a> {
    /// A request reached a controller's pod.
    pub(crate) fn through_controller(
        &self,
        from: Peer<'a>,
        asked: Leg,
        request: &Request,
        (at, here): (Peer<'a>, AtController<'a>),
        mut state: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let place = self.engine.place(at);
        let leg = state.packet.leg();
        let by = Evidence::object(here.controller.workload.clone(), here.controller.origin.clone());
        let Some((host, path)) = request.http.clone() else { return Ok(Vec::new()) };
        if let Some(outcome) = misspoken(here, request) {
            let speaks = if here.listener.tls { "TLS" } else { "plain HTTP" };
            let why = format!("{} speaks {speaks} on this port", here.controller.product);
            state.note(place, Step::new(StepKind::Reject, why, by).seeing(leg));
            let why = Some(Mechanism::WrongPort);
            return self.bring_home(at, from, asked, state.answer(), outcome, why);
        }
        if request.passed >= MOST {
            let why = "it has passed so many controllers that it may go round".to_owned();
            return Ok(vec![unknown(place, state, why, by)]);
        }
        let rules = self.engine.controller_rules(here.place);
        let rule = match rules.serve(here.controller, here.listener, &host, &path) {
            Served::By(rule) => rule,
            Served::ByNone => {
                let why =
                    format!("no rule that {} serves is for {host}{path}", here.controller.product);
                state.note(place, Step::new(StepKind::Reject, why, by).seeing(leg));
                let outcome = Outcome::Status { code: 404, after: Duration::ZERO };
                let why = Some(Mechanism::NoRuleForPath);
                return self.bring_home(at, from, asked, state.answer(), outcome, why);
            }
            Served::Redirected(rule, redirect) => {
                let redirected = Redirected { redirect, host, path };
                let by = self.by_rule(rule);
                return self.sent_elsewhere((at, from, asked), request, redirected, by, state);
            }
            Served::Unknown(why, rule) => {
                let by = rule.map_or(by, |rule| self.by_rule(rule));
                return Ok(vec![unknown(place, state, why.to_string(), by)]);
            }
        };
        let all: usize = rule.backends.iter().map(|backend| backend.weight as usize).sum();
        if all == 0 {
            let why = "its rule leads to no Service".to_owned();
            let by = self.by_rule(rule);
            return self.without_endpoint(
                (at, from, asked),
                rule.missing_backend(),
                state,
                why,
                by,
            );
        }
        let mut ways = Vec::new();
        for backend in rule.backends.iter().filter(|backend| backend.weight > 0) {
            let mut part = state.clone();
            if (backend.weight as usize) < all {
                part.share *= Share::of(backend.weight as usize, all);
                part.chance = true;
            }
            let parties = (at, from, asked);
            let asked_for = (&*host, &*path);
            ways.extend(self.to_backend(
                parties,
                request,
                place.clone(),
                rule,
                backend,
                asked_for,
                part,
            )?);
        }
        Ok(self.merged(ways))
    }

    /// A part of a rule's requests goes to its Service.
    #[expect(clippy::too_many_arguments, reason = "all of a request at a controller")]
    fn to_backend(
        &self,
        (at, from, asked): (Peer<'a>, Peer<'a>, Leg),
        request: &Request,
        place: Place,
        rule: &ControllerRule,
        backend: &RuleBackend,
        (host, path): (&str, &str),
        mut state: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let leg = state.packet.leg();
        let by = self.by_rule(rule);
        let families = families_of(at);
        let (service, targets) = match in_cluster::dialled(self.cluster, rule, backend, &families) {
            Dialled::Targets(service, targets) => (service, targets),
            Dialled::Unknown => {
                let why = "its backend is not in the cluster, or no Service".to_owned();
                return Ok(vec![unknown(place, state, why, by)]);
            }
            Dialled::Doubtful(name) => {
                let why = format!("whether a ReferenceGrant allows Service {name} is not given");
                state.note(place, Step::new(StepKind::Unknown, why, by).seeing(leg));
                return Ok(vec![ended(state, Outcome::Unknown, Some(Mechanism::NotGiven))]);
            }
            Dialled::NotGranted(name) => {
                let why = format!("no ReferenceGrant allows it to lead to Service {name}");
                let code = rule.missing_backend();
                return self.without_endpoint((at, from, asked), code, state, why, by);
            }
            Dialled::Missing(name)
                if !self.cluster.services.contains_key(&name) && !self.cluster.extent.services =>
            {
                let why = format!("Service {name} is not among what is given");
                state.note(place, Step::new(StepKind::Unknown, why, by).seeing(leg));
                return Ok(vec![ended(state, Outcome::Unknown, Some(Mechanism::NotGiven))]);
            }
            Dialled::Missing(name) => {
                let why = format!("Service {name} does not exist, or has no such port");
                let code = rule.missing_backend();
                return self.without_endpoint((at, from, asked), code, state, why, by);
            }
        };
        if let Some(gap) = self.engine.gap_of_service(&service.name) {
            return Ok(vec![gap.exchange(place, state)]);
        }
        let weights: Vec<f64> = targets
            .iter()
            .map(|target| self.population.dialled(node_of(at), target.address.ip()))
            .collect();
        if targets.is_empty() {
            let why = format!("Service {} has no endpoint that is ready", service.name);
            let code = rule.behaviour.no_endpoint;
            return self.without_endpoint((at, from, asked), code, state, why, by);
        }
        let shown = if rule.behaviour.dials_services { "its address" } else { "an endpoint" };
        let chosen = format!("{host}{path} → {shown} of Service {}", service.name);
        let mut groups: Vec<Alike> = Vec::new();
        for (target, weight) in targets.iter().zip(weights) {
            if weight <= 0.0 {
                continue;
            }
            let results = self.dial(at, rule, target, (host, path), request, &state)?;
            if let Some(open) = results.iter().find(|way| way.outcome.is_unknown()) {
                let mechanism = open.mechanisms.first().copied();
                let mut state = state.clone();
                state.note(place, Step::new(StepKind::Balance, chosen, by).seeing(leg));
                state.hops.extend(open.hops.iter().cloned());
                return Ok(vec![ended(state, Outcome::Unknown, mechanism)]);
            }
            Alike::add(&mut groups, target.address, weight, results, self.options.every_way);
        }
        let behaviour = &rule.behaviour;
        let begun = state.tries.delay();
        let mut start = ended(state.clone(), Outcome::AT_ONCE, None);
        if self.options.is_brief() {
            start.hops = Vec::new();
        }
        let tries = Tries {
            walk: self,
            behaviour,
            groups: &groups,
            place: place.clone(),
            by: by.clone(),
            chosen,
            source: source_shown(at),
            begun,
        };
        let ways = self.merged(tries.follow(start));
        self.answered_by((at, from, asked), &state, ways, &place, &by)
    }

    /// Takes the controller's answers home: each takes the same ways.
    fn answered_by(
        &self,
        (at, from, asked): (Peer<'a>, Peer<'a>, Leg),
        state: &PacketState,
        ways: Vec<Exchange>,
        place: &Place,
        by: &Evidence,
    ) -> Result<Vec<Exchange>, WalkError> {
        let mut answer = state.answer().on_time();
        answer.hops.clear();
        (answer.share, answer.chance) = (Share::ALL, false);
        let arrivals = self.bring_home(at, from, asked, answer, Outcome::AT_ONCE, None)?;
        let mut home = Vec::with_capacity(ways.len() * arrivals.len());
        for way in ways {
            if way.outcome.is_unknown() {
                home.push(way);
                continue;
            }
            for arrived in &arrivals {
                let mut way = way.clone();
                way.share *= arrived.share;
                way.chance |= arrived.chance;
                add_new(&mut way.supposed, arrived.supposed.clone());
                if !self.options.is_brief() {
                    let back = Leg { src: asked.dst, dst: asked.src };
                    let step = Step::new(StepKind::Answer, way.outcome.to_string(), by.clone());
                    let steps = vec![step.seeing(back)];
                    way.hops.push(Hop { place: place.clone(), way: Way::Back, steps });
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

    /// The controller has nobody to ask.
    fn without_endpoint(
        &self,
        (at, from, asked): (Peer<'a>, Peer<'a>, Leg),
        code: u16,
        mut state: PacketState,
        why: String,
        by: Evidence,
    ) -> Result<Vec<Exchange>, WalkError> {
        let leg = state.packet.leg();
        state.note(self.engine.place(at), Step::new(StepKind::Reject, why, by).seeing(leg));
        let outcome = Outcome::Status { code, after: Duration::ZERO };
        let why = Some(Mechanism::NoEndpoint);
        self.bring_home(at, from, asked, state.answer(), outcome, why)
    }

    /// A controller's own exchange with one endpoint.
    fn dial(
        &self,
        at: Peer<'a>,
        rule: &ControllerRule,
        target: &Target,
        (host, path): (&str, &str),
        request: &Request,
        state: &PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let protocol = uturn_model::Protocol::Tcp;
        let source = self.engine.source(at, target.address, protocol)?;
        let Some(mut source) = source else {
            return Ok(vec![ended(state.clone(), Outcome::Unreachable, Some(Mechanism::NoRoute))]);
        };
        source.set_port(CONTROLLER_PORT);
        let packet = Packet::new(protocol, source, target.address);
        let mut inner = state.another(packet, Way::Out);
        let limit = rule.behaviour.connect_timeout.unwrap_or(Duration::from_secs(60));
        inner = inner.paced(Pace::within(limit));
        let request = Request {
            http: Some((host.to_owned(), path.to_owned())),
            tls: Some(rule.speaks_tls),
            passed: request.passed + 1,
            has_proxy_header: false,
            ..request.clone()
        };
        Ok(self.merged(self.exchange(at, &request, inner)?))
    }

    /// What a rule of a controller rests on.
    fn by_rule(&self, rule: &ControllerRule) -> Evidence {
        Evidence::object(rule.owner.clone(), self.engine.origin_of(&rule.owner))
    }
}

/// The end of a request of which it is not known what becomes.
fn unknown(place: Place, mut state: PacketState, why: String, by: Evidence) -> Exchange {
    let leg = state.packet.leg();
    state.note(place, Step::new(StepKind::Unknown, why, by).seeing(leg));
    ended(state, Outcome::Unknown, Some(Mechanism::NotModelled))
}

/// What comes of speaking to a controller's port what it does not speak.
fn misspoken(here: AtController<'_>, request: &Request) -> Option<Outcome> {
    match (here.listener.tls, request.tls?) {
        (false, true) => Some(Outcome::TlsError),
        (true, false) => Some(Outcome::Status { code: 400, after: Duration::ZERO }),
        _ => None,
    }
}

fn families_of(at: Peer<'_>) -> Vec<Family> {
    let ips = match at {
        Peer::Pod(pod) => pod.ips.clone(),
        Peer::Host(node, _) => node.internal_ips.clone(),
        Peer::Balancer(_) | Peer::Outside => Vec::new(),
    };
    let mut all: Vec<Family> = Vec::new();
    for family in ips.into_iter().map(Family::of) {
        if !all.contains(&family) {
            all.push(family);
        }
    }
    all
}

/// The node that a party is on.
fn node_of<'p>(at: Peer<'p>) -> Option<&'p uturn_model::Name> {
    match at {
        Peer::Pod(pod) => pod.node.as_ref(),
        Peer::Host(node, _) => Some(&node.name),
        Peer::Balancer(_) | Peer::Outside => None,
    }
}

fn source_shown(at: Peer<'_>) -> &'static str {
    match at {
        Peer::Host(..) => "from the node's address",
        _ => "from its own address",
    }
}
