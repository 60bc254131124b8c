//! Answers to requests that are not read to their end.

use std::io;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::support::{Balancer, Host, PATIENCE, settings};
use crate::wait::await_that;

/// How long the load balancer takes what a client sends after its answer, and resets nothing.
const LINGERS: Duration = Duration::from_secs(2);

/// Does something that has to succeed within this time. It is done again where this machine was too
/// busy for that.
fn in_time(attempt: impl Fn() -> io::Result<()>) {
    await_that(|| {
        let began = Instant::now();
        let done = attempt();
        assert!(done.is_ok() || began.elapsed() >= LINGERS, "{done:?}");
        done.is_ok()
    });
}

#[test]
fn a_client_that_is_still_sending_gets_its_answer_and_no_reset() {
    let host = Host::start(|mut wire| {
        wire.head().unwrap();
        wire.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").unwrap();
        wire.rest();
    });
    let balancer = Balancer::with(&[host.address], |config| {
        let settings = settings(config);
        (settings.limits.body_bytes, settings.limits.header_bytes) = (Some(200_000), 2000);
    });
    let post = "POST / HTTP/1.1\r\nHost: a\r\n";
    for (request, status) in [
        ("hello\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(3000)), 431),
        (format!("{post}Content-Length: 300000\r\n\r\nx"), 413),
        (format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\nx"), 501),
        // The target answers before it has the body.
        (format!("{post}Content-Length: 100000\r\n\r\nx"), 403),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\n5\r\nx"), 403),
    ] {
        in_time(|| {
            let mut client = balancer.client();
            client.send(&request)?;
            assert_eq!(client.peek(), Some(b'H'), "{request:.50}");
            // After the answer the load balancer has closed its side. What it has no use for it
            // still takes: a reset would fail the second of these.
            for _ in 0..10 {
                client.send("more of it")?;
            }
            let answer = client.answer()?;
            assert_eq!(answer.status(), status, "{request:.50}");
            assert_eq!(client.rest(), "", "{request:.50}");
            client.send("even more")?;
            client.send("and more")?;
            client.stream().shutdown(Shutdown::Write)
        });
    }
}

#[test]
fn a_client_that_is_too_slow_gets_its_answer_and_no_reset() {
    let host = Host::plain();
    let short = Duration::from_millis(200);
    let in_headers = Balancer::with(&[host.address], |config| {
        settings(config).timeouts.header = short;
    });
    let in_body = Balancer::with(&[host.address], |config| {
        let timeouts = &mut settings(config).timeouts;
        (timeouts.header, timeouts.read) = (PATIENCE, short);
    });
    for (balancer, request) in [
        (&in_headers, "GET / HTTP/1.1\r\nHost: a\r\nX-"),
        (&in_body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx"),
        (&in_body, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx"),
    ] {
        in_time(|| {
            let mut client = balancer.client();
            // One that was ended before it had sent anything makes room for another.
            while client.send(request).is_err() || client.peek().is_none() {
                client = balancer.client();
            }
            assert_eq!(client.peek(), Some(b'H'), "{request}");
            for _ in 0..10 {
                client.send("more of it")?;
            }
            assert_eq!(client.answer()?.status(), 408);
            assert_eq!(client.rest(), "");
            Ok(())
        });
    }
}

#[test]
fn a_client_that_sends_on_and_on_is_cut_in_the_end() {
    let balancer = Balancer::start(&[]);
    let mut client = balancer.client();
    client.send("hello\r\n\r\n").unwrap();
    let bytes = [0; 1 << 16];
    while client.send(bytes).is_ok() {}
}
