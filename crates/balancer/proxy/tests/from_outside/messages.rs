//! Messages of every shape, through and back.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use uturn_lb::config::Timeouts;

use crate::support::{Balancer, Host, Message, PATIENCE, settings};

/// A target that gives an answer and tells what it was asked.
fn telling(answer: &'static str) -> (Host, Receiver<Message>) {
    let (sender, requests) = channel();
    let sender = Mutex::new(sender);
    let host = Host::start(move |mut wire| {
        while let Ok(Some(request)) = wire.request() {
            let _ = sender.lock().unwrap().send(request);
            if wire.send(answer).is_err() {
                return;
            }
        }
    });
    (host, requests)
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn connections_to_targets_are_used_again() {
    let host = Host::plain();
    let balancer = Balancer::with(&[host.address], |config| config.process.workers = Some(1));
    for _ in 0..20 {
        let mut client = balancer.client();
        for _ in 0..5 {
            let answer = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            assert_eq!(answer.text(), "ok");
        }
    }
    assert_eq!(host.accepted(), 1, "100 requests of 20 clients, one after the other");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let host = Host::start(|mut wire| {
        while let Ok(Some(request)) = wire.request() {
            let path = request.head.split(' ').nth(1).unwrap();
            let length = path.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{path}");
            if wire.send(answer).is_err() {
                return;
            }
        }
    });
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    let one = |i| format!("GET /{i} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.send((0..50).map(one).collect::<String>()).unwrap();
    for i in 0..50 {
        assert_eq!(client.answer().unwrap().text(), format!("/{i}"));
    }
}

#[test]
fn a_switched_connection_passes_bytes_both_ways() {
    let host = Host::start(|mut wire| {
        let request = wire.request().unwrap().unwrap();
        assert_eq!(request.header("upgrade"), Some("websocket"));
        assert_eq!(request.header("connection"), Some("upgrade"));
        // The first bytes of the new protocol come with the answer.
        wire.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nwelcome",
        )
        .unwrap();
        while let Ok(bytes) = wire.bytes(4) {
            wire.send(bytes).unwrap();
        }
    });
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    // And so do the client's with its request.
    client
        .send(
            "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\nping",
        )
        .unwrap();
    let head = client.head().unwrap().unwrap();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.to_lowercase().contains("\r\nupgrade: websocket\r\n"), "{head}");
    assert_eq!(client.bytes(7).unwrap(), b"welcome");
    assert_eq!(client.bytes(4).unwrap(), b"ping");
    for i in 0..1000_u32 {
        client.send(i.to_be_bytes()).unwrap();
        assert_eq!(client.bytes(4).unwrap(), i.to_be_bytes());
    }
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "");
}

#[test]
fn a_switch_that_was_not_asked_for_is_refused() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    let (host, _requests) = telling(switch);
    let balancer = Balancer::start(&[host.address]);
    let answer = balancer.client().ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(answer.status(), 502);
}

#[test]
fn a_refused_switch_is_an_answer_like_any_other() {
    let (host, _requests) = telling(OK);
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    let ask = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    for _ in 0..3 {
        assert_eq!(client.ask(ask).unwrap().text(), "ok");
    }
}

#[test]
fn a_client_is_told_to_go_on_and_its_body_arrives() {
    let (host, requests) = telling(OK);
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        .unwrap();
    assert!(client.head().unwrap().unwrap().starts_with("HTTP/1.1 100 "));
    client.send("hello").unwrap();
    assert_eq!(client.answer().unwrap().text(), "ok");
    assert_eq!(requests.recv().unwrap().text(), "hello");
}

#[test]
fn an_answer_before_the_body_reaches_the_client() {
    let host = Host::start(|mut wire| {
        wire.head().unwrap();
        wire.send(
            "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig",
        )
        .unwrap();
        wire.rest();
    });
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nxxx").unwrap();
    let answer = client.answer().unwrap();
    assert_eq!((answer.status(), answer.text()), (413, "big"));
}

#[test]
fn a_body_of_unknown_length_passes_with_any_method() {
    let (host, requests) = telling(OK);
    let balancer = Balancer::start(&[host.address]);
    for method in ["GET", "DELETE", "POST"] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n"
        );
        assert_eq!(balancer.client().ask(request).unwrap().text(), "ok");
        assert_eq!(requests.recv().unwrap().text(), "hello", "{method}");
    }
}

