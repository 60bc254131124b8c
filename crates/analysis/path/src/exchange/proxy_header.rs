//! Servers that expect connections to begin with the PROXY header that a load balancer sends.

use std::time::Duration;

use uturn_clouds::cloud;
use uturn_model::controller::{ProxyExpectation, Takes};
use uturn_model::route::Leg;
use uturn_model::{Assumption, AssumptionSubject, IpNet, NamespacedName, Outcome, Pod, Text};

use crate::engine::Engine;
use crate::packet::{Peer, Request};

/// What has to be so of servers, where an assumption is about the header that they expect.
pub fn supposed_of_servers(supposed: &Assumption) -> Option<Text> {
    let AssumptionSubject::ProxyHeader { is_expected, .. } = supposed.subject else { return None };
    let expected = if is_expected { "a" } else { "no" };
    Some(format!("its pods expect {expected} PROXY header").into())
}

/// Leaves the Service out of such an assumption.
pub(crate) fn without_service(supposed: &mut Assumption) {
    if let AssumptionSubject::ProxyHeader { service, .. } = &mut supposed.subject {
        *service = None;
    }
}

/// Controllers that look for a header without reading what is there: the kernel resets a connection
/// that is closed while something is unread.
const UNREAD: [&str; 2] = ["HAProxy", "HAProxy Ingress"];

/// How a server treats a connection that lacks the PROXY header it expects, or has one
/// that it does not expect.
pub(crate) struct Misread {
    /// What it does, for a reader.
    pub(crate) why: &'static str,
    /// What the client gets.
    pub(crate) outcome: Outcome,
    /// What is taken for true of the server, where its settings do not say it.
    pub(crate) supposed: Option<Assumption>,
}

impl<'a> Engine<'a> {
    /// What a server makes of the beginning of a connection. Returns `None` where it is as the
    /// server expects.
    pub(crate) fn misread(&self, at: Peer<'a>, leg: Leg, request: &Request) -> Option<Misread> {
        let pod = pod_of(at);
        let stated = self.expected_at(at, leg);
        // What is passed on as it came is read by the server behind it.
        let passes = pod.and_then(|pod| {
            let listener = self.cluster.controller_of(pod)?.listener(leg.dst.port())?;
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
                let controller = pod.and_then(|pod| self.cluster.controller_of(pod));
                let is_unread = controller.is_some_and(|own| UNREAD.contains(&&*own.product));
                let missing = header_missing(request, None);
                let outcome = if is_unread { Outcome::Reset } else { missing.outcome };
                Some(Misread { outcome, ..missing })
            }
            (Some(ProxyExpectation::NotExpected), true) => Some(header_unexpected(request, None)),
            (Some(ProxyExpectation::Unasked(what)), true) => {
                let service = self.header_servers().service_of(leg.dst);
                let supposed = service.map(|service| expects_none(service, what));
                Some(header_unexpected(request, supposed))
            }
            // From elsewhere it is read as the request. A server that merely accepts headers reads
            // and ignores those of others.
            (Some(ProxyExpectation::Required(ranges)), true)
                if !is_from(ranges) && !cloud::stands_for_balancer(leg.src.ip()) =>
            {
                Some(header_unexpected(request, None))
            }
            (None | Some(ProxyExpectation::Unknown(_)), false) => {
                let service = self.header_servers().service_of(leg.dst)?;
                Some(header_missing(request, Some(expects_header(service))))
            }
            _ => None,
        }
    }

    /// What is supposed of a server that takes a connection without a header, where its load balancer
    /// sends one.
    pub(crate) fn supposed_plain(
        &self,
        at: Peer<'a>,
        leg: Leg,
        request: &Request,
    ) -> Option<Assumption> {
        match self.expected_at(at, leg) {
            Some(ProxyExpectation::Unasked(what)) if !request.has_proxy_header => {
                Some(expects_none(self.header_servers().service_of(leg.dst)?, what))
            }
            _ => None,
        }
    }

    fn expected_at(&self, at: Peer<'a>, leg: Leg) -> Option<&'a ProxyExpectation> {
        self.cluster.proxy_expectation(pod_of(at)?, leg.dst.port())
    }
}

fn pod_of(at: Peer<'_>) -> Option<&Pod> {
    match at {
        Peer::Pod(pod) | Peer::Host(_, Some(pod)) => Some(pod),
        _ => None,
    }
}

/// Whether a server looks for a header.
pub(super) fn is_read(expected: Option<&ProxyExpectation>) -> bool {
    !matches!(expected, Some(ProxyExpectation::NotExpected | ProxyExpectation::Unasked(_)))
}

/// A server that reads something else where a header should stand closes the connection: a client
/// that speaks TLS sees its handshake fail.
fn header_missing(request: &Request, supposed: Option<Assumption>) -> Misread {
    let outcome = match request.tls {
        Some(true) => Outcome::TlsError,
        Some(false) | None => Outcome::EmptyReply,
    };
    let why = "expects a PROXY header, which only the load balancer sends: closes the connection";
    Misread { why, outcome, supposed }
}

/// A server that takes a header for the beginning of a request refuses that.
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
        because: format!("their default, and nothing that is given asks for one: {what} may")
            .into(),
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
