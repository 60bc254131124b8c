//! Rules that return answers to a kept source address to the load balancer.
//!
//! A target answers to the client's address, which is not the load balancer's. The kernel of the
//! load balancer's machine must deliver such answers locally instead of routing them to the client:
//! packets that belong to a transparent socket of this machine are marked, and marked packets are
//! delivered locally. Everything else is routed as before.

/// The mark of packets that are for the load balancer itself.
pub const MARK: u32 = 0x1_0000;

/// The routing table that delivers everything locally.
pub const TABLE: u8 = 100;

/// Returns the input for `iptables-restore` (or `ip6tables-restore`) that marks packets of
/// transparent sockets, including ICMP errors about rejections. It needs `ip rule add fwmark
/// MARK/MARK lookup TABLE` and `ip route add local default dev lo table TABLE`.
pub fn rules() -> String {
    format!(
        "*mangle\n\
         -A PREROUTING -m socket --transparent -j MARK --set-xmark {MARK:#x}/{MARK:#x}\n\
         COMMIT\n"
    )
}
