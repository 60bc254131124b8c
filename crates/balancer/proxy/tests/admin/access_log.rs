//! The access log.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use uturn_lb::config::AccessLog;
use uturn_model::lb::ListenerProtocol;
use uturn_model::visible;

use crate::common::tls;
use crate::support::{Balancer, OK, TRIES, closed_address, read_until, request, target};

/// A file that is gone when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("uturn-proxy-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Reads a log until it has so many lines.
fn lines_of(log: &Path, count: usize) -> Vec<Value> {
    for _ in 0..TRIES {
        let text = fs::read_to_string(log).unwrap();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        thread::yield_now();
    }
    panic!("{}", fs::read_to_string(log).unwrap());
}

#[test]
fn a_request_without_an_answer_is_logged_too() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let log = Scratch::new("cut.log");
    let file = AccessLog::File(log.0.clone());
    let mut balancer = Balancer::with(
        &[silent.local_addr().unwrap()],
        |_| {},
        |config| config.process.access_log = file,
    );
    let mut client = TcpStream::connect(balancer.address()).unwrap();
    client.write_all(request("GET", "/").as_bytes()).unwrap();
    let (mut at_target, _) = silent.accept().unwrap();
    assert!(read_until(&mut at_target, "\r\n\r\n"));
    balancer.server.take().unwrap().stop(Duration::ZERO);
    let line = &lines_of(&log.0, 1)[0];
    assert_eq!((&line["status"], &line["attempts"]), (&Value::Null, &1.into()), "{line}");
    assert_eq!(line["why"], "the client's connection ended first");
}

#[test]
fn connections_under_tls_are_logged() {
    let good = target("?", "some answer");
    let log = Scratch::new("tls.log");
    let file = AccessLog::File(log.0.clone());
    let balancer = Balancer::with(
        &[good],
        |_| {},
        |config| {
            config.process.access_log = file;
            let balancer = &mut config.load_balancers[0].load_balancer;
            balancer.listeners[0].protocol = ListenerProtocol::TcpSsl;
        },
    );
    let mut stream = tls::connect(TcpStream::connect(balancer.address()).unwrap());
    stream.write_all(b"any question?").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "some answer");
    drop(stream);
    let line = &lines_of(&log.0, 1)[0];
    for (field, value) in [
        ("protocol", Value::from("TCP_SSL")),
        ("received_bytes", 13.into()),
        ("sent_bytes", 11.into()),
        ("target", good.to_string().into()),
        ("attempts", 1.into()),
        ("status", Value::Null),
    ] {
        assert_eq!(line[field], value, "{field}: {line}");
    }
}

#[test]
fn requests_are_logged_and_the_file_is_opened_anew() {
    let good = target("\r\n\r\n", OK);
    let log = Scratch::new("access.log");
    let rotated = Scratch::new("access.log.1");
    let file = AccessLog::File(log.0.clone());
    let mut balancer = Balancer::with(
        &[closed_address(), good],
        |_| {},
        |config| config.process.access_log = file,
    );
    balancer.get("/x?y=%22z");
    balancer.get("/none");
    balancer.send("hello\r\n\r\n");
    let lines = lines_of(&log.0, 3);
    let [answered, none, unreadable] = lines.as_slice() else { panic!("{lines:?}") };
    for (field, value) in [
        ("listener", Value::from(balancer.address().to_string())),
        ("protocol", "HTTP/1.1".into()),
        ("method", "GET".into()),
        ("host", "a.example.com".into()),
        ("path", "/x?y=%22z".into()),
        ("status", 200.into()),
        ("sent_bytes", 2.into()),
        ("target", good.to_string().into()),
        ("attempts", 2.into()),
    ] {
        assert_eq!(answered[field], value, "{field}: {answered}");
    }
    assert!(answered["total_ms"].as_f64() >= answered["first_byte_ms"].as_f64(), "{answered}");
    assert_eq!(answered.get("why"), None);
    assert_eq!(none["why"], "no target may be picked");
    assert_eq!((&none["status"], &none["target"]), (&503.into(), &Value::Null));
    assert_eq!((unreadable["status"].as_u64(), unreadable.get("path")), (Some(400), None));

    fs::rename(&log.0, &rotated.0).unwrap();
    let config = balancer.config.clone();
    let server = balancer.server.as_mut().unwrap();
    server.reload(&config).unwrap();
    balancer.get("/after");
    assert_eq!(lines_of(&log.0, 1)[0]["path"], "/after");
    assert_eq!(lines_of(&rotated.0, 3).len(), 3);

    let mut config = balancer.config.clone();
    config.process.access_log = AccessLog::Off;
    balancer.server.as_mut().unwrap().reload(&config).unwrap();
    balancer.get("/off");
    balancer.server.take().unwrap().stop(Duration::ZERO);
    assert_eq!(lines_of(&log.0, 1).len(), 1);
}

#[test]
fn no_request_forges_a_line_or_has_a_terminal_obey() {
    let good = target("\r\n\r\n", OK);
    let log = Scratch::new("hostile.log");
    let file = AccessLog::File(log.0.clone());
    let balancer = Balancer::with(&[good], |_| {}, |config| config.process.access_log = file);
    let sent = [
        "GET /\u{9b}31m\u{202e}\u{7f}x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%0a{%22status%22:200}%1b[31m HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\u{202e}b\u{85}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\tb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\u{1b}[2J\r\n\r\n",
        "GET /a\u{1b}[2J HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\rx HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://b\u{202e}c/ HTTP/1.1\r\nHost: b\r\n\r\n",
        "G\u{1b}T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\u{9b}: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: \u{1b}]52;c;eA==\u{7}\r\n\r\n",
    ];
    for request in sent {
        balancer.send(request);
    }
    let lines = lines_of(&log.0, sent.len());
    assert_eq!(lines.len(), sent.len(), "a line for each request");
    let text = fs::read_to_string(&log.0).unwrap();
    for line in text.lines() {
        assert!(!line.contains(visible::is_hidden), "{line:?}");
    }
}

#[test]
fn what_was_served_is_in_the_log_when_the_process_ends() {
    let log = Scratch::new("end.log");
    let file = AccessLog::File(log.0.clone());
    let mut balancer = Balancer::with(&[], |_| {}, |config| config.process.access_log = file);
    for _ in 0..100 {
        balancer.get("/none");
    }
    balancer.server.take().unwrap().stop(Duration::ZERO);
    let text = fs::read_to_string(&log.0).unwrap();
    assert_eq!(text.lines().count(), 100);
}
