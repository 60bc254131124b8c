//! Rows of the network between the nodes: VPC-CNI, public addresses, security groups.

use std::time::Duration;

use uturn_clouds::cloud::tke::profile::{PROBE_RANGES, snat};
use uturn_lab::{LabError, ProbeEnd, TargetHealth};
use uturn_model::lb::{ListenerProtocol, ProbeSource, Scope, TargetKind};
use uturn_model::network::{SecurityGroup, SecurityRule};
use uturn_model::node::RpFilter;
use uturn_model::{Cluster, NamespacedName, Outcome, Port, Protocol};

use crate::cluster::cluster_v6;
use crate::rows::{
    INGRESS, LATE, SERVICE, TIMEOUT, clients, flow, measure, plan, quick, quick_set,
};
use crate::set::{
    OUTSIDE, Set, forget_vips, here, hold, ip, measure_pairs, pod, set_probe_source, targets,
    vpc_cni_set,
};

const SERVER: &str = "pod/shop/front:8080";
const PUBLIC_INGRESS: &str = "http://203.0.113.100/";
const PUBLIC_SERVICE: &str = "http://203.0.113.200/";
const GATEWAY_TIMEOUT: Outcome = Outcome::Status { code: 504, after: TIMEOUT };

pub(crate) const ROWS: &[(&str, fn())] = &[
    ("vpc-cni", vpc_cni),
    ("vpc-cni-strict", vpc_cni_strict),
    ("direct-pod", direct_pod),
    ("public", public),
    ("public-strangers", public_strangers),
    ("no-bandwidth", no_bandwidth),
    ("node-sg", node_sg),
    ("node-sg-one-node", node_sg_one_node),
    ("node-sg-outbound", node_sg_outbound),
    ("lb-sg-443", lb_sg_443),
    ("snat-needs-the-group", snat_needs_the_group),
    ("pod-routes", pod_routes),
    ("public-v6", public_v6),
];

/// The same U-turn as with a bridge; and pods reach each other, on one node too.
fn vpc_cni() {
    let mut pairs = vec![("pod/shop/web-1", SERVER), ("pod/shop/web-2", SERVER)];
    let clients = clients(2);
    for to in [INGRESS, "svc/shop/front"] {
        pairs.extend(clients.iter().map(|from| (&**from, to)));
    }
    for measured in measure_pairs(&vpc_cni_set(2), &pairs) {
        let (from, to) = (measured.flow.from.to_string(), measured.flow.to.to_string());
        let loops = to == INGRESS && from.starts_with("pod/shop/web-");
        if loops {
            assert_eq!(measured.counts, [(Outcome::AT_ONCE, 6), (LATE, 6)], "{from}");
        } else {
            assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{from} → {to}");
        }
        if to == SERVER {
            let own = if from.ends_with('1') { "10.1.1.10" } else { "10.1.2.10" };
            assert_eq!(measured.evidence.sources_seen, [(ip(own), 12)], "{from}");
        }
    }
}

/// Source validation and policy routes do not go together: what comes in by the first card
/// for a pod is dropped, since the way back from that pod is the second. So the pod's own
/// node has no chance, and the one left sends everything in a U-turn.
fn vpc_cni_strict() {
    let mut set = vpc_cni_set(2);
    for node in set.0.nodes.values_mut() {
        node.rp_filter = Some(RpFilter::Strict);
    }
    let measured = &measure(&mut set, &[pod("web-1")], INGRESS)[0];
    assert_eq!(measured.counts, [(GATEWAY_TIMEOUT, 12)]);
    let states: Vec<_> =
        measured.evidence.health.iter().map(|measured| (measured.alive, measured.latest)).collect();
    assert_eq!(states, [(true, ProbeEnd::Answered), (false, ProbeEnd::TimedOut)]);
}

