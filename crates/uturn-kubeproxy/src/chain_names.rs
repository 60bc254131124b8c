//! The hashes in names of kube-proxy's chains, for who renames what they are made of.

use std::net::SocketAddr;

use crate::names::PortHash;

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
