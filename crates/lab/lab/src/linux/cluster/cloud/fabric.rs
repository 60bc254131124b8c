//! The fabric as the machine of the load balancers: their addresses, their source addresses, and
//! the rules by which answers return to them.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use uturn_lb::steer;
use uturn_model::Family;

use crate::LabError;
use crate::linux::build::links::everything;
use crate::linux::cluster::layout::{Layout, PUBLIC, v4_range};
use crate::linux::cluster::shown::Shown;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Index, Netlink};
use crate::linux::kernel::system::During;
use crate::linux::kernel::tables::restore_more;

/// The source address of probes that do not come from the load balancer's address.
const PROBER: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
/// The address that replaces clients' addresses.
const REPLACED: Ipv4Addr = Ipv4Addr::new(100, 127, 0, 1);
/// The address that replaces the cluster's addresses on the way to public load balancers.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 254);

/// Gives the fabric the addresses of load balancers, and steers packets to them.
pub(super) fn prepare(layout: &Layout, space: &Namespace, shown: &[Shown]) -> Result<(), LabError> {
    let doing = "set up the load balancers";
    let ranges = [first_host(layout.balancers), first_host(PUBLIC)];
    let in_ranges = |ip: &Ipv4Addr| ranges.iter().any(|range| range.contains(ip));
    let single = shown.iter().filter_map(|shown| shown.address).filter(|ip| !in_ranges(ip));
    let single = single.chain([PROBER, REPLACED]).map(Ipv4Net::from);
    let addresses: Vec<Ipv4Net> = single.chain(ranges).collect();
    let everything = everything(IpAddr::V4(PROBER));
    space
        .run(|| {
            let mut netlink = Netlink::open()?;
            for address in &addresses {
                netlink.add_address(Index::LOOPBACK, IpNet::V4(*address))?;
            }
            netlink.add_local_table(everything, steer::TABLE)?;
            netlink.add_mark_rule(everything, steer::MARK, steer::TABLE)
        })
        .during(doing)?;
    restore_more(space, Family::V4, &(steer::rules() + &translation(layout)), doing)
}

/// Returns a range with its first host as the address, which makes all its addresses local to the
/// loopback link.
fn first_host(range: Ipv4Net) -> Ipv4Net {
    let host = range.hosts().next().unwrap_or(range.network());
    Ipv4Net::new_assert(host, range.prefix_len())
}

/// Returns rules that hide private addresses from public load balancers: from those on layer 7,
/// whose packets the fabric delivers to the process, and from those on layer 4, whose packets it
/// forwards.
fn translation(layout: &Layout) -> String {
    let nodes = layout.cluster.nodes.values();
    let pods = nodes.clone().filter_map(|node| v4_range(&node.pod_cidrs));
    let nodes = nodes.filter_map(|node| match node.address(Family::V4) {
        Some(IpAddr::V4(ip)) => Some(Ipv4Net::from(ip)),
        _ => None,
    });
    let mut text = String::from("*nat\n");
    for range in nodes.chain(pods) {
        let to = format!("-j SNAT --to-source {OUTSIDE}");
        text += &format!("-A INPUT -s {range} -d {PUBLIC} {to}\n");
        text += &format!("-A POSTROUTING -s {range} -m conntrack --ctorigdst {PUBLIC} {to}\n");
    }
    text + "COMMIT\n"
}
