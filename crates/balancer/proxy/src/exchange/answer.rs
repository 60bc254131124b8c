//! Answers of the load balancer itself.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Response, StatusCode};

use super::body::AnswerBody;

/// An answer that no target gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnAnswer {
    pub(super) status: StatusCode,
    /// The reason, for the log.
    pub(super) why: String,
    /// The location that the client is redirected to.
    pub(super) location: Option<String>,
    /// Whether the connection is closed, as further bytes on it cannot be trusted or are not
    /// wanted.
    pub(super) closes: bool,
}

impl OwnAnswer {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into(), location: None, closes: false }
    }

    /// Returns the answer to a request that breaks the protocol.
    pub(super) fn closing(status: StatusCode, why: impl Into<String>) -> Self {
        Self { closes: true, ..Self::new(status, why) }
    }

    pub(super) fn redirect(status: StatusCode, location: String) -> Self {
        Self { location: Some(location), ..Self::new(status, "") }
    }

    pub(super) fn into_response(self) -> Response<AnswerBody> {
        let reason = self.status.canonical_reason().unwrap_or("Error");
        let text = Bytes::from(format!("{} {reason}\n", self.status.as_u16()));
        let mut response = Response::new(AnswerBody::whole(text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        // A host with bytes that headers may not have was refused before.
        if let Some(location) = self.location.and_then(|to| HeaderValue::from_str(&to).ok()) {
            headers.insert(LOCATION, location);
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
