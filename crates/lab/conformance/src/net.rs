//! The addresses in the clusters of the stage.

/// The ranges of cluster IPs: `--service-cluster-ip-range`.
pub(crate) const SERVICES: [&str; 2] = ["172.16.0.0/16", "fd00:10:96::/112"];
/// The ranges of all pods.
pub(crate) const PODS: [&str; 2] = ["10.1.0.0/16", "fd00:1::/48"];
/// The address of the API server.
pub(crate) const API: &str = "10.99.0.1";
/// The gateway to the API server in the small machine.
pub(crate) const GATEWAY: &str = "10.99.0.2";
/// The range of the links between nodes and the API server.
pub(crate) const LINKS: &str = "10.99.0.0/16";
/// Returns the address of a node on its link to the API server.
pub(crate) fn link(number: u16) -> String {
    let [high, low] = number.to_be_bytes();
    format!("10.99.{}.{low}", high + 1)
}

/// The number of nodes of a cluster. They are called n1, n2 and so on.
pub(crate) const NODES: u8 = 3;

/// Returns the addresses of a node.
pub(crate) fn node(number: u8) -> [String; 2] {
    [format!("10.0.0.{}", 10 + number), format!("fd00:aa::{}", 10 + number)]
}

/// Returns the ranges of a node's pods.
pub(crate) fn pods(number: u8) -> [String; 2] {
    [format!("10.1.{number}.0/24"), format!("fd00:1:0:{number}::/64")]
}

/// Returns the addresses of a pod of a node.
pub(crate) fn pod(node: u8, number: usize) -> [String; 2] {
    [format!("10.1.{node}.{number}"), format!("fd00:1:0:{node}::{number:x}")]
}

/// Returns a Service's own addresses.
pub(crate) fn cluster_ip(number: usize) -> [String; 2] {
    [format!("172.16.1.{number}"), format!("fd00:10:96::1{number:03x}")]
}

/// Returns the addresses of a load balancer, or addresses that are routed to the nodes.
pub(crate) fn outer_ip(number: usize) -> [String; 2] {
    [format!("203.0.113.{number}"), format!("2001:db8:1::{number:x}")]
}

/// Returns the addresses of a client outside the cluster.
pub(crate) fn outside(number: usize) -> [String; 2] {
    let net = if number.is_multiple_of(2) { "198.51.100" } else { "192.0.2" };
    [format!("{net}.{}", 100 + number % 100), format!("2001:db8:f{}::{number:x}", number % 2)]
}
