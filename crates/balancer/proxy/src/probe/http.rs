//! Health checks that request a page.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ::http::header::{CONNECTION, HOST, USER_AGENT};
use ::http::{HeaderValue, Method};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use uturn_lb::config::HttpMethod;
use uturn_lb::event::ProbeResult;

use super::ask;
use crate::local_error::SocketError;
use crate::request_body::RequestBody;

/// The user agent of health checks.
const AGENT: HeaderValue = HeaderValue::from_static("uturn-healthcheck");

/// The request of a health check, and the answers that it expects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) method: HttpMethod,
    pub(super) path: &'a str,
    pub(super) host: Option<&'a str>,
    /// The first digits of the expected statuses.
    pub(super) classes: &'a [u8],
}

/// Requests the page. The target is alive if it answers with an expected status.
pub(super) async fn ask(
    source: IpAddr,
    target: SocketAddr,
    limit: Duration,
    request: &Request<'_>,
) -> Result<ProbeResult, SocketError> {
    let status = timeout(limit, status(source, target, request)).await??;
    let class = (status / 100) as u8;
    if request.classes.contains(&class) {
        Ok(ProbeResult::Answered)
    } else {
        Ok(ProbeResult::Unexpected)
    }
}

async fn status(
    source: IpAddr,
    target: SocketAddr,
    asked: &Request<'_>,
) -> Result<u16, SocketError> {
    let invalid = |error: ::http::Error| io::Error::new(io::ErrorKind::InvalidInput, error);
    let broken = |error: hyper::Error| io::Error::new(io::ErrorKind::InvalidData, error);
    let host = asked.host.map_or_else(|| target.to_string(), str::to_owned);
    let request = ::http::Request::builder()
        .method(match asked.method {
            HttpMethod::Head => Method::HEAD,
            HttpMethod::Get => Method::GET,
        })
        .uri(asked.path)
        .header(HOST, host)
        .header(USER_AGENT, AGENT)
        .header(CONNECTION, "close")
        .body(RequestBody::none())
        .map_err(invalid)?;
    let stream = ask::connect(source, target).await?;
    let (mut send, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // The body of the answer does not matter, so the connection ends with this task.
    let connection = tokio::task::spawn_local(connection);
    let answer = send.send_request(request).await.map_err(broken);
    connection.abort();
    Ok(answer?.status().as_u16())
}
