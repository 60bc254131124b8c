//! Rules for packets that load balancers forward to nodes with the address that clients called
//! ([`handover`](crate::linux::build::handover)).

use uturn_model::lb::Scope;
use uturn_model::{Cluster, Family, LoadBalancer};

use crate::linux::build::edge::{FROM_EDGE, TO_EDGE};
use crate::linux::build::handover::{self, MASK, is_handed, link, mark_of};
use crate::linux::build::links::links_of;

/// The chain that picks a node for each new connection and stores the node's mark in the
/// connection's mark.
pub(super) const PICK: &str = "LB-HAND";

/// The TTL or hop limit below which a packet has passed two nodes and the fabric between them.
const FIRST_TIME: u8 = 62;

/// Returns the rules before the picks: later packets of a connection go to the node of the first.
pub(super) fn entry() -> String {
    format!(
        "*mangle\n\
         :{PICK} - [0:0]\n\
         -A PREROUTING -m conntrack --ctstate NEW -m connmark --mark 0/{MASK:#x} -j {PICK}\n\
         -A PREROUTING -m conntrack --ctdir ORIGINAL -m connmark ! --mark 0/{MASK:#x} \
         -j CONNMARK --restore-mark --nfmask {MASK:#x} --ctmask {MASK:#x}\n\
         COMMIT\n"
    )
}

/// Returns the name of the chain that marks connections for a node.
pub(super) fn to_node(number: usize) -> String {
    format!("{PICK}-{number}")
}

/// Returns rules for the fabric. The fabric drops packets that it has already forwarded to a node,
/// forwards packets for a node from the edge to that node, and returns the answers to the edge. The
/// edge tracks these connections, and the fabric does not: it may have a connection of the client
/// inside with the same addresses and ports.
pub(super) fn in_fabric(
    cluster: &Cluster,
    private: &[LoadBalancer],
    public: Option<&[LoadBalancer]>,
    family: Family,
) -> String {
    let public = public.unwrap_or_default();
    let all = private.iter().chain(public).filter(|lb| Family::of(lb.vip) == family);
    let all: Vec<&LoadBalancer> = all.filter(|lb| lb.listeners.iter().any(is_handed)).collect();
    let (mut raw, mut mangle) = (String::new(), String::new());
    for lb in &all {
        let (hops, name) = match family {
            Family::V4 => ("ttl", "ttl"),
            Family::V6 => ("hl", "hl"),
        };
        let nodes = 0..cluster.nodes.len();
        for link in nodes.flat_map(|number| links_of(&cluster.network, number)) {
            raw += &format!(
                "-A PREROUTING -i {link} -d {} -m {hops} --{name}-lt {FIRST_TIME} -j DROP\n",
                lb.vip
            );
        }
        for listener in lb.listeners.iter().filter(|_| lb.scope == Scope::Public) {
            let protocol = listener.protocol.transport().lower();
            let answers = format!(
                "-A PREROUTING ! -i {TO_EDGE} -s {} -p {protocol} -m {protocol} --sport {}",
                lb.vip, listener.port
            );
            raw += &format!("{answers} -j CT --notrack\n");
            mangle += &format!("{answers} -j MARK --set-xmark {FROM_EDGE:#x}/{FROM_EDGE:#x}\n");
        }
    }
    if handover::is_needed(public, Some(Scope::Public)) {
        for number in 0..cluster.nodes.len() {
            let (link, mark) = (link(number), mark_of(number));
            raw += &format!("-A PREROUTING -i {link} -j CT --notrack\n");
            mangle += &format!("-A PREROUTING -i {link} -j MARK --set-xmark {mark:#x}/{MASK:#x}\n");
        }
    }
    format!("*raw\n{raw}COMMIT\n*mangle\n{mangle}COMMIT\n")
}
