//! `uturn lb run` with few descriptors, and with none: what this machine lacks is not held against
//! targets.
#![cfg(target_os = "linux")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::site::{Running, Site};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A site whose targets one bad check, or one bad request, takes out for as long as a test lasts.
fn site(name: &str) -> Site {
    let site = Site::new(name);
    let checks = "healthCheck: {interval: 100ms, rise: 1, fall: 1}\n    \
                  passiveCheck: {failures: 1, rest: 1h}\n    timeouts: {header: 1h, idle: 1h}";
    site.folder.file("lb.yaml", &site.text(0).replace("healthCheck: none", checks));
    site
}

/// Starts it with so many open files at most.
fn start(site: &Site, files: u64) -> Running {
    let program = site.command(&["-f", "lb.yaml"]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"]);
    command.arg(program.get_program()).args(program.get_args()).current_dir(&site.folder.0);
    command.stdin(std::process::Stdio::null());
    Running::start(command)
}

/// The sum of all samples of a family that have these labels.
fn count(site: &Site, family: &str, labels: &[&str]) -> u64 {
    let (_, page) = site.admin("GET", "/metrics", "", "");
    let has = |line: &&str| {
        line.starts_with(&format!("{family}{{")) && labels.iter().all(|label| line.contains(label))
    };
    let value = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    page.lines().filter(has).map(value).sum()
}

/// Reads `/healthz` until it answers with this status.
fn health(site: &Site, status: u16) -> String {
    loop {
        let (answered, text) = site.admin("GET", "/healthz", "", "");
        if answered == status {
            return text;
        }
    }
}

/// Nothing says that the target is dead, or that it rests.
fn expect_alive(site: &Site) {
    let (_, targets) = site.admin("GET", "/targets", "", "");
    for part in ["\"alive\": true", "\"decided\": true", "\"resting_until\": null"] {
        assert!(targets.contains(part), "{targets}");
    }
    assert_eq!(count(site, "uturn_lb_target_failures_total", &[]), 0);
    assert_eq!(count(site, "uturn_lb_target_connect_failures_total", &[]), 0);
    for result in ["timed_out", "refused", "unreachable", "unexpected"] {
        let label = format!("result=\"{result}\"");
        assert_eq!(count(site, "uturn_lb_target_probes_total", &[&label]), 0, "{result}");
    }
}

/// The status of an answer, which is read to its end.
fn ask(client: &mut BufReader<TcpStream>) -> io::Result<u16> {
    client.get_mut().write_all(GET)?;
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        if client.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
            status = rest[..3].parse().unwrap();
        }
        if let Some(rest) = line.to_lowercase().strip_prefix("content-length:") {
            length = rest.trim().parse().unwrap();
        }
        if line == "\r\n" {
            client.read_exact(&mut vec![0; length])?;
            return Ok(status);
        }
    }
}

#[test]
fn clients_leave_descriptors_for_targets_the_admin_address_and_health_checks() {
    let site = site("lb-few-descriptors");
    let _running = start(&site, 100);
    // More than there are descriptors for, of which one client gets half. Those that were taken in are
    // served.
    let mut clients: Vec<_> =
        (0..150).map(|_| BufReader::new(TcpStream::connect(site.listener).unwrap())).collect();
    while count(&site, "uturn_lb_connections_accepted_total", &[]) < 150 {}
    let served = clients.iter_mut().map(ask).filter(|asked| matches!(asked, Ok(200))).count();
    let refused = count(&site, "uturn_lb_connections_refused_total", &["\"process_limit\""])
        + count(&site, "uturn_lb_connections_refused_total", &["\"descriptors\""]);
    assert!(served > 15 && refused > 50, "{served} served, {refused} refused");
    assert_eq!(served as u64 + refused, 150);
    let answered = || count(&site, "uturn_lb_target_probes_total", &["result=\"answered\""]);
    let before = answered();
    while answered() < before + 5 {}
    expect_alive(&site);
}

#[test]
fn clients_beyond_the_descriptors_are_refused_and_the_health_page_says_so() {
    let site = site("lb-no-room");
    // More connections are allowed than there are descriptors for.
    let text = std::fs::read_to_string(site.folder.0.join("lb.yaml")).unwrap();
    let many = text.replace("  workers: 1\n", "  workers: 1\n  connections: 1000\n");
    site.folder.file("lb.yaml", &many);
    let _running = start(&site, 100);
    let clients: Vec<_> = (0..150).map(|_| TcpStream::connect(site.listener).unwrap()).collect();
    let text = health(&site, 503);
    assert!(text.contains("no file descriptors or no memory for connections of clients"), "{text}");
    while count(&site, "uturn_lb_connections_accepted_total", &[]) < 150 {}
    assert!(count(&site, "uturn_lb_connections_refused_total", &["\"descriptors\""]) > 50);
    let causes = ["operation=\"accept\"", "cause=\"descriptors\""];
    assert!(count(&site, "uturn_lb_local_errors_total", &causes) > 50);
    // One that was taken in gets a connection to the target.
    let mut first = BufReader::new(clients[0].try_clone().unwrap());
    assert_eq!(ask(&mut first).unwrap(), 200);
    let answered = || count(&site, "uturn_lb_target_probes_total", &["result=\"answered\""]);
    let before = answered();
    while answered() < before + 5 {}
    expect_alive(&site);
}

#[test]
fn a_process_without_descriptors_blames_no_target() {
    let site = site("lb-no-descriptors");
    let running = start(&site, 100);
    let mut client = BufReader::new(TcpStream::connect(site.listener).unwrap());
    while count(&site, "uturn_lb_connections_open", &[]) < 1 {}
    while count(&site, "uturn_lb_target_probes_total", &["result=\"answered\""]) < 1 {}
    let process = Pid::from_raw(running.child.id().try_into().unwrap());
    let limit = |current| {
        let limit = Rlimit { current: Some(current), maximum: Some(100) };
        prlimit(process, Resource::Nofile, limit).unwrap();
    };
    let errors = |operation: &str| {
        let operation = format!("operation=\"{operation}\"");
        count(&site, "uturn_lb_local_errors_total", &[&operation, "cause=\"descriptors\""])
    };
    while errors("probe") < 3 || errors("accept") < 3 {
        // Nothing more can be opened: neither for clients nor for health checks.
        limit(3);
        let mut waiting = BufReader::new(TcpStream::connect(site.listener).unwrap());
        for _ in 0..5 {
            assert_eq!(ask(&mut client).unwrap(), 503);
        }
        limit(100);
        assert_eq!(ask(&mut waiting).unwrap(), 200);
    }
    assert!(errors("connect") >= 5);
    let text = health(&site, 503);
    for part in ["for connections of clients", "for connections to targets", "for health checks"] {
        assert!(text.contains(part), "{text}");
    }
    expect_alive(&site);
    assert_eq!(ask(&mut client).unwrap(), 200);
}
