//! Thousands of targets: two namespaces serve as many addresses as they are asked for.

use std::net::IpAddr;

use super::*;

/// So many targets of these namespaces with these weights, in turns.
fn targets(
    count: usize,
    weights: [u32; 2],
    prefix: impl Fn(usize) -> IpAddr,
) -> Vec<(SocketAddr, u32)> {
    let target = |i: usize| (SocketAddr::new(prefix(i), 80), weights[i % 2]);
    (0..count).map(target).collect()
}

fn v4(i: usize) -> IpAddr {
    IpAddr::from([10, 3 + (i % 2) as u8, (i / 200) as u8, (i % 200) as u8])
}

fn v6(i: usize) -> IpAddr {
    IpAddr::from([0xfd00, 3 + (i % 2) as u16, 0, 0, 0, 0, 0, i as u16])
}

/// A network whose first two targets have all addresses of [`v4`] and [`v6`].
fn many_addresses() -> Option<Network> {
    let network = network(2)?;
    for (number, prefix) in [(1, 3), (2, 4)] {
        let (v4, v6) = (format!("10.{prefix}.0.0/16"), format!("fd00:{prefix}::/32"));
        network.balancer.sh(&format!(
            "ip route add {v4} via 10.2.{number}.2; ip route add {v6} via fd00:2:{number}::2"
        ));
        let space = &network.targets[number - 1].space;
        space.sh(&format!("ip route add local {v4} dev lo; ip route add local {v6} dev lo"));
    }
    Some(network)
}

#[test]
fn thousands_of_targets_take_turns_and_avoid_themselves() {
    let Some(network) = many_addresses() else { return };
    let config = |count| {
        let (mut v4, mut v6) = (targets(count, [10, 10], v4), targets(count, [10, 10], v6));
        // The client is a target, too, and serves nothing.
        v4.insert(2, ("10.1.0.2:80".parse().unwrap(), 10));
        v6.insert(2, ("[fd00:1::2]:80".parse().unwrap(), 10));
        Config::plain(vec![
            listener_of(ListenerProtocol::Tcp, VIP, v4),
            listener_of(ListenerProtocol::Tcp, VIP_6, v6),
        ])
    };
    let mut balancer = Balancer::start(&network, &config(5000));
    for vip in [TCP, TCP_6] {
        let others = network.client.targets(40, vip);
        assert!(!others.contains("none"), "{others}");
    }
    assert_eq!(network.balancer.targets(6, TCP), "t1 t2 none t1 t2 t1");
    assert_eq!(network.balancer.targets(6, TCP_6), "t1 t2 none t1 t2 t1");
    // A connection outlives changes of targets, its own included.
    let mut open = network.balancer.connect(TCP).unwrap();
    balancer.reload(&config(4000));
    balancer.reload(&config(4001));
    balancer.reload(&config(3));
    balancer.reload(&config(5000));
    assert!(open.is_open());
    let others = network.client.targets(10, TCP);
    assert!(!others.contains("none"), "{others}");
}

#[test]
fn thousands_of_targets_are_met_as_weights_say() {
    let Some(network) = many_addresses() else { return };
    let mut config = Config::plain(vec![
        listener_of(ListenerProtocol::Tcp, VIP, targets(2000, [10, 31], v4)),
        listener_of(ListenerProtocol::Tcp, VIP_6, targets(2000, [10, 31], v6)),
    ]);
    let mut balancer = Balancer::start(&network, &config);
    for met in [network.client.targets(400, TCP), network.client.targets(400, TCP_6)] {
        // 98 are expected; this is seven times the standard deviation away from it.
        let first = met.matches("t1").count();
        assert!((38..158).contains(&first), "{first} of 400");
        assert_eq!(met.matches("none").count(), 0);
    }
    for served in &mut config.load_balancers {
        served.load_balancer.listeners[0].profile.scheduler = Scheduler::SourceHash;
    }
    balancer.reload(&config);
    for met in [network.client.targets(10, TCP), network.client.targets(10, TCP_6)] {
        let first = met.split(' ').next().unwrap();
        assert_eq!(met, [first; 10].join(" "));
        assert_ne!(first, "none");
    }
}

#[test]
fn a_dead_target_among_hundreds_is_left_out() {
    let Some(network) = many_addresses() else { return };
    // The second alone is checked to be dead: nothing serves at that port.
    let mut targets = targets(600, [10, 10], v4);
    targets[1].0.set_port(81);
    let mut config = Config::plain(vec![listener_of(ListenerProtocol::Tcp, VIP, targets)]);
    first(&mut config).profile.health_check = Some(HealthCheck {
        timeout: Duration::from_secs(60),
        ..health::check(Duration::from_secs(5), 1)
    });
    let balancer = Balancer::start(&network, &config);
    balancer.await_health(SocketAddr::new(v4(1), 81), false);
    // The last has its place.
    await_that(|| {
        !network.balancer.sh("nft list map inet uturn_lb targets-tcp-10.9.9.9-80").contains(". 81")
    });
}
