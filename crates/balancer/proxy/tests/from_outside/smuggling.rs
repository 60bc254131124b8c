//! Requests whose end or destination two servers could understand differently.
//!
//! Each is sent on a connection of its own; it is refused, or the target gets exactly one reading
//! of it.

use std::sync::{Arc, Mutex};

use crate::support::{Balancer, Host, settings};

/// A request, its answers' status codes, and what the target read: lines of the head that the load
/// balancer did not add, and the body.
struct Case {
    what: &'static str,
    sent: Vec<u8>,
    statuses: &'static [&'static str],
    received: &'static [&'static str],
}

fn case(
    what: &'static str,
    sent: impl Into<Vec<u8>>,
    statuses: &'static [&'static str],
    received: &'static [&'static str],
) -> Case {
    Case { what, sent: sent.into(), statuses, received }
}

fn refused(what: &'static str, sent: impl Into<Vec<u8>>) -> Case {
    case(what, sent, &["400"], &[])
}

/// A `POST` with these header lines and what follows them.
fn post(lines: &str, rest: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n{rest}")
}

/// A `POST` with a chunked body of these bytes.
fn chunked(rest: &str) -> String {
    post("Transfer-Encoding: chunked", rest)
}

fn get(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n")
}

/// A `GET` of a target.
fn get_of(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
}

const NO_CHUNK: &str = "0\r\n\r\n";

fn lengths() -> Vec<Case> {
    vec![
        case(
            "a length before a coding",
            post("Content-Length: 8\r\nTransfer-Encoding: chunked", "0\r\n\r\nXYZ"),
            &["200"],
            &["POST / HTTP/1.1|host: a|transfer-encoding: chunked||"],
        ),
        case(
            "a coding before a length",
            post("Transfer-Encoding: chunked\r\nContent-Length: 8", "0\r\n\r\nXYZ"),
            &["200"],
            &["POST / HTTP/1.1|host: a|transfer-encoding: chunked||"],
        ),
        case(
            "the same length twice",
            post("Content-Length: 3\r\nContent-Length: 3", "abc"),
            &["200"],
            &["POST / HTTP/1.1|host: a|content-length: 3||abc"],
        ),
        refused("two lengths", post("Content-Length: 3\r\nContent-Length: 4", "abcd")),
        refused("a list of one length", post("Content-Length: 3, 3", "abc")),
        refused("a list of two lengths", post("Content-Length: 3, 4", "abcd")),
        refused("a length with a plus", post("Content-Length: +3", "abc")),
        refused("a negative length", post("Content-Length: -1", "abc")),
        refused("a hexadecimal length", post("Content-Length: 0x3", "abc")),
        refused("an empty length", post("Content-Length: ", "abc")),
        refused("a length beyond 64 bits", post("Content-Length: 18446744073709551619", "abc")),
        refused("a length with a space inside", post("Content-Length: 1 0", "abc")),
        case(
            "a length with a GET",
            get("Content-Length: 3") + "abc",
            &["200"],
            &["GET / HTTP/1.1|host: a|content-length: 3||abc"],
        ),
        case(
            "a length that Connection names",
            post("Connection: Content-Length\r\nContent-Length: 3", "abc"),
            &["200"],
            &["POST / HTTP/1.1|host: a|content-length: 3||abc"],
        ),
    ]
}

