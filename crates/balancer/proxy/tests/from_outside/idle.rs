//! Connections that are passed on as they are, and fall silent.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use uturn_lb::config::Config;
use uturn_model::lb::ListenerProtocol;

use crate::support::{Balancer, Host, Wire, listener, settings};
use crate::wait::await_that;

const SWITCH: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\n\r\n";

const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\n\r\n";

#[test]
fn a_switched_connection_ends_when_no_byte_moves() {
    let (sender, ended) = channel();
    let sender = Mutex::new(sender);
    let host = Host::start(move |mut wire| {
        wire.request().unwrap();
        wire.send(SWITCHED).unwrap();
        assert_eq!(wire.rest(), "");
        sender.lock().unwrap().send(()).unwrap();
    });
    let balancer = Balancer::with(&[host.address], |config| {
        settings(config).timeouts.tunnel = Duration::from_millis(300);
    });
    let mut client = balancer.client();
    client.send(SWITCH).unwrap();
    assert!(client.head().unwrap().unwrap().starts_with("HTTP/1.1 101 "));
    assert_eq!(client.rest(), "");
    ended.recv().unwrap();
}

/// A listener that passes on TCP behind a PROXY header, which it does itself.
fn tcp(config: &mut Config) {
    listener(config).protocol = ListenerProtocol::Tcp;
    listener(config).rules[0].path = None;
    settings(config).proxy_from = vec!["127.0.0.0/8".parse().unwrap()];
}

fn tcp_client(balancer: &Balancer) -> Wire<TcpStream> {
    let mut client = balancer.client();
    client.send("PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n").unwrap();
    client
}

#[test]
fn a_connection_on_layer_4_ends_when_no_byte_moves() {
    let (sender, ended) = channel();
    let sender = Mutex::new(sender);
    let host = Host::start(move |mut wire| {
        assert_eq!(wire.rest(), "");
        sender.lock().unwrap().send(()).unwrap();
    });
    let balancer = Balancer::with(&[host.address], |config| {
        tcp(config);
        settings(config).timeouts.idle = Duration::from_millis(300);
    });
    assert_eq!(tcp_client(&balancer).rest(), "");
    ended.recv().unwrap();
}

#[test]
fn the_kernel_looks_after_both_sides_of_a_silent_connection() {
    let host = Host::start(|mut wire| {
        wire.send("x").unwrap();
        wire.rest();
    });
    let balancer = Balancer::with(&[host.address], tcp);
    let mut client = tcp_client(&balancer);
    client.bytes(1).unwrap();
    let client = client.stream().local_addr().unwrap();
    // What was sent may not be acknowledged yet: until then another timer comes first.
    await_that(|| has_keepalive(|from, to| from == balancer.address && to == client));
    await_that(|| has_keepalive(|from, to| from != balancer.address && to == host.address));
}

/// Whether the kernel's timer for keepalive runs for the only connection that a check finds. The
/// table is not read at one moment: while others come and go, a connection may be listed more than
/// once, or be left out.
fn has_keepalive(is_wanted: impl Fn(SocketAddr, SocketAddr) -> bool) -> bool {
    let address = |text: &str| {
        let (ip, port) = text.split_once(':').unwrap();
        let ip = u32::from_str_radix(ip, 16).unwrap().to_ne_bytes();
        SocketAddr::from((ip, u16::from_str_radix(port, 16).unwrap()))
    };
    let find = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut timers = HashMap::new();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let ends = (address(fields[1]), address(fields[2]));
            if is_wanted(ends.0, ends.1) {
                timers.insert(ends, fields[5].to_owned());
            }
        }
        timers
    };
    let timers = (0..100).map(|_| find()).find(|timers| !timers.is_empty()).unwrap();
    assert_eq!(timers.len(), 1, "{timers:?}");
    // The kind of the timer that comes next (kernel, Documentation/networking/proc_net_tcp.rst).
    timers.values().all(|timer| timer.starts_with("02:"))
}
