//! Clients that send too much, send slowly, do not read or are too many: they are refused or cut
//! off, and others are served.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod server;

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

use uturn_cloud::server::Limits;

use self::server::Running;

/// A time that is over soon.
const SOON: Duration = Duration::from_millis(200);

#[test]
fn a_head_that_is_too_long_is_refused() {
    let server = Running::start(Limits::default());
    let mut stream = server.connect();
    // The connection may end before all of it is sent.
    let _ = write!(stream, "GET / HTTP/1.1\r\nHost: clb\r\nX: {}\r\n", "x".repeat(70_000));
    let answer = server::rest(stream);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer:.200}");
    server.serves();
}

#[test]
fn too_many_headers_are_refused() {
    let server = Running::start(Limits::default());
    let mut stream = server.connect();
    let headers: String = (0..200).map(|number| format!("X-{number}: 1\r\n")).collect();
    let _ = write!(stream, "GET / HTTP/1.1\r\nHost: clb\r\n{headers}\r\n");
    assert!(server::rest(stream).starts_with("HTTP/1.1 431"));
    server.serves();
}

#[test]
fn a_query_string_that_is_too_long_is_refused() {
    let server = Running::start(Limits::default());
    let code = |length: usize| {
        let mut stream = server.connect();
        let query = "a".repeat(length);
        write!(stream, "GET /?{query} HTTP/1.1\r\nHost: clb\r\nConnection: close\r\n\r\n").unwrap();
        server::code(&server::rest(stream))
    };
    assert_eq!(code(32 << 10), "AuthFailure.InvalidAuthorization");
    assert_eq!(code((32 << 10) + 1), "RequestSizeLimitExceeded");
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    const MAX: usize = 10 << 20;
    let server = Running::start(Limits::default());
    let code = |length: usize| {
        let mut stream = server.connect();
        write!(
            stream,
            "POST / HTTP/1.1\r\nHost: clb\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        // What is far too large is refused before it comes.
        if length < 2 * MAX {
            stream.write_all(&vec![b' '; length]).unwrap();
        }
        server::code(&server::rest(stream))
    };
    assert_eq!(code(MAX), "AuthFailure.InvalidAuthorization");
    assert_eq!(code(MAX + 1), "RequestSizeLimitExceeded");
    assert_eq!(code(MAX * 100), "RequestSizeLimitExceeded");
    server.serves();
}

#[test]
fn a_body_in_chunks_is_counted_too() {
    let server = Running::start(Limits::default());
    let mut stream = server.connect();
    let chunk = vec![b' '; 1 << 20];
    write!(stream, "POST / HTTP/1.1\r\nHost: clb\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    for _ in 0..11 {
        write!(stream, "{:x}\r\n", chunk.len()).unwrap();
        stream.write_all(&chunk).unwrap();
        write!(stream, "\r\n").unwrap();
    }
    write!(stream, "0\r\n\r\n").unwrap();
    assert_eq!(server::code(&server::rest(stream)), "RequestSizeLimitExceeded");
}

#[test]
fn a_head_that_does_not_come_ends_the_connection() {
    let server = Running::start(Limits { head: SOON, ..Limits::default() });
    for start in ["", "P", "POST / HTTP/1.1\r\nHost: clb\r\nX-TC-Acti"] {
        let mut stream = server.connect();
        stream.write_all(start.as_bytes()).unwrap();
        // This ends when the server closes the connection.
        let answer = server::rest(stream);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
}

#[test]
fn a_connection_that_is_idle_between_requests_ends() {
    let server = Running::start(Limits { head: SOON, ..Limits::default() });
    // On a busy machine the first request may be too late: then another connection makes it.
    let stream = loop {
        let mut stream = server.connect();
        if server::try_request(&mut stream) {
            break stream;
        }
    };
    server::rest(stream);
}

#[test]
fn a_body_that_does_not_come_is_answered_and_ends_the_connection() {
    let server = Running::start(Limits { body: SOON, ..Limits::default() });
    for head in ["Content-Length: 10\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n5\r\n{"] {
        let mut stream = server.connect();
        write!(stream, "POST / HTTP/1.1\r\nHost: clb\r\n{head}").unwrap();
        assert_eq!(server::code(&server::rest(stream)), "InvalidRequest", "{head}");
    }
}

/// Nothing is read, so that the server has to wait with its answers, and then nothing more can be
/// sent: the writes below fail only once the server has closed the connection.
#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let server = Running::start(Limits { answer: SOON, ..Limits::default() });
    let mut stream = server.connect();
    let id = "x".repeat(30_000);
    let request = format!(
        "POST / HTTP/1.1\r\nHost: clb\r\nContent-Length: 0\r\nX-TC-Timestamp: {}\r\n\
         Authorization: TC3-HMAC-SHA256 Credential={id}/{}/clb/tc3_request, \
         SignedHeaders=content-type;host, Signature={}\r\n\r\n",
        server::now().as_second(),
        server::now().strftime("%Y-%m-%d"),
        "0".repeat(64),
    );
    let error = loop {
        if let Err(error) = stream.write_all(request.as_bytes()) {
            break error;
        }
    };
    let kinds = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset, ErrorKind::ConnectionAborted];
    assert!(kinds.contains(&error.kind()), "{error}");
    server.serves();
}

