//! What the person who runs the cloud can ask it, without a signature: whether it is alive, and
//! what its data planes have taken.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;

use super::metrics;
use crate::cloud::Cloud;
use crate::drive::{DriveStatus, DriveView};

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The pages.
#[derive(Clone, Debug)]
pub struct AdminPages {
    /// The cloud.
    pub cloud: Arc<Cloud>,
    /// What its data planes have taken; `None` if it has none.
    pub driven: Option<DriveView>,
}

impl AdminPages {
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match request.uri().path() {
            "/healthz" => page(StatusCode::OK, TEXT, "ok\n".to_owned()),
            "/readyz" => match self.status().problems() {
                problems if problems.is_empty() => page(StatusCode::OK, TEXT, "ok\n".to_owned()),
                problems => page(StatusCode::SERVICE_UNAVAILABLE, TEXT, problems.join("\n") + "\n"),
            },
            "/status" => {
                let text = serde_json::to_string_pretty(&self.status());
                let text = text.expect("all keys are texts");
                page(StatusCode::OK, "application/json", text + "\n")
            }
            "/metrics" => page(StatusCode::OK, METRICS, metrics::text(&self.status())),
            _ => {
                let pages = "/healthz\n/readyz\n/status\n/metrics\n";
                page(StatusCode::NOT_FOUND, TEXT, pages.to_owned())
            }
        }
    }

    fn status(&self) -> DriveStatus {
        match &self.driven {
            Some(driven) => driven.status(),
            None => DriveStatus { change: self.cloud.change(), ..DriveStatus::default() },
        }
    }
}

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
