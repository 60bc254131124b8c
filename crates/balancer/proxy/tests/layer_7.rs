//! The data plane on the loopback interface: a client, the load balancer, and targets that
//! say what a test makes them say. What needs namespaces is tested by the lab.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use uturn_lb::config::Config;
use uturn_lb::event::{Event, ProbeResult};
use uturn_model::lb::{HealthCheck, ListenerProtocol, PassiveCheck};
use uturn_proxy::{Detail, Observer, Server};

mod common;

use common::{health, load_balancer, rule};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// A running load balancer.
struct Balancer {
    address: SocketAddr,
    /// What it reported before it was ready.
    early: Vec<Event>,
    events: Receiver<Event>,
    server: Option<Server>,
}

impl Balancer {
    fn start(targets: &[SocketAddr]) -> Self {
        Self::with(targets, ListenerProtocol::Http, None)
    }

    fn with(
        targets: &[SocketAddr],
        protocol: ListenerProtocol,
        health_check: Option<HealthCheck>,
    ) -> Self {
        Self::with_checks(targets, protocol, health_check, None)
    }

    fn with_checks(
        targets: &[SocketAddr],
        protocol: ListenerProtocol,
        health_check: Option<HealthCheck>,
        passive_check: Option<PassiveCheck>,
    ) -> Self {
        let host = Some("*.example.com");
        let rules = vec![rule(host, "/", targets), rule(host, "/none", &[])];
        let mut load_balancer = load_balancer(protocol, rules);
        let profile = &mut load_balancer.listeners[0].profile;
        (profile.health_check, profile.passive_check) = (health_check, passive_check);
        let address = common::address(&load_balancer);
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let observer: Observer = Arc::new(move |event: &Event| {
            let _ = sender.lock().unwrap().send(event.clone());
        });
        let config = Config::plain(vec![load_balancer]);
        let server = Server::start(&config, observer, Detail::Connections).unwrap();
        // A probe may be quicker than the last step of the start.
        let is_early = |event: &Event| matches!(event, Event::Health { .. });
        let mut early = Vec::new();
        let ready = loop {
            match events.recv().unwrap() {
                event if is_early(&event) => early.push(event),
                event => break event,
            }
        };
        assert_eq!(ready, Event::Ready { listeners: vec![address] });
        Self { address, early, events, server: Some(server) }
    }

    /// Sends bytes and no more; returns all that comes back.
    fn send(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        // It may have been answered and closed already.
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The same under TLS; what comes back is whole, or an error.
    fn send_tls(&self, bytes: &str) -> io::Result<String> {
        let mut stream = common::tls::connect(TcpStream::connect(self.address).unwrap());
        stream.write_all(bytes.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: a.example.com\r\n\r\n"))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.server.take().unwrap().stop(Duration::ZERO);
    }
}

/// A target that waits until what it has read ends so, then says its piece and closes. What
/// it read can be had.
fn target(until: &'static str, answer: &'static str) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, read) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut text, mut byte) = (String::new(), [0]);
            while !text.ends_with(until) && matches!(stream.read(&mut byte), Ok(1)) {
                text.push(byte[0].into());
            }
            if !text.ends_with(until) {
                // A probe, which has nothing to say.
                continue;
            }
            stream.write_all(answer.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let _ = sender.send(text);
        }
    });
    (address, read)
}

/// An address where no process listens.
fn closed_address() -> SocketAddr {
    "127.0.0.1:1".parse().unwrap()
}

#[test]
fn a_request_is_passed_on_with_the_clients_address() {
    let (address, read) = target("\r\n\r\n", OK);
    let balancer = Balancer::start(&[address]);
    let answer = balancer.get("/x?y=z");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhi"), "{answer}");
    let request = read.recv().unwrap();
    assert!(request.starts_with("GET /x?y=z HTTP/1.1\r\nhost: a.example.com\r\n"), "{request}");
    assert!(request.contains("\r\nx-forwarded-for: 127."), "{request}");
    let Event::Pick { target, turn: 0, .. } = balancer.events.recv().unwrap() else { panic!() };
    assert_eq!(target, address);
    let answered = balancer.events.recv().unwrap();
    assert!(matches!(answered, Event::Answered { status: 200, .. }), "{answered:?}");
}

