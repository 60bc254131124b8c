//! Layer 4 with real connections: a client, the load balancer and targets in network namespaces
//! of their own.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]

mod changes;
#[path = "../common/groups.rs"]
mod groups;
#[path = "../common/health.rs"]
mod health;
mod many;
mod network;
mod owner;
mod picks;
mod queue;
mod stop;
#[path = "../common/wait.rs"]
mod wait;

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use uturn_clouds::cloud::tke::profile::clb;
use uturn_lb::config::{Config, ProxyVersion};
use uturn_lb::event::{Event, ForwardedTarget};
use uturn_model::lb::{
    HealthCheck, Layer, Listener, ListenerProtocol, Rule, Scheduler, Scope, Source, Target,
    TargetKind,
};
use uturn_model::{LoadBalancer, NamespacedName, ObjectKind, ObjectRef, Port};
use uturn_proxy::{Detail, Observer, Server, StartError};
use uturn_testing::{Requirement, in_a_namespace, skip};

use groups::set_group;
use network::{Network, Service, Space, VIP, VIP_6};
use wait::{PATIENCE, await_that};

/// The network, or `None` where this machine cannot have it.
fn network(targets: usize) -> Option<Network> {
    match in_a_namespace("nft list tables", "") {
        Ok(_) => Some(Network::new(targets)),
        Err(why) => {
            skip(Requirement::Nft, "layer 4 with real connections", why);
            None
        }
    }
}

/// A listener of the VIP with targets of these numbers and weights.
fn listener(protocol: ListenerProtocol, vip: &str, targets: &[(usize, u32)]) -> LoadBalancer {
    let target = |(number, weight): &(usize, u32)| {
        let address = match vip {
            VIP => format!("10.2.{number}.2:80"),
            _ => format!("[fd00:2:{number}::2]:80"),
        };
        (address.parse().unwrap(), *weight)
    };
    listener_of(protocol, vip, targets.iter().map(target).collect())
}

/// A listener of the VIP with targets of these addresses and weights.
fn listener_of(
    protocol: ListenerProtocol,
    vip: &str,
    targets: Vec<(SocketAddr, u32)>,
) -> LoadBalancer {
    let service = NamespacedName::new("shop", "api").unwrap();
    let target = |(address, weight)| Target {
        address,
        weight,
        kind: TargetKind::NodePort("n1".parse().unwrap()),
    };
    let rule = Rule {
        host: None,
        path: None,
        service: service.clone(),
        owner: ObjectRef::namespaced(ObjectKind::Service, &service),
        targets: targets.into_iter().map(target).collect(),
        redirect: None,
    };
    let mut profile = clb(Layer::L4);
    profile.health_check = None;
    LoadBalancer {
        name: "lb".into(),
        vip: vip.parse().unwrap(),
        scope: Scope::Private,
        zone: None,
        security_groups: Vec::new(),
        listeners: vec![Listener {
            port: Port::new(80).unwrap(),
            protocol,
            profile,
            rules: vec![rule],
        }],
    }
}

fn tcp(targets: &[(usize, u32)]) -> Config {
    Config::plain(vec![listener(ListenerProtocol::Tcp, VIP, targets)])
}

fn first(config: &mut Config) -> &mut Listener {
    &mut config.load_balancers[0].load_balancer.listeners[0]
}

/// A load balancer that serves in the network.
struct Balancer<'n> {
    space: &'n Space,
    server: Option<Server>,
    events: Receiver<Event>,
}

impl<'n> Balancer<'n> {
    fn start(network: &'n Network, config: &Config) -> Self {
        Self::try_start(&network.balancer, config).unwrap()
    }

    fn try_start(space: &'n Space, config: &Config) -> Result<Self, StartError> {
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let observer: Observer = Arc::new(move |event: &Event| {
            let _ = sender.lock().unwrap().send(event.clone());
        });
        let server = Some(space.run(|| Server::start(config, observer, Detail::Connections))?);
        Ok(Self { space, server, events })
    }

