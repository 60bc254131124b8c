//! One HTTP request: its body is read within limits, and the cloud answers it on a thread that
//! may wait for the disk.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::body;
use crate::cloud::Cloud;
use crate::wire::authorization::Received;
use crate::wire::envelope;
use crate::wire::error::ApiError;

/// Bodies up to this size are read at any time.
const SMALL_BODY: u64 = 256 << 10;

/// Larger bodies that are read at a time; more wait.
const LARGE_BODIES: usize = 8;

/// What all requests share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    cloud: Arc<Cloud>,
    large_bodies: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(cloud: Arc<Cloud>) -> Self {
        Self { cloud, large_bodies: Arc::new(Semaphore::new(LARGE_BODIES)) }
    }
}

/// Answers a request, whose body has to come within a time. Errors have the HTTP status 200 too, as
/// clients expect.
pub(super) async fn answer(
    request: Request<Incoming>,
    shared: &Shared,
    time: Duration,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let is_small = body.size_hint().upper().is_some_and(|length| length <= SMALL_BODY);
    let _permit = match is_small {
        true => None,
        false => shared.large_bodies.acquire().await.ok(),
    };
    let cloud = Arc::clone(&shared.cloud);
    let body = match body::read(body, time).await {
        Ok(body) => body,
        Err(error) => return refuse(&cloud, &error),
    };
    let answered = spawn_blocking(move || {
        let headers: Vec<(String, String)> = head
            .headers
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let received = Received {
            method: head.method.as_str(),
            query: head.uri.query().unwrap_or_default(),
            headers: &headers,
            body: &body,
        };
        cloud.answer(&received, Timestamp::now())
    });
    match answered.await {
        Ok(body) => respond(body),
        Err(_) => {
            // A fault of this program in this request; the others go on.
            let mut response = respond(Vec::new());
            *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

/// Refuses a request whose rest is not read, so that the connection cannot be used again.
fn refuse(cloud: &Cloud, error: &ApiError) -> Response<Full<Bytes>> {
    let mut response = respond(envelope::failure(error, &cloud.new_request_id()));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn respond(body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    let content_type = HeaderValue::from_static(envelope::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
