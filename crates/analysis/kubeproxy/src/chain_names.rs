//! Names of kube-proxy's chains, for code that reads them in a dump, and the hashes in them, for
//! code that renames the hashed objects.

use std::net::SocketAddr;

use crate::names::PortHash;

/// The prefixes of iptables chains that belong to one Service or one endpoint. A hash follows.
pub const HASHED: [&str; 6] =
    ["KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-EXT-", "KUBE-XLB-", "KUBE-FW-"];

/// iptables chains to which every Service adds rules, in no particular order.
pub const SHARED: [&str; 5] = [
    "KUBE-SERVICES",
    "KUBE-NODEPORTS",
    "KUBE-EXTERNAL-SERVICES",
    "KUBE-PROXY-FIREWALL",
    "KUBE-IPVS-OUT-FILTER",
];

/// The other iptables chains that only kube-proxy writes. Chains that kubelet also writes, in a
/// form of its own version (KUBE-FIREWALL, KUBE-MARK-DROP), are not included.
pub const OTHERS: [&str; 7] = [
    "KUBE-FORWARD",
    "KUBE-MARK-MASQ",
    "KUBE-POSTROUTING",
    "KUBE-NODE-PORT",
    "KUBE-LOAD-BALANCER",
    "KUBE-SOURCE-RANGES-FIREWALL",
    "KUBE-IPVS-FILTER",
];

/// Returns whether an iptables chain drops packets from outside `spec.loadBalancerSourceRanges`.
pub fn is_of_source_ranges(chain: &str) -> bool {
    let chains = ["KUBE-PROXY-FIREWALL", "KUBE-SOURCE-RANGES-FIREWALL", "KUBE-IPVS-OUT-FILTER"];
    chains.contains(&chain) || chain.starts_with("KUBE-FW-")
}

/// Returns whether an nftables rule drops such packets. Its chain has no other rules, and
/// kube-proxy writes no such rule elsewhere.
pub fn is_rule_of_source_ranges(rule: &str) -> bool {
    ["ip saddr != ", "ip6 saddr != "].iter().any(|begins| rule.starts_with(begins))
        && rule.trim_end().ends_with("drop")
}

/// The prefix of the nftables sets that hold the clients of an endpoint, for session affinity.
pub const AFFINITY_SETS: &str = "affinity-";

/// Returns whether an nftables rule leads the clients in such a set to their endpoint.
pub fn is_nft_rule_of_affinity(rule: &str) -> bool {
    let set = rule.split_once(" saddr @").map(|(_, set)| set);
    set.is_some_and(|set| set.starts_with(AFFINITY_SETS))
}

/// Returns the hash that follows `KUBE-SVC-` and similar prefixes: that of a Service's port, from
/// `namespace/service:port` (without `:port` if the port has no name), and `tcp`, `udp` or `sctp`.
pub fn port_hash(port: &str, protocol: &str) -> String {
    text(&PortHash::new(port, protocol).letters())
}

/// Returns the hash that follows `KUBE-SEP-`: that of an endpoint of a Service's port.
pub fn endpoint_hash(port: &str, protocol: &str, endpoint: SocketAddr) -> String {
    text(&PortHash::new(port, protocol).endpoint(&endpoint.to_string()))
}

/// Returns the hash of a text. nftables names contain its first eight letters.
pub fn text_hash(hashed: &str) -> String {
    text(&PortHash::new(hashed, "").letters())
}

fn text(letters: &[u8]) -> String {
    letters.iter().map(|letter| char::from(*letter)).collect()
}
