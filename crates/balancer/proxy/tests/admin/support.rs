//! A load balancer with an admin address, and what reads its pages.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use uturn_lb::config::Config;
use uturn_model::lb::{ListenerProtocol, Profile};
use uturn_proxy::{Detail, Server};

use crate::common::{self, load_balancer, rule};

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// How often a page is read until it says what it is to say.
pub(crate) const TRIES: usize = 10_000_000;

/// A load balancer with an admin address.
pub(crate) struct Balancer {
    pub(crate) config: Config,
    pub(crate) server: Option<Server>,
}

impl Balancer {
    pub(crate) fn start(targets: &[SocketAddr]) -> Self {
        Self::with(targets, |_| {}, |_| {})
    }

    pub(crate) fn with(
        targets: &[SocketAddr],
        profile: impl FnOnce(&mut Profile),
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = config(targets, profile);
        config.process.admin = Some(common::unused_address());
        config.process.workers = Some(2);
        change(&mut config);
        let server = Some(Server::start(&config, Arc::new(|_| {}), Detail::Changes).unwrap());
        Self { config, server }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        common::address(&self.config.load_balancers[0].load_balancer)
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.config.process.admin.unwrap()
    }

    /// Sends bytes and no more; returns all that comes back.
    pub(crate) fn send(&self, bytes: &str) -> String {
        exchange(self.address(), bytes)
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.send(&request("GET", path))
    }

    /// Reads a page until it passes a check.
    pub(crate) fn page_with(&self, path: &str, check: impl Fn(&str) -> bool) -> String {
        let mut page = String::new();
        for _ in 0..TRIES {
            page = page_of(self.admin(), path);
            if check(&page) {
                return page;
            }
        }
        panic!("{page}");
    }

    /// Waits until the metrics have samples, given without the labels of the listener.
    pub(crate) fn expect(&self, samples: &[(&str, &str, u64)]) {
        let listener = format!("{{listener=\"{}\",protocol=\"HTTP\"", self.address());
        for (name, labels, value) in samples {
            let line = format!("\n{name}{listener}{labels}}} {value}\n");
            self.page_with("/metrics", |page| page.contains(&line));
        }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(Duration::ZERO);
        }
    }
}

pub(crate) fn config(targets: &[SocketAddr], change: impl FnOnce(&mut Profile)) -> Config {
    let host = Some("*.example.com");
    let rules = vec![rule(host, "/", targets), rule(host, "/none", &[])];
    let mut balancer = load_balancer(ListenerProtocol::Http, rules);
    change(&mut balancer.listeners[0].profile);
    Config::plain(vec![balancer])
}

/// A target that reads until something ends so, answers, and closes.
pub(crate) fn target(until: &'static str, answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            if read_until(&mut stream, until) {
                stream.write_all(answer.as_bytes()).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            }
        }
    });
    address
}

/// Reads until something ends so. Returns whether it did.
pub(crate) fn read_until(stream: &mut TcpStream, until: &str) -> bool {
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.ends_with(until) && matches!(stream.read(&mut byte), Ok(1)) {
        text.push(byte[0].into());
    }
    text.ends_with(until)
}

/// An address where no process listens.
pub(crate) fn closed_address() -> SocketAddr {
    "127.0.0.1:1".parse().unwrap()
}

pub(crate) fn request(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a.example.com\r\n\r\n")
}

pub(crate) fn exchange(address: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A page of an admin address, with its head.
pub(crate) fn answer_of(admin: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: admin\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub(crate) fn page_of(admin: SocketAddr, path: &str) -> String {
    answer_of(admin, path).split_once("\r\n\r\n").unwrap().1.to_owned()
}
