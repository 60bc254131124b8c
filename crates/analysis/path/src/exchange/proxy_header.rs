//! Servers that expect connections to begin with the PROXY header that a load balancer sends.

use std::time::Duration;

use uturn_clouds::cloud;
use uturn_model::controller::{ProxyExpectation, Takes};
use uturn_model::pod::Container;
use uturn_model::route::Leg;
use uturn_model::{Assumption, AssumptionSubject, Cluster, IpNet, NamespacedName, Outcome, Text};

use crate::engine::Engine;
use crate::packet::{Peer, Request};

/// Describes whether servers expect a PROXY header, if the assumption is about that.
pub fn supposed_of_servers(supposed: &Assumption) -> Option<Text> {
    let AssumptionSubject::ProxyHeader { is_expected, .. } = supposed.subject else { return None };
    let expected = if is_expected { "a" } else { "no" };
    Some(format!("its pods expect {expected} PROXY header").into())
}

/// Removes the Service from such an assumption.
pub(crate) fn without_service(supposed: &mut Assumption) {
    if let AssumptionSubject::ProxyHeader { service, .. } = &mut supposed.subject {
        *service = None;
    }
}

/// The beginning of the names of the API server's image and container.
const API_SERVER: &str = "kube-apiserver";

/// Controllers that look for a header without reading the data: the kernel resets a connection that
/// is closed while data is unread.
const UNREAD: [&str; 2] = ["HAProxy", "HAProxy Ingress"];

/// The reaction of a server to a connection that lacks the PROXY header it expects, or has one that
/// it does not expect.
pub(super) struct Misread {
    /// The server's reaction, in words.
    pub(crate) why: &'static str,
    /// The outcome for the client.
    pub(crate) outcome: Outcome,
    /// The assumption about the server, if its settings do not state what it expects.
    pub(crate) supposed: Option<Assumption>,
}

/// Returns the server's reaction to the beginning of a connection. Returns `None` if the connection
/// begins as the server expects.
pub(super) fn misread(
    engine: &Engine<'_>,
    at: Peer<'_>,
    leg: Leg,
    request: &Request,
) -> Option<Misread> {
    let pod = at.pod();
    let stated = expected_at(engine.cluster, at, leg);
    let stated = stated.or_else(|| {
        let is_known = request.has_proxy_header && is_api_server(engine.cluster, at, leg);
        is_known.then_some(&ProxyExpectation::NotExpected)
    });
    // Data that is forwarded unchanged is read by the server behind.
    let passes = pod.and_then(|pod| {
        let listener = engine.cluster.controller_of(pod)?.listener(leg.dst.port())?;
        Some(listener.takes == Takes::Connections && !listener.tls)
    });
    if request.has_proxy_header && passes == Some(true) && !is_read(stated) {
        return None;
    }
    let is_from = |ranges: &[IpNet]| {
        ranges.is_empty() || ranges.iter().any(|net| net.contains(&leg.src.ip()))
    };
    match (stated, request.has_proxy_header) {
        (Some(ProxyExpectation::Required(ranges)), false) if is_from(ranges) => {
            let controller = pod.and_then(|pod| engine.cluster.controller_of(pod));
            let is_unread = controller.is_some_and(|own| UNREAD.contains(&&*own.product));
            let missing = header_missing(request, None);
            let outcome = if is_unread { Outcome::Reset } else { missing.outcome };
            Some(Misread { outcome, ..missing })
        }
        (Some(ProxyExpectation::NotExpected), true) => Some(header_unexpected(request, None)),
        (Some(ProxyExpectation::Unasked(what)), true) => {
            let service = engine.header_servers().service_of(leg.dst);
            let supposed = service.map(|service| expects_none(service, what));
            Some(header_unexpected(request, supposed))
        }
        // A header from any other source is read as the request. A server that merely accepts
        // headers reads and ignores those of other sources.
        (Some(ProxyExpectation::Required(ranges)), true)
            if !is_from(ranges) && !cloud::stands_for_balancer(leg.src.ip()) =>
        {
            Some(header_unexpected(request, None))
        }
        (None | Some(ProxyExpectation::Unknown(_)), false) => {
            let service = engine.header_servers().service_of(leg.dst)?;
            Some(header_missing(request, Some(expects_header(service))))
        }
        _ => None,
    }
}

