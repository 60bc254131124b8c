//! Who may enter, and what those use up that may not.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::groups::set_group;
use crate::support::{Balancer, Host, Wire, settings};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A client of which the load balancer sees this address.
fn client_from(source: &str, balancer: &Balancer) -> Wire<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(source.parse().unwrap(), 0).into()).unwrap();
    socket.connect(&balancer.address.into()).unwrap();
    Wire::new(socket.into())
}

#[test]
fn clients_that_no_group_admits_use_up_nothing_that_others_share() {
    let host = Host::plain();
    let balancer = Balancer::with(&[host.address], |config| {
        set_group(config, &[(false, "127.0.0.2/32"), (true, "127.0.0.0/8")]);
        settings(config).limits.connections_per_second = Some(1);
        settings(config).proxy_from = vec!["127.0.0.3/32".parse().unwrap()];
    });
    for _ in 0..20 {
        assert_eq!(client_from("127.0.0.2", &balancer).rest(), "");
        let mut behind_a_proxy = client_from("127.0.0.3", &balancer);
        behind_a_proxy.send("PROXY TCP4 127.0.0.2 127.0.0.1 1000 80\r\n").unwrap();
        assert_eq!(behind_a_proxy.rest(), "");
    }
    assert_eq!(balancer.client().ask(GET).unwrap().text(), "ok");
}

#[test]
fn a_client_that_takes_all_it_gets_shuts_out_no_other() {
    let host = Host::plain();
    let balancer = Balancer::with(&[host.address], |config| {
        config.process.connections = Some(20);
        settings(config).timeouts.header = Duration::from_secs(3600);
        settings(config).proxy_from = vec!["127.0.0.3/32".parse().unwrap()];
    });
    let header = "PROXY TCP4 192.0.2.1 127.0.0.1 1000 80\r\n";
    for (round, (source, sent)) in [
        ("127.0.0.2", ""),
        ("127.0.0.2", "GET / HTTP/1.1\r\n"),
        // A proxy whose headers do not end, and one that has a greedy client.
        ("127.0.0.3", "PROXY "),
        ("127.0.0.3", header),
    ]
    .into_iter()
    .enumerate()
    {
        let mut held = Vec::new();
        for number in 1..=100 {
            let mut client = client_from(source, &balancer);
            // It may have been turned away.
            let _ = client.send(sent);
            held.push(client);
            // Each other client has a single connection: one that it closed before could still
            // count as open.
            let mut other = client_from(&format!("127.1.{round}.{number}"), &balancer);
            assert_eq!(other.ask(GET).unwrap().text(), "ok", "{source} {sent:?}");
        }
        let mut behind_a_proxy = client_from("127.0.0.3", &balancer);
        behind_a_proxy.send("PROXY TCP4 192.0.2.2 127.0.0.1 1000 80\r\n").unwrap();
        let is_proxys_share = sent == "PROXY ";
        assert_eq!(behind_a_proxy.ask(GET).is_ok(), !is_proxys_share, "{source} {sent:?}");
        let is_open = |client: &Wire<TcpStream>| {
            client.stream().set_nonblocking(true).unwrap();
            client.is_open()
        };
        let open = held.iter().filter(|client| is_open(client)).count();
        assert!((1..20).contains(&open), "{open} of 100 for {source} {sent:?}");
    }
}