    fn reload(&mut self, config: &Config) {
        let server = self.server.as_mut().unwrap();
        self.space.run(|| server.reload(config)).unwrap();
    }

    /// Waits until a target is alive or dead.
    fn await_health(&self, target: SocketAddr, wanted: bool) {
        loop {
            match self.events.recv_timeout(PATIENCE).unwrap() {
                Event::Health { target: of, alive, .. } if (of, alive) == (target, wanted) => {
                    return;
                }
                _ => {}
            }
        }
    }

    /// Waits until the kernel forwards as decided on these targets, in any order.
    fn await_programmed(&self, wanted: &[ForwardedTarget]) {
        let mut left = wanted.to_vec();
        while !left.is_empty() {
            if let Event::Programmed { targets } = self.events.recv_timeout(PATIENCE).unwrap() {
                left.retain(|target| !targets.contains(target));
            }
        }
    }

    fn tables(&self) -> String {
        self.space.sh("nft list tables")
    }
}

const TCP: &str = "10.9.9.9:80";
const TCP_6: &str = "[fd00:9::9]:80";

#[test]
fn a_dead_target_is_left_out() {
    let Some(network) = network(2) else { return };
    let all = &[(1, 10), (2, 10)];
    let mut config = Config::plain(vec![
        listener(ListenerProtocol::Tcp, VIP, all),
        listener(ListenerProtocol::Udp, VIP, all),
        listener(ListenerProtocol::Udp, VIP_6, all),
    ]);
    let check = HealthCheck {
        timeout: Duration::from_secs(60),
        ..health::check(Duration::from_millis(100), 1)
    };
    for served in &mut config.load_balancers {
        served.load_balancer.listeners[0].profile.health_check = Some(check.clone());
        served.listeners[0].rules = vec![uturn_lb::config::RuleSettings {
            probe: Some(uturn_lb::config::Probe::Exchange {
                send: b"?".into(),
                expect: b"t".into(),
            }),
            ..Default::default()
        }];
    }
    let balancer = Balancer::start(&network, &config);
    balancer.await_health("10.2.1.2:80".parse().unwrap(), true);
    let client = &network.client;
    let flow = client.datagram_socket("0.0.0.0");
    let flow_6 = client.datagram_socket("::");
    // Whichever has the turn, the flows are with the first target in the end.
    await_that(|| client.datagrams(1, "0.0.0.0", TCP) == "t2");
    assert_eq!(client.ask(&flow, TCP), "t1");
    await_that(|| client.datagrams(1, "::", TCP_6) == "t2");
    assert_eq!(client.ask(&flow_6, TCP_6), "t1");
    let mut open = client.connect(TCP).unwrap();
    network.targets[0].stop();
    let dead = |protocol: &str, listener: &str, target: &str| ForwardedTarget {
        listener: listener.parse().unwrap(),
        protocol: protocol.into(),
        target: target.parse().unwrap(),
        alive: false,
    };
    balancer.await_programmed(&[
        dead("tcp", TCP, "10.2.1.2:80"),
        dead("udp", TCP, "10.2.1.2:80"),
        dead("udp", TCP_6, "[fd00:2:1::2]:80"),
    ]);
    assert_eq!(client.targets(4, TCP), "t2 t2 t2 t2");
    // The flows go on with the other target; an open connection stays where it is.
    assert_eq!(client.ask(&flow, TCP), "t2");
    assert_eq!(client.ask(&flow_6, TCP_6), "t2");
    assert!(open.is_open());
}

