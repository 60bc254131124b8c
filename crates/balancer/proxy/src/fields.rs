//! Header fields that decide where a message ends, where it goes, who sent it, or how it is read.
//!
//! A trailer comes after the request was judged by its header, so none of these fields may be a
//! trailer (RFC 9110, section 6.5.1).

use http::{HeaderMap, HeaderName};

/// Fields that decide a message's end, destination or origin. Fields that begin with [`FORWARDED`]
/// do so too.
const DECISIVE: [&str; 18] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-real-ip",
];

/// The prefix of fields that proxies add.
const FORWARDED: &str = "x-forwarded-";

/// Fields by which frameworks replace the path, the host or the method of a request.
const REPLACING: [&str; 7] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-url",
    "x-rewrite-url",
];

/// Other fields that may not be trailers: request modifiers, control data of answers, descriptions
/// of a body, and credentials.
const NO_TRAILER: [&str; 26] = [
    "age",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "expect",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "proxy-authenticate",
    "range",
    "retry-after",
    "set-cookie",
    "vary",
    "via",
    "www-authenticate",
];

/// Returns whether the field decides a message's end, destination or origin.
pub(crate) fn is_decisive(name: &str) -> bool {
    DECISIVE.contains(&name) || name.starts_with(FORWARDED)
}

/// Returns whether a target that reads underscores as dashes, as CGI does, would take the field for
/// one that decides a message's end, destination or origin.
pub(crate) fn is_look_alike(name: &str) -> bool {
    name.contains('_') && is_decisive(&name.replace('_', "-"))
}

/// Returns whether frameworks replace the path, the host or the method of a request by the field.
pub(crate) fn is_replacing(name: &str) -> bool {
    let is_known = |name: &str| REPLACING.contains(&name);
    match name.starts_with('x') {
        true if name.contains('_') => is_known(&name.replace('_', "-")),
        true => is_known(name),
        false => false,
    }
}

/// Removes fields that may not be trailers. `nominated` are the fields that `Connection` names.
pub(crate) fn remove_no_trailers(trailers: &mut HeaderMap, nominated: &[HeaderName]) {
    let is_removed = |name: &&HeaderName| {
        let plain = name.as_str().replace('_', "-");
        is_decisive(&plain)
            || REPLACING.contains(&&*plain)
            || NO_TRAILER.contains(&&*plain)
            || nominated.contains(name)
    };
    let removed: Vec<HeaderName> = trailers.keys().filter(is_removed).cloned().collect();
    for name in removed {
        trailers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn trailers_that_would_decide_are_removed() {
        let mut trailers = HeaderMap::new();
        for name in [
            "x-forwarded-for",
            "X_Forwarded_For",
            "x-forwarded-whatever",
            "forwarded",
            "host",
            "content-length",
            "content_length",
            "authorization",
            "cookie",
            "set-cookie",
            "x-real-ip",
            "x-original-url",
            "range",
            "x-named",
        ] {
            trailers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_static("1"));
        }
        for name in ["grpc-status", "x-check", "content-digest", "server-timing", "etag"] {
            trailers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_static("1"));
        }
        remove_no_trailers(&mut trailers, &[HeaderName::from_static("x-named")]);
        let mut left: Vec<&str> = trailers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-digest", "etag", "grpc-status", "server-timing", "x-check"]);
    }
}
