//! IPVS: the golden nodes with results worked out by hand.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{ends, from, later, read, tcp};
use uturn_model::capture::CapturedText;
use uturn_model::{Capture, CaptureFile};
use uturn_netfilter::{Entry, Interface, Kernel, NodeState, Packet, Transport, routes};

/// A golden node, with what the machine that produced the dump did not have: the pod bridge,
/// forwarding, and the uplink's addresses.
fn golden(n: u8) -> Kernel {
    let node = format!("ipvs-n{n}");
    let files = [
        CaptureFile::Iptables,
        CaptureFile::Ipset,
        CaptureFile::Ipvs,
        CaptureFile::Addresses,
        CaptureFile::Routes,
        CaptureFile::Sysctls,
    ];
    let captured = |file: CaptureFile| {
        let path = file.file_name();
        (file, CapturedText { path: path.into(), text: read(&node, path).into() })
    };
    let capture =
        Capture { node: node.parse().unwrap(), files: files.into_iter().map(captured).collect() };
    let mut state = NodeState::from_capture(&capture).unwrap();
    assert_eq!(state.sets.0.len(), 34);
    let interface = |name: &str, addresses: &[(&str, u8)]| Interface {
        name: name.into(),
        addresses: addresses.iter().map(|(ip, length)| (ip.parse().unwrap(), *length)).collect(),
        up: true,
    };
    let own = format!("10.0.0.1{n}");
    state.interfaces.push(interface("eth0", &[(&own, 24), ("10.0.2.15", 24)]));
    state.interfaces.push(interface("cbr0", &[(&format!("10.1.{n}.1"), 24)]));
    let bridge = format!("10.1.{n}.0/24 dev cbr0 proto kernel scope link src 10.1.{n}.1\n");
    state.routes.extend(routes::parse("route", &bridge).unwrap());
    state.sysctls.set("net.ipv4.ip_forward", "1");
    Kernel::new(state).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[test]
fn a_pod_calls_a_cluster_ip() {
    assert_eq!(
        ends(&golden(1), tcp("10.1.1.20:40000", "172.16.1.1:80"), &from("cbr0")),
        [
            "0.250 10.1.1.20:40000 > 10.1.1.10:8080 out cbr0",
            "0.250 10.1.1.20:40000 > 10.1.1.11:8080 out cbr0",
            "0.250 10.1.1.20:40000 > 10.1.2.10:8080 out eth0 via 10.0.2.2",
            "0.250 10.1.1.20:40000 > 10.1.3.10:8080 out eth0 via 10.0.2.2",
        ]
    );
    let udp = Packet::udp("10.1.1.20:40000".parse().unwrap(), "172.16.1.2:53".parse().unwrap());
    assert_eq!(
        ends(&golden(1), udp, &from("cbr0"))[0],
        "0.250 10.1.1.20:40000 > 10.1.1.10:5353 out cbr0"
    );
}

#[test]
fn an_endpoint_that_gets_its_own_call_is_masqueraded() {
    assert_eq!(
        ends(&golden(1), tcp("10.1.1.10:40000", "172.16.1.1:80"), &from("cbr0")),
        [
            "0.250 10.1.1.10:40000 > 10.1.1.11:8080 out cbr0",
            "0.250 10.1.1.10:40000 > 10.1.2.10:8080 out eth0 via 10.0.2.2",
            "0.250 10.1.1.10:40000 > 10.1.3.10:8080 out eth0 via 10.0.2.2",
            "0.250 10.1.1.1:40000 > 10.1.1.10:8080 out cbr0",
        ]
    );
}

#[test]
fn a_load_balancer_is_masqueraded_and_the_answer_finds_back() {
    let kernel = golden(1);
    let request = tcp("198.51.100.7:40000", "203.0.113.10:80");
    assert_eq!(
        ends(&kernel, request, &from("eth0")),
        [
            "0.250 10.0.2.15:40000 > 10.1.2.10:8080 out eth0 via 10.0.2.2",
            "0.250 10.0.2.15:40000 > 10.1.3.10:8080 out eth0 via 10.0.2.2",
            "0.250 10.1.1.1:40000 > 10.1.1.10:8080 out cbr0",
            "0.250 10.1.1.1:40000 > 10.1.1.11:8080 out cbr0",
        ]
    );
    for end in kernel.walk(&request, &from("eth0"), &[]) {
        let connection = end.connection.clone().unwrap();
        assert!(!connection.destination_translated(), "what IPVS does is no rule's translation");
        assert!(connection.source_translated());
        let device = end.out.clone().unwrap();
        let back =
            later(&kernel, end.packet.reply(), &from(&device), std::slice::from_ref(&connection));
        assert_eq!(back, ["1.000 203.0.113.10:80 > 198.51.100.7:40000 out eth0 via 10.0.2.2"]);
        let mut next = request;
        next.transport = Transport::Tcp { src_port: 40000, dst_port: 80, syn: false, ack: true };
        let again = kernel.walk(&next, &from("eth0"), &[connection]);
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].packet.leg(), end.packet.leg(), "later packets go the same way");
    }
}

