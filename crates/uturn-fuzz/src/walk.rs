//! Arbitrary rules, walked: walks end, and shares sum to 1.

use uturn_model::{Family, Share};
use uturn_netfilter::{Entry, Kernel, NodeState, Packet, Transport, addr, iptables, routes};

use crate::text;

const ADDRESSES: &str = "\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 10.0.0.11/24 scope global eth0
3: cbr0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 10.1.1.1/24 scope global cbr0
";

const ROUTES: &str = "\
default via 10.0.0.1 dev eth0
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.11
10.1.1.0/24 dev cbr0 proto kernel scope link src 10.1.1.1
";

/// A pod's call, a call to a NodePort and a call of the node, through a node with these rules.
pub fn walk(data: &[u8]) -> bool {
    let Ok(rules) = iptables::parse("input", &text(data), Family::V4) else { return false };
    let state = NodeState {
        iptables: rules,
        interfaces: addr::parse("addr", ADDRESSES).expect("written above"),
        routes: routes::parse("route", ROUTES).expect("written above"),
        ..NodeState::default()
    };
    let kernel = match Kernel::new(state) {
        Ok(kernel) => kernel,
        Err(errors) => {
            assert!(!errors.is_empty(), "a refusal says why");
            return false;
        }
    };
    let from = |name: &str| Entry::Interface(name.into());
    for (src, dst, port, entry) in [
        ([10, 1, 1, 10], [172, 16, 1, 10], 80, from("cbr0")),
        ([10, 1, 1, 10], [10, 0, 0, 11], 30080, from("eth0")),
        ([0, 0, 0, 0], [10, 0, 0, 100], 80, Entry::Local),
    ] {
        let transport = Transport::Tcp { src_port: 40000, dst_port: port, syn: true, ack: false };
        let packet = Packet { src: src.into(), dst: dst.into(), transport, mark: 0 };
        let ends = kernel.walk(&packet, &entry, &[]);
        let shares = ends.iter().map(|end| end.share);
        assert!(Share::add_up_to_all(shares), "{} ends of {packet:?}: {ends:?}", ends.len());
    }
    true
}