#[test]
fn bodies_are_passed_on_whole() {
    for (framing, body) in
        [("Content-Length: 5", "hello"), ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n")]
    {
        let end = if body == "hello" { "hello" } else { "0\r\n\r\n" };
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        let (address, read) = target(end, answer);
        let balancer = Balancer::start(&[address]);
        let request = format!("POST / HTTP/1.1\r\nHost: a.example.com\r\n{framing}\r\n\r\n{body}");
        let heard = balancer.send(&request);
        assert!(heard.ends_with("\r\n\r\n2\r\nhi\r\n0\r\n\r\n"), "{heard}");
        assert!(read.recv().unwrap().ends_with(&format!("\r\n\r\n{body}")), "{framing}");
    }
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    let (address, _read) = target("\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    let balancer = Balancer::start(&[address]);
    let heard = balancer.send("HEAD / HTTP/1.1\r\nHost: a.example.com\r\n\r\n");
    assert!(heard.starts_with("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n"), "{heard}");
    assert!(heard.ends_with("\r\n\r\n"), "{heard}");
}

#[test]
fn a_word_in_between_is_passed_on() {
    let answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\ndone";
    let (address, _read) = target("\r\n\r\nhi", answer);
    let balancer = Balancer::start(&[address]);
    let heard = balancer.send(
        "PUT / HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: 2\r\n\
         Expect: 100-continue\r\n\r\nhi",
    );
    assert!(heard.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 "), "{heard}");
    assert!(heard.contains("\r\ndone\r\n"), "{heard}");
}

#[test]
fn the_next_target_is_tried_and_turns_go_on() {
    let (good, _read) = target("\r\n\r\n", OK);
    let balancer = Balancer::start(&[closed_address(), good]);
    for turn in 0..4 {
        assert!(balancer.get("/").starts_with("HTTP/1.1 200 "), "turn {turn}");
    }
    let events: Vec<Event> = balancer.events.try_iter().collect();
    let refused = events.iter().filter(|event| matches!(event, Event::Refused { .. })).count();
    assert_eq!(refused, 2, "every other connection meets the one that is gone: {events:?}");
}

#[test]
fn what_cannot_be_served_has_a_status() {
    let (silent, _read) = target("\r\n\r\n", "");
    for (targets, request, status) in [
        (
            vec![closed_address(), closed_address()],
            "GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n",
            "502",
        ),
        (vec![silent], "GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n", "502"),
        (vec![], "GET /none HTTP/1.1\r\nHost: a.example.com\r\n\r\n", "503"),
        (vec![], "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "404"),
        (vec![], "GET / HTTP/1.1\r\n\r\n", "400"),
        (vec![], "hello\r\n\r\n", "400"),
        (vec![], "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "400"),
    ] {
        let balancer = Balancer::start(&targets);
        let heard = balancer.send(request);
        assert!(heard.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {heard}");
        let events: Vec<Event> = balancer
            .events
            .iter()
            .take_while(|event| !matches!(event, Event::Failed { status: Some(_), .. }))
            .collect();
        assert!(events.iter().all(|event| !matches!(event, Event::Answered { .. })));
    }
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    assert!(Balancer::start(&[]).send(&long).starts_with("HTTP/1.1 431 "));
}

#[test]
fn https_is_http_under_tls() {
    let big = "x".repeat(300_000);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{big}", big.len());
    let (address, read) = target("\r\n\r\n", answer.leak());
    let balancer = Balancer::with(&[address], ListenerProtocol::Https, None);
    let answer = balancer
        .send_tls("GET /x HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:.100}");
    assert!(answer.ends_with(&format!("\r\n\r\n{big}")), "{}", answer.len());
    assert!(read.recv().unwrap().contains("\r\nx-forwarded-for: 127."));
    let not_found = balancer
        .send_tls("GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(not_found.starts_with("HTTP/1.1 404 "), "{not_found}");
    let plain = balancer.send("GET /x HTTP/1.1\r\nHost: a.example.com\r\n\r\n");
    assert!(
        plain.starts_with("HTTP/1.1 400 "),
        "a client that does not speak TLS gets an answer: {plain}"
    );
}

#[test]
fn bytes_under_tls_are_passed_on() {
    let (address, read) = target("?", "some answer");
    let balancer = Balancer::with(&[address, address], ListenerProtocol::TcpSsl, None);
    for _ in 0..2 {
        assert_eq!(balancer.send_tls("any question?").unwrap(), "some answer");
        assert_eq!(read.recv().unwrap(), "any question?");
    }
    let mut stream = TcpStream::connect(balancer.address).unwrap();
    stream.write_all(b"any question?").unwrap();
    assert!(stream.read(&mut [0; 64]).is_err(), "who does not speak TLS is cut off");
    let balancer = Balancer::with(&[closed_address(), address], ListenerProtocol::TcpSsl, None);
    let answer = balancer.send_tls("any question?");
    assert!(answer.is_ok_and(|text| text.is_empty()), "closed without an answer; no second target");
}

#[test]
fn a_target_that_does_not_answer_probes_is_not_picked() {
    let (good, _read) = target("\r\n\r\n", OK);
    let check = health::check(Duration::from_millis(10), 2);
    let balancer = Balancer::with(&[closed_address(), good], ListenerProtocol::Http, Some(check));
    let mut states: Vec<_> = balancer
        .early
        .iter()
        .cloned()
        .chain(balancer.events.iter())
        .take(2)
        .map(|event| match event {
            Event::Health { target, alive, result, .. } => (target, alive, result),
            other => panic!("{other:?}"),
        })
        .collect();
    states.sort_by_key(|(_, alive, _)| *alive);
    assert_eq!(
        states,
        [(closed_address(), false, ProbeResult::Refused), (good, true, ProbeResult::Answered)]
    );
    for _ in 0..4 {
        assert!(balancer.get("/").starts_with("HTTP/1.1 200 "));
    }
    let events: Vec<Event> = balancer.events.try_iter().collect();
    assert!(!events.iter().any(|event| matches!(event, Event::Refused { .. })), "{events:?}");
}

#[test]
fn a_target_that_fails_too_often_is_not_picked() {
    let (good, _read) = target("\r\n\r\n", OK);
    let check = PassiveCheck { failures: 2, rest: Duration::from_secs(3600) };
    let balancer =
        Balancer::with_checks(&[closed_address(), good], ListenerProtocol::Http, None, Some(check));
    for _ in 0..12 {
        assert!(balancer.get("/").starts_with("HTTP/1.1 200 "));
    }
    let events: Vec<Event> = balancer.events.try_iter().collect();
    let refused = events.iter().filter(|event| matches!(event, Event::Refused { .. })).count();
    assert_eq!(refused, 2, "{events:?}");
    let rests = Event::Resting { listener: balancer.address, target: closed_address() };
    assert_eq!(events.iter().filter(|event| **event == rests).count(), 1, "{events:?}");
}
