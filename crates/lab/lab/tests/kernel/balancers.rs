//! Rows of the load balancers: their forms, and the health of their targets.

use std::net::SocketAddr;
use std::time::Duration;

use uturn_clouds::cloud::tke::profile::PROBE_RANGES;
use uturn_lab::ProbeEnd;
use uturn_model::lb::{
    Layer, ListenerProtocol, ProbeSource, Scheduler, Scope, Source, Target, TargetKind,
};
use uturn_model::service::TargetPort;
use uturn_model::{Flow, Outcome, Port, Protocol};

use crate::nodes::serve;
use crate::rows::{INGRESS, LATE, SERVICE, TIMEOUT, flow, measure, plan, quick};
use crate::set::{
    OUTSIDE, Set, forget_vips, hold, ip, pod, set_probe_source, targets, vpc_cni_set,
};

pub(crate) const ROWS: &[(&str, fn())] = &[
    ("dead-target", dead_target),
    ("probe-source", probe_source),
    ("source-hash", source_hash),
    ("least-connections", least_connections),
    ("l4-snat", l4_snat),
    ("l4-weights", l4_weights),
    ("tcp-ssl", tcp_ssl),
    ("ended-connections", ended_connections),
    ("udp-listener", udp_listener),
];

/// A target with a closed port is dead and gets no connections. If all targets are dead, all
/// count as alive.
fn dead_target() {
    let mut set = quick(3);
    forget_vips(&mut set);
    let spoil = |set: &mut Set, which: &[usize]| {
        for lb in &mut set.1 {
            for i in which {
                lb.listeners[0].rules[0].targets[*i].address.set_port(30999);
            }
        }
    };
    spoil(&mut set, &[1]);
    let at_once = |to| ("node/n2", to, Outcome::AT_ONCE);
    for measured in hold(&set, &[at_once(INGRESS), at_once(SERVICE)]) {
        let states: Vec<_> = measured
            .evidence
            .health
            .iter()
            .map(|measured| (measured.alive, measured.latest))
            .collect();
        let (good, bad) = ((true, ProbeEnd::Answered), (false, ProbeEnd::Refused));
        assert_eq!(states, [good, bad, good], "{}", measured.flow.to);
        if measured.flow.to.to_string() == INGRESS {
            let picked: Vec<u64> =
                measured.evidence.picked.iter().map(|measured| measured.1).collect();
            assert_eq!(picked, [6, 6]);
        }
    }
    spoil(&mut set, &[0, 2]);
    let status = |code| Outcome::Status { code, after: Duration::ZERO };
    let expected = [(OUTSIDE, INGRESS, status(502)), (OUTSIDE, SERVICE, Outcome::Refused)];
    for measured in hold(&set, &expected) {
        assert!(
            measured.evidence.health.iter().all(|measured| !measured.alive),
            "{}",
            measured.flow.to
        );
    }
    for lb in &mut set.1 {
        lb.listeners[0].profile.panic_threshold = None;
    }
    hold(&set, &[(OUTSIDE, INGRESS, status(503)), (OUTSIDE, SERVICE, Outcome::Hangs)]);
}

/// A node that has the VIP for its own drops probes that come from it, and no others.
fn probe_source() {
    for (source, alive) in [(ProbeSource::Vip, false), (ProbeSource::Reserved(PROBE_RANGES), true)]
    {
        let mut set = quick(2);
        forget_vips(&mut set);
        set_probe_source(&mut set, source);
        let vip = set.1[1].vip;
        for node in set.0.nodes.values_mut() {
            node.internal_ips.retain(|address| *address != vip);
        }
        set.0.nodes.get_mut("n1").unwrap().internal_ips.push(vip);
        let measured = &measure(&mut set, &["node/n2".into()], SERVICE)[0];
        let state = measured
            .evidence
            .health
            .iter()
            .find(|measured| measured.target.ip() == ip("10.0.0.11"));
        assert_eq!(state.unwrap().alive, alive, "{source:?}: {:?}", measured.evidence);
    }
}

