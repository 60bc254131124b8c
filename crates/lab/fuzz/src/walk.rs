//! A target for walks over arbitrary rules: walks end, and shares sum to 1.

use uturn_model::{Family, Share};
use uturn_netfilter::{Entry, Kernel, NodeState, Packet, Transport, addr, iptables, routes};

use crate::small_node::{ADDRESSES, DEFAULT_ROUTE, OTHER_ROUTES};
use crate::text;

/// Walks a pod's call, a call to a NodePort and a call of the node, through a node with these
/// rules.
pub fn walk(data: &[u8]) -> bool {
    let Ok(rules) = iptables::parse("input", &text(data), Family::V4) else { return false };
    let all_routes = format!("{DEFAULT_ROUTE}{OTHER_ROUTES}");
    let state = NodeState {
        iptables: rules,
        interfaces: addr::parse("addr", ADDRESSES).expect("written here"),
        routes: routes::parse("route", &all_routes).expect("written here"),
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
