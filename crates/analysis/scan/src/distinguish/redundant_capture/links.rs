//! Decides whether two kernels have pods and the fabric at the same links.

use std::net::IpAddr;

use uturn_model::{Cluster, Family, Node};
use uturn_netfilter::NodeState;
use uturn_path::NodeRuntime;

/// Returns whether pods and the fabric are at the same links, and these are equal.
pub(super) fn has_same_links(
    cluster: &Cluster,
    node: &Node,
    runtime: &NodeRuntime,
    other: &NodeRuntime,
) -> bool {
    let pods = cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network);
    let pods: Vec<IpAddr> = pods.flat_map(|pod| pod.ips.iter().copied()).collect();
    let link = |world: &NodeRuntime, pod: &IpAddr| {
        let link = world.pod_link(*pod);
        (world.is_bridge(&link, *pod), link)
    };
    let own = pods.first().map(|pod| link(runtime, pod).1);
    let mut links =
        [Some(&runtime.uplink), runtime.card.as_ref(), own.as_ref()].into_iter().flatten();
    let (state, others) = (runtime.kernel.state(), other.kernel.state());
    (&runtime.uplink, &runtime.card) == (&other.uplink, &other.card)
        && pods.iter().all(|pod| link(runtime, pod) == link(other, pod))
        && links.all(|link| {
            let look = looks(state, link);
            look.is_some() && look == looks(others, link)
        })
}

/// Returns an interface's sysctls, whether it is up, and its address of each family. Returns `None`
/// if it has several addresses of a family.
fn looks(state: &NodeState, link: &str) -> Option<(Vec<bool>, u8, Vec<IpAddr>)> {
    let all = &state.sysctls;
    let interface = state.interfaces.iter().find(|interface| *interface.name == *link)?;
    let is_own = |ip: &IpAddr| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let mut own: Vec<IpAddr> =
        interface.addresses.iter().map(|(ip, _)| *ip).filter(is_own).collect();
    own.sort();
    let is_only = |family| own.iter().filter(|ip| Family::of(**ip) == family).count() < 2;
    if !Family::BOTH.into_iter().all(is_only) {
        return None;
    }
    let switches = vec![
        interface.up,
        all.forwards_from(link),
        all.accept_local(link),
        all.route_localnet(link),
        all.src_valid_mark(link),
    ];
    Some((switches, all.rp_filter(link), own))
}
