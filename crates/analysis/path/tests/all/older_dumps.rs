//! What packets meet on a node with the rules that real, older kube-proxies left there, and with
//! those that uturn writes for the same release.
//!
//! The dumps lie beside those of uturn-kubeproxy: `golden/objects.yaml` is what kube-proxy was
//! given, with 10.1.0.0/16 as its cluster CIDR, on nodes with kubelet's rules for marked packets.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Cluster, Family, Known, Name, Node, ProxyMode, ProxySettings, Version};
use uturn_netfilter::{EndKind, Entry, Kernel, Packet, iptables};
use uturn_path::NodeRuntime;

#[test]
fn packets_meet_the_same_as_with_older_kube_proxies() {
    for version in ["v1.15.12", "v1.18.20", "v1.20.15"] {
        let (tried, different) = compare(version.parse().unwrap(), version);
        assert!(different.is_empty(), "{version}: {different:#?}");
        assert!(tried > 400, "{tried}");
    }
}

#[test]
fn rules_of_the_release_before_are_told_apart() {
    for (before, dumped) in [("v1.14.10", "v1.15.12"), ("v1.19.16", "v1.20.15")] {
        let (_, different) = compare(before.parse().unwrap(), dumped);
        assert!(!different.is_empty(), "{before} {dumped}");
    }
}

/// How many packets were walked with the rules that uturn writes for a release and with a dump, on
/// two nodes, and those that meet something else.
fn compare(version: Version, dumped: &str) -> (usize, Vec<String>) {
    let cluster = cluster(version);
    let (mut tried, mut different) = (0, Vec::new());
    for node in ["n1", "n2"] {
        let node = &cluster.nodes[&Name::new(node).unwrap()];
        let written = NodeRuntime::without_capture(&cluster, node).unwrap().kernel;
        let dump = golden(&format!("iptables-{dumped}")).join(format!("{}.save", node.name));
        let text = std::fs::read_to_string(dump).unwrap();
        let mut state = written.state().clone();
        state.iptables = iptables::parse("dump", &text, Family::V4).unwrap();
        let real = Kernel::new(state).unwrap();
        for (packet, entry) in packets(&cluster, node) {
            tried += 1;
            let [ours, theirs] = [&written, &real].map(|kernel| ends(kernel, &packet, &entry));
            // Before v1.18 kube-proxy wrote probabilities with five decimals.
            let is_near = |(end, share): (&String, &f64)| {
                ours.get(end).is_some_and(|own| (own - share).abs() < 1e-4)
            };
            if ours.len() != theirs.len() || !theirs.iter().all(is_near) {
                let name = &node.name;
                different.push(format!("{name}: {packet:?}, {entry:?}: {ours:?}, {theirs:?}"));
            }
        }
    }
    (tried, different)
}

fn cluster(version: Version) -> Cluster {
    let paths = [golden("objects.yaml"), golden("beside.yaml")];
    let mut cluster = uturn_snapshot::load(&paths).unwrap().cluster;
    for (node, number) in cluster.nodes.values_mut().zip(11..) {
        node.internal_ips = vec![[10, 0, 0, number].into()];
    }
    let pods = vec!["10.1.0.0/16".parse().unwrap()];
    cluster.proxy = ProxySettings {
        detector: Known::supposed(LocalDetector::ClusterCidr(pods), "a test"),
        node_port_addresses: NodePortAddresses::All,
        ..ProxySettings::new(
            Known::supposed(ProxyMode::Iptables, "a test"),
            Known::supposed(version, "a test"),
        )
    };
    cluster
}

/// From every kind of client to every address of every Service.
fn packets(cluster: &Cluster, node: &Node) -> Vec<(Packet, Entry)> {
    let own = node.internal_ips[0];
    let net = node.pod_cidrs[0];
    let mut hosts = net.hosts();
    let mut pod = |number| hosts.nth(number).unwrap();
    let bridge = Entry::Interface("cbr0".into());
    let uplink = Entry::Interface("eth0".into());
    let clients: [(IpAddr, &Entry); 6] = [
        (pod(9), &bridge),
        (pod(80), &bridge),
        (own, &Entry::Local),
        ([10, 1, 3, 77].into(), &uplink),
        ([10, 0, 0, 13].into(), &uplink),
        ([198, 51, 100, 7].into(), &uplink),
    ];
    let mut packets = Vec::new();
    for service in cluster.services.values() {
        let external = service.external_ips.iter().copied();
        let vips = service.load_balancer.iter().filter_map(|ingress| ingress.ip);
        let addresses: Vec<IpAddr> =
            service.cluster_ips.iter().copied().chain(external).chain(vips).collect();
        for port in &service.ports {
            let at = addresses.iter().map(|ip| SocketAddr::new(*ip, port.port.number()));
            let on_node = port.node_port.map(|number| SocketAddr::new(own, number.number()));
            for to in at.chain(on_node).filter(SocketAddr::is_ipv4) {
                for (from, entry) in clients {
                    let packet = Packet::new(port.protocol, SocketAddr::new(from, 40_000), to);
                    packets.push((packet, entry.clone()));
                }
            }
        }
    }
    packets
}

/// Where a packet ends, as whom, and how often.
fn ends(kernel: &Kernel, packet: &Packet, entry: &Entry) -> BTreeMap<String, f64> {
    let mut ends = BTreeMap::new();
    for end in kernel.walk(packet, entry, &[]) {
        let leg = end.packet.leg();
        // Not which rule it was: chains are called and ordered otherwise.
        let kind = match &end.kind {
            EndKind::Drop(_) => "dropped".to_owned(),
            other => format!("{other:?}"),
        };
        let word = format!("{kind} {:?} {} {}", end.out, leg.src.ip(), leg.dst);
        *ends.entry(word).or_default() += end.share.get();
    }
    ends
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kubeproxy/tests/golden").join(name)
}
