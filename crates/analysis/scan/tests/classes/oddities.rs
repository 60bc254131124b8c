//! What is rare on nodes and in statuses: nodes that run Windows, and controllers that write the nodes'
//! own addresses into the status of a Service.

use std::net::IpAddr;

use uturn_model::{Cluster, Family};

use super::dice::Dice;

pub(super) fn add(cluster: &mut Cluster, dice: &mut Dice) {
    for node in cluster.nodes.values_mut() {
        node.is_windows = dice.once_in(4);
    }
    let own: Vec<IpAddr> =
        cluster.nodes.values().flat_map(|node| node.internal_ips.iter().copied()).collect();
    let entries =
        cluster.services.values_mut().flat_map(|service| service.load_balancer.iter_mut());
    for ip in entries.filter_map(|entry| entry.ip.as_mut()) {
        let alike: Vec<IpAddr> =
            own.iter().copied().filter(|own| Family::of(*own) == Family::of(*ip)).collect();
        if !alike.is_empty() && dice.once_in(2) {
            *ip = dice.one_of(&alike);
        }
    }
}
