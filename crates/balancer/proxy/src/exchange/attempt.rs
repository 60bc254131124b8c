//! Sends a request to the target whose turn it is, and to another one where that is safe.
//!
//! # Guarantees
//! - A request of which no byte was sent may go to another target, whatever its method.
//! - A request that was sent is sent again only if its method is idempotent (RFC 9110, section
//!   9.2.2), no answer has begun and the whole body is still known.
//! - An error of this machine is no failure of the target. Another target is tried, unless
//!   descriptors or memory are short; then the answer is 503.
//! - A kept connection that the target closed meanwhile is no failure of the target: the request is
//!   sent to that target once more, on a new connection, under the same conditions. A target that
//!   does not answer in time is not asked again.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use uturn_lb::config::{Forward, Keepalive};
use uturn_lb::event::Event;
use uturn_lb::proxy_header;
use uturn_lb::source::replaced_source;
use uturn_model::lb;

use super::answer::OwnAnswer;
use super::record::Record;
use super::service::Client;
use crate::deadline::Deadline;
use crate::local_error::{Cause, Operation};
use crate::metrics::ConnectFailure;
use crate::request_body::{BodyError, RequestBody};
use crate::state::{Listener, OpenGuard, Rule};
use crate::upstream::{ConnectError, Http1, Http2, Key, Received, SendError, Source, connect};
use crate::worker::Worker;

/// A request on its way to the targets of a rule.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    pub(super) client: &'a Client,
    pub(super) listener: &'a Listener,
    pub(super) record: &'a Record,
    pub(super) rule: &'a Arc<Rule>,
    pub(super) deadline: &'a Rc<Deadline>,
    /// The value of the cookie by which the client stays with its target.
    pub(super) cookie: Option<&'a str>,
    /// Whether connections that served other requests may be used.
    pub(super) may_reuse: bool,
}

/// A target that was reached, and the connection to it.
#[derive(Debug)]
pub(super) struct Reached {
    open: OpenGuard,
    worker: Rc<Worker>,
    key: Key,
    connection: Option<Connection>,
    keepalive: Keepalive,
}

#[derive(Debug)]
enum Connection {
    Http1(Http1),
    Http2(Http2),
}

/// A failed attempt.
struct Failure {
    answer: OwnAnswer,
    /// The request, if another target may get it.
    request: Option<Request<RequestBody>>,
    /// Whether the target is to blame.
    is_targets: bool,
}

/// The reason why a connection to a target could not be opened.
struct Unopened {
    answer: OwnAnswer,
    /// The cause, if this machine is to blame.
    cause: Option<Cause>,
}

impl Unopened {
    /// Returns a failure that the target is to blame for.
    fn of_target(status: StatusCode, why: String) -> Self {
        Self { answer: OwnAnswer::new(status, why), cause: None }
    }

    /// Returns the failure of an attempt with this request.
    fn with(self, request: Request<RequestBody>) -> Failure {
        // If descriptors are short, another target could not be connected to either.
        let may_try_others = self.cause.is_none_or(|cause| !cause.is_shortage());
        Failure {
            answer: self.answer,
            request: may_try_others.then_some(request),
            is_targets: self.cause.is_none(),
        }
    }
}

