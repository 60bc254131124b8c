//! Finds addresses of nodes that only captures show.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uturn_model::network::NetworkMode;
use uturn_model::{Capture, CaptureFile, Cluster, Name};
use uturn_netfilter::addr;

/// Adds to nodes those of their captured addresses that are in ranges of pods: the address of a
/// tunnel interface, or a gateway. With a bridge, these addresses follow from the node's range.
pub(crate) fn add(cluster: &mut Cluster) {
    if cluster.network.mode.value != NetworkMode::Routed {
        return;
    }
    let mut holders: BTreeMap<IpAddr, BTreeSet<Name>> = BTreeMap::new();
    for (name, capture) in &cluster.captures {
        for ip in addresses(capture).filter(|ip| is_of_pods(cluster, *ip)) {
            holders.entry(ip).or_default().insert(name.clone());
        }
    }
    for (ip, names) in holders {
        // An address that several nodes have leads to none of them.
        let only = names.first().filter(|_| names.len() == 1);
        let Some(node) = only.and_then(|name| cluster.nodes.get_mut(name)) else { continue };
        let is_known = node.has_address(ip)
            || node.tunnel_ips.contains(&ip)
            || node.local_addresses.contains(&ip);
        if !is_known {
            node.local_addresses.push(ip);
        }
    }
}

/// Iterates over the addresses of a capture. A file that cannot be read is reported when packets
/// are walked through the node.
fn addresses(capture: &Capture) -> impl Iterator<Item = IpAddr> {
    let file = capture.files.get(&CaptureFile::Addresses);
    let read = file.and_then(|file| addr::parse(file.path.clone(), &file.text).ok());
    let interfaces = read.unwrap_or_default().into_iter();
    interfaces.flat_map(|interface| interface.addresses).map(|(ip, _)| ip)
}

fn is_of_pods(cluster: &Cluster, ip: IpAddr) -> bool {
    let of_nodes = cluster.nodes.values().flat_map(|node| &node.pod_cidrs);
    of_nodes.chain(&cluster.network.pod_cidrs.value).any(|range| range.contains(&ip))
}
