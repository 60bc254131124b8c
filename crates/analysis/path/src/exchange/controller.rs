//! Requests through an ingress controller in the cluster: its pod accepts the request, and opens a
//! connection of its own to an endpoint of the Service behind the rule.
//!
//! Endpoints with equal results of connections are counted together: each endpoint that was not
//! tried yet is equally likely to be the next.

mod attempts;
mod connections;

use std::time::Duration;

use uturn_clouds::ingress_controller::{
    self, BackendRef, ControllerRule, Dialled, RoutingResult, RuleBackend,
};
use uturn_model::controller::{ControllerListener, IngressController, Takes};
use uturn_model::lb::Target;
use uturn_model::route::{Direction, Place, Step, StepKind};
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Evidence, Family, Mechanism, Outcome, Share};
use uturn_netfilter::Packet;

use super::{ends_tls, exchange, return_reply};
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::{merge, own_answer, redirect};
use crate::packet::{Call, Exchange, Pace, PacketState, Peer, Redirected, Request, ended};
use crate::{origin, resolve, unjudged};
use attempts::{Alike, Tries};

/// The source port of a controller's connections, which no client uses.
const CONTROLLER_PORT: u16 = 41_000;

/// The largest number of controllers that forward a request. One that passes more is in a loop.
const MAX_CONTROLLERS: u8 = 4;

/// An ingress controller whose pod received a request.
#[derive(Clone, Copy)]
pub(super) struct AtController<'a> {
    /// The peer that received the request: the pod.
    at: Peer<'a>,
    controller: &'a IngressController,
    /// Its index among the cluster's controllers.
    place: usize,
    /// The listener of the called port.
    listener: &'a ControllerListener,
}

/// A request or connection that a controller forwards by one of its rules.
struct Forwarded<'r> {
    /// The controller's pod.
    at: Peer<'r>,
    /// The call that the controller received.
    call: &'r Call<'r>,
    rule: &'r ControllerRule,
    /// The rule's host and path, for display: `shop.example.com/`.
    label: String,
    /// The request to an endpoint.
    onward: Request,
    /// The outcome of a connection that no endpoint accepts. Requests have an answer of their own.
    closed: Option<Outcome>,
}

/// Returns the controller whose pod accepts requests on this port.
pub(super) fn at<'e>(cluster: &'e Cluster, at: Peer<'e>, port: u16) -> Option<AtController<'e>> {
    let (Peer::Pod(pod) | Peer::Host(_, Some(pod))) = at else { return None };
    let all = cluster.controllers.iter().enumerate();
    let (place, controller) = all.into_iter().find(|(_, known)| known.has_pod(pod))?;
    let listener = controller.listener(port)?;
    Some(AtController { at, controller, place, listener })
}

/// Returns why a controller does not listen on a port of its pods, and the evidence, if it opens the
/// port only for what nothing asks for.
pub(super) fn shut(cluster: &Cluster, peer: Peer<'_>, port: u16) -> Option<(String, Evidence)> {
    let AtController { controller, .. } = at(cluster, peer, port)?;
    if !controller.is_shut(port) {
        return None;
    }
    let why = format!(
        "{} opens this port only for hosts with TLS, and no Ingress that it serves has any",
        controller.product
    );
    Some((why, Evidence::object(controller.workload.clone(), controller.origin.clone())))
}

