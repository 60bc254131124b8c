//! The data plane on the loopback interface: a client, the load balancer, and targets that
//! say what a test makes them say. What needs namespaces is tested by the lab.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use uturn_lb::l7::{self, Event};
use uturn_lb::profile::tke_clb;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{Layer, Listener, ListenerProtocol, Rule, Scope, Source, Target, TargetKind};
use uturn_model::{Kind, LoadBalancer, NamespacedName, ObjectRef, Port};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// A running load balancer.
struct Balancer {
    address: SocketAddr,
    events: Receiver<Event>,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Balancer {
    fn start(targets: &[SocketAddr]) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        // The whole of 127.0.0.0/8 is this machine: every process has ports of its own there.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let vip = IpAddr::V4(Ipv4Addr::new(127, 64 | high, middle, low));
        let port = 20000 + NEXT.fetch_add(1, Ordering::Relaxed);
        let mut profile = tke_clb(Layer::L7);
        profile.source = Source::Replaced("127.0.0.1/32".parse().unwrap());
        profile.avoids_client = false;
        let load_balancer = LoadBalancer {
            name: "lb".into(),
            vip,
            scope: Scope::Private,
            security_groups: Vec::new(),
            listeners: vec![Listener {
                port: Port::new(port).unwrap(),
                protocol: ListenerProtocol::Http,
                profile,
                rules: vec![rule("/", targets), rule("/none", &[])],
            }],
        };
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let report: Arc<dyn Fn(&Event) + Send + Sync> = Arc::new(move |event: &Event| {
            let _ = sender.lock().unwrap().send(event.clone());
        });
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || l7::run(&[load_balancer], &report, &stop).unwrap()
        });
        let address = SocketAddr::new(vip, port);
        assert_eq!(events.recv().unwrap(), Event::Ready { listeners: vec![address] });
        Self { address, events, stop, thread: Some(thread) }
    }

    /// Sends bytes; all that comes back until the load balancer closes.
    fn say(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.say(&format!("GET {path} HTTP/1.1\r\nHost: a.example.com\r\n\r\n"))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn rule(path: &str, targets: &[SocketAddr]) -> Rule {
    let name = NamespacedName::new("shop", "front").unwrap();
    let target = |address: &SocketAddr| Target {
        address: *address,
        weight: 10,
        kind: TargetKind::NodePort("n1".parse().unwrap()),
    };
    Rule {
        host: Some("*.example.com".into()),
        path: Some((path.into(), PathKind::Prefix)),
        service: name.clone(),
        owner: ObjectRef::namespaced(Kind::Ingress, &name),
        targets: targets.iter().map(target).collect(),
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
            while !text.ends_with(until) && stream.read(&mut byte).unwrap() == 1 {
                text.push(byte[0].into());
            }
            stream.write_all(answer.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let _ = sender.send(text);
        }
    });
    (address, read)
}

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    "127.0.0.1:1".parse().unwrap()
}

#[test]
fn a_request_is_passed_on_with_the_clients_address() {
    let (address, read) = target("\r\n\r\n", OK);
    let balancer = Balancer::start(&[address]);
    let answer = balancer.get("/x?y=z");
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
    let request = read.recv().unwrap();
    assert!(request.starts_with("GET /x?y=z HTTP/1.1\r\nHost: a.example.com\r\n"), "{request}");
    assert!(request.contains("\r\nX-Forwarded-For: 127."), "{request}");
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
        let heard = balancer.say(&request);
        assert!(heard.ends_with("\r\n\r\n2\r\nhi\r\n0\r\n\r\n"), "{heard}");
        assert!(read.recv().unwrap().ends_with(&format!("\r\n\r\n{body}")), "{framing}");
    }
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    let (address, _read) = target("\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    let balancer = Balancer::start(&[address]);
    let heard = balancer.say("HEAD / HTTP/1.1\r\nHost: a.example.com\r\n\r\n");
    assert_eq!(heard, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n");
}

#[test]
fn a_word_in_between_is_passed_on() {
    let answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\ndone";
    let (address, _read) = target("\r\n\r\nhi", answer);
    let balancer = Balancer::start(&[address]);
    let heard = balancer.say(
        "PUT / HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: 2\r\n\
         Expect: 100-continue\r\n\r\nhi",
    );
    assert!(heard.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 "), "{heard}");
    assert!(heard.ends_with("\r\n\r\ndone"), "{heard}");
}

#[test]
fn the_next_target_is_tried_and_turns_go_on() {
    let (good, _read) = target("\r\n\r\n", OK);
    let balancer = Balancer::start(&[nobody(), good]);
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
        (vec![nobody(), nobody()], "GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n", "502"),
        (vec![silent], "GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n", "502"),
        (vec![], "GET /none HTTP/1.1\r\nHost: a.example.com\r\n\r\n", "503"),
        (vec![], "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "404"),
        (vec![], "GET / HTTP/1.1\r\n\r\n", "400"),
        (vec![], "hello\r\n\r\n", "400"),
        (vec![], "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "400"),
    ] {
        let balancer = Balancer::start(&targets);
        let heard = balancer.say(request);
        assert!(heard.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {heard}");
        let events: Vec<Event> = balancer
            .events
            .iter()
            .take_while(|event| !matches!(event, Event::Failed { status: Some(_), .. }))
            .collect();
        assert!(events.iter().all(|event| !matches!(event, Event::Answered { .. })));
    }
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    assert!(Balancer::start(&[]).say(&long).starts_with("HTTP/1.1 431 "));
}
