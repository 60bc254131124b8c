//! Which target a client meets, and what that sees.

use uturn_lb::decide::Choice;

use super::*;

#[test]
fn turns_are_even_and_the_source_is_kept() {
    let Some(network) = network(3) else { return };
    let all = &[(1, 10), (2, 10), (3, 10)];
    let config = Config::plain(vec![
        listener(ListenerProtocol::Tcp, VIP, all),
        listener(ListenerProtocol::Udp, VIP, all),
        listener(ListenerProtocol::Tcp, VIP_6, all),
        listener(ListenerProtocol::Udp, VIP_6, all),
    ]);
    let balancer = Balancer::start(&network, &config);
    let client = &network.client;
    assert_eq!(client.targets(6, TCP), "t1 t2 t3 t1 t2 t3");
    assert_eq!(client.targets(6, TCP_6), "t1 t2 t3 t1 t2 t3");
    assert_eq!(client.datagrams(6, "0.0.0.0", TCP), "t1 t2 t3 t1 t2 t3");
    assert_eq!(client.datagrams(6, "::", TCP_6), "t1 t2 t3 t1 t2 t3");
    assert_eq!(client.connect(TCP).unwrap().client(), "10.1.0.2");
    assert_eq!(client.connect(TCP_6).unwrap().client(), "fd00:1::2");
    // A client on the same machine takes turns, too.
    assert_eq!(network.balancer.targets(3, TCP), "t2 t3 t1");
    // A flow of datagrams stays with its target.
    let flow = client.datagram_socket("0.0.0.0");
    assert_eq!([(); 3].map(|()| client.ask(&flow, TCP)), ["t1", "t1", "t1"]);
    drop(balancer);
}

#[test]
fn turns_are_as_weights_say() {
    let Some(network) = network(3) else { return };
    let _balancer = Balancer::start(&network, &tcp(&[(1, 20), (2, 10), (3, 0)]));
    assert_eq!(network.client.targets(6, TCP), "t1 t2 t1 t1 t2 t1");
    // Clients with a target's address meet the others.
    assert_eq!(network.targets[0].space.targets(2, TCP), "t2 t2");
    assert_eq!(network.targets[1].space.targets(2, TCP), "t1 t1");
    assert_eq!(network.targets[2].space.targets(3, TCP), "t1 t2 t1");
}

#[test]
fn a_target_is_not_sent_to_itself() {
    let Some(network) = network(3) else { return };
    let all = &[(1, 10), (2, 10), (3, 10)];
    let config = Config::plain(vec![
        listener(ListenerProtocol::Tcp, VIP, all),
        listener(ListenerProtocol::Tcp, VIP_6, all),
        listener(ListenerProtocol::Udp, VIP, all),
        listener(ListenerProtocol::Udp, VIP_6, all),
    ]);
    let mut balancer = Balancer::start(&network, &config);
    assert_eq!(network.targets[0].space.targets(4, TCP), "t2 t3 t2 t3");
    assert_eq!(network.targets[1].space.targets(4, TCP), "t3 t1 t3 t1");
    assert_eq!(network.targets[2].space.targets(4, TCP_6), "t1 t2 t1 t2");
    assert_eq!(network.targets[0].space.datagrams(4, "0.0.0.0", TCP), "t2 t3 t2 t3");
    assert_eq!(network.targets[1].space.datagrams(4, "::", TCP_6), "t3 t1 t3 t1");
    balancer.reload(&tcp(&[(1, 10)]));
    assert_eq!(network.targets[0].space.targets(1, TCP), "none");
    assert_eq!(network.client.targets(1, TCP), "t1");
    balancer.reload(&tcp(&[]));
    assert_eq!(network.client.targets(1, TCP), "none");
}