/// Pods as targets: a client on the target's node meets the loop.
fn direct_pod() {
    let mut set = vpc_cni_set(2);
    for target in targets(&mut set) {
        target.address = "10.1.2.20:8080".parse().unwrap();
        let pod = NamespacedName::new("shop", "front").ok();
        target.kind = TargetKind::Pod { pod, node: Some("n2".parse().unwrap()) };
    }
    for lb in &mut set.1 {
        lb.listeners[0].rules[0].targets.truncate(1);
    }
    forget_vips(&mut set);
    let [other, same, own] = ["pod/shop/web-1", "pod/shop/web-2", "pod/shop/front"];
    let expected = [
        (other, INGRESS, Outcome::AT_ONCE),
        (same, INGRESS, GATEWAY_TIMEOUT),
        (own, INGRESS, Outcome::Status { code: 503, after: Duration::ZERO }),
        (other, SERVICE, Outcome::AT_ONCE),
        (same, SERVICE, Outcome::Hangs),
        (own, SERVICE, Outcome::Hangs),
    ];
    hold(&set, &expected);
}

/// The public twin: the same load balancers beyond the VPC.
fn public_set(nodes: u8) -> Set {
    let mut set = quick(nodes);
    for (lb, vip) in set.1.iter_mut().zip(["203.0.113.100", "203.0.113.200"]) {
        lb.vip = ip(vip);
        lb.scope = Scope::Public;
    }
    forget_vips(&mut set);
    set
}

/// A pod's packets get a public address on their way, which no node knows.
fn public() {
    for nodes in [1, 2] {
        let mut set = public_set(nodes);
        if let Some(node) = set.0.nodes.get_mut("n2") {
            node.external_ips = vec![ip("203.0.113.12")];
        }
        let clients = clients(nodes);
        let to = [PUBLIC_INGRESS, PUBLIC_SERVICE];
        let pairs: Vec<_> = clients.iter().flat_map(|from| to.map(|to| (&**from, to))).collect();
        for measured in measure_pairs(&set, &pairs) {
            let (from, to) = (measured.flow.from.to_string(), measured.flow.to.to_string());
            assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{from} → {to}");
            assert!(measured.evidence.reached_load_balancer >= 12, "{from} → {to}");
            if to == PUBLIC_INGRESS {
                let seen = if from.ends_with('2') { "203.0.113.12" } else { "203.0.113.254" };
                assert_eq!(measured.evidence.forwarded_for, [(seen.into(), 12)], "{from}");
            }
        }
    }
}

/// Clients outside, with and without a stated address; load balancers that replace it; private and
/// public ones side by side. One with a public address has no route to private addresses.
fn public_strangers() {
    let mut set = public_set(2);
    let private = quick(2).1;
    set.1.extend(private);
    const STATED: &str = "outside/198.51.100.77";
    let all = [PUBLIC_INGRESS, PUBLIC_SERVICE, INGRESS, SERVICE].map(|to| (OUTSIDE, to));
    let stated = [PUBLIC_INGRESS, PUBLIC_SERVICE].map(|to| (STATED, to));
    let pairs = [all.as_slice(), stated.as_slice()].concat();
    for replaced in [false, true] {
        if replaced {
            for lb in &mut set.1 {
                lb.listeners[0].profile.source = snat();
            }
        }
        for measured in measure_pairs(&set, &pairs) {
            let (from, to) = (measured.flow.from.to_string(), measured.flow.to.to_string());
            assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{from} → {to}");
            if to.ends_with("100/") {
                let own = if from == OUTSIDE { "198.51.100.10" } else { "198.51.100.77" };
                assert_eq!(measured.evidence.forwarded_for, [(own.into(), 12)], "{from} → {to}");
            }
        }
    }
    let unrouted = measure_pairs(&set, &[(STATED, INGRESS)]);
    assert_eq!(unrouted[0].counts, [(Outcome::Hangs, 12)]);
    let flows = [flow("outside/10.0.0.11", INGRESS)];
    let error = uturn_lab::measure(&plan(&set.0, &set.1, &flows), &mut |_| {}).unwrap_err();
    assert!(matches!(error, LabError::Plan(_)), "{error}");
}

/// A node without bandwidth answers no client outside; its health checks do not show it.
fn no_bandwidth() {
    let mut set = public_set(2);
    for name in ["n1", "n2"] {
        let node = set.0.nodes.get_mut(name).unwrap();
        node.public_bandwidth = Some(false);
        let pairs = [(OUTSIDE, PUBLIC_SERVICE), ("pod/shop/web-1", PUBLIC_SERVICE)];
        let measured = measure_pairs(&set, &pairs);
        let expected = match name {
            "n1" => vec![(Outcome::AT_ONCE, 6), (Outcome::Hangs, 6)],
            _ => vec![(Outcome::Hangs, 12)],
        };
        assert_eq!(measured[0].counts, expected);
        let health = &measured[0].evidence.health;
        assert!(health.iter().all(|target| target.alive), "{health:?}");
        assert_eq!(measured[1].counts, [(Outcome::Hangs, 12)], "who cannot send cannot ask");
    }
}

