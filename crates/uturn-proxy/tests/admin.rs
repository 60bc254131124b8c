//! What the load balancer tells of its work: metrics, the state of targets, and the access log.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use uturn_lb::cloud::tke::profile::clb;
use uturn_lb::config::{AccessLog, Config};
use uturn_model::ingress::PathKind;
use uturn_model::lb::{
    HealthCheck, Listener, ListenerProtocol, PassiveCheck, ProbeSource, Profile, Rule, Scope,
    Source, Target, TargetKind,
};
use uturn_model::{LoadBalancer, NamespacedName, ObjectKind, ObjectRef, Port};
use uturn_proxy::{Detail, Server};

mod tls_client;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// How often a page is read until it says what it is to say.
const TRIES: usize = 10_000;

/// A load balancer with an admin address.
struct Balancer {
    config: Config,
    server: Option<Server>,
}

impl Balancer {
    fn start(targets: &[SocketAddr]) -> Self {
        Self::with(targets, |_| {}, |_| {})
    }

    fn with(
        targets: &[SocketAddr],
        profile: impl FnOnce(&mut Profile),
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = config(targets, profile);
        config.process.admin = Some(free_address());
        config.process.workers = Some(2);
        change(&mut config);
        let server = Some(Server::start(&config, Arc::new(|_| {}), Detail::Changes).unwrap());
        Self { config, server }
    }

    fn address(&self) -> SocketAddr {
        let balancer = &self.config.load_balancers[0].load_balancer;
        SocketAddr::new(balancer.vip, balancer.listeners[0].port.number())
    }

    fn admin(&self) -> SocketAddr {
        self.config.process.admin.unwrap()
    }

    /// Sends bytes and no more; returns all that comes back.
    fn send(&self, bytes: &str) -> String {
        exchange(self.address(), bytes)
    }

    fn get(&self, path: &str) -> String {
        self.send(&request("GET", path))
    }