/// Follows a request that reached a controller's pod.
pub(super) fn serve(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    here: AtController<'_>,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let (at, request) = (here.at, call.request);
    let place = at.place();
    let leg = state.packet.leg();
    let by = Evidence::object(here.controller.workload.clone(), here.controller.origin.clone());
    if request.controllers >= MAX_CONTROLLERS {
        let why = "it has passed so many Ingress controllers that it may be in a loop".to_owned();
        return Ok(vec![unknown(place, state, why, by)]);
    }
    if here.listener.takes != Takes::Requests {
        match connections::rule_for(walk.engine, here, request) {
            Ok(Some(rule)) => {
                return connections::pass_on(walk, call, here, rule, state);
            }
            // A connection with any other name carries requests.
            Ok(None) if here.listener.takes.has_requests() => {}
            Ok(None) => return connections::close(walk, call, here, state),
            Err(why) => return Ok(vec![unknown(place, state, why, by)]),
        }
    }
    let Some((host, path)) = request.http.clone() else {
        let why = "what is spoken on the connection is not known".to_owned();
        return Ok(vec![unknown(place, state, why, by)]);
    };
    if let Some(outcome) = protocol_mismatch(here, request) {
        let speaks = if here.listener.tls { "TLS" } else { "plain HTTP" };
        let why = format!("{} speaks {speaks} on this port", here.controller.product);
        state.note(place, Step::new(StepKind::Reject, why, by).seeing(leg));
        let is_bypassed = outcome == Outcome::TlsError
            && ends_tls(walk.engine, call.called(), state.packet.protocol());
        let why = if is_bypassed { Mechanism::TlsBypassed } else { Mechanism::WrongPort };
        return return_reply(walk, at, call, state.answer(), outcome, Some(why));
    }
    let rules = walk.engine.controller_rules(here.place);
    let tls = request.tls.unwrap_or(here.listener.tls);
    let rule = match rules.serve(here.controller, here.listener, tls, &host, &path) {
        RoutingResult::Forwarded(rule) => rule,
        RoutingResult::NoRule => {
            let mut why =
                format!("no rule that {} serves is for {host}{path}", here.controller.product);
            if let Some(kept) = rules.kept_out(here.listener, tls, &host, &path) {
                why.push_str(&format!(": {kept}"));
            }
            state.note(place, Step::new(StepKind::Reject, why, by).seeing(leg));
            let outcome = Outcome::Status { code: 404, after: Duration::ZERO };
            let why = Some(Mechanism::NoRuleForPath);
            return return_reply(walk, at, call, state.answer(), outcome, why);
        }
        RoutingResult::Refused(rule, code) => {
            let why = format!("{} answers {host}{path} by TLS only", here.controller.product);
            let step = Step::new(StepKind::Reject, why, by_rule(walk.cluster, rule));
            state.note(place, step.seeing(leg));
            let outcome = Outcome::Status { code, after: Duration::ZERO };
            let why = Some(Mechanism::WrongPort);
            return return_reply(walk, at, call, state.answer(), outcome, why);
        }
        RoutingResult::Redirected(rule, redirect) => {
            let redirected = Redirected { redirect, host, path };
            let by = rule.map_or(by, |rule| by_rule(walk.cluster, rule));
            return redirect::answer(walk, at, call, redirected, by, state);
        }
        RoutingResult::Unknown(why, rule) => {
            let by = rule.map_or(by, |rule| by_rule(walk.cluster, rule));
            return Ok(vec![unknown(place, state, why.to_string(), by)]);
        }
    };
    let label = format!("{host}{path}");
    let onward = Request {
        http: Some((host, path)),
        tls: Some(rule.backend_tls),
        has_proxy_header: false,
        ..request.clone()
    };
    forward_by_rule(walk, &Forwarded { at, call, rule, label, onward, closed: None }, state)
}

/// Forwards a request or connection to the backends of its rule, by their weights.
fn forward_by_rule(
    walk: &Walk<'_, '_>,
    forwarded: &Forwarded<'_>,
    state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let rule = forwarded.rule;
    let all: usize = rule.backends.iter().map(|backend| backend.weight as usize).sum();
    if all == 0 {
        let why = "its rule leads to no Service".to_owned();
        return without_endpoint(walk, forwarded, rule.missing_backend(), state, why);
    }
    let mut exchanges = Vec::new();
    for backend in rule.backends.iter().filter(|backend| backend.weight > 0) {
        let mut part = state.clone();
        if (backend.weight as usize) < all {
            part.share *= Share::of(backend.weight as usize, all);
            part.chance = true;
        }
        exchanges.extend(to_backend(walk, forwarded, backend, part)?);
    }
    Ok(merge::alike(walk, exchanges))
}