/// Every listener answers to two nodes whose group lacks the node ports.
fn node_sg() {
    let mut set = public_set(2);
    add_group(&mut set.0, "sg-nodes", &[(Some((22, 22)), None), (None, Some("10.0.0.0/8"))]);
    for node in set.0.nodes.values_mut() {
        node.security_groups = Some(vec!["sg-nodes".into()]);
    }
    for source in [ProbeSource::Vip, ProbeSource::Reserved(PROBE_RANGES)] {
        set_probe_source(&mut set, source);
        let (alive, latest) = match source {
            ProbeSource::Vip => (false, ProbeEnd::TimedOut),
            ProbeSource::Reserved(_) => (true, ProbeEnd::Answered),
        };
        let late = Outcome::Status { code: 504, after: TIMEOUT * 2 };
        let measured = hold(
            &set,
            &[
                (OUTSIDE, PUBLIC_SERVICE, Outcome::Hangs),
                (OUTSIDE, PUBLIC_INGRESS, late),
                // What is inside may pass, and so may answers to what the nodes asked.
                ("pod/shop/web-1", "svc/shop/front", Outcome::AT_ONCE),
                ("node/n1", "svc/shop/front", Outcome::AT_ONCE),
            ],
        );
        for flow in &measured[..2] {
            let health = &flow.evidence.health;
            assert_eq!(health.len(), 2);
            let same = |flow: &TargetHealth| (flow.alive, flow.latest) == (alive, latest);
            assert!(health.iter().all(same), "{source:?}: {health:?}");
        }
    }
}

/// Probes that one node's group drops keep all clients away from that node.
fn node_sg_one_node() {
    let mut set = public_set(2);
    add_group(&mut set.0, "sg-nodes", &[(Some((22, 22)), None), (None, Some("10.0.0.0/8"))]);
    set.0.nodes.get_mut("n1").unwrap().security_groups = Some(vec!["sg-nodes".into()]);
    set_probe_source(&mut set, ProbeSource::Vip);
    let at_once = |to| (OUTSIDE, to, Outcome::AT_ONCE);
    for measured in hold(&set, &[at_once(PUBLIC_SERVICE), at_once(PUBLIC_INGRESS)]) {
        let alive: Vec<bool> =
            measured.evidence.health.iter().map(|measured| measured.alive).collect();
        assert_eq!(alive, [false, true], "{}", measured.flow.to);
    }
    set_probe_source(&mut set, ProbeSource::Reserved(PROBE_RANGES));
    let measured = &measure(&mut set, &[OUTSIDE.into()], PUBLIC_SERVICE)[0];
    assert_eq!(
        measured.counts,
        [(Outcome::AT_ONCE, 6), (Outcome::Hangs, 6)],
        "no health check fails"
    );
}

/// Rules for what goes out count where there are any.
fn node_sg_outbound() {
    let (mut cluster, load_balancers) = quick(2);
    add_group(&mut cluster, "sg-nodes", &[(None, None)]);
    let group = cluster.security_groups.get_mut("sg-nodes").unwrap();
    group.outbound = vec![rule(None, Some("10.0.0.0/24"))];
    cluster.nodes.get_mut("n1").unwrap().security_groups = Some(vec!["sg-nodes".into()]);
    hold(
        &(cluster, load_balancers),
        &[
            ("pod/shop/web-1", SERVER, Outcome::Hangs),
            ("pod/shop/web-1", "10.0.0.12:30080", Outcome::AT_ONCE),
            // Answers are not judged.
            ("pod/shop/web-2", "pod/shop/web-1:8000", Outcome::AT_ONCE),
        ],
    );
}