/// A client meets the same target each time; which one is decided by its address.
fn source_hash() {
    let mut set = quick(3);
    forget_vips(&mut set);
    for lb in &mut set.1 {
        lb.listeners[0].profile.scheduler = Scheduler::SourceHash;
    }
    // A node's server answers for itself: only the client's own node fails.
    let from: Vec<String> = (1..=3).map(|i| pod(&format!("web-{i}"))).collect();
    for to in [INGRESS, SERVICE] {
        let listener = set.1[usize::from(to == SERVICE)].listeners[0].clone();
        let targets = &listener.rules[0].targets;
        for (i, measured) in measure(&mut set, &from, to).iter().enumerate() {
            let client = ip(&format!("10.1.{}.10", i + 1));
            let choice =
                uturn_lb::decide::Choice::new(&listener.profile, targets, &[true; 3], client);
            let loops = choice.pick(0) == Some(i);
            let expected = match (loops, listener.protocol.layer()) {
                (false, _) => Outcome::AT_ONCE,
                (true, Layer::L7) => LATE,
                (true, Layer::L4) => Outcome::Hangs,
            };
            assert_eq!(measured.counts, [(expected, 12)], "{client} → {to}");
            let target = targets[choice.pick(0).unwrap()].address;
            assert_eq!(measured.evidence.picked, [(target, 12)], "{client} → {to}");
        }
    }
}

/// A target that does not answer is met as often as predicted, though its connections stay open
/// and those to the other end at once.
fn least_connections() {
    let mut set = quick(2);
    forget_vips(&mut set);
    for lb in &mut set.1 {
        let listener = &mut lb.listeners[0];
        listener.profile.scheduler = Scheduler::LeastConnections;
        listener.profile.health_check = None;
        listener.rules[0].targets[1].address.set_port(30999);
    }
    let status = |code| Outcome::Status { code, after: TIMEOUT };
    // The latest try decides.
    let expected =
        [(INGRESS, [status(502), status(504)]), (SERVICE, [Outcome::Refused, Outcome::Hangs])];
    for (to, [refused, hangs]) in expected {
        let mut expected = [(refused, 6), (hangs, 6)];
        expected.sort_unstable();
        assert_eq!(measure(&mut set, &[pod("web-1")], to)[0].counts, expected, "{to}");
    }
}

/// Targets see the load balancer's own address; a public one's is another than a private one's.
fn l4_snat() {
    for (scope, vip, source) in [
        (Scope::Private, "10.0.0.200", "100.127.0.1"),
        (Scope::Public, "203.0.113.200", "100.127.0.2"),
    ] {
        let mut set = vpc_cni_set(2);
        forget_vips(&mut set);
        let lb = &mut set.1[1];
        (lb.vip, lb.scope) = (ip(vip), scope);
        let target = SocketAddr::new(ip("10.1.2.20"), 8080);
        let listener = &mut lb.listeners[0];
        listener.profile.source = Source::Replaced("100.127.0.0/16".parse().unwrap());
        listener.rules[0].targets = vec![Target {
            address: target,
            weight: 10,
            kind: TargetKind::Pod { pod: None, node: None },
        }];
        let clients = [pod("web-1"), pod("web-2")];
        for measured in measure(&mut set, &clients, &format!("http://{vip}/")) {
            let from = measured.flow.from;
            assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{from} → {vip}");
            assert_eq!(measured.evidence.sources_seen, [(ip(source), 12)], "{from} → {vip}");
            assert_eq!(measured.evidence.picked, [(target, 12)], "{from} → {vip}");
        }
    }
}

/// Shares follow the weights, for each class of clients: a node is not sent to itself.
fn l4_weights() {
    let mut set = quick(3);
    forget_vips(&mut set);
    for (target, weight) in targets(&mut set).zip([20, 10, 0].into_iter().cycle()) {
        target.weight = weight;
    }
    let clients = [pod("web-1"), pod("web-2"), pod("web-3"), "node/n1".into(), "node/n2".into()];
    let measured = measure(&mut set, &clients, SERVICE);
    let picks =
        [&[(0, 8), (1, 4)][..], &[(0, 8), (1, 4)], &[(0, 8), (1, 4)], &[(1, 12)], &[(0, 12)]];
    for ((flow, hangs), picks) in measured.iter().zip([8, 4, 0, 0, 0]).zip(picks) {
        let mut expected = vec![(Outcome::AT_ONCE, 12 - hangs), (Outcome::Hangs, hangs)];
        expected.retain(|(_, count)| *count > 0);
        assert_eq!(flow.counts, expected, "{}", flow.flow.from);
        let targets = &set.1[1].listeners[0].rules[0].targets;
        let picks: Vec<_> =
            picks.iter().map(|(at, count)| (targets[*at].address, *count)).collect();
        assert_eq!(flow.evidence.picked, picks, "{}", flow.flow.from);
    }
}

