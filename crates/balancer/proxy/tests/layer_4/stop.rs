//! How it stops.

use super::*;

#[test]
fn nothing_is_left_when_it_stops_and_leftovers_are_replaced() {
    let Some(network) = network(1) else { return };
    network.balancer.sh("nft 'table inet uturn_lb { chain left { type nat hook prerouting priority -150; drop; }; }'");
    network.balancer.sh("nft 'table inet other { }'");
    let mut balancer = Balancer::start(&network, &tcp(&[(1, 10)]));
    assert_eq!(network.client.targets(1, TCP), "t1");
    balancer.server.take().unwrap().stop(Duration::ZERO);
    assert_eq!(balancer.tables(), "table inet other\n");
    assert!(network.client.connect(TCP).is_none());
    // What is dropped without being stopped leaves nothing either.
    drop(Balancer::start(&network, &tcp(&[(1, 10)])));
    assert_eq!(balancer.tables(), "table inet other\n");
}

#[test]
fn what_is_open_ends_before_it_stops() {
    let Some(network) = network(1) else { return };
    let mut balancer = Balancer::start(&network, &tcp(&[(1, 10)]));
    let mut open = network.client.connect(TCP).unwrap();
    let server = balancer.server.take().unwrap();
    let stops = thread::spawn(move || server.stop(Duration::from_secs(600)));
    await_that(|| network.client.connect(TCP).is_none());
    assert!(open.is_open());
    drop(open);
    stops.join().unwrap();
    assert_eq!(balancer.tables(), "");
}

#[test]
fn a_second_stop_ends_what_is_open() {
    let Some(network) = network(1) else { return };
    // The kernel forwards the first listener's connections, the process the second's.
    let mut config = Config::plain(vec![
        listener(ListenerProtocol::Tcp, VIP, &[(1, 10)]),
        listener(ListenerProtocol::Tcp, VIP_6, &[(1, 10)]),
    ]);
    config.load_balancers[1].listeners[0].proxy_to = Some(ProxyVersion::V1);
    let profile = &mut config.load_balancers[1].load_balancer.listeners[0].profile;
    profile.source = Source::Replaced("fd00:9::9/128".parse().unwrap());
    let mut balancer = Balancer::start(&network, &config);
    let mut open = network.client.connect(TCP).unwrap();
    let mut through = network.client.connect(TCP_6).unwrap();
    assert!(through.read_line().unwrap().starts_with("PROXY TCP6 "));
    let server = balancer.server.take().unwrap();
    let stopper = server.stopper();
    let stops = thread::spawn(move || server.stop(Duration::from_secs(600)));
    await_that(|| network.client.connect(TCP).is_none());
    await_that(|| network.client.connect(TCP_6).is_none());
    assert!(open.is_open());
    assert!(through.is_open());
    stopper.stop();
    stops.join().unwrap();
    assert_eq!(balancer.tables(), "");
    assert!(!through.is_open());
}