/// Returns the assumption about a server that accepts a connection without a header, although its
/// load balancer sends one.
pub(super) fn supposed_plain(
    engine: &Engine<'_>,
    at: Peer<'_>,
    leg: Leg,
    request: &Request,
) -> Option<Assumption> {
    match expected_at(engine.cluster, at, leg) {
        Some(ProxyExpectation::Unasked(what)) if !request.has_proxy_header => {
            Some(expects_none(engine.header_servers().service_of(leg.dst)?, what))
        }
        _ => None,
    }
}

fn expected_at<'e>(cluster: &'e Cluster, at: Peer<'e>, leg: Leg) -> Option<&'e ProxyExpectation> {
    cluster.proxy_expectation(at.pod()?, leg.dst.port())
}

/// Returns whether a program is an API server, which reads no PROXY header.
fn is_api_server(cluster: &Cluster, at: Peer<'_>, leg: Leg) -> bool {
    if let Some(pod) = at.pod() {
        // One image may have all programs of Kubernetes.
        let is_it = |own: &Container| {
            own.program().starts_with(API_SERVER) || own.name.starts_with(API_SERVER)
        };
        return pod.spec.containers.iter().any(is_it);
    }
    let mut all = cluster.api_server_slices().iter().flat_map(|slice| {
        let ports = slice.ports.iter().map(|port| port.port.number());
        ports.flat_map(|port| slice.endpoints.iter().map(move |own| (own.address, port)))
    });
    matches!(at, Peer::Host(..)) && all.any(|at| at == (leg.dst.ip(), leg.dst.port()))
}

/// Returns whether a server looks for a header.
pub(super) fn is_read(expected: Option<&ProxyExpectation>) -> bool {
    !matches!(expected, Some(ProxyExpectation::NotExpected | ProxyExpectation::Unasked(_)))
}

/// Returns the reaction of a server that reads other data in place of a header: it closes the
/// connection. A client that uses TLS sees its handshake fail.
fn header_missing(request: &Request, supposed: Option<Assumption>) -> Misread {
    let outcome = match request.tls {
        Some(true) => Outcome::TlsError,
        Some(false) | None => Outcome::EmptyReply,
    };
    let why = "expects a PROXY header, which only the load balancer sends: closes the connection";
    Misread { why, outcome, supposed }
}

/// Returns the reaction of a server that reads a header as the beginning of a request: it refuses
/// the request.
fn header_unexpected(request: &Request, supposed: Option<Assumption>) -> Misread {
    let outcome = match request.tls {
        Some(true) => Outcome::TlsError,
        Some(false) | None => Outcome::Status { code: 400, after: Duration::ZERO },
    };
    let why = "does not expect the PROXY header that the load balancer sends: a bad request";
    Misread { why, outcome, supposed }
}

fn about_header(service: &NamespacedName, is_expected: bool) -> AssumptionSubject {
    AssumptionSubject::ProxyHeader { service: Some(service.clone()), is_expected }
}

fn expects_none(service: &NamespacedName, what: &str) -> Assumption {
    Assumption {
        subject: about_header(service, false),
        assumed: "they do not".into(),
        because: format!("their default: the input does not ask for one, but {what} may").into(),
        settle: format!("give every {what}").into(),
    }
}

fn expects_header(service: &NamespacedName) -> Assumption {
    Assumption {
        subject: about_header(service, true),
        assumed: "they do".into(),
        because: "its load balancer sends one: pods that do not expect it would fail calls from \
                  outside"
            .into(),
        settle: "look at the server's own settings".into(),
    }
}