#[test]
fn trailers_pass_both_ways() {
    let (host, requests) = telling(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
         2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n",
    );
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\
        Trailer: X-Check\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Check: 2\r\n\r\n";
    for _ in 0..2 {
        let answer = client.ask(request).unwrap();
        assert_eq!(answer.text(), "ok");
        assert_eq!(answer.trailers.to_lowercase(), "x-sum: 1\r\n");
        let asked = requests.recv().unwrap();
        assert_eq!(asked.text(), "hi");
        assert_eq!(asked.trailers.to_lowercase(), "x-check: 2\r\n");
    }
}

#[test]
fn answers_without_bodies_leave_the_connection_in_step() {
    for (method, answer, status) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 200),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nETag: \"x\"\r\n\r\n", 304),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
        ("GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204),
    ] {
        let (host, _requests) = telling(answer);
        let balancer = Balancer::with(&[host.address], |config| config.process.workers = Some(1));
        let mut client = balancer.client();
        for _ in 0..3 {
            client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
            let head = client.head().unwrap().unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}: {head}");
        }
        client.stream().shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.rest(), "", "{answer}");
        assert_eq!(host.accepted(), 1, "{answer}");
    }
}

#[test]
fn old_clients_are_served() {
    let (host, requests) =
        telling("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    let balancer = Balancer::start(&[host.address]);
    let answer = balancer.exchange(b"GET / HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(!answer.to_lowercase().contains("transfer-encoding"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nok"), "no chunks for HTTP/1.0: {answer}");
    assert!(requests.recv().unwrap().head.starts_with("GET / HTTP/1.1\r\n"));

    let (host, _requests) = telling(OK);
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    let ask = "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
    for _ in 0..2 {
        let answer = client.ask(ask).unwrap();
        assert_eq!(answer.text(), "ok");
        assert_eq!(answer.header("connection"), Some("keep-alive"));
    }
    assert_eq!(client.ask("GET / HTTP/1.0\r\n\r\n").unwrap().text(), "ok");
    assert_eq!(client.rest(), "", "without the word the connection ends");
}

#[test]
fn old_targets_are_understood() {
    for answer in ["HTTP/1.0 200 OK\r\n\r\nok", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"] {
        let host = Host::start(move |mut wire| {
            let _ = wire.request();
            wire.send(answer).unwrap();
        });
        let balancer = Balancer::start(&[host.address]);
        let mut client = balancer.client();
        for _ in 0..3 {
            let heard = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            assert_eq!(heard.text(), "ok");
            assert_eq!(heard.header("connection"), None, "that was between the two of them");
        }
    }
}

#[test]
fn a_client_that_wants_to_end_is_let_go() {
    let host = Host::plain();
    let balancer = Balancer::with(&[host.address], |config| config.process.workers = Some(1));
    for _ in 0..3 {
        let mut client = balancer.client();
        let answer = client.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        assert!(answer.closes());
        assert_eq!(client.rest(), "");
    }
    assert_eq!(host.accepted(), 1, "the target's connection is another matter");
}

#[test]
fn large_bodies_pass_whole_both_ways() {
    let host = Host::start(|mut wire| {
        while let Ok(Some(request)) = wire.request() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len());
            wire.send(head).unwrap();
            wire.send(request.body).unwrap();
        }
    });
    let balancer = Balancer::start(&[host.address]);
    let body: Vec<u8> = (0..5_000_000_u32).map(|i| (i % 251) as u8).collect();
    let mut client = balancer.client();
    let mut sender = client.stream().try_clone().unwrap();
    let sent = body.clone();
    let sending = std::thread::spawn(move || {
        let head = format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", sent.len());
        sender.write_all(head.as_bytes()).unwrap();
        sender.write_all(&sent).unwrap();
    });
    assert!(client.answer().unwrap().body == body);
    sending.join().unwrap();
}

