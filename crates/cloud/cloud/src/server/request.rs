//! Handles one HTTP request: reads its body within limits, and lets the cloud answer it on a thread
//! that may wait for the disk.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use jiff::Timestamp;
use tokio::task::spawn_blocking;
use uturn_cloud_api::wire::envelope;
use uturn_cloud_api::wire::error::ApiError;

use super::body::{self, Pace};
use super::large_bodies::LargeBodies;
use super::limits::Limits;
use crate::authorization::Received;
use crate::cloud::Cloud;

/// The largest body that is read without waiting for a turn.
const SMALL_BODY: u64 = 256 << 10;

/// The state that all requests share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    cloud: Arc<Cloud>,
    large_bodies: LargeBodies,
}

impl Shared {
    pub(super) fn new(cloud: Arc<Cloud>) -> Self {
        Self { cloud, large_bodies: LargeBodies::default() }
    }
}

/// Answers a request, whose body has to come within a time limit. Error answers also have the HTTP
/// status 200, as clients expect.
pub(super) async fn answer(
    request: Request<Incoming>,
    shared: &Shared,
    network: IpAddr,
    limits: &Limits,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    let cloud = Arc::clone(&shared.cloud);
    let is_small = body.size_hint().upper().is_some_and(|length| length <= SMALL_BODY);
    let mut turn = None;
    if !is_small {
        // A client whose signature cannot be valid does not get a turn that others wait for.
        let head = Received {
            method: head.method.as_str(),
            query: head.uri.query().unwrap_or_default(),
            headers: &headers,
            body: b"",
        };
        if let Err(error) = cloud.check_head(&head, Timestamp::now()) {
            return match body::discard(body, limits.body).await {
                Ok(()) => respond(envelope::failure(&error, &cloud.new_request_id())),
                Err(error) => refuse(&cloud, &error),
            };
        }
        match shared.large_bodies.turn(network, limits.body_turn).await {
            Ok(granted) => turn = Some(granted),
            Err(error) => return refuse(&cloud, &error),
        }
    }
    let pace = if is_small { Pace::Any } else { Pace::Steady };
    let body = match body::read(body, limits.body, pace).await {
        Ok(body) => body,
        Err(error) => return refuse(&cloud, &error),
    };
    drop(turn);
    let answered = spawn_blocking(move || {
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
            // This request failed because of a fault in the program; others are not affected.
            let mut response = respond(Vec::new());
            *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

/// Refuses a request without reading the rest of its body, so that the connection has to be closed.
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
