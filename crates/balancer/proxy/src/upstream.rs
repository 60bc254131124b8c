//! Connections to targets.

mod connect;
mod direct;
mod http1;
mod http2;
mod parsed;
mod pool;

use bytes::Bytes;
pub(crate) use connect::{ConnectError, check_source, connect};
use http::Request;
pub(crate) use http1::Http1;
pub(crate) use http2::Http2;
use hyper::body::Incoming;
pub(crate) use pool::{Key, Pool, Source};

use crate::request_body::RequestBody;

/// The body of a target's answer.
#[derive(Debug)]
pub(crate) enum Received {
    /// The whole body.
    Whole(Bytes),
    /// A body that arrives while the connection is polled.
    Incoming(Incoming),
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(crate) struct SendError {
    /// Whether no byte of the request was sent.
    pub(crate) is_unsent: bool,
    pub(crate) why: String,
}

impl SendError {
    fn new(is_unsent: bool, why: &impl ToString) -> Self {
        Self { is_unsent, why: why.to_string() }
    }
}

/// Copies a request for hyper, which does not give it back. The original stays for another attempt.
fn copy_of(request: &Request<RequestBody>) -> Request<RequestBody> {
    let mut copy = Request::new(request.body().again());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    *copy.version_mut() = request.version();
    copy.headers_mut().clone_from(request.headers());
    copy
}
