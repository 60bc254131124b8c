//! Reads the body of a request within limits.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

use crate::cloud::MAX_BODY;
use crate::wire::error::{ApiError, ErrorCode};

/// Of a body that is too large, no more than this is read and dropped. A client whose body is
/// read to its end gets its answer; one that still sends may only see the connection end.
const MAX_READ: usize = 4 * MAX_BODY;

/// Reads a body.
///
/// # Errors
///
/// Returns the answer to a body that is too large, is incomplete or takes too long.
pub(super) async fn read(body: Incoming, limit: Duration) -> Result<Bytes, ApiError> {
    match timeout(limit, collect(body)).await {
        Ok(read) => read,
        Err(_) => {
            let message = format!("the body did not come within {} s", limit.as_secs_f32());
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

async fn collect(mut body: Incoming) -> Result<Bytes, ApiError> {
    if body.size_hint().lower() > MAX_READ as u64 {
        return Err(too_large());
    }
    let mut kept = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            ApiError::new(ErrorCode::InvalidRequest, format!("the body is incomplete: {error}"))
        })?;
        // Trailers are no part of the body.
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > MAX_READ {
            break;
        }
        if length > MAX_BODY {
            kept = Vec::new();
        } else {
            kept.extend_from_slice(&data);
        }
    }
    if length > MAX_BODY { Err(too_large()) } else { Ok(kept.into()) }
}

fn too_large() -> ApiError {
    let message = format!("the body has more than {MAX_BODY} bytes, which is the most allowed");
    ApiError::new(ErrorCode::RequestSizeLimitExceeded, message)
}