/// Forwards a rule's share of requests to one of its backends.
fn to_backend(
    walk: &Walk<'_, '_>,
    forwarded: &Forwarded<'_>,
    backend: &RuleBackend,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let (at, rule) = (forwarded.at, forwarded.rule);
    let place = at.place();
    let leg = state.packet.leg();
    let by = by_rule(walk.cluster, rule);
    let families = families_of(at);
    let (service, targets) =
        match ingress_controller::dialled(walk.cluster, rule, backend, &families) {
            Dialled::Targets(service, targets) => (service, targets),
            Dialled::Unknown => {
                let why = "its backend is no Service".to_owned();
                return Ok(vec![unknown(place, state, why, by)]);
            }
            Dialled::Alias(service) => {
                let why = match &service.kind {
                    ServiceKind::ExternalName(host) => format!(
                        "Service {} is an alias of {host}, and what answers there is not followed",
                        service.name
                    ),
                    _ => format!("Service {} is not followed", service.name),
                };
                return Ok(vec![unknown(place, state, why, by)]);
            }
            Dialled::AliasRefused(name) => {
                let product = product_of(walk, at);
                let why = format!("{product} takes no Service of type ExternalName, as {name} is");
                let code = rule.missing_backend();
                return without_endpoint(walk, forwarded, code, state, why);
            }
            Dialled::GrantUnknown(name) => {
                let why = format!("whether a ReferenceGrant allows Service {name} is not given");
                state.note(place, Step::new(StepKind::Unknown, why, by).seeing(leg));
                return Ok(vec![ended(state, Outcome::Unknown, Some(Mechanism::NotGiven))]);
            }
            Dialled::NotGranted(name) => {
                let why = format!("no ReferenceGrant allows it to lead to Service {name}");
                let code = rule.missing_backend();
                return without_endpoint(walk, forwarded, code, state, why);
            }
            Dialled::Missing(name)
                if !walk.cluster.services.contains_key(&name)
                    && walk.cluster.may_have_service(&name) =>
            {
                let why = format!("Service {name} is not in the input");
                state.note(place, Step::new(StepKind::Unknown, why, by).seeing(leg));
                return Ok(vec![ended(state, Outcome::Unknown, Some(Mechanism::NotGiven))]);
            }
            Dialled::Missing(name) => {
                let why = match (walk.cluster.services.get(&name), &backend.to) {
                    (Some(service), BackendRef::Service(_, port)) => service.lacks_port(port),
                    _ => format!("Service {name} does not exist"),
                };
                let code = rule.missing_backend();
                return without_endpoint(walk, forwarded, code, state, why);
            }
        };
    if let Some(unjudged) = unjudged::service(walk.cluster, &service.name) {
        return Ok(vec![unjudged.exchange(place, state)]);
    }
    let weights: Vec<f64> = targets
        .iter()
        .map(|target| walk.population.dialled(at.node(), target.address.ip()))
        .collect();
    if targets.is_empty() {
        let why = format!("Service {} has no endpoint that is ready", service.name);
        let code = rule.behaviour.no_endpoint;
        return without_endpoint(walk, forwarded, code, state, why);
    }
    let shown = if rule.behaviour.dials_services { "its address" } else { "an endpoint" };
    let chosen = format!("{} → {shown} of Service {}", forwarded.label, service.name);
    let mut groups: Vec<Alike> = Vec::new();
    for (target, weight) in targets.iter().zip(weights) {
        if weight <= 0.0 {
            continue;
        }
        let results = dial(walk, forwarded, target, &state)?;
        if let Some(open) = results.iter().find(|exchange| exchange.outcome.is_unknown()) {
            let mechanism = open.mechanisms.first().copied();
            let mut state = state.clone();
            state.note(place, Step::new(StepKind::Balance, chosen, by).seeing(leg));
            state.hops.extend(open.hops.iter().cloned());
            return Ok(vec![ended(state, Outcome::Unknown, mechanism)]);
        }
        Alike::add(&mut groups, target.address, weight, results, walk);
    }
    let begun = state.tries.delay();
    let mut start = ended(state.clone(), Outcome::AT_ONCE, None);
    if walk.options.is_brief() {
        start.hops = Vec::new();
    }
    let tries = Tries {
        walk,
        behaviour: &rule.behaviour,
        closed: forwarded.closed,
        groups: &groups,
        place: place.clone(),
        by: by.clone(),
        chosen,
        source: source_shown(at),
        begun,
    };
    let exchanges = merge::alike(walk, tries.follow(start));
    let answers = own_answer::own_answer(walk, at, forwarded.call, &state)?;
    Ok(own_answer::with_own_answer(walk, exchanges, &answers, forwarded.call, (&place, &by)))
}

