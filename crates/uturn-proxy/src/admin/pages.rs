//! Which page answers a request.

use std::sync::atomic::Ordering;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};

use super::{Known, metrics, targets};

const TEXT: &str = "text/plain; charset=utf-8";

/// Answers a request.
pub(super) fn answer<B>(request: &Request<B>, known: &Known) -> Response<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET only\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => page(StatusCode::OK, metrics::CONTENT_TYPE, metrics::page(known)),
        "/targets" => page(StatusCode::OK, "application/json", targets::page(known)),
        "/healthz" => {
            let (status, text) = health(known);
            page(status, TEXT, text)
        }
        "/" => page(StatusCode::OK, TEXT, "/healthz\n/metrics\n/targets\n".into()),
        _ => page(StatusCode::NOT_FOUND, TEXT, "no such page\n".into()),
    }
}

/// Whether clients are served.
fn health(known: &Known) -> (StatusCode, String) {
    if known.process.is_draining.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n".into());
    }
    let overview = known.overview.load();
    let waiting: Vec<String> = overview
        .listeners
        .iter()
        .filter(|listener| !listener.is_accepting())
        .map(|listener| format!("{} does not accept connections\n", listener.address))
        .collect();
    match waiting.is_empty() {
        true => (StatusCode::OK, "ok\n".into()),
        false => (StatusCode::SERVICE_UNAVAILABLE, waiting.concat()),
    }
}

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
