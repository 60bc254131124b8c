//! Removes and adds the headers that a proxy has to.

use std::net::IpAddr;

use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, Entry, HOST, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use uturn_lb::config::ForwardedFor;

use crate::fields::{is_decisive, is_look_alike, is_replacing};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const CLOSE: HeaderName = HeaderName::from_static("close");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Headers that concern one connection only, whether or not `Connection` names them.
const BETWEEN_NEIGHBOURS: [HeaderName; 5] =
    [KEEP_ALIVE, PROXY_CONNECTION, TE, TRANSFER_ENCODING, UPGRADE];

/// What targets are told about a client. It is the same for all requests of a connection.
#[derive(Clone, Debug)]
pub(super) struct Forwarded {
    /// The client's address.
    pub(super) client: HeaderValue,
    /// `http` or `https`.
    pub(super) proto: HeaderValue,
    /// The listener's port.
    pub(super) port: HeaderValue,
}

/// What the headers of a message say about its connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HopByHop {
    /// The protocol that the client wants to switch to.
    pub(super) upgrade: Option<HeaderValue>,
    /// Whether the client takes trailers.
    pub(super) takes_trailers: bool,
    /// Whether the message has a transfer coding.
    pub(super) has_coding: bool,
    /// Whether the message has a transfer coding other than chunked.
    pub(super) has_other_coding: bool,
    /// Whether a header that proxies add names the requested host.
    pub(super) names_host: bool,
    /// The headers that `Connection` names.
    pub(super) nominated: Vec<HeaderName>,
}

/// The hop-by-hop headers that a message has.
#[derive(Default)]
struct Present {
    connection: bool,
    transfer_encoding: bool,
    upgrade: bool,
    te: bool,
    /// Whether the message has any other of [`BETWEEN_NEIGHBOURS`].
    others: bool,
    names_host: bool,
}

impl Present {
    /// Finds the headers in one pass, which costs less than a look-up for each name.
    fn of(headers: &HeaderMap) -> Self {
        let mut present = Self::default();
        for name in headers.keys() {
            match name.as_str() {
                "connection" => present.connection = true,
                "transfer-encoding" => present.transfer_encoding = true,
                "upgrade" => present.upgrade = true,
                "te" => present.te = true,
                "keep-alive" | "proxy-connection" => present.others = true,
                "forwarded" | "x-forwarded-host" => present.names_host = true,
                _ => {}
            }
        }
        present
    }
}

/// Removes the hop-by-hop headers (RFC 9110, section 7.6.1), and returns what they said.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) -> HopByHop {
    let present = Present::of(headers);
    let mut found = HopByHop {
        has_coding: present.transfer_encoding,
        has_other_coding: present.transfer_encoding && !is_chunked(headers),
        names_host: present.names_host,
        ..HopByHop::default()
    };
    if present.upgrade && nominates(headers, "upgrade") {
        // An upgrade to HTTP/2 would carry requests past all rules and checks.
        found.upgrade = headers.get(UPGRADE).filter(|value| !has_token(value, "h2c")).cloned();
    }
    if present.te
        && let Some(te) = headers.get(TE)
    {
        found.takes_trailers = has_token(te, "trailers");
    }
    if present.connection {
        found.nominated = remove_nominated(headers);
    }
    if present.transfer_encoding {
        // The transfer coding alone decides the length; a length beside it is at best superfluous
        // (RFC 9112, section 6.3).
        headers.remove(CONTENT_LENGTH);
    }
    if present.transfer_encoding || present.upgrade || present.te || present.others {
        for name in BETWEEN_NEIGHBOURS {
            headers.remove(name);
        }
    }
    found
}

/// Returns whether chunked is the only transfer coding.
fn is_chunked(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let first =
        codings.next().is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    first && codings.next().is_none()
}

/// Replaces several equal lengths of a body by one (RFC 9110, section 8.6). Returns `false` if the
/// lengths differ.
pub(super) fn join_lengths(headers: &mut HeaderMap) -> bool {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return true };
    if lengths.next().is_none() {
        return true;
    }
    let (first, mut lengths) = (first.clone(), headers.get_all(CONTENT_LENGTH).iter());
    let is_one = lengths.all(|length| *length == first);
    headers.insert(CONTENT_LENGTH, first);
    is_one
}