#[test]
fn idle_connections_leave_room_for_others() {
    let server = Running::start(Limits { connections: 4, ..Limits::default() });
    // Each sends a part of a head, or nothing, and stays.
    let idle: Vec<_> = ["", "P", "POST / HTTP/1.1\r\nX: ", ""]
        .map(|start| {
            let mut stream = server.connect();
            stream.write_all(start.as_bytes()).unwrap();
            stream
        })
        .into();
    for _ in 0..3 {
        server.serves();
    }
    drop(idle);
}

#[test]
fn one_address_gets_so_many_connections_and_no_more() {
    let server = Running::start(Limits { connections_per_address: 2, ..Limits::default() });
    let (mut first, mut second) = (server.connect(), server.connect());
    server::request(&mut first);
    server::request(&mut second);
    assert_eq!(server::rest(server.connect()), "", "the third is closed");
    let mut other = server.connect_from([127, 0, 0, 2]);
    server::request(&mut other);
    drop(first);
    server::request(&mut second);
}

#[test]
fn the_first_head_has_to_come_soon() {
    let server = Running::start(Limits { first_head: SOON, ..Limits::default() });
    assert_eq!(server::rest(server.connect()), "");
}

/// More bodies than are read at a time begin and do not go on. Without a signature they do not take
/// the turn of one that is signed.
#[test]
fn slow_bodies_leave_turns_to_others() {
    let server = Running::start(Limits::default());
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = server.connect();
            write!(stream, "POST / HTTP/1.1\r\nHost: clb\r\nContent-Length: 1000000\r\n\r\n{{")
                .unwrap();
            stream
        })
        .collect();
    let body = vec![b' '; 1 << 20];
    let mut stream = server.connect_from([127, 0, 0, 2]);
    let head = server::well_formed("id1", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    assert_eq!(server::code(&server::rest(stream)), "AuthFailure.SignatureFailure");
    drop(slow);
}

/// Whoever knows the id of a credential can hold turns, but only those of one address.
#[test]
fn slow_bodies_with_a_known_id_leave_turns_to_other_addresses() {
    let server = Running::start(Limits { body_turn: SOON, ..Limits::default() });
    let begin = |from: [u8; 4]| {
        let mut stream = server.connect_from(from);
        stream.write_all(server::well_formed("id1", 1 << 20).as_bytes()).unwrap();
        stream
    };
    let slow: Vec<_> = (0..20).map(|_| begin([127, 0, 0, 1])).collect();
    let mut other = begin([127, 0, 0, 2]);
    other.write_all(&vec![b' '; 1 << 20]).unwrap();
    assert_eq!(server::code(&server::rest(other)), "AuthFailure.SignatureFailure");
    drop(slow);
}

#[test]
fn more_connections_than_allowed_wait_for_their_turn() {
    let server = Running::start(Limits { connections: 2, ..Limits::default() });
    let (mut first, mut second) = (server.connect(), server.connect());
    server::request(&mut first);
    server::request(&mut second);
    let mut third = server.connect();
    server::send(&mut third);
    server::request(&mut first);
    third.set_nonblocking(true).unwrap();
    let waiting = third.read(&mut [0]).unwrap_err();
    assert_eq!(waiting.kind(), ErrorKind::WouldBlock, "the third waits");
    third.set_nonblocking(false).unwrap();
    drop(first);
    server::receive(&mut third);
    server::request(&mut second);
}