/// The load balancer's own group judges before any listener.
fn lb_sg_443() {
    let mut set = public_set(2);
    for (name, port) in [("sg-80", 80), ("sg-443", 443)] {
        add_group(&mut set.0, name, &[(Some((port, port)), None)]);
    }
    let https = &mut set.1[0].listeners[0];
    https.port = Port::new(443).unwrap();
    https.protocol = ListenerProtocol::Https;
    let url = "https://203.0.113.100/";
    for (groups, outcome) in [
        (vec!["sg-80".into()], Outcome::Hangs),
        (vec!["sg-80".into(), "sg-443".into()], Outcome::AT_ONCE),
        (vec!["sg-80".into(), "sg-unknown".into()], Outcome::AT_ONCE),
    ] {
        set.1[0].security_groups.clone_from(&groups);
        let measured = &measure(&mut set, &[OUTSIDE.into()], url)[0];
        assert_eq!(measured.counts, [(outcome, 12)], "{groups:?}");
    }
}

/// A replaced source needs a rule of its own in the nodes' group.
fn snat_needs_the_group() {
    for (peer, outcome) in [
        (None, Outcome::Status { code: 504, after: TIMEOUT * 2 }),
        (Some("100.127.0.0/16"), Outcome::AT_ONCE),
    ] {
        let mut set = quick(2);
        let mut rules = vec![(None, Some("10.0.0.0/8"))];
        rules.extend(peer.map(|peer| (None, Some(peer))));
        add_group(&mut set.0, "sg-nodes", &rules);
        for node in set.0.nodes.values_mut() {
            node.security_groups = Some(vec!["sg-nodes".into()]);
        }
        set.1[0].listeners[0].profile.source = snat();
        let measured = &measure(&mut set, &[pod("web-1")], INGRESS)[0];
        assert_eq!(measured.counts, [(outcome, 12)], "{peer:?}");
    }
}

/// Without routes to a node's pods, clients on other nodes do not reach them.
fn pod_routes() {
    let mut set = quick(2);
    set.0.nodes.get_mut("n2").unwrap().routed = Some(false);
    hold(
        &set,
        &[("pod/shop/web-1", SERVER, Outcome::Hangs), ("pod/shop/web-2", SERVER, Outcome::AT_ONCE)],
    );
}

/// An IPv6 address is the same inside and outside: without translation the public load
/// balancer sees the pod, and the U-turn is back.
fn public_v6() {
    let (mut cluster, mut load_balancers) = quick_set(cluster_v6(2));
    for (lb, vip) in load_balancers.iter_mut().zip(["2001:db8:1::100", "2001:db8:1::200"]) {
        lb.vip = ip(vip);
        lb.scope = Scope::Public;
    }
    add_group(&mut cluster, "sg-lb", &[(Some((80, 80)), Some("2001:db8::10/128"))]);
    load_balancers[1].security_groups = vec!["sg-lb".into()];
    let mut set = (cluster, load_balancers);
    forget_vips(&mut set);
    let [ingress, service] = ["http://[2001:db8:1::100]/", "http://[2001:db8:1::200]/"];
    hold(
        &set,
        &[
            (OUTSIDE, ingress, Outcome::AT_ONCE),
            (OUTSIDE, service, Outcome::AT_ONCE),
            ("pod/shop/web-1", service, Outcome::Hangs),
        ],
    );
    let measured = &measure(&mut set, &[pod("web-1")], ingress)[0];
    assert_eq!(measured.counts, [(Outcome::AT_ONCE, 6), (LATE, 6)]);
}

/// Ports, first to last, and the other side's range.
type Accepts<'a> = (Option<(u16, u16)>, Option<&'a str>);

/// A group that accepts these TCP ports and ranges, and nothing else.
fn add_group(cluster: &mut Cluster, name: &str, accepts: &[Accepts<'_>]) {
    let inbound = accepts.iter().map(|(ports, peer)| rule(*ports, *peer)).collect();
    let (name, outbound) = (name.into(), Vec::new());
    let group = SecurityGroup { name, inbound, outbound, origin: here() };
    cluster.security_groups.insert(group.name.clone(), group);
}

fn rule(ports: Option<(u16, u16)>, peer: Option<&str>) -> SecurityRule {
    SecurityRule {
        accept: true,
        protocol: ports.map(|_| Protocol::Tcp),
        ports,
        peer: peer.map(|peer| peer.parse().unwrap()),
        origin: here(),
    }
}
