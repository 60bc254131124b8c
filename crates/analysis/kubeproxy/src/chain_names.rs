//! Names of kube-proxy's chains, for who reads them in a dump, and the hashes in them, for who
//! renames what they are made of.

use std::net::SocketAddr;

use crate::names::PortHash;

/// How names of the chains in iptables begin that are of one Service or one endpoint. A hash
/// follows.
pub const HASHED: [&str; 6] =
    ["KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-EXT-", "KUBE-XLB-", "KUBE-FW-"];

/// Chains in iptables to which every Service adds, in no particular order.
pub const SHARED: [&str; 5] = [
    "KUBE-SERVICES",
    "KUBE-NODEPORTS",
    "KUBE-EXTERNAL-SERVICES",
    "KUBE-PROXY-FIREWALL",
    "KUBE-IPVS-OUT-FILTER",
];

/// The other chains in iptables that kube-proxy writes and nothing else does. Those that kubelet
/// writes too, in its own version's way (KUBE-FIREWALL, KUBE-MARK-DROP), are not among them.
pub const OTHERS: [&str; 7] = [
    "KUBE-FORWARD",
    "KUBE-MARK-MASQ",
    "KUBE-POSTROUTING",
    "KUBE-NODE-PORT",
    "KUBE-LOAD-BALANCER",
    "KUBE-SOURCE-RANGES-FIREWALL",
    "KUBE-IPVS-FILTER",
];

/// Whether a chain in iptables drops what `spec.loadBalancerSourceRanges` does not let in.
pub fn is_of_source_ranges(chain: &str) -> bool {
    let chains = ["KUBE-PROXY-FIREWALL", "KUBE-SOURCE-RANGES-FIREWALL", "KUBE-IPVS-OUT-FILTER"];
    chains.contains(&chain) || chain.starts_with("KUBE-FW-")
}

/// Whether a rule of nftables does so. Its chain has no others, and kube-proxy writes no such rule
/// elsewhere.
pub fn is_rule_of_source_ranges(rule: &str) -> bool {
    ["ip saddr != ", "ip6 saddr != "].iter().any(|begins| rule.starts_with(begins))
        && rule.trim_end().ends_with("drop")
}

/// How names of the sets in nftables begin that hold the clients of an endpoint, for session affinity.
pub const AFFINITY_SETS: &str = "affinity-";

/// Whether a rule of nftables leads the clients in such a set to their endpoint.
pub fn is_nft_rule_of_affinity(rule: &str) -> bool {
    let set = rule.split_once(" saddr @").map(|(_, set)| set);
    set.is_some_and(|set| set.starts_with(AFFINITY_SETS))
}

/// What follows `KUBE-SVC-` and the like: the hash of a Service's port, `namespace/service:port`
/// (without `:port` where it has no name), and `tcp`, `udp` or `sctp`.
pub fn port_hash(port: &str, protocol: &str) -> String {
    text(&PortHash::new(port, protocol).letters())
}

/// What follows `KUBE-SEP-`: the hash of an endpoint of a Service's port.
pub fn endpoint_hash(port: &str, protocol: &str, endpoint: SocketAddr) -> String {
    text(&PortHash::new(port, protocol).endpoint(&endpoint.to_string()))
}

/// The hash of a text, of which names of nftables have the first eight letters.
pub fn text_hash(hashed: &str) -> String {
    text(&PortHash::new(hashed, "").letters())
}

fn text(letters: &[u8]) -> String {
    letters.iter().map(|letter| char::from(*letter)).collect()
}
