//! Pages for the operator of the cloud, without signatures: liveness, readiness, the status of the
//! data planes, and metrics.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;

use super::metrics;
use crate::cloud::Cloud;
use crate::drive::{DriveStatus, DriveView};

/// The endings of host names that no public web site has.
const PRIVATE: [&str; 5] = [".localhost", ".local", ".internal", ".svc", ".test"];
const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The admin pages.
#[derive(Clone, Debug)]
pub struct AdminPages {
    /// The cloud.
    pub cloud: Arc<Cloud>,
    /// The status of the cloud's data planes; `None` if it has none.
    pub driven: Option<DriveView>,
}

impl AdminPages {
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        if !is_host_known(request) {
            let text = "the Host header names another site\n";
            return page(StatusCode::MISDIRECTED_REQUEST, TEXT, text.to_owned());
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

/// Returns whether the Host header is an address, a name without dots, or a name in a private
/// domain. Any other name may be a web site's, whose scripts could read these pages through an
/// operator's browser (DNS rebinding).
fn is_host_known<B>(request: &Request<B>) -> bool {
    let stated = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = stated.or(request.uri().host()) else { return true };
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let is_private = |name: &str| PRIVATE.iter().any(|suffix| name.ends_with(suffix));
    name.parse::<IpAddr>().is_ok() || !name.contains('.') || is_private(&name)
}

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_web_site_has_are_answered() {
        for (host, is_known) in [
            ("127.0.0.1:9901", true),
            ("[::1]:9901", true),
            ("localhost", true),
            ("cloud:9901", true),
            ("cloud.kube-system.svc:9901", true),
            ("cloud.kube-system.svc.cluster.local", true),
            ("attacker.example.com:9901", false),
            ("127.0.0.1.nip.io", false),
            ("localhost.example.com.", false),
            ("a b", false),
            ("", true),
        ] {
            let request = Request::builder().uri("/status").header(HOST, host).body(()).unwrap();
            assert_eq!(is_host_known(&request) || host.is_empty(), is_known, "{host}");
        }
    }
}
