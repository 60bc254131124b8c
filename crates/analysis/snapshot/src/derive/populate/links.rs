//! Completes how nodes are linked to the pod network: the hairpin mode of bridges, and the ends of
//! tunnels.

use uturn_model::IpNet;
use uturn_model::network::{NetworkMode, Plugin, Transport};

use crate::decode::cni::BridgeConfig;
use crate::decode::objects::Objects;
use crate::derive::ground::plugin::{CALICO_TUNNELS, CILIUM_HOSTS, Transports};

/// Sets on nodes the hairpin mode from the plugin's configuration, unless Facts state it. Where
/// several configurations differ, the nodes are left as they are.
pub(super) fn add_hairpin(objects: &mut Objects, plugin: Plugin, mode: NetworkMode) {
    if mode != NetworkMode::GlobalRouter || matches!(plugin, Plugin::OfCloud(_)) {
        return;
    }
    let of_plugin = |bridge: &&BridgeConfig| bridge.by_flannel == (plugin == Plugin::Flannel);
    let mut all = objects.bridges.iter().filter(of_plugin);
    let Some(first) = all.next() else { return };
    if all.any(|other| other.hairpin != first.hairpin) {
        return;
    }
    for node in objects.nodes.0.values_mut().filter(|node| node.hairpin.is_none()) {
        node.hairpin = Some(first.hairpin);
        node.hairpin_origin = Some(first.origin.clone());
    }
}

/// Sets each node's tunnel addresses, as the plugin's annotations state them, if packets to other
/// nodes' pods are encapsulated.
pub(super) fn add_tunnel_ends(objects: &mut Objects, plugin: Plugin, transports: &Transports) {
    let mut all = [Some(&transports.usual), transports.v6.as_ref()].into_iter().flatten();
    if !all.any(|transport| transport.value == Transport::Tunnel) {
        return;
    }
    for node in objects.nodes.0.values_mut() {
        let keys: &[&str] = match plugin {
            Plugin::Calico => &CALICO_TUNNELS,
            Plugin::Cilium => &CILIUM_HOSTS,
            _ => &[],
        };
        let stated = keys.iter().filter_map(|key| node.annotations.get(key)?.parse().ok());
        node.tunnel_ips = stated.collect();
        if node.tunnel_ips.is_empty() {
            // flannel uses the first address of the node's range, which no pod gets.
            node.tunnel_ips = node.pod_cidrs.iter().map(IpNet::network).collect();
        }
    }
}