/// Removes `Connection` and the headers that it names, except those that define the message: `Host`
/// and `Content-Length`. Returns the names of the removed ones.
fn remove_nominated(headers: &mut HeaderMap) -> Vec<HeaderName> {
    let is_plain = |value: &HeaderValue| value == "keep-alive" || value == "close";
    if headers.get_all(CONNECTION).iter().all(is_plain) {
        // This is the usual case; headers of these names are removed in any case.
        headers.remove(CONNECTION);
        headers.remove(KEEP_ALIVE);
        headers.remove(CLOSE);
        return Vec::new();
    }
    let values: Vec<HeaderValue> = headers.get_all(CONNECTION).iter().cloned().collect();
    headers.remove(CONNECTION);
    let mut nominated = Vec::new();
    for value in &values {
        for token in tokens(value) {
            let Ok(name) = HeaderName::from_bytes(token.as_bytes()) else { continue };
            if name != HOST && name != CONTENT_LENGTH {
                headers.remove(&name);
                nominated.push(name);
            }
        }
    }
    nominated
}

/// Removes the headers whose names match.
fn remove_all(headers: &mut HeaderMap, is_removed: impl Fn(&str) -> bool) {
    let is_removed = |name: &&HeaderName| is_removed(name.as_str());
    let found: Vec<HeaderName> = headers.keys().filter(is_removed).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

/// Removes headers that could make a target serve another path, host or method than the one that
/// the rule was chosen by.
pub(super) fn remove_replacing(headers: &mut HeaderMap) {
    remove_all(headers, is_replacing);
}

/// Returns the value of a cookie that the client sent.
pub(super) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(found, _)| found.trim() == name);
    found.map(|(_, value)| value.trim().to_owned())
}

/// Writes an address as a header's value. Most addresses are IPv4, and each connection needs one:
/// this costs a tenth of formatting.
pub(super) fn address_value(address: IpAddr) -> HeaderValue {
    let mut text = Vec::with_capacity(16);
    match address {
        IpAddr::V4(address) => {
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    text.push(b'.');
                }
                let digits = [octet / 100, octet / 10 % 10, octet % 10].map(|digit| b'0' + digit);
                let zeros = usize::from(octet < 100) + usize::from(octet < 10);
                text.extend_from_slice(&digits[zeros..]);
            }
        }
        IpAddr::V6(address) => text.extend(address.to_string().bytes()),
    }
    HeaderValue::try_from(text).expect("addresses are legal in headers")
}

/// Tells a target who sent the request, and how. `host` is the requested host, if it is to be
/// added.
pub(super) fn add_forwarded(
    headers: &mut HeaderMap,
    forwarded: &Forwarded,
    how: ForwardedFor,
    host: Option<&str>,
) {
    match how {
        ForwardedFor::Append => {
            remove_all(headers, is_look_alike);
            if let Some(host) = host {
                add_host(headers, forwarded, host);
            }
        }
        // Fields that decide, but that proxies do not add, were checked before and stay.
        ForwardedFor::Replace => remove_all(headers, |name| {
            is_look_alike(name) || (is_decisive(name) && is_said_by_proxies(name))
        }),
    }
    match headers.entry(FORWARDED_FOR) {
        Entry::Vacant(entry) => {
            entry.insert(forwarded.client.clone());
        }
        Entry::Occupied(mut entry) => {
            let list = appended(entry.iter(), forwarded.client.as_bytes());
            entry.insert(list.unwrap_or_else(|| forwarded.client.clone()));
        }
    }
    headers.insert(FORWARDED_PROTO, forwarded.proto.clone());
    headers.insert(FORWARDED_PORT, forwarded.port.clone());
    headers.insert(REAL_IP, forwarded.client.clone());
}

/// Returns whether proxies use the header to say who sent a request, and how.
fn is_said_by_proxies(name: &str) -> bool {
    name.starts_with("x-") || ["forwarded", "true-client-ip"].contains(&name)
}

/// Adds this proxy's element to `Forwarded` (RFC 7239), and corrects `X-Forwarded-Host`, if the
/// request has them. Otherwise a target could trust the values that the client sent.
fn add_host(headers: &mut HeaderMap, forwarded: &Forwarded, host: &str) {
    if headers.contains_key(FORWARDED_HOST) {
        match HeaderValue::from_str(host) {
            Ok(host) => drop(headers.insert(FORWARDED_HOST, host)),
            Err(_) => drop(headers.remove(FORWARDED_HOST)),
        }
    }
    let Entry::Occupied(mut entry) = headers.entry(FORWARDED) else { return };
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let (client, proto) = (text(&forwarded.client), text(&forwarded.proto));
    let client = if client.contains(':') { format!("\"[{client}]\"") } else { client };
    // The host has neither quotes nor backslashes, as was checked before.
    let own = format!("for={client};host=\"{host}\";proto={proto}");
    let is_whole = entry.iter().all(|value| has_closed_quotes(value.as_bytes()));
    let list = if is_whole {
        appended(entry.iter(), own.as_bytes())
    } else {
        // The addition would end up inside the client's open quotes.
        HeaderValue::from_str(&own).ok()
    };
    match list {
        Some(list) => drop(entry.insert(list)),
        None => drop(entry.remove()),
    }
}

