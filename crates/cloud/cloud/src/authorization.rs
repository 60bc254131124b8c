//! Authentication of requests: reads and verifies the `Authorization` header.

use std::collections::BTreeSet;

use hmac::Mac as _;
use jiff::Timestamp;
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};
use uturn_cloud_api::wire::tc3::{
    self, ALGORITHM, Payload, SCOPE_END, Scope, Signable, UNSIGNED_PAYLOAD,
};

use crate::credentials::{Credential, Credentials};

/// The most seconds by which a request's timestamp may differ from the server's clock.
pub const MAX_SKEW: i64 = 300;

/// The parts of a received request that its signature depends on.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The query string, without its question mark.
    pub query: &'a str,
    /// All headers, with their names as received.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Received<'a> {
    /// Returns the value of a header, whose name is compared without case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The identity that signed a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The id of the credential.
    pub secret_id: String,
    /// The account whose resources the request may reach.
    pub account: String,
    /// The service in the credential's scope. Some clients derive it from the host that they send
    /// requests to, so that it need not be the name of a service.
    pub service: String,
    /// The signature, and the parts of the request that it covers.
    pub signed: Signed,
}

/// A signature, and the parts of the request that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The signature.
    pub signature: Vec<u8>,
    /// The time of signing.
    pub timestamp: Timestamp,
    /// Whether the signature covers the action.
    pub covers_action: bool,
    /// Whether the signature covers the body.
    pub covers_payload: bool,
}

/// The parts of an `Authorization` header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authorization<'a> {
    secret_id: &'a str,
    date: &'a str,
    service: &'a str,
    signed_headers: Vec<&'a str>,
    signature: Vec<u8>,
}

/// Verifies the signature of a request.
///
/// # Errors
///
/// Returns the error that the API answers with: a header that is missing or malformed, a
/// timestamp too far from `now`, an id that is not known, or a signature that does not match.
pub fn verify(
    request: &Received<'_>,
    credentials: &Credentials,
    now: Timestamp,
) -> Result<Caller, ApiError> {
    let (authorization, timestamp, credential) = stated(request, credentials, now)?;
    let scope = Scope { date: authorization.date, service: authorization.service };
    let matches = |host: Host| -> Result<bool, ApiError> {
        let signable = signable(request, &authorization.signed_headers, host)?;
        let text = signable.string_to_sign(timestamp, &scope);
        let code = tc3::authenticate(credential.secret_key.reveal(), &scope, &text);
        Ok(code.verify_slice(&authorization.signature).is_ok())
    };
    if !matches(Host::AsReceived)? && !matches(Host::WithoutPort)? {
        let message = "the signature does not match the request; check the secret key and what \
                       was signed";
        return Err(ApiError::new(ErrorCode::SignatureFailure, message));
    }
    Ok(Caller {
        secret_id: authorization.secret_id.to_owned(),
        account: credential.account.clone(),
        service: authorization.service.to_owned(),
        signed: Signed {
            timestamp,
            covers_action: authorization
                .signed_headers
                .iter()
                .any(|name| name.eq_ignore_ascii_case("x-tc-action")),
            covers_payload: !is_payload_unsigned(request),
            signature: authorization.signature,
        },
    })
}

/// Refuses a request whose headers show that its signature cannot be valid. If the payload is not
/// signed, verifies the whole signature.
///
/// # Errors
///
/// Returns the same errors as [`verify`].
pub fn check_head(
    head: &Received<'_>,
    credentials: &Credentials,
    now: Timestamp,
) -> Result<(), ApiError> {
    if is_payload_unsigned(head) {
        verify(head, credentials, now).map(drop)
    } else {
        stated(head, credentials, now).map(drop)
    }
}

/// Reads who signed, when, and with which credential, from the headers.
fn stated<'r, 'c>(
    request: &Received<'r>,
    credentials: &'c Credentials,
    now: Timestamp,
) -> Result<(Authorization<'r>, Timestamp, &'c Credential), ApiError> {
    let header = request.header("Authorization").ok_or_else(|| {
        invalid("the header Authorization is missing; every request has to be signed")
    })?;
    let authorization = parse(header)?;
    let timestamp = timestamp_of(request, now)?;
    if authorization.date != tc3::date(timestamp) {
        return Err(ApiError::new(
            ErrorCode::SignatureFailure,
            format!(
                "the credential's date {} is not the UTC date of X-TC-Timestamp, {}",
                authorization.date,
                tc3::date(timestamp)
            ),
        ));
    }
    if request.header("X-TC-Token").is_some_and(|token| !token.is_empty()) {
        let message = "this server gives out no temporary keys, so X-TC-Token cannot be valid";
        return Err(ApiError::new(ErrorCode::TokenFailure, message));
    }
    let credential = credentials.get(authorization.secret_id).ok_or_else(|| {
        let id = authorization.secret_id;
        ApiError::new(ErrorCode::SecretIdNotFound, format!("the SecretId {id} is not known"))
    })?;
    Ok((authorization, timestamp, credential))
}