#[test]
fn parts_of_an_answer_are_passed_on_as_they_come() {
    let (sender, words) = channel::<()>();
    let words = Mutex::new(words);
    let host = Host::start(move |mut wire| {
        wire.request().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        while words.lock().unwrap().recv().is_ok() {
            wire.send("5\r\nevent\r\n").unwrap();
        }
        wire.send("0\r\n\r\n").unwrap();
    });
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    client.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    client.head().unwrap().unwrap();
    for _ in 0..10 {
        // The next part is not sent before this one was read.
        sender.send(()).unwrap();
        assert_eq!(client.bytes(10).unwrap(), b"5\r\nevent\r\n");
    }
    drop(sender);
    assert_eq!(client.bytes(5).unwrap(), b"0\r\n\r\n");
}

#[test]
fn time_limits_have_their_answers() {
    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let silent = Host::start(|mut wire| {
        wire.rest();
    });
    let plain = Host::plain();
    // One limit is short, so that a busy machine meets no other.
    let with_short = |target: &Host, limit: fn(&mut Timeouts) -> &mut Duration| {
        Balancer::with(&[target.address], |config| {
            let timeouts = &mut settings(config).timeouts;
            (timeouts.header, timeouts.read, timeouts.idle) = (PATIENCE, PATIENCE, PATIENCE);
            *limit(timeouts) = Duration::from_millis(200);
        })
    };
    // A target that does not answer.
    let balancer = with_short(&silent, |timeouts| &mut timeouts.read);
    assert_eq!(balancer.client().ask(GET).unwrap().status(), 504);
    // Headers that do not end.
    let balancer = with_short(&plain, |timeouts| &mut timeouts.header);
    let (mut client, answer) = balancer.first_ask("GET / HTTP/1.1\r\nHost: a\r\nX-");
    assert_eq!(answer.status(), 408);
    assert_eq!(client.rest(), "");
    // Headers of a second request that do not end.
    let (mut client, answer) = balancer.first_ask(GET);
    assert_eq!(answer.status(), 200);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n").unwrap().status(), 408);
    // A connection without a request, and one without another.
    assert_eq!(balancer.client().rest(), "");
    let balancer = with_short(&plain, |timeouts| &mut timeouts.idle);
    let mut client = balancer.client();
    assert_eq!(client.ask(GET).unwrap().status(), 200);
    assert_eq!(client.rest(), "");
    // A body that does not end.
    let balancer = with_short(&plain, |timeouts| &mut timeouts.read);
    let mut client = balancer.client();
    let answer = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhi").unwrap();
    assert_eq!(answer.status(), 408);
    assert_eq!(client.rest(), "");
    // An answer's body that does not end.
    let stuck = Host::start(|mut wire| {
        wire.request().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi").unwrap();
        wire.rest();
    });
    let answer = with_short(&stuck, |timeouts| &mut timeouts.read).client().ask(GET);
    assert!(answer.is_err(), "{answer:?}");
}

#[test]
fn limits_of_sizes_have_their_answers() {
    let host = Host::plain();
    let balancer = Balancer::with(&[host.address], |config| {
        let limits = &mut settings(config).limits;
        (limits.body_bytes, limits.headers, limits.header_bytes) = (Some(1000), 10, 2000);
    });
    let status = |request: String| {
        let answer = balancer.exchange(request.as_bytes());
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let body = "x".repeat(1001);
    let post = |framing: &str, body: &str| {
        status(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n{body}"))
    };
    assert_eq!(post("Content-Length: 1000", &body[..1000]), "200");
    assert_eq!(post("Content-Length: 1001", &body), "413");
    let chunked = |body: &str| format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    assert_eq!(post("Transfer-Encoding: chunked", &chunked(&body[..1000])), "200");
    assert_eq!(post("Transfer-Encoding: chunked", &chunked(&body)), "413");
    assert_eq!(
        status(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(1900))),
        "200"
    );
    assert_eq!(
        status(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(2100))),
        "431"
    );
    assert_eq!(status(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(9))), "200");
    assert_eq!(
        status(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(10))),
        "431"
    );
    assert_eq!(status(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(3000))), "431");
}

#[test]
fn a_client_that_closes_its_half_gets_its_answer() {
    let host = Host::plain();
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.answer().unwrap().text(), "ok");
    let mut end = [0];
    assert_eq!(client.stream().read(&mut end).unwrap(), 0);
}