#[test]
fn a_source_is_replaced_and_a_hash_of_it_picks() {
    let Some(network) = network(3) else { return };
    let all = &[(1, 10), (2, 10), (3, 10)];
    let mut config = Config::plain(vec![
        listener(ListenerProtocol::Tcp, VIP, all),
        listener(ListenerProtocol::Tcp, VIP_6, all),
    ]);
    for (served, range) in config.load_balancers.iter_mut().zip(["10.7.0.0/24", "fd00:7::/64"]) {
        let profile = &mut served.load_balancer.listeners[0].profile;
        profile.source = Source::Replaced(range.parse().unwrap());
        profile.scheduler = Scheduler::SourceHash;
    }
    let _balancer = Balancer::start(&network, &config);
    let (v4, v6) = (network.client.connect(TCP).unwrap(), network.client.connect(TCP_6).unwrap());
    assert_eq!((v4.client(), v6.client()), ("10.7.0.1", "fd00:7::1"));
    // The kernel picks what the decision picks, also for a target, which is not sent to itself.
    let decided = |family: usize, client: &str| {
        let Listener { profile, rules, .. } =
            &config.load_balancers[family].load_balancer.listeners[0];
        let client = client.parse().unwrap();
        let picked = Choice::new(profile, &rules[0].targets, &[true; 3], client).pick(0).unwrap();
        format!("t{}", picked + 1)
    };
    assert_eq!(network.client.targets(3, TCP), [&*decided(0, "10.1.0.2"); 3].join(" "));
    assert_eq!(network.client.targets(3, TCP_6), [&*decided(1, "fd00:1::2"); 3].join(" "));
    for (number, target) in network.targets.iter().enumerate() {
        let number = number + 1;
        assert_eq!(target.space.targets(1, TCP), decided(0, &format!("10.2.{number}.2")));
        assert_eq!(target.space.targets(1, TCP_6), decided(1, &format!("fd00:2:{number}::2")));
    }
}

#[test]
fn a_target_may_be_on_the_load_balancers_machine() {
    let Some(network) = network(1) else { return };
    let _service = Service::start(&network.balancer, "own");
    let config = Config::plain(vec![
        listener_of(
            ListenerProtocol::Tcp,
            VIP,
            vec![("10.2.1.2:80".parse().unwrap(), 10), ("10.1.0.1:80".parse().unwrap(), 10)],
        ),
        listener_of(
            ListenerProtocol::Udp,
            VIP_6,
            vec![
                ("[fd00:2:1::2]:80".parse().unwrap(), 10),
                ("[fd00:1::1]:80".parse().unwrap(), 10),
            ],
        ),
    ]);
    let _balancer = Balancer::start(&network, &config);
    assert_eq!(network.client.targets(4, TCP), "t1 own t1 own");
    assert_eq!(network.client.datagrams(4, "::", TCP_6), "t1 own t1 own");
    // Clients on that machine meet both, too.
    assert_eq!(network.balancer.targets(2, TCP), "t1 own");
}

#[test]
fn a_proxy_header_makes_it_the_process_that_forwards() {
    let Some(network) = network(1) else { return };
    let mut config = tcp(&[(1, 10)]);
    first(&mut config).profile.source = Source::Replaced("10.9.9.9/32".parse().unwrap());
    config.load_balancers[0].listeners[0].proxy_to = Some(ProxyVersion::V1);
    let balancer = Balancer::start(&network, &config);
    assert_eq!(balancer.tables(), "");
    let mut connection = network.client.connect(TCP).unwrap();
    assert_eq!((connection.target(), connection.client()), ("t1", VIP));
    // The target sends back what it got.
    let header = connection.read_line().unwrap();
    assert!(header.starts_with("PROXY TCP4 10.1.0.2 10.9.9.9 "), "{header}");
}

#[test]
fn the_fewest_connections_make_it_the_process_that_forwards() {
    let Some(network) = network(2) else { return };
    let mut config = tcp(&[(1, 10), (2, 10)]);
    first(&mut config).profile.source = Source::Replaced("10.9.9.9/32".parse().unwrap());
    first(&mut config).profile.scheduler = Scheduler::LeastConnections;
    let balancer = Balancer::start(&network, &config);
    assert_eq!(balancer.tables(), "");
    let client = &network.client;
    let mut open: Vec<_> = (0..20).map(|_| client.connect(TCP).unwrap()).collect();
    open.retain(|connection| connection.target() == "t1");
    assert_eq!(open.len(), 10);
    // The load balancer sees them end one after the other.
    await_that(|| client.targets(5, TCP) == "t2 t2 t2 t2 t2");
}
