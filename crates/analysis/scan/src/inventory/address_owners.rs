//! The nodes and pods that have an address.

use std::net::IpAddr;

use uturn_model::Pod;

use super::Inventory;
use super::pod_addresses::Resident;

/// The owners of an address.
pub(crate) struct AddressOwners<'a> {
    /// The node to which packets are delivered.
    pub(crate) towards: Option<u32>,
    /// The pod with a network of its own that has it: the last one, if several do.
    pub(crate) pod: Option<&'a Pod>,
    /// The index of that pod among the clients.
    pub(crate) client: Option<u32>,
    /// Whether it is an address of a node.
    pub(crate) is_node: bool,
    /// Whether it has at most one owner and is in no other node's range.
    pub(crate) is_plain: bool,
}

impl<'a> Inventory<'a> {
    /// Returns the node to which packets for an address are delivered.
    pub(crate) fn node_towards(&self, ip: IpAddr) -> Option<u32> {
        if let Some(nodes) = self.nodes_at.get(&ip) {
            return nodes.first().copied();
        }
        if let Some(last) = self.pods_at(ip).last() {
            return last.place;
        }
        self.ranges.holder(ip)
    }

    /// Returns the pods with networks of their own that have an address.
    pub(crate) fn pods_at(&self, ip: IpAddr) -> &[Resident<'a>] {
        self.residents.at(ip)
    }

    /// Returns whether an address belongs to a node.
    pub(crate) fn is_node(&self, ip: IpAddr) -> bool {
        self.nodes_at.contains_key(&ip)
    }

    /// Returns the owners of an address.
    pub(crate) fn owners_of(&self, ip: IpAddr) -> AddressOwners<'a> {
        let nodes = self.nodes_at.get(&ip).map_or(&[][..], Vec::as_slice);
        let pods = self.pods_at(ip);
        let range = self.ranges.holder(ip);
        let towards = match (nodes, pods) {
            ([first, ..], _) => Some(*first),
            ([], [.., last]) => last.place,
            ([], []) => range,
        };
        let is_plain = pods.len() + nodes.len() <= 1
            && !self.services_at.contains_key(&ip)
            && range.is_none_or(|range| towards == Some(range));
        let clients = pods.iter().filter_map(|pod| self.client_places[pod.number as usize]);
        let (pod, client) = (pods.last().map(|resident| resident.pod), clients.max());
        AddressOwners { towards, pod, client, is_node: !nodes.is_empty(), is_plain }
    }

    /// Returns every node that owns an address, runs a pod that owns it, or has it in its range.
    pub(crate) fn related_nodes(&self, ip: IpAddr) -> Vec<u32> {
        let of_pods = self.pods_at(ip).iter().filter_map(|resident| resident.place);
        let own = self.nodes_at.get(&ip).into_iter().flatten().copied();
        own.chain(of_pods).chain(self.ranges.holder(ip)).collect()
    }
}
