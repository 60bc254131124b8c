//! How answers to a kept source find back to the load balancer.
//!
//! A target answers to the client's address, which is not the load balancer's. The kernel
//! where it runs must keep such answers instead of routing them on to the client: packets
//! that belong to one of its own transparent sockets are marked, and marked packets are
//! delivered locally. Everything else is routed as ever.

/// The mark of packets that are for the load balancer itself.
pub const MARK: u32 = 0x1_0000;

/// The routing table that delivers everything locally.
pub const TABLE: u8 = 100;

/// Input for `iptables-restore` (or `ip6tables-restore`): marks what belongs to transparent
/// sockets, including ICMP errors about rejections. Beside it stand `ip rule add fwmark
/// MARK/MARK lookup TABLE` and `ip route add local default dev lo table TABLE`.
pub fn rules() -> String {
    format!(
        "*mangle\n\
         -A PREROUTING -m socket --transparent -j MARK --set-xmark {MARK:#x}/{MARK:#x}\n\
         COMMIT\n"
    )
}
