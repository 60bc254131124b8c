//! Captures that equal what would be derived without them.
//!
//! A healthy node has the rules that kube-proxy writes, perhaps some additional rules, and routes
//! to the same destinations as those of every node. If a capture has just that for every address of
//! the cluster, a scan ignores the capture and keeps the additional rules as the node's firewall:
//! the node is then like others of its class, and its rules need not be walked for each Service.

mod addresses;
mod iptables;
mod kernel;
mod links;
mod nftables;
mod routes;
#[cfg(test)]
mod tests;

use ipnet::IpNet;
use uturn_model::capture::CaptureFile;
use uturn_model::node::{Firewall, RpFilter};
use uturn_model::{Cluster, Family, Node};
use uturn_path::NodeRuntime;

pub(crate) use addresses::Addresses;
use iptables::beyond;
use kernel::are_alike;
use links::has_same_links;
use routes::leads_alike;

/// Returns a captured node without its capture. Returns `None` if the capture makes a difference.
pub(crate) fn without_capture(
    cluster: &Cluster,
    node: &Node,
    captured: &NodeRuntime,
    known: &Addresses,
) -> Option<Node> {
    let capture = cluster.captures.get(&node.name)?;
    let state = captured.kernel.state();
    let mut plain = node.clone();
    if capture.files.contains_key(&CaptureFile::Sysctls) {
        switch(&mut plain, captured)?;
    }
    if capture.has_rules(Family::V4) {
        plain.firewall = None;
    }
    let mut worked_out = NodeRuntime::without_capture(cluster, &plain).ok()?;
    if capture.has_rules(Family::V4) {
        let own = beyond(&worked_out.kernel.state().iptables, &state.iptables)?;
        if !own.is_empty() {
            plain.firewall = Some(Firewall { text: own.into(), origin: node.origin.clone() });
            worked_out = NodeRuntime::without_capture(cluster, &plain).ok()?;
        }
    }
    // A node without addresses of a family receives no packets of that family.
    let has = |family: &Family| {
        let is_of = |net: &IpNet| Family::of(net.addr()) == *family;
        node.address(*family).is_some() || node.pod_cidrs.iter().any(is_of)
    };
    let families: Vec<Family> = Family::BOTH.into_iter().filter(has).collect();
    let is_same = are_alike(&families, known, state, worked_out.kernel.state())
        && has_same_links(cluster, node, captured, &worked_out)
        && (!capture.has_links() || leads_alike(captured, &worked_out, known));
    is_same.then_some(plain)
}

/// Copies the captured sysctls to the node. Returns `None` if they cannot be stated there.
fn switch(plain: &mut Node, captured: &NodeRuntime) -> Option<()> {
    let sysctls = &captured.kernel.state().sysctls;
    plain.forwards = Some(sysctls.ip_forward(Family::V4));
    plain.rp_filter = Some(match sysctls.rp_filter(&captured.uplink) {
        0 => RpFilter::Off,
        1 => RpFilter::Strict,
        2 => RpFilter::Loose,
        _ => return None,
    });
    let [v4, v6] = Family::BOTH.map(|family| captured.bridge_shows_rules(family));
    if v4 != v6 {
        return None;
    }
    plain.bridge_rules = Some(v4);
    Some(())
}