    /// Reads a page until it passes a check.
    fn page_with(&self, path: &str, check: impl Fn(&str) -> bool) -> String {
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
    fn expect(&self, samples: &[(&str, &str, u64)]) {
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

fn config(targets: &[SocketAddr], change: impl FnOnce(&mut Profile)) -> Config {
    let protocol = ListenerProtocol::Http;
    let mut profile = clb(protocol.layer());
    profile.source = Source::Replaced("127.0.0.1/32".parse().unwrap());
    profile.avoids_client = false;
    profile.health_check = None;
    profile.passive_check = None;
    change(&mut profile);
    let address = free_address();
    Config::plain(vec![LoadBalancer {
        name: "lb".into(),
        vip: address.ip(),
        scope: Scope::Private,
        security_groups: Vec::new(),
        listeners: vec![Listener {
            port: Port::new(address.port()).unwrap(),
            protocol,
            profile,
            rules: vec![rule("/", targets), rule("/none", &[])],
        }],
    }])
}

/// The whole of 127.0.0.0/8 is this machine: every process has ports of its own there.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let ip = IpAddr::V4(Ipv4Addr::new(127, 64 | high, middle, low));
    SocketAddr::new(ip, 20000 + NEXT.fetch_add(1, Ordering::Relaxed))
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
        owner: ObjectRef::namespaced(ObjectKind::Ingress, &name),
        targets: targets.iter().map(target).collect(),
        redirect: None,
    }
}

/// A target that reads until something ends so, answers, and closes.
fn target(until: &'static str, answer: &'static str) -> SocketAddr {
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
fn read_until(stream: &mut TcpStream, until: &str) -> bool {
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.ends_with(until) && matches!(stream.read(&mut byte), Ok(1)) {
        text.push(byte[0].into());
    }
    text.ends_with(until)
}

/// An address where no process listens.
fn unused_address() -> SocketAddr {
    "127.0.0.1:1".parse().unwrap()
}

fn request(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a.example.com\r\n\r\n")
}

fn exchange(address: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A page of an admin address, with its head.
fn answer_of(admin: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: admin\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn page_of(admin: SocketAddr, path: &str) -> String {
    answer_of(admin, path).split_once("\r\n\r\n").unwrap().1.to_owned()
}

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
fn requests_are_counted_by_who_answered_and_how() {
    let good = target("\r\n\r\n", OK);
    let balancer = Balancer::start(&[unused_address(), good]);
    for _ in 0..4 {
        assert!(balancer.get("/x").starts_with("HTTP/1.1 200 "));
    }
    balancer.get("/none");
    balancer.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    balancer.send("hello\r\n\r\n");
    let dead = format!(",rule=\"*.example.com/\",target=\"{}\"", unused_address());
    let refused = format!("{dead},reason=\"refused\"");
    let good = format!(",rule=\"*.example.com/\",target=\"{good}\"");
    balancer.expect(&[
        ("uturn_lb_listener_accepting", "", 1),
        ("uturn_lb_connections_accepted_total", "", 7),
        ("uturn_lb_connections_open", "", 0),
        ("uturn_lb_requests_total", ",status=\"2xx\",answered_by=\"target\"", 4),
        ("uturn_lb_requests_total", ",status=\"5xx\",answered_by=\"load_balancer\"", 1),
        ("uturn_lb_requests_total", ",status=\"4xx\",answered_by=\"load_balancer\"", 2),
        ("uturn_lb_own_answers_total", ",status=\"503\"", 1),
        ("uturn_lb_own_answers_total", ",status=\"404\"", 1),
        ("uturn_lb_own_answers_total", ",status=\"400\"", 1),
        ("uturn_lb_answers_cut_total", ",by=\"client\"", 0),
        ("uturn_lb_answers_cut_total", ",by=\"target\"", 0),
        (
            "uturn_lb_sent_bytes_total",
            "",
            4 * 2 + "503 Service Unavailable\n".len() as u64 + "404 Not Found\n".len() as u64,
        ),
        ("uturn_lb_first_byte_seconds_count", "", 6),
        ("uturn_lb_request_seconds_bucket", ",le=\"+Inf\"", 6),
        ("uturn_lb_target_picks_total", &dead, 2),
        ("uturn_lb_target_connect_failures_total", &refused, 2),
        ("uturn_lb_target_failures_total", &dead, 2),
        ("uturn_lb_target_picks_total", &good, 2),
        ("uturn_lb_target_retries_total", &good, 2),
        ("uturn_lb_target_open", &good, 0),
        ("uturn_lb_target_healthy", &good, 1),
        ("uturn_lb_target_weight", &good, 10),
    ]);
}

#[test]
fn what_is_printed_is_what_the_page_describes() {
    let described =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lb-metrics.md"));
    let described = described.unwrap();
    let mut described: Vec<&str> = described
        .lines()
        .filter_map(|line| line.strip_prefix("| `uturn_lb_")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let balancer = Balancer::start(&[unused_address()]);
    let page = page_of(balancer.admin(), "/metrics");
    let mut printed: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE uturn_lb_")?.split_once(' '))
        .map(|(name, _)| name)
        .collect();
    described.sort_unstable();
    printed.sort_unstable();
    assert_eq!(printed, described);
    let mut samples: Vec<&str> =
        page.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
    let count = samples.len();
    samples.sort_unstable();
    samples.dedup();
    assert_eq!(samples.len(), count, "a sample stands there twice: {page}");
}

#[test]
fn bodies_are_counted_and_so_is_who_broke_them_off() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi";
    let balancer = Balancer::start(&[target("hello", answer)]);
    let post = "POST / HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: 5\r\n\r\nhello";
    // What the client gets of a broken answer is not for sure.
    balancer.send(post);
    balancer.expect(&[
        ("uturn_lb_received_bytes_total", "", 5),
        ("uturn_lb_sent_bytes_total", "", 2),
        ("uturn_lb_answers_cut_total", ",by=\"target\"", 1),
        ("uturn_lb_answers_cut_total", ",by=\"client\"", 0),
    ]);

    let balancer = Balancer::start(&[target("\r\n\r\n", answer)]);
    assert!(balancer.send(&request("HEAD", "/")).starts_with("HTTP/1.1 200 "));
    assert!(balancer.send(&request("HEAD", "/none")).starts_with("HTTP/1.1 503 "));
    balancer.expect(&[
        ("uturn_lb_first_byte_seconds_count", "", 2),
        ("uturn_lb_answers_cut_total", ",by=\"client\"", 0),
    ]);
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
    let mut stream = tls_client::connect(TcpStream::connect(balancer.address()).unwrap());
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
fn a_connection_that_switched_protocols_is_a_request_until_it_ends() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                  Upgrade: websocket\r\n\r\nwelcome";
    let balancer = Balancer::start(&[target("\r\n\r\n", answer)]);
    let upgrade = "GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: upgrade\r\n\
                   Upgrade: websocket\r\n\r\n";
    let mut client = TcpStream::connect(balancer.address()).unwrap();
    client.write_all(upgrade.as_bytes()).unwrap();
    assert!(read_until(&mut client, "welcome"));
    client.write_all(b"thanks").unwrap();
    balancer.expect(&[
        ("uturn_lb_connections_open", "", 1),
        ("uturn_lb_first_byte_seconds_count", "", 0),
    ]);
    client.shutdown(Shutdown::Write).unwrap();
    let mut rest = String::new();
    // The target has closed its end of the connection, and may answer with a reset.
    let _ = client.read_to_string(&mut rest);
    drop(client);
    balancer.expect(&[
        ("uturn_lb_requests_total", ",status=\"1xx\",answered_by=\"target\"", 1),
        ("uturn_lb_sent_bytes_total", "", 7),
        ("uturn_lb_received_bytes_total", "", 6),
        ("uturn_lb_answers_cut_total", ",by=\"client\"", 0),
    ]);
}

#[test]
fn connections_that_are_refused_are_counted_by_reason() {
    let balancer = Balancer::with(
        &[],
        |_| {},
        |config| config.load_balancers[0].listeners[0].limits.connections_per_client = Some(1),
    );
    let mut first = TcpStream::connect(balancer.address()).unwrap();
    first.write_all(b"GET ").unwrap();
    balancer.expect(&[("uturn_lb_connections_open", "", 1)]);
    let mut second = TcpStream::connect(balancer.address()).unwrap();
    assert!(!matches!(second.read(&mut [0]), Ok(1)));
    balancer.expect(&[
        ("uturn_lb_connections_refused_total", ",reason=\"client_limit\"", 1),
        ("uturn_lb_connections_accepted_total", "", 2),
        ("uturn_lb_connections_open", "", 1),
    ]);
}

#[test]
fn targets_are_shown_with_their_health() {
    let good = target("\r\n\r\n", OK);
    let check = HealthCheck {
        source: ProbeSource::Vip,
        interval: Duration::from_millis(10),
        timeout: Duration::from_secs(5),
        rise: 2,
        fall: 2,
    };
    let balancer = Balancer::with(
        &[unused_address(), good],
        |profile| profile.health_check = Some(check),
        |_| {},
    );
    let page = balancer.page_with("/targets", |page| page.contains("\"alive\": false"));
    let page: Value = serde_json::from_str(&page).unwrap();
    let [dead, alive] = page["targets"].as_array().unwrap().as_slice() else { panic!("{page}") };
    let listener = balancer.address().to_string();
    let expected = serde_json::json!({
        "load_balancer": "lb", "listener": listener, "protocol": "HTTP",
        "rule": "*.example.com/", "target": unused_address().to_string(), "weight": 10,
        "alive": false, "probe": "refused", "resting_until": null, "open": 0,
    });
    assert_eq!(*dead, expected);
    assert_eq!((&alive["alive"], &alive["target"]), (&true.into(), &good.to_string().into()));
    let labels = format!(",rule=\"*.example.com/\",target=\"{}\"", unused_address());
    balancer.expect(&[("uturn_lb_target_healthy", &labels, 0)]);
    let refused = format!("{labels},result=\"answered\"");
    balancer.expect(&[("uturn_lb_target_probes_total", &refused, 0)]);
}

#[test]
fn a_target_that_is_not_probed_any_more_is_alive() {
    let check = HealthCheck {
        source: ProbeSource::Vip,
        interval: Duration::from_millis(10),
        timeout: Duration::from_secs(5),
        rise: 1,
        fall: 1,
    };
    let mut balancer =
        Balancer::with(&[unused_address()], |profile| profile.health_check = Some(check), |_| {});
    balancer.page_with("/targets", |page| page.contains("\"alive\": false"));
    let mut config = balancer.config.clone();
    config.load_balancers[0].load_balancer.listeners[0].profile.health_check = None;
    balancer.server.as_mut().unwrap().reload(&config).unwrap();
    let page = page_of(balancer.admin(), "/targets");
    assert!(page.contains("\"alive\": true") && page.contains("\"probe\": null"), "{page}");
}

#[test]
fn a_target_that_rests_says_until_when() {
    let good = target("\r\n\r\n", OK);
    let check = PassiveCheck { failures: 1, rest: Duration::from_secs(3600) };
    let balancer = Balancer::with(
        &[unused_address(), good],
        |profile| profile.passive_check = Some(check),
        |_| {},
    );
    balancer.get("/");
    let page = page_of(balancer.admin(), "/targets");
    let page: Value = serde_json::from_str(&page).unwrap();
    let until = page["targets"][0]["resting_until"].as_str().unwrap();
    assert!(until.starts_with("20") && until.ends_with('Z'), "{until}");
    assert_eq!(page["targets"][1]["resting_until"], Value::Null);
    let labels = format!(",rule=\"*.example.com/\",target=\"{}\"", unused_address());
    balancer.expect(&[
        ("uturn_lb_target_resting", &labels, 1),
        ("uturn_lb_target_rests_total", &labels, 1),
    ]);
}

#[test]
fn health_is_good_until_it_drains() {
    let mut balancer = Balancer::start(&[]);
    balancer.page_with("/healthz", |page| page == "ok\n");
    let admin = balancer.admin();
    let answer = answer_of(admin, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let mut client = TcpStream::connect(balancer.address()).unwrap();
    client.write_all(b"GET ").unwrap();
    balancer.expect(&[("uturn_lb_connections_open", "", 1)]);
    let server = balancer.server.take().unwrap();
    let stopping = thread::spawn(move || server.stop(Duration::from_secs(60)));
    balancer.page_with("/healthz", |page| page == "draining\n");
    let answer = answer_of(admin, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    balancer.page_with("/metrics", |page| page.contains("\nuturn_lb_draining 1\n"));
    drop(client);
    stopping.join().unwrap();
    assert!(TcpStream::connect(admin).is_err());
}

#[test]
fn a_reload_moves_the_admin_address_or_changes_nothing() {
    let mut balancer = Balancer::start(&[]);
    let first = balancer.admin();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = balancer.config.clone();
    config.process.admin = Some(taken.local_addr().unwrap());
    let server = balancer.server.as_mut().unwrap();
    let error = server.reload(&config).unwrap_err().to_string();
    assert!(error.contains("the admin address"), "{error}");
    let line = "\nuturn_lb_reloads_total{result=\"failed\"} 1\n";
    assert!(page_of(first, "/metrics").contains(line));

    let second = free_address();
    config.process.admin = Some(second);
    server.reload(&config).unwrap();
    let page = page_of(second, "/metrics");
    assert!(page.contains("\nuturn_lb_reloads_total{result=\"ok\"} 1\n"), "{page}");
    assert!((0..TRIES).any(|_| TcpStream::connect(first).is_err()));

    config.process.admin = None;
    server.reload(&config).unwrap();
    assert!((0..TRIES).any(|_| TcpStream::connect(second).is_err()));
}

#[test]
fn counts_go_on_over_a_reload() {
    let good = target("\r\n\r\n", OK);
    let mut balancer = Balancer::start(&[good]);
    balancer.get("/");
    let config = balancer.config.clone();
    balancer.server.as_mut().unwrap().reload(&config).unwrap();
    balancer.get("/");
    let labels = format!(",rule=\"*.example.com/\",target=\"{good}\"");
    balancer.expect(&[
        ("uturn_lb_requests_total", ",status=\"2xx\",answered_by=\"target\"", 2),
        ("uturn_lb_target_picks_total", &labels, 2),
    ]);
}

#[test]
fn pages_are_only_read() {
    let balancer = Balancer::start(&[]);
    let answer = exchange(balancer.admin(), "POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    let answer = answer_of(balancer.admin(), "/nothing");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}

#[test]
fn requests_are_logged_and_the_file_is_opened_anew() {
    let good = target("\r\n\r\n", OK);
    let log = Scratch::new("access.log");
    let rotated = Scratch::new("access.log.1");
    let file = AccessLog::File(log.0.clone());
    let mut balancer = Balancer::with(
        &[unused_address(), good],
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
