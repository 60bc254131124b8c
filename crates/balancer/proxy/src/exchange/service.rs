//! Serves a client's request, from its head to its answer.

use std::borrow::Cow;
use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, SET_COOKIE, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use tokio::net::TcpStream;
use uturn_lb::config::Forward;
use uturn_lb::event::Event;
use uturn_lb::request_path::{self, Routed};
use uturn_model::lb::PathNormalization;

use super::answer::OwnAnswer;
use super::attempt::Attempt;
use super::body::AnswerBody;
use super::headers::{
    Forwarded, add_forwarded, address_value, cookie, join_lengths, remove_hop_by_hop,
    remove_replacing,
};
use super::record::Record;
use super::request;
use crate::deadline::Deadline;
use crate::metrics::{AnsweredBy, Shard};
use crate::phase::Phase;
use crate::request_body::{BodyLimits, RequestBody};
use crate::state::{Listener, OpenGuard, Rule, Slot};
use crate::worker::Worker;

/// A client's connection, as its requests see it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) worker: Rc<Worker>,
    /// The listener as it was when the client connected.
    pub(crate) listener: Arc<Listener>,
    pub(super) slot: Arc<Slot>,
    pub(crate) address: SocketAddr,
    /// The number of the connection within the process.
    pub(crate) connection: u64,
    pub(crate) phase: Rc<Phase>,
    forwarded: Forwarded,
    /// The deadline of the last request; with HTTP/1, the next request uses it too.
    deadline: RefCell<Option<Rc<Deadline>>>,
    /// The target's stream for the client's bytes, once the connection switches protocols.
    upgrade: RefCell<Option<Upgrade>>,
}

/// A target's stream after it switched protocols.
#[derive(Debug)]
pub(crate) struct Upgrade {
    pub(crate) stream: TcpStream,
    /// The bytes that the target sent after its answer.
    pub(crate) received: Bytes,
    /// The guard that counts the target's connection as open.
    pub(crate) open: OpenGuard,
    /// The record of the request that switched; it ends with the connection.
    pub(crate) record: Option<Record>,
    /// The longest time for which the connection may be silent.
    pub(crate) idle: Duration,
}

/// A request that passed all checks.
struct Admitted {
    rule: Arc<Rule>,
    request: Request<RequestBody>,
    is_upgrade: bool,
    deadline: Rc<Deadline>,
}

impl Client {
    pub(crate) fn new(
        worker: Rc<Worker>,
        slot: Arc<Slot>,
        address: SocketAddr,
        connection: u64,
        phase: Rc<Phase>,
    ) -> Self {
        let listener = slot.current();
        let is_tls = listener.protocol.ends_tls();
        let forwarded = Forwarded {
            client: address_value(address.ip()),
            proto: HeaderValue::from_static(if is_tls { "https" } else { "http" }),
            port: listener.address.port().into(),
        };
        Self {
            worker,
            listener,
            slot,
            address,
            connection,
            phase,
            forwarded,
            deadline: RefCell::default(),
            upgrade: RefCell::default(),
        }
    }

    /// Returns the target's stream, after an answer that switches protocols.
    pub(crate) fn take_upgrade(&self) -> Option<Upgrade> {
        self.upgrade.borrow_mut().take()
    }

    /// Returns a deadline for a request. It is not set.
    fn deadline(&self) -> Rc<Deadline> {
        let mut last = self.deadline.borrow_mut();
        match last.as_ref().filter(|last| Rc::strong_count(last) == 1) {
            Some(unused) => {
                unused.clear();
                Rc::clone(unused)
            }
            None => Rc::clone(last.insert(Rc::new(self.worker.deadlines.add()))),
        }
    }

    /// Returns the worker's counters of the listener.
    pub(crate) fn shard(&self) -> &Shard {
        self.slot.metrics.of_worker(self.worker.number)
    }

    /// Reports an event to the observer of the process.
    pub(crate) fn report(&self, event: impl FnOnce() -> Event) {
        self.worker.process.report(event);
    }

    /// Reports that no target answered.
    pub(crate) fn report_failure(&self, status: Option<u16>, why: &str) {
        self.report(|| Event::Failed {
            connection: self.connection,
            client: self.address,
            listener: self.listener.address,
            status,
            why: why.to_owned(),
        });
    }
}