fn codings() -> Vec<Case> {
    let coding =
        |what, value: &str| refused(what, post(&format!("Transfer-Encoding: {value}"), NO_CHUNK));
    let unknown = |what, lines: &str| case(what, post(lines, NO_CHUNK), &["501"], &[]);
    vec![
        coding("a coding that begins otherwise", "xchunked"),
        coding("chunked is not the last coding", "chunked, identity"),
        coding("a quoted coding", "\"chunked\""),
        coding("a vertical tab before the coding", "\x0bchunked"),
        unknown("identity and chunked", "Transfer-Encoding: identity, chunked"),
        unknown("gzip and chunked", "Transfer-Encoding: gzip, chunked"),
        unknown("chunked and chunked", "Transfer-Encoding: chunked, chunked"),
        unknown("chunked on two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        unknown("another coding first", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked"),
        refused(
            "another coding last",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", NO_CHUNK),
        ),
        refused(
            "no coding, and a length",
            post("Transfer-Encoding: identity\r\nContent-Length: 3", "abc"),
        ),
        refused("an empty coding", post("Transfer-Encoding: \r\nContent-Length: 3", "abc")),
        refused(
            "a coding in HTTP/1.0",
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        case(
            "a coding spelt with an underscore",
            post("Transfer_Encoding: chunked\r\nContent-Length: 5", NO_CHUNK),
            &["200"],
            &["POST / HTTP/1.1|host: a|content-length: 5||0~~~~"],
        ),
        refused("a space before the coding's colon", post("Transfer-Encoding : chunked", NO_CHUNK)),
        refused("a space before the length's colon", post("Content-Length : 3", "abc")),
    ]
}

fn lines() -> Vec<Case> {
    vec![
        refused("a folded line", get("X: a\r\n b")),
        refused("a folded coding", post("Transfer-Encoding:\r\n chunked", NO_CHUNK)),
        refused("a first line that is folded", "GET / HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n"),
        case(
            "lines that end without a carriage return",
            "GET / HTTP/1.1\nHost: a\nX: y\n\n",
            &["200"],
            &["GET / HTTP/1.1|host: a|x: y||"],
        ),
        refused("a carriage return in a value", get("X: a\rTransfer-Encoding: chunked")),
        refused("a zero byte in a value", get("X: a\0b")),
        refused("a zero byte in a name", get("X\0: b")),
        refused("a name of no bytes", get(": b")),
        refused("a line without a colon", get("Xyz")),
        refused("a name with a space", get("X Y: z")),
        refused("a method that is none", "G{T / HTTP/1.1\r\nHost: a\r\n\r\n"),
        refused("two spaces", "GET  /  HTTP/1.1\r\nHost: a\r\n\r\n"),
        refused("tabs for spaces", "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n"),
        refused("HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
        refused("HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        refused("HTTP/0.9", "GET /\r\n"),
        refused("a version in small letters", "GET / http/1.1\r\nHost: a\r\n\r\n"),
        case(
            "empty lines before a request",
            "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            &["200"],
            &["GET / HTTP/1.1|host: a||"],
        ),
        case("more headers than allowed", get(&"X: y\r\n".repeat(101)), &["431"], &[]),
        case(
            "headers larger than allowed",
            get(&format!("X: {}", "x".repeat(70_000))),
            &["431"],
            &[],
        ),
        case("far larger than allowed", get(&format!("X: {}", "x".repeat(500_000))), &["431"], &[]),
        case(
            "a target longer than allowed",
            get_of(&format!("/{}", "x".repeat(40_000))),
            &["431"],
            &[],
        ),
    ]
}

fn chunks() -> Vec<Case> {
    let passed: &[&str] = &["POST / HTTP/1.1|host: a|transfer-encoding: chunked||abc"];
    let passes = |what, rest: &str| case(what, chunked(rest), &["200"], passed);
    vec![
        passes("a chunk", "3\r\nabc\r\n0\r\n\r\n"),
        passes("leading zeros", "0003\r\nabc\r\n0\r\n\r\n"),
        passes("a space behind a size", "3 \r\nabc\r\n0\r\n\r\n"),
        passes("an extension", "3;a=b\r\nabc\r\n0\r\n\r\n"),
        passes("trailers that are none", "3\r\nabc\r\n0\r\nContent-Length: 5\r\nX-T: y\r\n\r\n"),
        refused("a size beyond 64 bits", chunked("10000000000000003\r\nabc\r\n0\r\n\r\n")),
        refused("a size with a prefix", chunked("0x3\r\nabc\r\n0\r\n\r\n")),
        refused("a size with a plus", chunked("+3\r\nabc\r\n0\r\n\r\n")),
        refused("a negative size", chunked("-3\r\nabc\r\n0\r\n\r\n")),
        refused("a space before a size", chunked(" 3\r\nabc\r\n0\r\n\r\n")),
        refused("no size", chunked("\r\nabc\r\n0\r\n\r\n")),
        refused("a line feed in an extension", chunked("3;a\nxx\r\nabc\r\n0\r\n\r\n")),
        refused("line feeds alone", chunked("3\nabc\n0\n\n")),
        refused("more data than the size says", chunked("3\r\nabcdef\r\n0\r\n\r\n")),
        refused(
            "a long extension",
            chunked(&format!("3;{}\r\nabc\r\n0\r\n\r\n", "a".repeat(20_000))),
        ),
        refused("a body that breaks off", chunked("3\r\nab")),
    ]
}

fn targets() -> Vec<Case> {
    let host = |what, lines: &str| refused(what, format!("GET / HTTP/1.1\r\n{lines}\r\n\r\n"));
    let target = |what, target: &str| refused(what, get_of(target));
    vec![
        host("no Host", "X: y"),
        host("two Hosts", "Host: a\r\nHost: b"),
        host("the same Host twice", "Host: a\r\nHost: a"),
        host("an empty Host", "Host: "),
        host("a Host with a path and a user", "Host: a/b@c d"),
        host("a list of Hosts", "Host: a, b"),
        host("a Host that Connection names is no less needed", "X: a\r\nConnection: Host"),
        target("a URL of another host", "http://evil/x"),
        target("a URL with a user", "http://u@a/x"),
        refused("a URL without Host", "GET http://a/x HTTP/1.1\r\nX: a\r\n\r\n"),
        case(
            "a URL of the same host",
            get_of("http://a/x"),
            &["200"],
            &["GET /x HTTP/1.1|host: a||"],
        ),
        target("a path without a slash", "x"),
        target("a star", "*"),
        target("a space", "/a b"),
        target("a zero byte", "/\0"),
        refused("bytes beyond ASCII that are no text", b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"),
        case(
            "a star with OPTIONS, which is for the server that has the root",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            &["200"],
            &["OPTIONS * HTTP/1.1|host: a||"],
        ),
        case("a tunnel", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", &["405"], &[]),
        case("a fragment", get_of("/a#b"), &["200"], &["GET /a HTTP/1.1|host: a||"]),
    ]
}

fn headers() -> Vec<Case> {
    let plain: &[&str] = &["GET / HTTP/1.1|host: a||"];
    vec![
        case("Connection names Host", get("Connection: Host"), &["200"], plain),
        case(
            "Connection names an address",
            get("Connection: close, X-Forwarded-For\r\nX-Forwarded-For: 9.9.9.9"),
            &["200"],
            plain,
        ),
        case("Connection names what it names", get("Connection: X-A\r\nX-A: 1"), &["200"], plain),
        case("an address with underscores", get("X_Real_IP: 9.9.9.9"), &["200"], plain),
        case("an upgrade without Connection", get("Upgrade: websocket"), &["200"], plain),
        case("an expectation that is none", get("Expect: 200-ok"), &["200"], plain),
        case("Keep-Alive", get("Keep-Alive: timeout=5\r\nProxy-Connection: x"), &["200"], plain),
        case(
            "an upgrade to HTTP/2",
            get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                 HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
            &["200"],
            plain,
        ),
        case(
            "an upgrade to WebSocket",
            get("Connection: Upgrade\r\nUpgrade: websocket"),
            &["200"],
            &["GET / HTTP/1.1|host: a|upgrade: websocket|connection: upgrade||"],
        ),
        case(
            "trailers",
            get("TE: trailers\r\nConnection: TE"),
            &["200"],
            &["GET / HTTP/1.1|host: a|te: trailers|connection: te||"],
        ),
        case(
            "bytes beyond ASCII in a value",
            b"GET / HTTP/1.1\r\nHost: a\r\nX: a\xffb\r\n\r\n",
            &["200"],
            &["GET / HTTP/1.1|host: a|x: a\u{ff}b||"],
        ),
        case(
            "two requests at once",
            get_of("/1") + &get_of("/2"),
            &["200", "200"],
            &["GET /1 HTTP/1.1|host: a||", "GET /2 HTTP/1.1|host: a||"],
        ),
        case(
            "a request behind a body",
            post("Content-Length: 3", "abc") + &get_of("/2"),
            &["200", "200"],
            &["POST / HTTP/1.1|host: a|content-length: 3||abc", "GET /2 HTTP/1.1|host: a||"],
        ),
    ]
}

/// Sends a request and returns the status codes of its answers, and what the target read.
fn send(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let read = Arc::clone(&received);
    let host = Host::start(move |mut wire| {
        while let Ok(Some(request)) = wire.request() {
            let own = ["x-forwarded-", "x-real-ip"];
            let lines = request
                .head
                .split("\r\n")
                .filter(|line| !line.is_empty() && !own.iter().any(|name| line.starts_with(name)));
            let body = request.text().replace(['\r', '\n'], "~");
            let head = lines.collect::<Vec<_>>().join("|");
            read.lock().unwrap().push(format!("{head}||{body}"));
            let _ = wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let balancer = Balancer::with(&[host.address], |config| {
        config.process.workers = Some(1);
        settings(config).limits.headers = 100;
    });
    let answers = balancer.exchange(bytes);
    let answered = answers.matches("HTTP/1.1 ");
    assert_eq!(answered.count(), answers.matches("\r\n\r\n").count(), "{answers}");
    let statuses = answers.split("HTTP/1.1 ").skip(1).map(|rest| rest[..3].to_owned()).collect();
    // Nothing more can come once both have ended.
    drop(balancer);
    drop(host);
    let received = received.lock().unwrap().clone();
    (statuses, received)
}

#[test]
fn each_request_is_refused_or_has_one_reading() {
    let cases = [lengths(), codings(), lines(), chunks(), targets(), headers()];
    let mut wrong = Vec::new();
    for Case { what, sent, statuses, received } in cases.into_iter().flatten() {
        let found = send(&sent);
        if found.0 != statuses || found.1 != received {
            wrong.push(format!("{what}: {found:?}\n  instead of {:?}", (statuses, received)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