impl Attempt<'_> {
    /// Forwards a request; the answer's body is still to come.
    ///
    /// # Errors
    /// The load balancer's own answer if no target gave one.
    pub(super) async fn forward(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<(Response<Received>, Reached), OwnAnswer> {
        let client = self.client;
        let no_target =
            || OwnAnswer::new(StatusCode::SERVICE_UNAVAILABLE, "no target may be picked");
        let picked = self.rule.pick(client.address.ip(), self.cookie).ok_or_else(no_target)?;
        client.report(|| Event::Pick {
            connection: client.connection,
            client: client.address,
            listener: self.listener.address,
            target: self.address(picked.target),
            turn: picked.turn,
        });
        // An empty list takes no memory, which is the case unless a target fails.
        let mut tried = Vec::new();
        let mut target = picked.target;
        loop {
            self.record.attempt(self.address(target));
            let failure = match self.try_target(target, request).await {
                Ok(answered) => {
                    self.rule.record(target, true);
                    self.rule.remember(client.address.ip(), target);
                    return Ok(answered);
                }
                Err(failure) => failure,
            };
            if failure.is_targets && self.rule.record(target, false) {
                client.worker.process.report_change(&Event::Resting {
                    listener: self.listener.address,
                    target: self.address(target),
                });
            }
            let Some(again) = failure.request else { return Err(failure.answer) };
            request = again;
            tried.push(target);
            target = match self.rule.next(client.address.ip(), &tried) {
                Some(next) => next,
                None => return Err(failure.answer),
            };
        }
    }

    /// Sends the request to a target, on a kept connection if there is one.
    async fn try_target(
        &self,
        target: usize,
        request: Request<RequestBody>,
    ) -> Result<(Response<Received>, Reached), Failure> {
        let mut reached = self.reached(target);
        let mut may_reuse = true;
        loop {
            let kept = may_reuse.then(|| self.kept(&reached.key)).flatten();
            let (mut connection, is_reused) = match kept {
                Some(connection) => (connection, true),
                None => match self.open(target, &reached.key).await {
                    Ok(connection) => (connection, false),
                    Err(unopened) => return Err(unopened.with(request)),
                },
            };
            self.deadline.set(self.listener.settings.timeouts.read);
            let sent = self.deadline.limit(connection.send(&request)).await;
            self.deadline.clear();
            let is_timeout = sent.is_err();
            let (answer, is_unsent) = match sent {
                Ok(Ok(response)) => {
                    reached.connection = Some(connection);
                    return Ok((response, reached));
                }
                Ok(Err(SendError { is_unsent, why })) => {
                    let why = format!("{}: {why}", self.address(target));
                    (OwnAnswer::new(StatusCode::BAD_GATEWAY, why), is_unsent)
                }
                Err(_) => {
                    let why = format!("{} does not answer", self.address(target));
                    (OwnAnswer::new(StatusCode::GATEWAY_TIMEOUT, why), false)
                }
            };
            if let Some(answer) = clients_fault(request.body(), is_timeout) {
                return Err(Failure { answer, request: None, is_targets: false });
            }
            let may_repeat =
                is_unsent || (is_idempotent(request.method()) && request.body().is_whole());
            if !(may_repeat && is_reused) || is_timeout {
                let request = may_repeat.then_some(request);
                return Err(Failure { answer, request, is_targets: true });
            }
            may_reuse = false;
        }
    }

    /// Returns a kept connection to the target.
    fn kept(&self, key: &Key) -> Option<Connection> {
        let pool = &self.client.worker.pool;
        if self.listener.settings.proxy_to.is_some() {
            // A kept connection was announced as another client's.
            return None;
        }
        match self.rule.settings.forward {
            Forward::Http1 if self.may_reuse => pool.take(key).map(Connection::Http1),
            Forward::Http1 => None,
            Forward::H2c => pool.shared(key).map(Connection::Http2),
        }
    }

    /// Opens a connection to a target.
    async fn open(&self, place: usize, key: &Key) -> Result<Connection, Unopened> {
        let Client { connection, worker, .. } = self.client;
        let (target, connection) = (key.target, *connection);
        let metrics = &self.rule.targets[place].metrics;
        let mut stream = self.connect(target).await;
        if let Err(ConnectError::Local(Cause::Descriptors, _)) = &stream {
            worker.pool.close_idle();
            stream = self.connect(target).await;
        }
        let stream = match stream {
            Ok(stream) => stream,
            Err(ConnectError::Timeout) => {
                metrics.fail_to_connect(ConnectFailure::Timeout);
                self.client.report(|| Event::Timeout { connection, target });
                let why = format!("{target} does not answer");
                return Err(Unopened::of_target(StatusCode::GATEWAY_TIMEOUT, why));
            }
            Err(ConnectError::Refused(error)) => {
                metrics.fail_to_connect(ConnectFailure::Refused);
                let why = error.to_string();
                self.client.report(|| Event::Refused { connection, target, why: why.clone() });
                return Err(Unopened::of_target(
                    StatusCode::BAD_GATEWAY,
                    format!("{target}: {why}"),
                ));
            }
            Err(ConnectError::Local(cause, error)) => {
                worker.process.local_errors.count(Operation::Connect, cause);
                let why = format!("this machine cannot connect to {target}: {error}");
                let answer = OwnAnswer::new(StatusCode::SERVICE_UNAVAILABLE, why);
                return Err(Unopened { answer, cause: Some(cause) });
            }
        };
        let stream = self.announce(stream, target).await?;
        let broken = |error: hyper::Error| {
            Unopened::of_target(StatusCode::BAD_GATEWAY, format!("{target}: {error}"))
        };
        match self.rule.settings.forward {
            Forward::Http1 => Ok(Connection::Http1(Http1::Idle(stream))),
            Forward::H2c => {
                let connection = Http2::new(stream).await.map_err(broken)?;
                if self.listener.settings.proxy_to.is_none() {
                    self.client.worker.pool.share(*key, connection.clone());
                }
                Ok(Connection::Http2(connection))
            }
        }
    }

    async fn connect(&self, target: SocketAddr) -> Result<TcpStream, ConnectError> {
        let (profile, client) = (&self.listener.profile, self.client.address.ip());
        let descriptors = self.client.worker.process.descriptors;
        connect(target, &profile.source, client, profile.connect_timeout, descriptors).await
    }

    /// Sends a PROXY header to the target, if the listener is configured to.
    async fn announce(
        &self,
        mut stream: TcpStream,
        target: SocketAddr,
    ) -> Result<TcpStream, Unopened> {
        let Client { address, listener, .. } = self.client;
        let Some(version) = self.listener.settings.proxy_to else { return Ok(stream) };
        let header = proxy_header::write(version, *address, listener.address);
        let broken =
            |error| Unopened::of_target(StatusCode::BAD_GATEWAY, format!("{target}: {error}"));
        stream.write_all(&header).await.map_err(broken)?;
        Ok(stream)
    }

    fn reached(&self, target: usize) -> Reached {
        let client = self.client;
        let source = match &self.listener.profile.source {
            lb::Source::Kept => Source::Client(client.address.ip()),
            lb::Source::Replaced(range) => Source::Own(replaced_source(*range)),
        };
        Reached {
            open: self.rule.open(target),
            worker: Rc::clone(&client.worker),
            key: Key { target: self.address(target), source },
            connection: None,
            keepalive: Keepalive {
                connections: match self.listener.settings.proxy_to {
                    Some(_) => 0,
                    None => self.listener.settings.keepalive.connections,
                },
                ..self.listener.settings.keepalive.clone()
            },
        }
    }

    fn address(&self, target: usize) -> SocketAddr {
        self.rule.targets[target].address
    }
}