/// The reason for refusing a request whose client has too many others under way.
const NO_SHARE: &str = "the client has as many requests under way as it may have now";

/// Answers a request.
///
/// # Errors
/// Never: what goes wrong becomes an answer.
pub(crate) async fn serve(
    client: Rc<Client>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    let exchange = client.phase.begin(!request.body().is_end_stream());
    let listener = client.slot.current();
    let mut record = Record::begin(&client, &request);
    let admitted = if record.take_share() {
        admit(&client, &listener, &record, request)
    } else {
        Err(OwnAnswer::new(StatusCode::SERVICE_UNAVAILABLE, NO_SHARE))
    };
    let answered = match admitted {
        Ok(admitted) => forward(&client, &listener, &record, admitted).await,
        Err(own) => Err(own),
    };
    let by = if answered.is_ok() { AnsweredBy::Target } else { AnsweredBy::LoadBalancer };
    let mut response = answered.unwrap_or_else(|own| {
        record.explain(&own.why);
        answer_alone(&client, own)
    });
    record.answer(by, response.status().as_u16());
    match client.upgrade.borrow_mut().as_mut().filter(|upgrade| upgrade.record.is_none()) {
        Some(upgrade) => upgrade.record = Some(record),
        None => response.body_mut().keep(record),
    }
    response.body_mut().hold(exchange);
    Ok(response)
}

