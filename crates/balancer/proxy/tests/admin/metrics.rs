//! What is counted, and printed for Prometheus.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::support::{Balancer, OK, closed_address, page_of, read_until, request, target};

#[test]
fn requests_are_counted_by_who_answered_and_how() {
    let good = target("\r\n\r\n", OK);
    let balancer = Balancer::start(&[closed_address(), good]);
    for _ in 0..4 {
        assert!(balancer.get("/x").starts_with("HTTP/1.1 200 "));
    }
    balancer.get("/none");
    balancer.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    balancer.send("hello\r\n\r\n");
    let dead = format!(",rule=\"*.example.com/\",target=\"{}\"", closed_address());
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
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/lb-metrics.md"));
    let described = described.unwrap();
    let mut described: Vec<&str> = described
        .lines()
        .filter_map(|line| line.strip_prefix("| `uturn_lb_")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let balancer = Balancer::start(&[closed_address()]);
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
