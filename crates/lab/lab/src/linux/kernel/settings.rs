//! The kernel settings of namespaces.

use std::io;

use uturn_model::Node;
use uturn_model::node::RpFilter;

use super::namespace::Namespace;
use super::netlink::{Index, Netlink};

/// Applies the kernel settings of the fabric and the edge, which forward packets between nodes.
pub(crate) fn fabric_kernel() -> io::Result<()> {
    router_kernel(RpFilter::Off)?;
    set_syn_retries(None)?;
    // A VPC sends no ICMP redirects, and it forwards packets with a load balancer's source
    // address that a node sends. The kernel would drop these as its own, since the lab has the
    // load balancer in the same namespace.
    for which in ["all", "default"] {
        Namespace::set_sysctl(&format!("net/ipv4/conf/{which}/send_redirects"), "0")?;
        Namespace::set_sysctl(&format!("net/ipv4/conf/{which}/accept_local"), "1")?;
    }
    Netlink::open()?.up(Index::LOOPBACK)
}

pub(crate) fn node_kernel(node: &Node) -> io::Result<()> {
    set_syn_retries(Some(node))?;
    router_kernel(node.rp_filter.unwrap_or(RpFilter::Off))?;
    let sees = if node.bridge_rules == Some(false) { "0" } else { "1" };
    for family in ["iptables", "ip6tables"] {
        Namespace::set_sysctl(&format!("net/bridge/bridge-nf-call-{family}"), sees)?;
    }
    stop_forwarding(node)?;
    Netlink::open()?.up(Index::LOOPBACK)
}

/// Turns off forwarding if the node is stated not to forward packets.
pub(crate) fn stop_forwarding(node: &Node) -> io::Result<()> {
    if node.forwards != Some(false) {
        return Ok(());
    }
    Namespace::set_sysctl("net/ipv4/ip_forward", "0")?;
    set_ipv6("net/ipv6/conf/all/forwarding", "0")
}

/// Sets the times at which this namespace retransmits a SYN: those of the node's kernel or, if its
/// version is not known, those of kernels before Linux 6.5.
pub(crate) fn set_syn_retries(node: Option<&Node>) -> io::Result<()> {
    let version = node.and_then(Node::kernel_version);
    let is_steady = version.is_some_and(|version| version >= (6, 5));
    let value = if is_steady { "4" } else { "0" };
    match Namespace::set_sysctl("net/ipv4/tcp_syn_linear_timeouts", value) {
        // Kernels before 6.5 have no such setting.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Sets up a router. Must be called before links are created, which inherit these settings.
fn router_kernel(rp_filter: RpFilter) -> io::Result<()> {
    let rp_filter = match rp_filter {
        RpFilter::Off => "0",
        RpFilter::Strict => "1",
        RpFilter::Loose => "2",
    };
    Namespace::set_sysctl("net/ipv4/ip_forward", "1")?;
    // One client stands for many: with the default rate limits only its first connects would get
    // an ICMP error.
    Namespace::set_sysctl("net/ipv4/icmp_ratemask", "0")?;
    for which in ["all", "default"] {
        Namespace::set_sysctl(&format!("net/ipv4/conf/{which}/rp_filter"), rp_filter)?;
    }
    set_ipv6("net/ipv6/conf/all/forwarding", "1")?;
    set_ipv6("net/ipv6/icmp/ratelimit", "0")?;
    disable_address_detection()
}

/// Disables duplicate address detection, so that IPv6 addresses are usable immediately. Must be
/// called before links are created. (A router without a usable address sends no neighbour
/// solicitations.)
pub(crate) fn disable_address_detection() -> io::Result<()> {
    set_ipv6("net/ipv6/conf/all/accept_dad", "0")?;
    set_ipv6("net/ipv6/conf/default/accept_dad", "0")
}

/// Sets an IPv6 sysctl. Does nothing if the kernel has no IPv6.
fn set_ipv6(key: &str, value: &str) -> io::Result<()> {
    match Namespace::set_sysctl(key, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
