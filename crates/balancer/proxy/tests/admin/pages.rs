//! The admin address itself, and the health of the process.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::common;
use crate::support::{Balancer, TRIES, answer_of, exchange, page_of};

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
    assert!((0..TRIES).any(|_| TcpStream::connect(admin).is_err()));
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

    let second = common::unused_address();
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
fn pages_are_only_read() {
    let balancer = Balancer::start(&[]);
    let answer = exchange(balancer.admin(), "POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    let answer = answer_of(balancer.admin(), "/nothing");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}

#[test]
fn a_name_of_another_site_gets_no_page() {
    let named = |config: &mut uturn_lb::config::Config| {
        config.process.admin_hosts = vec!["lb.example.com".into()];
    };
    let balancer = Balancer::with(&[], |_| {}, named);
    let admin = balancer.admin();
    let status = |path: &str, host: &str| {
        let answer = exchange(admin, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        answer[9..12].to_owned()
    };
    for path in ["/", "/metrics", "/targets", "/healthz", "/readyz", "/config", "/nothing"] {
        for host in
            ["evil.example", &format!("evil.example:{}", admin.port()), "127.0.0.1.evil.example"]
        {
            assert_eq!(status(path, host), "421", "{path} {host}");
        }
    }
    let absolute = "GET http://evil.example/metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(exchange(admin, absolute)[9..12], *"421");
    for host in
        ["lb.example.com", "LB.example.com:80", "localhost", "lb-1:9900", &admin.to_string()]
    {
        assert_eq!(status("/metrics", host), "200", "{host}");
        assert_eq!(status("/targets", host), "200", "{host}");
    }
}