fn is_payload_unsigned(request: &Received<'_>) -> bool {
    request.header("X-TC-Content-SHA256") == Some(UNSIGNED_PAYLOAD)
}

/// The form of the Host header that was signed. The Node SDK signs it without the port it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    AsReceived,
    WithoutPort,
}

fn signable<'a>(
    request: &Received<'a>,
    signed_headers: &[&'a str],
    host: Host,
) -> Result<Signable<'a>, ApiError> {
    let headers = signed_headers.iter().map(|&name| {
        let value = request.header(name).ok_or_else(|| {
            invalid(format!("SignedHeaders names {name}, which the request does not have"))
        })?;
        let strip = host == Host::WithoutPort && name.eq_ignore_ascii_case("host");
        Ok((name, if strip { without_port(value) } else { value }))
    });
    let unsigned = is_payload_unsigned(request);
    Ok(Signable {
        method: request.method,
        query: request.query,
        headers: headers.collect::<Result<_, ApiError>>()?,
        payload: match (unsigned, request.method) {
            (true, _) => Payload::Unsigned,
            (false, "GET") => Payload::Signed(b""),
            (false, _) => Payload::Signed(request.body),
        },
    })
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn timestamp_of(request: &Received<'_>, now: Timestamp) -> Result<Timestamp, ApiError> {
    let text = request.header("X-TC-Timestamp").ok_or_else(|| {
        ApiError::new(ErrorCode::MissingParameter, "the header X-TC-Timestamp is missing")
    })?;
    let seconds = text.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let timestamp = seconds.ok_or_else(|| {
        let message = format!("X-TC-Timestamp is {text:?}, not a number of seconds since 1970");
        ApiError::new(ErrorCode::InvalidParameter, message)
    })?;
    let skew = now.as_second() - timestamp.as_second();
    if skew.abs() > MAX_SKEW {
        let side = if skew > 0 { "behind" } else { "ahead of" };
        let message = format!(
            "X-TC-Timestamp is {} s {side} the server's clock; {MAX_SKEW} s are allowed",
            skew.abs()
        );
        return Err(ApiError::new(ErrorCode::SignatureExpire, message));
    }
    Ok(timestamp)
}

