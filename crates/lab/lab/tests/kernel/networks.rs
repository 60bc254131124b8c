//! Rows about how pods are connected: routed links, tunnels, addresses that are masqueraded.

use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::network::{NetworkMode, Transport};
use uturn_model::{Family, Known, Outcome};

use crate::cluster::{cluster, cluster_v6};
use crate::rows::{INGRESS, LATE, SERVICE, clients, measure, quick_set};
use crate::set::{OUTSIDE, Set, here, hold, ip, measure_pairs};

pub(crate) const ROWS: [(&str, fn()); 4] = [
    ("routed", routed),
    ("routed-without-routes", routed_without_routes),
    ("tunnel", tunnel),
    ("tunnel-v6", tunnel_v6),
];

fn in_mode(mut set: Set, mode: NetworkMode) -> Set {
    set.0.network.mode = Known::stated(mode, here());
    set
}

/// Packets to other nodes' pods are encapsulated, and other packets of pods are masqueraded.
pub(crate) fn wrapped(mut set: Set) -> Set {
    let network = &mut set.0.network;
    network.transport = Known::stated(Transport::Tunnel, here());
    network.masquerades = Known::stated(true, here());
    network.non_masquerade_cidrs = network.pod_cidrs.clone();
    for node in set.0.nodes.values_mut() {
        node.tunnel_ips = node.pod_cidrs.iter().map(IpNet::network).collect();
    }
    set
}

/// Pods have the other node's range, which says nothing without a bridge.
fn crossed(mut set: Set) -> Set {
    let ranges: Vec<_> = set.0.nodes.values().map(|node| node.pod_cidrs.clone()).collect();
    for (node, ranges) in set.0.nodes.values_mut().zip(ranges.into_iter().rev()) {
        node.pod_cidrs = ranges;
    }
    in_mode(set, NetworkMode::Routed)
}

/// As with a bridge: everything is answered but what the load balancer sends back.
fn routed() {
    for set in [crossed(quick_set(cluster(2))), crossed(quick_set(cluster_v6(2)))] {
        let is_v4 = set.0.nodes.values().all(|node| node.address(Family::V4).is_some());
        let mut set = set;
        for to in ["svc/shop/front", "svc/shop/api"] {
            for measured in measure(&mut set, &clients(2), to) {
                assert_eq!(
                    measured.counts,
                    [(Outcome::AT_ONCE, 12)],
                    "{} → {to}",
                    measured.flow.from
                );
            }
        }
        let ingress = if is_v4 { INGRESS } else { "http://[fd00::100]/" };
        let pods = ["pod/shop/web-1".to_owned(), "pod/shop/web-2".to_owned()];
        for measured in measure(&mut set, &pods, ingress) {
            assert_eq!(
                measured.counts,
                [(Outcome::AT_ONCE, 6), (LATE, 6)],
                "{}",
                measured.flow.from
            );
        }
    }
}

/// Only its own node has a route to a pod; addresses of the VPC need none.
fn routed_without_routes() {
    let mut set = in_mode(quick_set(cluster(2)), NetworkMode::Routed);
    for node in set.0.nodes.values_mut() {
        node.routed = Some(false);
    }
    hold(
        &set,
        &[
            ("pod/shop/web-1", "pod/shop/front:8080", Outcome::Hangs),
            ("pod/shop/web-2", "pod/shop/front:8080", Outcome::AT_ONCE),
        ],
    );
    set.0.network.vpc_cidrs = Known::stated(vec!["10.0.0.0/15".parse().unwrap()], here());
    for node in set.0.nodes.values_mut() {
        node.pod_cidrs.clear();
    }
    hold(&set, &[("pod/shop/web-1", "pod/shop/front:8080", Outcome::AT_ONCE)]);
}

/// The tunnel carries what the VPC does not, in the name of each node's end of it.
fn tunnel() {
    for mode in [NetworkMode::GlobalRouter, NetworkMode::Routed] {
        let mut set = wrapped(in_mode(quick_set(cluster(2)), mode));
        for to in ["svc/shop/front", SERVICE, INGRESS] {
            for measured in measure(&mut set, &clients(2), to) {
                assert_eq!(
                    measured.counts,
                    [(Outcome::AT_ONCE, 12)],
                    "{} → {to}",
                    measured.flow.from
                );
            }
        }
        let seen = |from: &str, to: &str| {
            let [measured] = &measure_pairs(&set, &[(from, to)])[..] else { panic!("one flow") };
            assert_eq!(
                measured.counts,
                [(Outcome::AT_ONCE, 12)],
                "{from} → {to}: {:?}",
                measured.evidence
            );
            let sources = measured.evidence.sources_seen.iter();
            sources.map(|(source, _)| *source).collect::<Vec<IpAddr>>()
        };
        assert_eq!(seen("pod/shop/web-1", "svc/shop/front"), [ip("10.1.1.10")]);
        for (from, to) in [
            ("node/n1", "pod/shop/front:8080"),
            ("node/n1", "svc/shop/front"),
            (OUTSIDE, "10.0.0.11:30080"),
        ] {
            assert_eq!(seen(from, to), [ip("10.1.1.0")], "{from} → {to}, {mode}");
        }
        hold(&set, &[(OUTSIDE, "10.1.2.20:8080", Outcome::Hangs)]);
        assert_eq!(seen("pod/shop/web-1", "10.0.0.12:9000"), [ip("10.0.0.11")]);
    }
}

fn tunnel_v6() {
    for mode in [NetworkMode::GlobalRouter, NetworkMode::Routed] {
        let set = wrapped(in_mode(quick_set(cluster_v6(2)), mode));
        hold(
            &set,
            &[
                ("pod/shop/web-1", "svc/shop/front", Outcome::AT_ONCE),
                ("pod/shop/web-2", "svc/shop/front", Outcome::AT_ONCE),
                ("node/n1", "svc/shop/front", Outcome::AT_ONCE),
                ("node/n1", "pod/shop/front:8080", Outcome::AT_ONCE),
                ("node/n1", "[fd00::11]:30080", Outcome::AT_ONCE),
            ],
        );
    }
}
