//! `/config`, `/certificates` and `/reload`: the configuration, and changes of it. All other paths
//! are read-only.

use std::future::poll_fn;
use std::pin::Pin;

use http::header::{ACCEPT, CONTENT_LENGTH, ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, Response, StatusCode,
};
use http_body::Body;
use hyper::body::Incoming;

use super::pages::{TEXT, not_allowed, page};
use super::{Control, Form, Known, ServedConfig, access, certificates, pages};
use crate::requests::{Answer, Refusal, Replacement, Request, Scope};

/// The most bytes of a configuration.
const LARGEST: usize = 16 << 20;

/// Answers a request. `may_change` is called if the client may change the configuration.
pub(super) async fn answer(
    request: HttpRequest<Incoming>,
    known: &Known,
    may_change: impl FnOnce(),
) -> Response<String> {
    if let Err(refusal) = known.names.load().check(&request) {
        return *refusal;
    }
    let path = request.uri().path();
    let takes_a_token = ["/config", "/reload"].contains(&path) || certificates::is_path(path);
    let Some(control) = known.control.as_ref().filter(|_| takes_a_token) else {
        return pages::answer(&request, known);
    };
    if let Err(refusal) = access::check(request.headers(), known) {
        return *refusal;
    }
    may_change();
    match (path, request.method().clone()) {
        ("/config", Method::GET | Method::HEAD) => show(request.headers(), control, known),
        ("/config", Method::PUT | Method::POST | Method::PATCH) => {
            match replace(request, control, known).await {
                Ok(response) => response,
                Err((status, text)) => page(status, TEXT, text.into()),
            }
        }
        ("/config", _) => not_allowed("GET, HEAD, PATCH, POST, PUT"),
        (path, _) if certificates::is_path(path) => {
            certificates::answer(request, control, known).await
        }
        (_, Method::POST) => {
            // The semaphore is never closed.
            let _turn = known.changing.acquire().await;
            let (answer, outcome) = Answer::new();
            report(control, Request::Reload(Some(answer)), outcome, known).await
        }
        _ => not_allowed("POST"),
    }
}

/// Shows the configuration that is served.
fn show(headers: &HeaderMap, control: &Control, known: &Known) -> Response<String> {
    let wants_yaml = headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|text| text.contains("yaml")));
    let (form, content_type) = if wants_yaml {
        (Form::Yaml, "application/yaml")
    } else {
        (Form::Json, "application/json")
    };
    match known.served.load().as_ref() {
        Some(served) if tags(headers, IF_NONE_MATCH).contains(&served.version.to_string()) => {
            tagged(page(StatusCode::NOT_MODIFIED, content_type, String::new()), served)
        }
        Some(served) => {
            let text = (control.describe)(&served.config, form);
            tagged(page(StatusCode::OK, content_type, text), served)
        }
        None => page(StatusCode::SERVICE_UNAVAILABLE, TEXT, "starting\n".into()),
    }
}

/// Serves the configuration that a request carries, or the change of it.
async fn replace(
    request: HttpRequest<Incoming>,
    control: &Control,
    known: &Known,
) -> Result<Response<String>, (StatusCode, &'static str)> {
    let (head, body) = request.into_parts();
    let replaces = head.headers.contains_key(IF_MATCH).then(|| tags(&head.headers, IF_MATCH));
    let replaces = replaces.filter(|tags| !tags.iter().any(|tag| tag == "*"));
    let scope = match head.method {
        Method::PATCH => Scope::Part,
        _ => Scope::Whole,
    };
    if scope == Scope::Part && replaces.is_none() {
        let text = "A change needs If-Match with the version that it changes.\n";
        return Err((StatusCode::PRECONDITION_REQUIRED, text));
    }
    // The semaphore is never closed.
    let _turn = known.changing.acquire().await;
    let bytes = read(&head.headers, body, LARGEST).await.map_err(|fault| match fault {
        BodyFault::TooLarge => {
            (StatusCode::PAYLOAD_TOO_LARGE, "A configuration has at most 16 MiB.\n")
        }
        BodyFault::Cut => (StatusCode::BAD_REQUEST, "The body ended early.\n"),
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| (StatusCode::BAD_REQUEST, "The configuration is not UTF-8.\n"))?;
    let (answer, outcome) = Answer::new();
    let replacement = Request::Replace(Replacement { text, scope, replaces, answer });
    Ok(report(control, replacement, outcome, known).await)
}

/// Requests a change, and reports the outcome.
async fn report(
    control: &Control,
    request: Request,
    outcome: tokio::sync::oneshot::Receiver<Result<(), Refusal>>,
    known: &Known,
) -> Response<String> {
    // A process that stops accepts no requests any more, and drops those that are queued.
    let _ = control.requests.send(request);
    match outcome.await {
        Err(_) => page(StatusCode::SERVICE_UNAVAILABLE, TEXT, "stopping\n".into()),
        Ok(Err(refusal)) => {
            let (status, text) = match refusal {
                Refusal::Faults(messages) => (StatusCode::BAD_REQUEST, messages.join("\n")),
                Refusal::NotServed(message) => (StatusCode::INTERNAL_SERVER_ERROR, message),
                Refusal::Outdated => (
                    StatusCode::PRECONDITION_FAILED,
                    "Another version is served than the one that If-Match names.".into(),
                ),
            };
            page(status, TEXT, format!("{text}\n"))
        }
        Ok(Ok(())) => match known.served.load().as_ref() {
            Some(served) => {
                let text = format!("serving version {}\n", served.version);
                tagged(page(StatusCode::OK, TEXT, text), served)
            }
            None => page(StatusCode::OK, TEXT, "serving\n".into()),
        },
    }
}

fn tagged(mut response: Response<String>, served: &ServedConfig) -> Response<String> {
    if let Ok(tag) = HeaderValue::try_from(format!("\"{}\"", served.version)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// Returns the versions that a header names.
fn tags(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let text = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(',').map(|tag| tag.trim().trim_matches('"').to_owned()).collect()
}

/// The reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// The body has more bytes than are allowed.
    TooLarge,
    /// The body ended early.
    Cut,
}

/// Reads a body.
///
/// # Errors
/// When the body is too large, or ends early.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Incoming,
    largest: usize,
) -> Result<Vec<u8>, BodyFault> {
    let stated = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if stated.is_some_and(|length: usize| length > largest) {
        return Err(BodyFault::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| BodyFault::Cut)?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > largest {
            return Err(BodyFault::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