/// Answers a request for which the controller has no endpoint, or closes a connection.
fn without_endpoint(
    walk: &Walk<'_, '_>,
    forwarded: &Forwarded<'_>,
    code: u16,
    mut state: PacketState,
    why: String,
) -> Result<Vec<Exchange>, WalkError> {
    let leg = state.packet.leg();
    let by = by_rule(walk.cluster, forwarded.rule);
    let (why, outcome) = match forwarded.closed {
        Some(closed) => (format!("{why}: closes the connection"), closed),
        None => (why, Outcome::Status { code, after: Duration::ZERO }),
    };
    let Forwarded { at, call, .. } = forwarded;
    state.note(at.place(), Step::new(StepKind::Reject, why, by).seeing(leg));
    let why = Some(Mechanism::NoEndpoint);
    return_reply(walk, *at, call, state.answer(), outcome, why)
}

/// Returns the results of a controller's own exchange with one endpoint.
fn dial(
    walk: &Walk<'_, '_>,
    forwarded: &Forwarded<'_>,
    target: &Target,
    state: &PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let (at, protocol) = (forwarded.at, uturn_model::Protocol::Tcp);
    let source = resolve::source(walk.engine, at, target.address, protocol)?;
    let Some(mut source) = source else {
        return Ok(vec![ended(state.clone(), Outcome::Unreachable, Some(Mechanism::NoRoute))]);
    };
    source.set_port(CONTROLLER_PORT);
    let packet = Packet::new(protocol, source, target.address);
    let mut inner = state.another(packet, Direction::Out);
    let limit = forwarded.rule.behaviour.connect_timeout.unwrap_or(Duration::from_secs(60));
    inner = inner.paced(Pace::within(limit));
    let controllers = forwarded.onward.controllers + 1;
    let request = Request { controllers, replaced: None, ..forwarded.onward.clone() };
    Ok(merge::alike(walk, exchange(walk, at, &request, inner)?))
}

/// Returns the evidence for a rule: the object that contains it.
fn by_rule(cluster: &Cluster, rule: &ControllerRule) -> Evidence {
    Evidence::object(rule.owner.clone(), origin::of(cluster, &rule.owner))
}

/// Returns the end of a request whose outcome is not known.
fn unknown(place: Place, mut state: PacketState, why: String, by: Evidence) -> Exchange {
    let leg = state.packet.leg();
    state.note(place, Step::new(StepKind::Unknown, why, by).seeing(leg));
    ended(state, Outcome::Unknown, Some(Mechanism::NotModelled))
}

/// Returns the outcome if the client does not use the protocol of the controller's port.
fn protocol_mismatch(here: AtController<'_>, request: &Request) -> Option<Outcome> {
    // An entry point detects the protocol of each connection, and has rules for both.
    if here.listener.entry_point.is_some() {
        return None;
    }
    match (here.listener.tls, request.tls?) {
        (false, true) => Some(Outcome::TlsError),
        (true, false) => Some(Outcome::Status { code: 400, after: Duration::ZERO }),
        _ => None,
    }
}

/// Returns the product of the controller whose pod has a request.
fn product_of<'w>(walk: &'w Walk<'_, '_>, at: Peer<'_>) -> &'w str {
    let (Peer::Pod(pod) | Peer::Host(_, Some(pod))) = at else { return "its controller" };
    walk.cluster.controller_of(pod).map_or("its controller", |own| &own.product)
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

fn source_shown(at: Peer<'_>) -> &'static str {
    match at {
        Peer::Host(..) => "from the node's address",
        _ => "from its own address",
    }
}