#[test]
fn a_change_of_targets_breaks_no_connection_until_its_time_is_over() {
    let Some(network) = network(3) else { return };
    let mut config = tcp(&[(1, 10), (2, 10)]);
    let mut balancer = Balancer::start(&network, &config);
    let client = &network.client;
    let mut open = client.connect(TCP).unwrap();
    assert_eq!(open.target(), "t1");
    let mut stays = client.connect(TCP).unwrap();
    config = tcp(&[(2, 10), (3, 10)]);
    config.process.drain = Duration::from_secs(600);
    balancer.reload(&config);
    assert_eq!(client.targets(4, TCP), "t2 t3 t2 t3");
    assert!(open.is_open());
    // Another listener replaces the whole table.
    let udp = listener(ListenerProtocol::Udp, VIP, &[(1, 10)]);
    let mut more = Config::plain(vec![listener(ListenerProtocol::Tcp, VIP, &[(2, 10)]), udp]);
    more.process.drain = Duration::from_secs(600);
    balancer.reload(&more);
    assert!(open.is_open());
    assert!(stays.is_open());
    // The first is back, and goes for good.
    balancer.reload(&tcp(&[(1, 10), (2, 10)]));
    assert!(open.is_open());
    let mut config = tcp(&[(2, 10)]);
    config.process.drain = Duration::from_millis(1);
    balancer.reload(&config);
    await_that(|| !open.is_open());
    assert!(stays.is_open());
}

#[test]
fn connections_are_kept_as_long_as_the_listener_says() {
    let Some(network) = network(1) else { return };
    let mut config = Config::plain(vec![
        listener(ListenerProtocol::Tcp, VIP, &[(1, 10)]),
        listener(ListenerProtocol::Udp, VIP, &[(1, 10)]),
    ]);
    config.load_balancers[0].listeners[0].timeouts.idle = Duration::from_secs(5000);
    config.load_balancers[1].listeners[0].timeouts.idle = Duration::from_secs(3000);
    let _balancer = Balancer::start(&network, &config);
    let mut open = network.client.connect(TCP).unwrap();
    assert!(open.is_open());
    let flow = network.client.datagram_socket("0.0.0.0");
    assert_eq!(network.client.ask(&flow, TCP), "t1");
    let is_kept = |protocol: &str, seconds: u64| {
        let all = network.balancer.sh("cat /proc/net/nf_conntrack");
        let mut lines = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = lines.find(|words| words[2] == protocol && words.contains(&"dst=10.9.9.9"));
        (seconds - 100..=seconds).contains(&line.unwrap()[4].parse().unwrap())
    };
    // The kernel's own times are 432000 and 30 seconds; it has another until what was sent is
    // acknowledged.
    await_that(|| is_kept("tcp", 5000));
    await_that(|| is_kept("udp", 3000));
}

#[test]
fn groups_and_limits_turn_clients_away() {
    let Some(network) = network(2) else { return };
    let mut config = tcp(&[(1, 10), (2, 10)]);
    set_group(&mut config, &[(false, "10.2.2.0/24"), (true, "10.0.0.0/8")]);
    config.load_balancers[0].listeners[0].limits.connections_per_client = Some(2);
    config.load_balancers[0].listeners[0].limits.connections = Some(3);
    let mut balancer = Balancer::start(&network, &config);
    let client = &network.client;
    assert!(network.targets[1].space.connect(TCP).is_none(), "a group keeps it out");
    let open = [client.connect(TCP), client.connect(TCP)];
    assert!(open.iter().all(Option::is_some));
    assert!(client.connect(TCP).is_none(), "it has two");
    // The kernel counts the one that was turned away for a moment longer.
    let mut third = None;
    await_that(|| {
        third = network.targets[0].space.connect(TCP);
        third.is_some()
    });
    assert!(network.targets[0].space.connect(TCP).is_none(), "there are three");
    config.load_balancers[0].listeners[0].limits = Default::default();
    config.load_balancers[0].listeners[0].limits.connections_per_second = Some(1);
    balancer.reload(&config);
    // Two within a second, sooner or later.
    await_that(|| client.connect(TCP).is_none());
}

#[test]
fn a_machine_that_does_not_forward_is_refused() {
    let Some(network) = network(1) else { return };
    network.balancer.sh("sysctl -qw net.ipv4.ip_forward=0");
    let why = Balancer::try_start(&network.balancer, &tcp(&[(1, 10)])).err().unwrap();
    let expected = "cannot set up layer 4: this machine does not forward packets: \
                    set it up with sysctl -w net.ipv4.ip_forward=1";
    assert_eq!(why.to_string(), expected);
}