#[test]
fn a_local_policy_keeps_the_source() {
    assert_eq!(
        ends(&golden(1), tcp("198.51.100.7:40000", "203.0.113.11:80"), &from("eth0")),
        [
            "0.500 198.51.100.7:40000 > 10.1.1.10:8080 out cbr0",
            "0.500 198.51.100.7:40000 > 10.1.1.11:8080 out cbr0",
        ]
    );
    assert_eq!(
        ends(&golden(2), tcp("198.51.100.7:40000", "203.0.113.11:80"), &from("eth0")),
        ["1.000 198.51.100.7:40000 > 10.1.2.10:8080 out cbr0"]
    );
}

#[test]
fn the_node_itself_calls_a_bound_vip() {
    let kernel = golden(1);
    let request = tcp("0.0.0.0:40000", "203.0.113.10:80");
    let all = ends(&kernel, request, &Entry::Local);
    assert_eq!(
        all,
        [
            "0.250 10.0.2.15:40000 > 10.1.2.10:8080 out eth0 via 10.0.2.2",
            "0.250 10.0.2.15:40000 > 10.1.3.10:8080 out eth0 via 10.0.2.2",
            "0.250 10.1.1.1:40000 > 10.1.1.10:8080 out cbr0",
            "0.250 10.1.1.1:40000 > 10.1.1.11:8080 out cbr0",
        ],
        "masqueraded under policy Cluster"
    );
    for end in kernel.walk(&request, &Entry::Local, &[]) {
        let device = end.out.clone().unwrap();
        let known = [end.connection.clone().unwrap()];
        assert_eq!(
            later(&kernel, end.packet.reply(), &from(&device), &known),
            ["1.000 203.0.113.10:80 > 203.0.113.10:40000 local"]
        );
    }
    assert_eq!(
        ends(&kernel, tcp("0.0.0.0:40000", "203.0.113.11:80"), &Entry::Local),
        [
            "0.500 203.0.113.11:40000 > 10.1.1.10:8080 out cbr0",
            "0.500 203.0.113.11:40000 > 10.1.1.11:8080 out cbr0",
        ],
        "under policy Local the source stays the virtual address"
    );
}

#[test]
fn what_is_refused_or_dropped() {
    let kernel = golden(1);
    for (src, entry) in [("198.51.100.7:1", from("eth0")), ("10.1.1.20:1", from("cbr0"))] {
        assert_eq!(
            ends(&kernel, tcp(src, "203.0.113.15:80"), &entry),
            [format!("1.000 {src} > 203.0.113.15:80 reject icmp-port-unreachable")],
            "no endpoints: the virtual server is empty"
        );
        assert_eq!(
            ends(&kernel, tcp(src, "203.0.113.10:81"), &entry),
            [format!("1.000 {src} > 203.0.113.10:81 reject icmp-port-unreachable")],
            "a bound address without a virtual server on that port"
        );
    }
    assert_eq!(
        ends(&kernel, tcp("0.0.0.0:1", "203.0.113.15:80"), &Entry::Local),
        ["1.000 203.0.113.15:1 > 203.0.113.15:80 reject icmp-port-unreachable"]
    );
    assert_eq!(
        ends(&kernel, tcp("192.0.2.99:1", "203.0.113.14:80"), &from("eth0")),
        ["1.000 192.0.2.99:1 > 203.0.113.14:80 drop Rule"],
        "outside of the source ranges"
    );
    let within = ends(&kernel, tcp("198.51.100.7:1", "203.0.113.14:80"), &from("eth0"));
    assert_eq!(within.len(), 4, "{within:?}");
}

#[test]
fn a_node_port() {
    assert_eq!(
        ends(&golden(1), tcp("198.51.100.7:40000", "10.0.0.11:30083"), &from("eth0")),
        [
            "0.500 198.51.100.7:40000 > 10.1.1.10:8080 out cbr0",
            "0.500 198.51.100.7:40000 > 10.1.1.11:8080 out cbr0",
        ]
    );
    assert_eq!(
        ends(&golden(1), tcp("198.51.100.7:40000", "10.0.0.11:30080"), &from("eth0"))[2],
        "0.250 10.1.1.1:40000 > 10.1.1.10:8080 out cbr0"
    );
}