impl Connection {
    async fn send(
        &mut self,
        request: &Request<RequestBody>,
    ) -> Result<Response<Received>, SendError> {
        match self {
            Self::Http1(connection) => connection.send(request).await,
            Self::Http2(connection) => connection.send(request).await,
        }
    }
}

impl Reached {
    /// Returns the target's address.
    pub(super) fn address(&self) -> SocketAddr {
        self.key.target
    }

    /// Moves bytes on the connection in both directions.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(Connection::Http1(connection)) = &mut self.connection {
            connection.poll(cx);
        }
    }

    /// Keeps the connection for further requests.
    pub(super) fn give_back(&mut self) {
        if let Some(Connection::Http1(connection)) = self.connection.take() {
            self.worker.pool.give(self.key, connection, &self.keepalive);
        }
    }

    /// Returns the stream after the target switched protocols, what was read from it already, and
    /// the guard that counts it as open.
    pub(super) fn into_stream(self) -> Option<(TcpStream, Bytes, OpenGuard)> {
        match self.connection {
            Some(Connection::Http1(connection)) => {
                let (stream, received) = connection.into_stream()?;
                Some((stream, received, self.open))
            }
            _ => None,
        }
    }
}

/// Returns the answer to a request whose body the client did not deliver.
fn clients_fault(body: &RequestBody, is_timeout: bool) -> Option<OwnAnswer> {
    let error = body.failure().or_else(|| is_timeout.then(|| body.delay()).flatten())?;
    let status = match error {
        BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::Broken => StatusCode::BAD_REQUEST,
        BodyError::Silent | BodyError::Slow => StatusCode::REQUEST_TIMEOUT,
    };
    Some(OwnAnswer::closing(status, error.to_string()))
}

fn is_idempotent(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE]
        .contains(method)
}
