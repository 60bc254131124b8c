//! Connections through a controller with rules for connections: its pod accepts the connection,
//! opens one of its own to an endpoint, and forwards the data unread.

use uturn_clouds::ingress_controller::ControllerRule;
use uturn_model::controller::Takes;
use uturn_model::route::{Step, StepKind};
use uturn_model::{Evidence, Mechanism, Outcome};

use super::super::return_reply;
use super::{AtController, Forwarded, by_rule, forward_by_rule, unknown};
use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::proxy_header::is_read;
use crate::packet::{Call, Exchange, PacketState, Request};

impl AtController<'_> {
    /// Returns whether the part of a request by which the controller finds a rule is known. Of
    /// other requests, only their arrival at the controller is known.
    pub(crate) fn reads(&self, request: &Request) -> bool {
        match self.listener.takes {
            Takes::Requests => request.http.is_some(),
            Takes::Connections | Takes::Nothing => true,
            Takes::NamedConnections => request.tls.is_some() || request.asked_name().is_some(),
            Takes::NamedConnectionsOrRequests => {
                request.http.is_some() || (request.tls.is_some() && request.asked_name().is_some())
            }
        }
    }

    /// Returns the outcome of a client's connection that no endpoint accepts.
    fn closed(&self, request: &Request) -> Outcome {
        match request.tls {
            // A TLS handshake that is passed through has not begun.
            Some(true) if !self.listener.tls => Outcome::TlsError,
            _ => Outcome::EmptyReply,
        }
    }
}

/// Returns the rule for a connection, if there is one.
///
/// # Errors
/// Returns the reason why the rule is not known.
pub(super) fn rule_for<'e>(
    engine: &'e Engine<'_>,
    here: AtController<'_>,
    request: &Request,
) -> Result<Option<&'e ControllerRule>, String> {
    let listener = here.listener;
    if listener.takes == Takes::Nothing {
        return Err("no route for this port of the Gateway is given".to_owned());
    }
    // Without TLS there is no name to read.
    if listener.takes.has_names() && request.tls == Some(false) {
        return Ok(None);
    }
    Ok(engine.controller_rules(here.place).pass(listener, request.asked_name()))
}

/// Forwards a connection by a rule.
pub(super) fn pass_on(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    here: AtController<'_>,
    rule: &ControllerRule,
    state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let AtController { at, listener, .. } = here;
    let request = call.request;
    if let Some(why) = &rule.unknown {
        let place = at.place();
        return Ok(vec![unknown(place, state, why.to_string(), by_rule(walk.cluster, rule))]);
    }
    let onward = Request {
        tls: if listener.tls { Some(false) } else { request.tls },
        has_proxy_header: request.has_proxy_header && !is_read(Some(&listener.proxy_header)),
        ..request.clone()
    };
    let label = match request.asked_name() {
        Some(name) if listener.takes.has_names() => {
            format!("connections for {name}")
        }
        _ => format!("connections at port {}", listener.port),
    };
    let closed = Some(here.closed(request));
    forward_by_rule(walk, &Forwarded { at, call, rule, label, onward, closed }, state)
}

/// Closes a connection for which there is no rule.
pub(super) fn close(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    here: AtController<'_>,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let (at, request) = (here.at, call.request);
    let product = &here.controller.product;
    let (why, mechanism) = match (request.tls, request.asked_name()) {
        (Some(false), _) if here.listener.takes.has_names() => {
            (format!("{product} expects TLS on this port"), Mechanism::WrongPort)
        }
        (_, Some(name)) => {
            (format!("no rule that {product} serves is for {name}"), Mechanism::NoRuleForPath)
        }
        _ => {
            let why = format!("no rule that {product} serves is for this connection");
            (why, Mechanism::NoRuleForPath)
        }
    };
    let by = Evidence::object(here.controller.workload.clone(), here.controller.origin.clone());
    let leg = state.packet.leg();
    let why = format!("{why}: closes the connection");
    state.note(at.place(), Step::new(StepKind::Reject, why, by).seeing(leg));
    let outcome = here.closed(request);
    return_reply(walk, at, call, state.answer(), outcome, Some(mechanism))
}
