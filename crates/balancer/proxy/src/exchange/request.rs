//! Checks a request, and rewrites its target, before it is forwarded.

use std::borrow::Cow;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use http_body::Body;

use super::answer::OwnAnswer;
use super::headers::join_lengths;
use crate::state::Listener;

/// Checks what a message parser leaves to its user (RFC 9112, sections 3.2 and 6.1).
///
/// # Errors
/// The answer to a request that is refused.
pub(super) fn check<B: Body>(
    request: &mut Request<B>,
    listener: &Listener,
) -> Result<(), OwnAnswer> {
    let bad = |why: &str| Err(OwnAnswer::closing(StatusCode::BAD_REQUEST, why));
    if request.method() == Method::CONNECT {
        let why = "this is not a proxy for other hosts";
        return Err(OwnAnswer::closing(StatusCode::METHOD_NOT_ALLOWED, why));
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => return bad("more than one Host"),
        (None, _) if request.version() == Version::HTTP_11 => return bad("no Host"),
        (Some(host), None) if !is_authority(host) => return bad("Host is no host"),
        (Some(host), None) if differs(request.uri(), host) => {
            return bad("Host is not the host of the request's target");
        }
        _ => {}
    }
    if !is_target(request) {
        return bad("the request's target is not a path");
    }
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next()
        && (codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        let why = "a transfer coding other than chunked";
        return Err(OwnAnswer::closing(StatusCode::NOT_IMPLEMENTED, why));
    }
    if !join_lengths(request.headers_mut()) {
        return bad("two lengths");
    }
    let length = content_length(request.headers())?;
    if length.is_some_and(|length| length > 0) && request.body().is_end_stream() {
        return bad("a length and no body");
    }
    match (length, listener.settings.limits.body_bytes) {
        (Some(length), Some(limit)) if length > limit => {
            Err(OwnAnswer::closing(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"))
        }
        _ => Ok(()),
    }
}

/// Returns the host that a request is for: the one of its target, if it has one, else that of its
/// header.
pub(super) fn host<B>(request: &Request<B>) -> Cow<'_, str> {
    match request.uri().authority() {
        Some(authority) => authority.as_str().into(),
        None => request
            .headers()
            .get(HOST)
            .map_or_else(Cow::default, |host| String::from_utf8_lossy(host.as_bytes())),
    }
}

/// Returns the path and query that decide on the rule of a request. For `OPTIONS *`, which asks
/// about the server as a whole (RFC 9110, section 9.3.7), that is the root.
pub(super) fn path<B>(request: &Request<B>) -> &str {
    match request.uri().path_and_query().map_or("/", PathAndQuery::as_str) {
        "*" => "/",
        path => path,
    }
}

/// Replaces the path and the query of a request.
///
/// # Errors
/// When the text is not a valid path.
pub(super) fn set_path<B>(request: &mut Request<B>, path: String) -> Result<(), http::Error> {
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path)?);
    *request.uri_mut() = Uri::from_parts(parts)?;
    Ok(())
}

/// Turns the request's target into the form that HTTP/1.1 sends to an origin server: a path, with
/// the host in the header.
pub(super) fn to_origin_form<B>(request: &mut Request<B>) {
    if let Some(authority) = request.uri().authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(HOST, host);
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    }
    *request.version_mut() = Version::HTTP_11;
}

/// Turns the request's target into the form that HTTP/2 sends: scheme, host and path.
///
/// # Errors
/// When the request names no host.
pub(super) fn to_http2_form<B>(request: &mut Request<B>) -> Result<(), OwnAnswer> {
    let host = host(request).into_owned();
    let path = request.uri().path_and_query().cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    let uri = Uri::builder().scheme("http").authority(host).path_and_query(path).build();
    let no_host = |_| OwnAnswer::new(StatusCode::BAD_REQUEST, "no Host");
    *request.uri_mut() = uri.map_err(no_host)?;
    request.headers_mut().remove(HOST);
    *request.version_mut() = Version::HTTP_2;
    Ok(())
}

/// Returns whether the request's target is valid for an origin server: a path, a URL with a host,
/// or an asterisk for `OPTIONS`.
fn is_target<B>(request: &Request<B>) -> bool {
    let uri = request.uri();
    match (uri.scheme(), uri.authority()) {
        (Some(_), Some(authority)) => !authority.as_str().contains('@') && is_path(request),
        (None, None) => is_path(request),
        _ => false,
    }
}

fn is_path<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    path.starts_with('/') || (path == "*" && request.method() == Method::OPTIONS)
}

/// Returns the length that a request states.
///
/// # Errors
/// When the length is not a number.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, OwnAnswer> {
    let Some(value) = headers.get(CONTENT_LENGTH) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match text.and_then(|text| text.parse().ok()) {
        Some(length) => Ok(Some(length)),
        None => Err(OwnAnswer::closing(StatusCode::BAD_REQUEST, "a length that is no number")),
    }
}

fn is_authority(host: &HeaderValue) -> bool {
    // Most hosts are plain names; any others are left to a parser.
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    if !host.is_empty() && host.as_bytes().iter().all(is_plain) {
        return true;
    }
    !host.as_bytes().contains(&b'@') && Authority::try_from(host.as_bytes()).is_ok()
}

fn differs(uri: &Uri, host: &HeaderValue) -> bool {
    uri.authority().is_some_and(|authority| {
        !authority.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes())
    })
}
