//! Rules for the VPC's edge: public addresses, and nodes without public bandwidth.

use std::net::IpAddr;

use ipnet::IpNet;
use uturn_lb::source::replaced_source;
use uturn_model::lb::Source;
use uturn_model::{Cluster, Family, LoadBalancer, Node};

use crate::linux::build::edge::{FROM_EDGE, TO_EDGE};
use crate::linux::build::links::links_of;
use crate::linux::build::public::{address_of, probers};

/// Returns rules for the fabric: SNAT to the node's public address towards the edge, DNAT from a
/// node's public address to the node.
pub(super) fn translation(cluster: &Cluster, family: Family) -> String {
    let mut text = String::from("*nat\n");
    for node in cluster.nodes.values() {
        let stated = node.external_ips.iter().filter(|ip| Family::of(**ip) == family);
        if let Some(own) = node.address(family) {
            for public in stated {
                text += &format!(
                    "-A PREROUTING -i {TO_EDGE} -d {public} -j DNAT --to-destination {own}\n"
                );
            }
        }
        let Some(public) = address_of(node, family) else { continue };
        for private in private_ranges(cluster, node, family) {
            text +=
                &format!("-A POSTROUTING -o {TO_EDGE} -s {private} -j SNAT --to-source {public}\n");
        }
    }
    text + "COMMIT\n"
}

/// Returns the source addresses of a node and its pods.
fn private_ranges(cluster: &Cluster, node: &Node, family: Family) -> Vec<IpNet> {
    let pods = cluster.pods_on(&node.name).flat_map(|pod| &pod.ips);
    let single = node.internal_ips.iter().chain(pods).copied().map(IpNet::from);
    let mut all: Vec<IpNet> = node.pod_cidrs.iter().copied().chain(single).collect();
    all.retain(|range| Family::of(range.addr()) == family);
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns rules for the fabric's mangle table: a node without public bandwidth sends nothing to
/// the edge, neither requests nor answers. Health checks and packets of private load balancers are
/// exempt.
pub(super) fn bandwidth(
    cluster: &Cluster,
    private: &[LoadBalancer],
    public: &[LoadBalancer],
    family: Family,
) -> String {
    let vips = |all: &[LoadBalancer]| -> Vec<IpAddr> {
        all.iter().map(|lb| lb.vip).filter(|vip| Family::of(*vip) == family).collect()
    };
    let probers: Vec<IpAddr> = vips(public).into_iter().chain(probers(cluster, family)).collect();
    let mut text = String::from(":NO-BANDWIDTH - [0:0]\n");
    for vip in vips(private) {
        text += &format!("-A NO-BANDWIDTH -m conntrack --ctorigdst {vip} -j RETURN\n");
    }
    for prober in probers {
        text += &format!("-A NO-BANDWIDTH -m conntrack --ctorigsrc {prober} -j RETURN\n");
    }
    text += "-A NO-BANDWIDTH -j DROP\n";
    for (number, node) in cluster.nodes.values().enumerate() {
        if node.public_bandwidth == Some(false) {
            for link in links_of(&cluster.network, number) {
                text += &format!("-A FORWARD -i {link} -o {TO_EDGE} -j NO-BANDWIDTH\n");
            }
        }
    }
    text
}

/// Returns rules for the fabric's mangle table: replies of connections from the edge return there,
/// even if the destination is an address inside, so that a load balancer gets the replies to its
/// packets.
pub(super) fn way_back() -> String {
    format!(
        "-A PREROUTING -i {TO_EDGE} -m conntrack --ctstate NEW \
         -j CONNMARK --set-xmark {FROM_EDGE:#x}/{FROM_EDGE:#x}\n\
         -A PREROUTING ! -i {TO_EDGE} -m connmark --mark {FROM_EDGE:#x}/{FROM_EDGE:#x} \
         -j MARK --set-xmark {FROM_EDGE:#x}/{FROM_EDGE:#x}\n"
    )
}

/// Returns the source addresses of load balancers other than the VIPs: those of packets to targets,
/// and those of health checks.
pub(super) fn own_sources(all: &[LoadBalancer]) -> Vec<IpAddr> {
    let listeners = || all.iter().flat_map(|lb| lb.listeners.iter().map(move |own| (lb.vip, own)));
    let replaced = listeners().filter_map(|(_, listener)| match &listener.profile.source {
        Source::Kept => None,
        Source::Replaced(range) => Some(replaced_source(*range)),
    });
    let probers = listeners().filter_map(|(vip, listener)| {
        let check = listener.profile.health_check.as_ref()?;
        Some(check.source.address(vip)).filter(|source| *source != vip)
    });
    replaced.chain(probers).collect()
}
