//! Programs a node: compiles kube-proxy's rules for its mode, loads them with the real programs,
//! and adds the rules of the pod network and the node's own firewall.

use std::io;
use std::net::IpAddr;

use uturn_kubeproxy::{Program, host_ports};
use uturn_model::{Family, Name, ProxyMode};
use uturn_netfilter::ipvs::{self, VirtualServer};

use super::{captured, restore, restore_more};
use crate::linux::kernel::ipvs::Ipvs;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::Netlink;
use crate::linux::kernel::settings::stop_forwarding;
use crate::linux::kernel::system::{During, run};
use crate::{LabError, Plan};

/// The device that kube-proxy binds addresses on in IPVS mode.
pub(super) const IPVS_DEVICE: &str = "kube-ipvs0";

/// Loads the captured rules of a node, and those that kube-proxy programs there for families
/// without captured rules.
pub(crate) fn program_node(
    plan: &Plan<'_>,
    name: &Name,
    space: &Namespace,
) -> Result<(), LabError> {
    let capture = plan.rules.get(name);
    let is_captured = |family| capture.is_some_and(|capture| capture.has_rules(family));
    if !Family::BOTH.into_iter().all(is_captured) {
        program(plan, name, space, is_captured)?;
    }
    capture.map_or(Ok(()), |capture| captured::load(capture, space))
}

/// Loads the rules of the families that are not captured.
fn program(
    plan: &Plan<'_>,
    name: &Name,
    space: &Namespace,
    is_captured: impl Fn(Family) -> bool,
) -> Result<(), LabError> {
    let cluster = plan.cluster;
    let doing = format!("program node {name}");
    let node = &cluster.nodes[name];
    let programmed = cluster.programmed_on(node);
    let is_missing = |family: &Family| node.address(*family).is_some() && !is_captured(*family);
    let missing: Vec<Family> = Family::BOTH.into_iter().filter(is_missing).collect();
    if cluster.proxy.mode.value == ProxyMode::Ipvs && !missing.is_empty() {
        space.run(add_ipvs_device).during(&doing)?;
    }
    let load_own = || {
        for family in &missing {
            let rules = uturn_kubeproxy::pod_network::rules(cluster, node, *family);
            if let Some(text) = rules {
                let doing = format!("{doing}: the pod network's rules");
                restore_more(space, *family, &text, &doing)?;
            }
        }
        if is_captured(Family::V4) {
            return Ok(());
        }
        node.firewall.as_ref().map_or(Ok(()), |own| {
            let doing = format!("{doing}: its own rules ({})", own.origin);
            restore_more(space, Family::V4, &own.text, &doing)
        })
    };
    // The kernel runs the latest of several chains with the same priority first. A node has its
    // own rules before kube-proxy starts; in tables that both write to, kube-proxy's rules come
    // first.
    let shares_tables = cluster.proxy.mode.value != ProxyMode::Nftables;
    if !shares_tables {
        load_own()?;
    }
    for family in missing.iter().copied() {
        let program = uturn_kubeproxy::compile(&programmed, name, &cluster.proxy, family)
            .map_err(|error| LabError::Plan(error.to_string()))?;
        load(space, family, &program, &doing)?;
    }
    let switch: Vec<(String, String)> = host_ports::sysctl(cluster, node).into_iter().collect();
    space.run(|| set(&switch)).during(&doing)?;
    // In IPVS mode, kube-proxy turns forwarding on, but the stated setting of the node applies.
    space.run(|| stop_forwarding(node)).during(&doing)?;
    if shares_tables { load_own() } else { Ok(()) }
}

fn load(space: &Namespace, family: Family, program: &Program, doing: &str) -> Result<(), LabError> {
    space.run(|| set(&program.sysctls)).during(doing)?;
    load_sets(space, &program.ipset, doing)?;
    restore(space, family, &program.iptables, doing)?;
    load_nft(space, &program.nft, doing)?;
    if !program.bound.is_empty() {
        space.run(|| bind(&program.bound)).during(doing)?;
    }
    load_virtual_servers(space, "what kube-proxy programs", &program.ipvs, doing)
}

/// Loads the output of `ipset save`.
pub(super) fn load_sets(space: &Namespace, text: &str, doing: &str) -> Result<(), LabError> {
    start(space, "ipset", &["restore"], text, doing)
}

/// Loads the output of `nft list ruleset`.
pub(super) fn load_nft(space: &Namespace, text: &str, doing: &str) -> Result<(), LabError> {
    start(space, "nft", &["-f", "-"], text, doing)
}

/// Loads the output of `ipvsadm -Sn`.
pub(super) fn load_virtual_servers(
    space: &Namespace,
    source: &str,
    text: &str,
    doing: &str,
) -> Result<(), LabError> {
    if text.is_empty() {
        return Ok(());
    }
    let servers = ipvs::parse(source, text).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        LabError::Program { doing: doing.into(), reason: faults.join("\n") }
    })?;
    let there = space
        .run(|| {
            let mut ipvs = Ipvs::open()?;
            ipvs.add(&servers)?;
            ipvs.list()
        })
        .during(doing)?;
    match servers.0.iter().find(|server| !there.0.iter().any(|other| is_same(server, other))) {
        None => Ok(()),
        Some(lacking) => Err(LabError::Program {
            doing: doing.into(),
            reason: format!("the kernel took -A {lacking} and has:\n{there}"),
        }),
    }
}

/// Returns whether two virtual servers are equal, regardless of the order of their real servers.
fn is_same(first: &VirtualServer, other: &VirtualServer) -> bool {
    let head = |server: &VirtualServer| VirtualServer { servers: Vec::new(), ..server.clone() };
    first.at == other.at
        && head(first) == head(other)
        && first.servers.len() == other.servers.len()
        && first.servers.iter().all(|real| other.servers.contains(real))
}

fn start(
    space: &Namespace,
    program: &str,
    arguments: &[&str],
    text: &str,
    doing: &str,
) -> Result<(), LabError> {
    if text.is_empty() {
        return Ok(());
    }
    space
        .run(|| run(program, arguments, text))
        .during(&format!("{doing}: start {program}"))?
        .map_err(|reason| LabError::Program { doing: format!("{doing} with {program}"), reason })
}

/// Sets kernel settings (`net.ipv4.ip_forward`). Works only within [`Namespace::run`].
pub(super) fn set(sysctls: &[(String, String)]) -> io::Result<()> {
    sysctls.iter().try_for_each(|(key, value)| {
        Namespace::set_sysctl(&key.replace('.', "/"), value)
            .map_err(|error| io::Error::new(error.kind(), format!("sysctl {key}: {error}")))
    })
}

/// Creates the device that holds the bound addresses. It stays down, as its addresses are local
/// anyway.
pub(super) fn add_ipvs_device() -> io::Result<()> {
    Netlink::open()?.add_dummy(IPVS_DEVICE)
}

pub(super) fn bind(addresses: &[IpAddr]) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let device = netlink.index(IPVS_DEVICE)?;
    addresses.iter().try_for_each(|ip| netlink.add_address(device, (*ip).into()))
}