fn parse(header: &str) -> Result<Authorization<'_>, ApiError> {
    let (algorithm, rest) = header.split_once(' ').unwrap_or((header, ""));
    if algorithm != ALGORITHM {
        return Err(invalid(format!("expected the algorithm {ALGORITHM}, found {algorithm:?}")));
    }
    let mut parts = [None; 3];
    for part in rest.split(',') {
        let (name, value) = part.trim().split_once('=').ok_or_else(|| {
            invalid(format!("expected NAME=VALUE in the header Authorization, found {part:?}"))
        })?;
        let position = ["Credential", "SignedHeaders", "Signature"]
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| invalid(format!("Authorization has an unknown part {name:?}")))?;
        if parts[position].replace(value).is_some() {
            return Err(invalid(format!("Authorization has the part {name} twice")));
        }
    }
    let [Some(credential), Some(signed_headers), Some(signature)] = parts else {
        return Err(invalid("Authorization needs Credential, SignedHeaders and Signature"));
    };
    let scope: Vec<&str> = credential.split('/').collect();
    let [secret_id, date, service, SCOPE_END] = scope[..] else {
        return Err(invalid(format!(
            "expected the credential SECRET_ID/DATE/SERVICE/{SCOPE_END}, found {credential:?}"
        )));
    };
    let signed_headers: Vec<&str> = signed_headers.split(';').collect();
    for required in ["content-type", "host"] {
        if !signed_headers.iter().any(|name| name.eq_ignore_ascii_case(required)) {
            return Err(invalid(format!("SignedHeaders has to name {required}")));
        }
    }
    // A header that is named n times would be hashed n times.
    let mut names = BTreeSet::new();
    if !signed_headers.iter().all(|name| names.insert(name.to_ascii_lowercase())) {
        return Err(invalid("SignedHeaders names a header twice"));
    }
    let signature = tc3::unhex(signature)
        .filter(|bytes| bytes.len() == 32)
        .ok_or_else(|| invalid("Signature is not 64 hexadecimal digits"))?;
    Ok(Authorization { secret_id, date, service, signed_headers, signature })
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidAuthorization, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_760_000_000;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn credentials() -> Credentials {
        Credentials::parse("id1 key1\nid2 key2 shared\n").unwrap()
    }

    /// A request that is signed as the SDKs do, with `edit` applied before it is sent.
    struct Request {
        signed_host: &'static str,
        host: &'static str,
        key: &'static str,
        timestamp: i64,
        unsigned_payload: bool,
    }

    impl Default for Request {
        fn default() -> Self {
            let host = "127.0.0.1:8080";
            Self { signed_host: host, host, key: "key1", timestamp: NOW, unsigned_payload: false }
        }
    }

    impl Request {
        fn headers(&self) -> Vec<(String, String)> {
            let timestamp = Timestamp::from_second(self.timestamp).unwrap();
            let date = tc3::date(timestamp);
            let scope = Scope { date: &date, service: "clb" };
            let payload =
                if self.unsigned_payload { Payload::Unsigned } else { Payload::Signed(b"{}") };
            let signable = Signable {
                method: "POST",
                query: "",
                headers: vec![("content-type", "application/json"), ("host", self.signed_host)],
                payload,
            };
            let text = signable.string_to_sign(timestamp, &scope);
            let signature = tc3::sign(self.key, &scope, &text);
            let mut headers = vec![
                ("Host", self.host.to_owned()),
                ("content-type", "application/json".to_owned()),
                ("X-Tc-Timestamp", self.timestamp.to_string()),
                (
                    "Authorization",
                    format!(
                        "{ALGORITHM} Credential=id1/{scope}, SignedHeaders=content-type;host, \
                         Signature={signature}"
                    ),
                ),
            ];
            if self.unsigned_payload {
                headers.push(("X-TC-Content-SHA256", UNSIGNED_PAYLOAD.to_owned()));
            }
            headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        }

        fn verify(&self, body: &[u8]) -> Result<Caller, ErrorCode> {
            verify_headers(&self.headers(), body)
        }
    }

    fn verify_headers(headers: &[(String, String)], body: &[u8]) -> Result<Caller, ErrorCode> {
        let received = Received { method: "POST", query: "", headers, body };
        verify(&received, &credentials(), now()).map_err(|error| error.code)
    }

    #[test]
    fn a_signed_request_is_its_accounts() {
        let caller = Request::default().verify(b"{}").unwrap();
        assert_eq!((&*caller.account, &*caller.service), ("id1", "clb"));
    }

    #[test]
    fn the_host_may_be_signed_without_its_port_or_hold_a_url() {
        assert!(Request { signed_host: "127.0.0.1", ..Request::default() }.verify(b"{}").is_ok());
        let url = "http://127.0.0.1:8080";
        assert!(
            Request { signed_host: url, host: url, ..Request::default() }.verify(b"{}").is_ok()
        );
    }

    #[test]
    fn what_was_not_signed_is_refused() {
        let request = Request::default();
        assert_eq!(request.verify(b"{ }"), Err(ErrorCode::SignatureFailure));
        let other_key = Request { key: "key2", ..Request::default() };
        assert_eq!(other_key.verify(b"{}"), Err(ErrorCode::SignatureFailure));
        let other_host = Request { signed_host: "127.0.0.2:8080", ..Request::default() };
        assert_eq!(other_host.verify(b"{}"), Err(ErrorCode::SignatureFailure));
    }

    #[test]
    fn an_unsigned_payload_may_be_anything() {
        let request = Request { unsigned_payload: true, ..Request::default() };
        assert!(request.verify(b"anything").is_ok());
    }

    #[test]
    fn the_clock_may_differ_by_five_minutes() {
        for (skew, allowed) in [(-300, true), (300, true), (-301, false), (301, false)] {
            let request = Request { timestamp: NOW + skew, ..Request::default() };
            let code = request.verify(b"{}").map(|_| ());
            assert_eq!(code, if allowed { Ok(()) } else { Err(ErrorCode::SignatureExpire) });
        }
    }

    #[test]
    fn each_fault_of_the_header_has_a_code() {
        let valid = Request::default().headers();
        let signature = valid[3].1.rsplit('=').next().unwrap();
        let header = |text: &str| {
            let mut headers = valid.clone();
            headers[3].1 = text.replace("SIGNATURE", signature);
            verify_headers(&headers, b"{}").unwrap_err()
        };
        let scope = "2025-10-09/clb/tc3_request";
        let with = |id: &str, signed: &str| {
            format!(
                "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={signed}, Signature=SIGNATURE"
            )
        };
        assert_eq!(header(&with("id9", "content-type;host")), ErrorCode::SecretIdNotFound);
        for malformed in [
            "SKIP",
            "TC3-HMAC-SHA256",
            "TC3-HMAC-SHA256 Credential",
            "TC3-HMAC-SHA256 Credential=a, Credential=b",
            &with("id1", "content-type"),
            &with("id1", "content-type;host;x-absent"),
            &with("id1", "content-type;host;Host"),
            &with("id1/more", "content-type;host"),
            &with("id1", "content-type;host").replace("SIGNATURE", "00"),
        ] {
            assert_eq!(header(malformed), ErrorCode::InvalidAuthorization, "{malformed}");
        }
        let other_date = with("id1", "content-type;host").replace("10-09", "10-08");
        assert_eq!(header(&other_date), ErrorCode::SignatureFailure);
        assert_eq!(
            verify_headers(&valid[..3], b"{}"),
            Err(ErrorCode::InvalidAuthorization),
            "no Authorization at all"
        );
    }
}