/// Returns whether every quoted string of a value is closed.
fn has_closed_quotes(value: &[u8]) -> bool {
    let (mut is_quoted, mut bytes) = (false, value.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\\' if is_quoted => drop(bytes.next()),
            _ => {}
        }
    }
    !is_quoted
}

/// Returns all values of a header and one more, as a list.
fn appended<'v>(values: impl Iterator<Item = &'v HeaderValue>, last: &[u8]) -> Option<HeaderValue> {
    let mut list = Vec::new();
    for value in values {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(last);
    HeaderValue::from_maybe_shared(bytes::Bytes::from(list)).ok()
}

/// Returns whether `Connection` names the token.
fn nominates(headers: &HeaderMap, token: &str) -> bool {
    headers.get_all(CONNECTION).iter().any(|value| has_token(value, token))
}

fn has_token(value: &HeaderValue, token: &str) -> bool {
    tokens(value).any(|found| found.eq_ignore_ascii_case(token))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &str> {
    let text = value.to_str().unwrap_or_default();
    text.split(',').map(str::trim).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        headers
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        headers.keys().map(HeaderName::as_str).collect()
    }

    #[test]
    fn nominated_headers_do_not_pass() {
        let mut map = headers(&[
            ("host", "shop"),
            ("connection", "close, X-Secret"),
            ("connection", "Host, content-length"),
            ("x-secret", "1"),
            ("keep-alive", "5"),
            ("te", "gzip, trailers"),
            ("content-length", "0"),
        ]);
        let found = remove_hop_by_hop(&mut map);
        assert_eq!(names(&map), ["host", "content-length"]);
        let nominated: Vec<&str> = found.nominated.iter().map(HeaderName::as_str).collect();
        assert_eq!(nominated, ["close", "x-secret"]);
        assert_eq!((found.upgrade, found.takes_trailers), (None, true));
    }

    #[test]
    fn look_alikes_do_not_pass() {
        let mut map = headers(&[
            ("transfer_encoding", "chunked"),
            ("x_forwarded_for", "6.6.6.6"),
            ("my_header", "1"),
            ("x-real_ip", "6.6.6.6"),
        ]);
        remove_all(&mut map, is_look_alike);
        assert_eq!(names(&map), ["my_header"]);
    }

    #[test]
    fn an_upgrade_counts_when_the_connection_names_it() {
        let mut map = headers(&[("upgrade", "websocket"), ("connection", "keep-alive, Upgrade")]);
        let found = remove_hop_by_hop(&mut map);
        assert_eq!(found.upgrade.as_ref().map(HeaderValue::as_bytes), Some(&b"websocket"[..]));
        assert!(map.is_empty());
        let mut map = headers(&[("upgrade", "websocket")]);
        assert_eq!(remove_hop_by_hop(&mut map).upgrade, None);
        let mut map = headers(&[("upgrade", "H2C, websocket"), ("connection", "Upgrade")]);
        assert_eq!(remove_hop_by_hop(&mut map).upgrade, None);
    }

    #[test]
    fn addresses_are_written_as_they_are_displayed() {
        for text in ["0.0.0.0", "10.9.99.100", "255.101.1.19", "fd00::1", "::ffff:1.2.3.4"] {
            assert_eq!(address_value(text.parse().unwrap()), text);
        }
    }

    #[test]
    fn addresses_are_appended_and_the_real_one_is_the_clients() {
        let mut map = headers(&[
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-for", "5.6.7.8"),
            ("x-real-ip", "6.6.6.6"),
        ]);
        let value = |text| HeaderValue::from_static(text);
        let forwarded =
            Forwarded { client: value("10.1.1.10"), proto: value("http"), port: value("80") };
        add_forwarded(&mut map, &forwarded, ForwardedFor::Append, None);
        assert_eq!(map["x-forwarded-for"], "1.2.3.4, 5.6.7.8, 10.1.1.10");
        assert_eq!(map.get_all("x-forwarded-for").iter().count(), 1);
        assert_eq!(map["x-real-ip"], "10.1.1.10");
        assert_eq!(map["x-forwarded-port"], "80");
    }
}
