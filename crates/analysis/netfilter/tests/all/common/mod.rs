//! Nodes from golden files, ready to walk.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::StepKind;
use uturn_model::{Family, Share};
use uturn_netfilter::{
    Connection, End, EndKind, Entry, Interface, Kernel, NodeState, Packet, RouteEntry, addr,
    iptables, nft, policy_rules, routes, sysctl,
};

pub(crate) fn read(node: &str, file: &str) -> String {
    let path = format!("{}/tests/golden/{node}/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// Node `n` (1, 2 or 3) of the golden cluster, with a pod bridge and forwarding, which the
/// machine that produced the dump did not have.
pub(crate) fn state(n: u8) -> NodeState {
    let node = format!("iptables-n{n}");
    NodeState {
        iptables: iptables::parse("iptables.save", &read(&node, "iptables.save"), Family::V4)
            .unwrap(),
        ip6tables: iptables::parse("ip6tables.save", &read(&node, "ip6tables.save"), Family::V6)
            .unwrap(),
        ..without_rules(&node, n)
    }
}

/// The same node with nftables rules.
pub(crate) fn nft_state(n: u8, file: &str) -> NodeState {
    let node = format!("nftables-n{n}");
    let nft = nft::parse(file, &read(&node, file)).unwrap();
    NodeState { nft, ..without_rules(&node, n) }
}

fn without_rules(node: &str, n: u8) -> NodeState {
    let mut state = NodeState {
        interfaces: addr::parse("addr", &read(node, "addr")).unwrap(),
        routes: routes::parse("route", &read(node, "route")).unwrap(),
        rules: policy_rules::parse("rule", &read(node, "rule")).unwrap(),
        sysctls: sysctl::parse("sysctl", &read(node, "sysctl")).unwrap(),
        ..NodeState::default()
    };
    let bridge = format!("10.1.{n}.1").parse().unwrap();
    state.interfaces.push(Interface {
        name: "cbr0".into(),
        addresses: vec![(bridge, 24)],
        up: true,
    });
    let pods = routes::parse(
        "route",
        &format!("10.1.{n}.0/24 dev cbr0 proto kernel scope link src 10.1.{n}.1"),
    );
    state.routes.extend(pods.unwrap());
    state.sysctls.set("net.ipv4.ip_forward", "1");
    state
}

pub(crate) fn kernel(n: u8) -> Kernel {
    Kernel::new(state(n)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// A node with one bridge and one uplink, and these rules.
pub(crate) fn small(rules: &str) -> Kernel {
    Kernel::new(small_state(rules)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

pub(crate) fn small_state(rules: &str) -> NodeState {
    let routes: Vec<RouteEntry> = routes::parse(
        "route",
        "default via 10.0.0.1 dev eth0\n10.0.0.0/24 dev eth0 scope link src 10.0.0.2\n\
         10.1.0.0/24 dev cbr0 scope link src 10.1.0.1\n\
         local 127.0.0.0/8 dev lo table local scope host src 127.0.0.1\n",
    )
    .unwrap();
    let interface = |name: &str, ip: &str, length| Interface {
        name: name.into(),
        addresses: vec![(ip.parse().unwrap(), length)],
        up: true,
    };
    NodeState {
        iptables: iptables::parse("rules", rules, Family::V4)
            .unwrap_or_else(|errors| panic!("{errors:#?}")),
        interfaces: vec![
            interface("lo", "127.0.0.1", 8),
            interface("eth0", "10.0.0.2", 24),
            interface("cbr0", "10.1.0.1", 24),
        ],
        routes,
        sysctls: [("net.ipv4.ip_forward", "1")].into_iter().collect(),
        ..NodeState::default()
    }
}

pub(crate) fn tcp(src: &str, dst: &str) -> Packet {
    Packet::tcp(src.parse().unwrap(), dst.parse().unwrap())
}

pub(crate) fn from(device: &str) -> Entry {
    Entry::Interface(device.into())
}

/// Ends as short lines: `0.250 10.1.2.20:1 > 10.1.1.10:8080 out eth0`.
pub(crate) fn ends(kernel: &Kernel, packet: Packet, entry: &Entry) -> Vec<String> {
    later(kernel, packet, entry, &[])
}

pub(crate) fn later(
    kernel: &Kernel,
    packet: Packet,
    entry: &Entry,
    known: &[Connection],
) -> Vec<String> {
    let ends = kernel.walk(&packet, entry, known);
    let shares = ends.iter().map(|end| end.share);
    assert!(Share::add_up_to_all(shares), "{ends:?}");
    let mut lines: Vec<String> = ends.iter().map(show).collect();
    lines.sort();
    lines
}

pub(crate) fn show(end: &End) -> String {
    let leg = end.packet.leg();
    let how = match &end.kind {
        EndKind::Local => "local".to_owned(),
        EndKind::Forward => match end.next_hop {
            Some(hop) => format!("out {} via {hop}", end.out.as_deref().unwrap()),
            None => format!("out {}", end.out.as_deref().unwrap()),
        },
        EndKind::Drop(reason) => {
            let reason = format!("{reason:?}");
            format!("drop {}", reason.split('(').next().unwrap())
        }
        EndKind::Reject(with) => format!("reject {with}"),
        EndKind::Unsettled => "unsettled".into(),
    };
    format!("{:.3} {} > {} {how}", end.share, leg.src, leg.dst)
}

/// The rules of an end's steps of one kind.
pub(crate) fn rules_of(end: &End, kind: StepKind) -> Vec<String> {
    end.steps
        .iter()
        .filter(|step| step.kind == kind)
        .map(|step| step.by.rule().to_string())
        .collect()
}