/// TLS ends at the load balancer, which tries no second target: where the first does not answer, it
/// closes the client's connection.
fn tcp_ssl() {
    let mut set = quick(2);
    forget_vips(&mut set);
    let listener = &mut set.1[1].listeners[0];
    listener.protocol = ListenerProtocol::TcpSsl;
    listener.port = Port::new(443).unwrap();
    listener.profile.connect_timeout = Duration::from_secs(4);
    let measured = measure(&mut set, &[pod("web-1"), "node/n1".into()], "https://10.0.0.200/");
    assert_eq!(measured[0].counts, [(Outcome::AT_ONCE, 6), (Outcome::EmptyReply, 6)]);
    assert_eq!(measured[1].counts, [(Outcome::AT_ONCE, 12)]);
    assert_eq!(measured[0].evidence.picked.iter().map(|pick| pick.1).collect::<Vec<_>>(), [6, 6]);
}

/// A proxy of connections without a header replaces the source, so that nothing loops. Where no target
/// is healthy it closes what it has taken; where the picked one refuses, too.
fn ended_connections() {
    let mut set = quick(2);
    forget_vips(&mut set);
    let listener = &mut set.1[1].listeners[0];
    listener.profile.ends_connections = true;
    listener.profile.source = Source::Replaced("100.127.0.0/16".parse().unwrap());
    let close = |set: &mut Set| {
        for target in &mut set.1[1].listeners[0].rules[0].targets {
            target.address.set_port(30999);
        }
    };
    let pod = &*pod("web-1");
    let answered = [(pod, SERVICE, Outcome::AT_ONCE), (OUTSIDE, SERVICE, Outcome::AT_ONCE)];
    for measured in hold(&set, &answered) {
        let picked: Vec<u64> = measured.evidence.picked.iter().map(|pick| pick.1).collect();
        assert_eq!(picked, [6, 6], "the load balancer has passed on each connection");
    }
    close(&mut set);
    let closed = [(pod, SERVICE, Outcome::EmptyReply), (OUTSIDE, SERVICE, Outcome::EmptyReply)];
    hold(&set, &closed);
    set.1[1].listeners[0].profile.panic_threshold = None;
    hold(&set, &closed);
}

/// Datagrams loop like connections. A machine that answers pings and refuses none is alive.
fn udp_listener() {
    let mut set = quick(2);
    serve(&mut set.0, 5353, Protocol::Udp, None);
    for service in set.0.services.values_mut() {
        service.ports[0].protocol = Protocol::Udp;
        service.ports[0].target = TargetPort::Number(Port::new(5353).unwrap());
    }
    for slice in set.0.endpoints.values_mut().flatten() {
        slice.ports[0].protocol = Protocol::Udp;
        slice.ports[0].port = Port::new(5353).unwrap();
    }
    forget_vips(&mut set);
    set.1.remove(0);
    set.1[0].listeners[0].protocol = ListenerProtocol::Udp;
    let ask = |set: &Set, from: &[&str]| {
        let ask = |from: &&str| Flow { protocol: Protocol::Udp, ..flow(from, "10.0.0.200:80") };
        let flows: Vec<Flow> = from.iter().map(ask).collect();
        uturn_lab::measure(&plan(&set.0, &set.1, &flows), &mut |_| {}).unwrap()
    };
    let measured = ask(&set, &["pod/shop/web-1", "node/n1"]);
    assert_eq!(measured[0].counts, [(Outcome::AT_ONCE, 6), (Outcome::Hangs, 6)]);
    assert_eq!(measured[1].counts, [(Outcome::AT_ONCE, 12)]);
    assert!(measured[0].evidence.health.iter().all(|target| target.alive), "{measured:?}");
    set.1[0].listeners[0].rules[0].targets[0].address.set_port(30999);
    let measured = &ask(&set, &["pod/shop/web-1"])[0];
    assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)]);
    let states: Vec<_> =
        measured.evidence.health.iter().map(|measured| (measured.alive, measured.latest)).collect();
    assert_eq!(states, [(false, ProbeEnd::Refused), (true, ProbeEnd::Answered)]);
}
