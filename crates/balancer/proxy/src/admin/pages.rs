//! Finds the page that answers a request.

use std::sync::atomic::Ordering;
use std::time::Instant;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};

use super::{Known, metrics, targets};

pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// The paths of all pages.
const ALL: &str = "/certificates\n/config\n/healthz\n/metrics\n/readyz\n/reload\n/targets\n";

/// Answers a request.
pub(super) fn answer<B>(request: &Request<B>, known: &Known) -> Response<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    match request.uri().path() {
        "/metrics" => page(StatusCode::OK, metrics::CONTENT_TYPE, metrics::page(known)),
        "/targets" => page(StatusCode::OK, "application/json", targets::page(known)),
        "/healthz" => {
            let (status, text) = health(known);
            page(status, TEXT, text)
        }
        "/readyz" => {
            let (status, text) = readiness(known);
            page(status, TEXT, text)
        }
        "/" => page(StatusCode::OK, TEXT, ALL.into()),
        _ => page(StatusCode::NOT_FOUND, TEXT, "no such page\n".into()),
    }
}

/// Returns whether clients are served, as a status and a text.
fn health(known: &Known) -> (StatusCode, String) {
    if known.is_replaced.load(Ordering::Relaxed) {
        return (StatusCode::OK, "ok: another process has taken over\n".into());
    }
    if known.process.is_draining.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n".into());
    }
    let overview = known.overview.load();
    let waiting = overview.listeners.iter().filter(|listener| !listener.is_accepting());
    let waiting =
        waiting.map(|listener| format!("{} does not accept connections\n", listener.address));
    let short = known.process.local_errors.short(Instant::now()).map(|operation| {
        let what = operation.what();
        format!(
            "no file descriptors or no memory {what}; uturn_lb_local_errors_total counts them\n"
        )
    });
    let waiting: Vec<String> = waiting.chain(short).collect();
    if waiting.is_empty() {
        (StatusCode::OK, "ok\n".into())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, waiting.concat())
    }
}

/// Returns whether clients are served by targets whose health is known.
fn readiness(known: &Known) -> (StatusCode, String) {
    let (status, text) = health(known);
    let undecided = known.undecided();
    if status == StatusCode::OK && !undecided.is_empty() {
        (StatusCode::SERVICE_UNAVAILABLE, undecided.concat())
    } else {
        (status, text)
    }
}

/// Answers a request whose method is not one of `allowed`.
pub(super) fn not_allowed(allowed: &'static str) -> Response<String> {
    let text = format!("{allowed} only\n");
    let mut response = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

pub(super) fn page(
    status: StatusCode,
    content_type: &'static str,
    text: String,
) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