/// Checks a request, finds its rule, and turns it into the request for the target.
fn admit(
    client: &Client,
    listener: &Listener,
    record: &Record,
    mut request: Request<Incoming>,
) -> Result<Admitted, OwnAnswer> {
    request::check(&mut request, listener)?;
    if !client.slot.gate.takes_request(&listener.settings.limits) {
        let why = "more requests a second than the listener takes";
        return Err(OwnAnswer::new(StatusCode::TOO_MANY_REQUESTS, why));
    }
    let rule = route(listener, &mut request)?;
    let may_upgrade =
        request.version() == Version::HTTP_11 && rule.settings.forward == Forward::Http1;
    let deadline = client.deadline();
    let hop_by_hop = remove_hop_by_hop(request.headers_mut());
    let host = hop_by_hop.names_host.then(|| request::host(&request).into_owned());
    let mut request = request.map(|incoming| {
        if incoming.is_end_stream() {
            RequestBody::none()
        } else {
            let limits = BodyLimits {
                bytes: listener.settings.limits.body_bytes,
                silence: listener.settings.timeouts.read,
                bytes_per_second: match rule.settings.forward {
                    Forward::Http1 => listener.settings.limits.body_bytes_per_second,
                    // Streams of gRPC may be silent for long.
                    Forward::H2c => 0,
                },
                deadline: Rc::clone(&deadline),
                received: record.received(),
                phase: Rc::clone(&client.phase),
                nominated: hop_by_hop.nominated,
            };
            RequestBody::new(incoming, limits)
        }
    });
    match rule.settings.forward {
        Forward::Http1 => request::to_origin_form(&mut request),
        Forward::H2c => request::to_http2_form(&mut request)?,
    }
    // hyper sends no body of unknown length with GET and HEAD unless its framing is stated.
    let is_chunked =
        rule.settings.forward == Forward::Http1 && request.body().size_hint().exact().is_none();
    let headers = request.headers_mut();
    if is_chunked {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    // The client is told to continue when its body is asked for.
    headers.remove(EXPECT);
    if listener.profile.path_normalization != PathNormalization::Off {
        remove_replacing(headers);
    }
    let how = listener.settings.forwarded_for;
    add_forwarded(headers, &client.forwarded, how, host.as_deref());
    let upgrade = hop_by_hop.upgrade.filter(|_| may_upgrade);
    let is_upgrade = upgrade.is_some();
    if let Some(protocol) = upgrade {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    } else if hop_by_hop.takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
        if rule.settings.forward == Forward::Http1 {
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
    }
    Ok(Admitted { rule, request, is_upgrade, deadline })
}

/// Finds the rule for a request, and sets the path to the one that the rule was found by.
fn route<B>(listener: &Listener, request: &mut Request<B>) -> Result<Arc<Rule>, OwnAnswer> {
    let (host, path) = (request::host(request), request::path(request));
    let default = || listener.settings.default_host.as_deref();
    let how = listener.profile.path_normalization;
    let routed = request_path::route(how, path, |path| {
        let of_host = |host: &str| listener.router.position(host, path);
        of_host(&host).or_else(|| of_host(default()?))
    });
    let bad = |why: String| OwnAnswer::new(StatusCode::BAD_REQUEST, why);
    let Routed { path, rule } = routed.map_err(|refused| bad(refused.to_string()))?;
    let no_rule = || OwnAnswer::new(StatusCode::NOT_FOUND, "no rule for this host and path");
    let rule = &listener.rules[rule.ok_or_else(no_rule)?];
    if let Some(redirect) = &rule.config.redirect {
        let status = StatusCode::from_u16(redirect.code).unwrap_or(StatusCode::FOUND);
        return Err(OwnAnswer::redirect(status, redirect.location(&host, &path)));
    }
    if let Cow::Owned(path) = path {
        request::set_path(request, path).map_err(|error| bad(error.to_string()))?;
    }
    Ok(Arc::clone(rule))
}

async fn forward(
    client: &Client,
    listener: &Listener,
    record: &Record,
    admitted: Admitted,
) -> Result<Response<AnswerBody>, OwnAnswer> {
    let Admitted { rule, request, is_upgrade, deadline } = admitted;
    let (rule, deadline, may_reuse) = (&rule, &deadline, !is_upgrade);
    let cookie = rule.cookie_name().and_then(|name| cookie(request.headers(), name));
    let cookie = cookie.as_deref();
    let attempt = Attempt { client, listener, record, rule, deadline, cookie, may_reuse };
    let (response, reached) = attempt.forward(request).await?;
    let status = response.status();
    client.report(|| Event::Answered {
        connection: client.connection,
        target: reached.address(),
        status: status.as_u16(),
    });
    let (mut parts, incoming) = response.into_parts();
    let hop_by_hop = remove_hop_by_hop(&mut parts.headers);
    let unclear = |why: &str| {
        let why = format!("{}: {why}", reached.address());
        Err(OwnAnswer::new(StatusCode::BAD_GATEWAY, why))
    };
    if hop_by_hop.has_other_coding {
        // A reader of the answer would take the coded bytes for the body (RFC 9112, section 6.1).
        return unclear("the answer has a transfer coding other than chunked");
    }
    if hop_by_hop.has_coding && parts.version == Version::HTTP_10 {
        return unclear("the answer of HTTP/1.0 has a transfer coding");
    }
    if !join_lengths(&mut parts.headers) {
        return unclear("the answer has two lengths");
    }
    parts.version = Version::HTTP_11;
    let set_cookie = rule.cookie_for(reached.address(), cookie);
    if let Some(set_cookie) = set_cookie.and_then(|text| HeaderValue::try_from(text).ok()) {
        parts.headers.append(SET_COOKIE, set_cookie);
    }
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let no_upgrade =
            || OwnAnswer::new(StatusCode::BAD_GATEWAY, "the target switches protocols unasked");
        let protocol = hop_by_hop.upgrade.filter(|_| is_upgrade).ok_or_else(no_upgrade)?;
        let (stream, received, open) = reached.into_stream().ok_or_else(no_upgrade)?;
        parts.headers.insert(UPGRADE, protocol);
        parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        let idle = listener.settings.timeouts.tunnel;
        let upgrade = Upgrade { stream, received, open, record: None, idle };
        *client.upgrade.borrow_mut() = Some(upgrade);
        return Ok(Response::from_parts(parts, AnswerBody::whole("")));
    }
    let silence = listener.settings.timeouts.read;
    let body = AnswerBody::of_target(
        incoming,
        reached,
        Rc::clone(deadline),
        silence,
        hop_by_hop.nominated,
    );
    Ok(Response::from_parts(parts, body))
}

/// Answers on behalf of the load balancer itself.
fn answer_alone(client: &Client, own: OwnAnswer) -> Response<AnswerBody> {
    let status = own.status.as_u16();
    if own.closes {
        client.phase.leave_unread();
    }
    match &own.location {
        Some(location) => client.report(|| Event::Redirected {
            connection: client.connection,
            status,
            location: location.clone(),
        }),
        None => client.report_failure(Some(status), &own.why),
    }
    own.into_response()
}
