//! Announcements of load-balancer addresses by nodes, as the objects of the announcing program
//! state them.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Labels, Name, NamespacedName, Node, Origin, Selector, Service, Text};

/// All announcements that objects state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Announcements {
    /// The pools from which addresses are given.
    pub pools: Vec<AddressPool>,
    /// The announcements.
    pub all: Vec<Announcement>,
    /// Whether these are all announcements that exist.
    pub are_complete: bool,
    /// Whether the labels of some nodes, by which they may be chosen, are not known.
    pub lacks_labels: bool,
}

impl Announcements {
    /// Returns whether no object states anything.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.all.is_empty()
    }

    /// Returns whether an announcement may choose a node: it does, or the node's labels are not
    /// known.
    pub fn may_choose(&self, announcement: &Announcement, node: &Node) -> bool {
        announcement.has_node(node) || (self.lacks_labels && !node.has_all_labels())
    }

    /// Returns the pool that contains an address.
    pub fn pool_of(&self, address: IpAddr) -> Option<&AddressPool> {
        self.pools.iter().find(|pool| pool.ranges.iter().any(|range| range.contains(&address)))
    }
}

/// A pool of addresses that are given to Services.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressPool {
    /// Its kind and name.
    pub object: Text,
    /// Its name.
    pub name: NamespacedName,
    /// Its labels.
    pub labels: Labels,
    /// Its addresses.
    pub ranges: Vec<IpNet>,
    /// Where it was written.
    pub origin: Origin,
}

/// An announcement of addresses by nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// Its kind and name.
    pub object: Text,
    /// Its name.
    pub name: NamespacedName,
    /// The protocol of the announcement.
    pub by: AnnouncedBy,
    /// The pools whose addresses it announces, by name. Without names and selectors, it announces
    /// those of every pool.
    pub pools: Vec<Name>,
    /// The pools whose addresses it announces, by labels.
    pub pool_selectors: Vec<Selector>,
    /// The nodes that announce; without any, every node does.
    pub nodes: Vec<Selector>,
    /// The Services whose addresses it announces; without any, those of every Service.
    pub services: Vec<Selector>,
    /// The nodes that are preferred if only one announces, by weight.
    pub preferred: Vec<(u32, Selector)>,
    /// The interfaces on which it is announced; without any, on every one.
    pub interfaces: Vec<Text>,
    /// Where it was written.
    pub origin: Origin,
}

/// The protocol by which an address is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnnouncedBy {
    /// One node answers for it on the segment (ARP, neighbour discovery).
    Neighbours,
    /// Each node offers a route to it (BGP).
    Routes,
}

impl Announcement {
    /// Returns whether it is for addresses of every pool.
    pub fn is_for_every_pool(&self) -> bool {
        self.pools.is_empty() && self.pool_selectors.is_empty()
    }

    /// Returns whether it is for addresses of a pool.
    pub fn has_pool(&self, pool: &AddressPool) -> bool {
        self.is_for_every_pool()
            || self.pools.contains(&pool.name.name)
            || self.pool_selectors.iter().any(|selector| selector.matches(&pool.labels))
    }

    /// Returns whether it is for addresses of a Service.
    pub fn has_service(&self, service: &Service) -> bool {
        self.services.is_empty()
            || self.services.iter().any(|selector| selector.matches(&service.labels))
    }

    /// Returns whether a node announces.
    pub fn has_node(&self, node: &Node) -> bool {
        self.nodes.is_empty() || self.nodes.iter().any(|selector| selector.matches(&node.labels))
    }

    /// Returns the weight with which a node is preferred.
    pub fn weight_of(&self, node: &Node) -> u32 {
        let chosen = self.preferred.iter().filter(|(_, selector)| selector.matches(&node.labels));
        chosen.fold(0, |all, (weight, _)| all.saturating_add(*weight))
    }
}
