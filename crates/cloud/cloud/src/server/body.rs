//! Reads the body of a request within limits.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::cloud::MAX_BODY;

/// The most bytes of a body that is too large that are read and dropped. A client whose body is
/// read to its end gets its answer; a client that is still sending may only see a closed
/// connection.
const MAX_READ: usize = 4 * MAX_BODY;
/// The lowest rate, in bytes per second, of a body that others wait for.
const SLOWEST: u64 = 32 << 10;
/// The time that such a body may take to begin.
const GRACE: Duration = Duration::from_secs(5);

/// The rate at which a body has to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Any rate, within the time limit.
    Any,
    /// At least [`SLOWEST`], because others wait for the body.
    Steady,
}

/// What happens to the bytes of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Keep,
    Discard,
}

/// Reads a body.
///
/// # Errors
///
/// Returns the error for a body that is too large, is incomplete or takes too long.
pub(super) async fn read(body: Incoming, limit: Duration, pace: Pace) -> Result<Bytes, ApiError> {
    match timeout(limit, collect(body, pace, Use::Keep)).await {
        Ok(read) => read,
        Err(_) => Err(late(limit)),
    }
}

/// Reads a body to its end and drops it, so that its client sees the answer.
///
/// # Errors
///
/// Returns the same errors as [`read`].
pub(super) async fn discard(body: Incoming, limit: Duration) -> Result<(), ApiError> {
    match timeout(limit, collect(body, Pace::Any, Use::Discard)).await {
        Ok(read) => read.map(drop),
        Err(_) => Err(late(limit)),
    }
}

async fn collect(mut body: Incoming, pace: Pace, usage: Use) -> Result<Bytes, ApiError> {
    if body.size_hint().lower() > MAX_READ as u64 {
        return Err(too_large());
    }
    let is_kept = usage == Use::Keep && body.size_hint().lower() <= MAX_BODY as u64;
    let (mut kept, began) = (Vec::new(), Instant::now());
    let mut length = 0;
    while let Some(frame) = next(&mut body, pace, began, length).await? {
        let frame = frame.map_err(|error| {
            ApiError::new(ErrorCode::InvalidRequest, format!("the body is incomplete: {error}"))
        })?;
        // Trailers are not part of the body.
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > MAX_READ {
            break;
        }
        if length > MAX_BODY {
            kept = Vec::new();
        } else if is_kept {
            kept.extend_from_slice(&data);
        }
    }
    if length > MAX_BODY { Err(too_large()) } else { Ok(kept.into()) }
}

type Frame = Result<hyper::body::Frame<Bytes>, hyper::Error>;

/// Returns the next part of a body of which `length` bytes have come.
async fn next(
    body: &mut Incoming,
    pace: Pace,
    began: Instant,
    length: usize,
) -> Result<Option<Frame>, ApiError> {
    if pace == Pace::Any {
        return Ok(body.frame().await);
    }
    let earned = Duration::from_secs(length as u64 / SLOWEST);
    let deadline = began + GRACE + earned;
    tokio::time::timeout_at(deadline, body.frame()).await.map_err(|_| {
        let message = format!("the body comes with less than {SLOWEST} bytes a second");
        ApiError::new(ErrorCode::InvalidRequest, message)
    })
}

fn late(limit: Duration) -> ApiError {
    let message = format!("the body did not come within {} s", limit.as_secs_f32());
    ApiError::new(ErrorCode::InvalidRequest, message)
}

fn too_large() -> ApiError {
    let message = format!("the body has more than {MAX_BODY} bytes, which is the most allowed");
    ApiError::new(ErrorCode::RequestSizeLimitExceeded, message)
}
