//! kube-proxy: compiles a cluster's Services to the rules in one node's kernel.
//!
//! **Owns** the translation of Services and endpoints into a node's rules: [`compile`] returns the
//! texts that `iptables-restore`, `nft`, `ipset restore` and `ipvsadm -R` load. The engine reads
//! these texts with the same parsers as a node's dumps, so the rules are not stated twice. The
//! crate also owns the differences between versions of kube-proxy, and the rules and link names of
//! the pod network's plugin ([`pod_network`]). The differences of a cloud's own builds are set in
//! [`ProxySettings::address_binding`].
//!
//! **Out of scope:** loading rules and reading dumps. It does not guess: rules that it cannot write are an
//! [`Unsupported`] error, not an empty program.
//!
//! **Start reading** at `plan`, which decides for every mode which endpoints serve a Service port
//! on this node, and under which policy; then `iptables`, `ipvs` and `nftables`, the writers of the
//! modes.

pub mod chain_names;
mod features;
pub mod host_ports;
mod iptables;
mod ipvs;
mod kubelet;
mod names;
mod nftables;
mod plan;
pub mod pod_network;
mod switches;
mod text;

use std::net::IpAddr;

use features::Features;
use plan::Plan;
pub use switches::Switches;
use thiserror::Error;
use uturn_model::proxy::LocalDetector;
use uturn_model::{Cluster, Family, Name, ProxyMode, ProxySettings, Text, Version};

/// The state that kube-proxy programs in a node's kernel for one address family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The input of `iptables-restore` (or `ip6tables-restore`) for an empty kernel, worded as
    /// `iptables-save` would print it again.
    pub iptables: String,
    /// The input of `nft -f` for an empty kernel: the table `kube-proxy` of the family, as `nft
    /// list ruleset` would print it again; empty outside nftables mode.
    pub nft: String,
    /// The input of `ipset restore` that must be loaded before the rules that match the sets, as
    /// `ipset save` prints it, except for the seeds of hashes; empty outside IPVS mode.
    pub ipset: String,
    /// The input of `ipvsadm -R`, as `ipvsadm -Sn` prints it; empty outside IPVS mode.
    pub ipvs: String,
    /// The addresses that kube-proxy binds on the node, on a device `kube-ipvs0` that has no other
    /// addresses; empty outside IPVS mode.
    pub bound: Vec<IpAddr>,
    /// The kernel settings that kube-proxy changes: name (`net.ipv4.conf.all.route_localnet`) and
    /// value.
    pub sysctls: Vec<(String, String)>,
}

/// Features of a node's kernel that not every kernel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether kube-proxy could create its accounting objects (nfacct). The rules then use these
    /// objects, and load only if they exist. This is only needed to match a dump of a real node
    /// exactly: accounting does not affect the path of packets.
    pub accounting: bool,
    /// The treatment of load-balancer addresses that a cloud's kube-proxy does not bind.
    pub unbound_vip: UnboundVip,
}

/// Whether a load-balancer address that a cloud's kube-proxy does not bind is served at all, which
/// is documented nowhere. If it is, IPVS answers packets that the node itself sends there (it
/// processes local output whether the address is bound or not), and packets of pods leave the node
/// masqueraded under policy Cluster; if not, both leave unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnboundVip {
    /// The address has its virtual server and its entries in the sets; only the address is not
    /// bound.
    #[default]
    Served,
    /// The address has no rules on the node.
    Absent,
}

/// The reason why rules cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// kube-proxy of this version has no nftables mode, or only a first trial of it.
    #[error(
        "kube-proxy {0} has no nftables mode, or only a first trial of it: \
         expected version v1.30 or later"
    )]
    NoNftables(Version),
    /// kube-proxy of this version cannot load its rules in nftables mode if the local detector is a
    /// prefix of interface names.
    #[error(
        "kube-proxy {0} in nftables mode loads no rules at all if its local \
         detector is InterfaceNamePrefix: expected another detector, or version v1.33.6, \
         v1.34.2 or later"
    )]
    NoPrefixInNftables(Version),
    /// The cluster has no node of this name.
    #[error("the cluster has no node {0}")]
    NoSuchNode(Name),
    /// The local detector names an invalid interface name or prefix.
    #[error(
        "kube-proxy's local detector names the interface {0:?}: expected 1 to 15 \
         letters (a prefix: 14) without blanks, '/', '+' or quotes"
    )]
    NoInterface(Text),
    /// `masqueradeBit` is not one of a mark's 32 bits.
    #[error("kube-proxy's masqueradeBit is {0}: expected a number from 0 to 31")]
    NoSuchBit(u8),
    /// `ipvs.scheduler` is an invalid scheduler name.
    #[error("kube-proxy's ipvs.scheduler is {0:?}: expected a name such as rr, lc or sh")]
    NoScheduler(Text),
}

/// The oldest version whose rules are written as kube-proxy itself writes them.
pub const TO_THE_LETTER: Version = Version::new(1, 22, 0);

/// The oldest known version; older ones count as this one.
pub const OLDEST: Version = Version::new(1, 9, 0);

/// Compiles the state that kube-proxy with these settings programs on a node, for one family.
///
/// Rules are those of the version that the settings name, from v1.9 to v1.36; older and newer
/// versions count as the nearest of these. From v1.22 they match that version's rules
/// [to the letter]; before, they have the same effect on packets, but words, empty chains and the
/// like are those of v1.22. If kube-proxy only marked packets that kubelet then dropped (before
/// v1.25), kubelet's rules are included.
///
/// If the node's interfaces decide which addresses accept NodePorts, only the addresses that the
/// [node] states are considered: other addresses of its interfaces are not known here. If another
/// program serves Services in place of kube-proxy, the result is empty.
///
/// If two Service ports claim the same address and port, the result of kube-proxy in IPVS mode is
/// random; here the Service whose name sorts last has the port.
///
/// # Errors
/// Returns an error if this version cannot run in the mode or with the settings, if a setting is
/// invalid, or if the cluster has no such node.
///
/// [node]: uturn_model::Node
/// [to the letter]: TO_THE_LETTER
pub fn compile(
    cluster: &Cluster,
    node: &Name,
    settings: &ProxySettings,
    family: Family,
) -> Result<Program, Unsupported> {
    compile_with(cluster, node, settings, family, Options::default())
}

/// Does the same as [`compile`] for a kernel with these features.
///
/// # Errors
/// Returns the errors of [`compile`].
pub fn compile_with(
    cluster: &Cluster,
    node: &Name,
    settings: &ProxySettings,
    family: Family,
    options: Options,
) -> Result<Program, Unsupported> {
    let Some(node) = cluster.nodes.get(node) else {
        return Err(Unsupported::NoSuchNode(node.clone()));
    };
    if settings.replaced_by().is_some() {
        return Ok(Program::default());
    }
    check(settings)?;
    let features = Features::of(settings.version.value, settings.ip_mode_gate);
    let node = &*node.as_known_to_proxy(&cluster.nodes);
    let plan = Plan::new(cluster, node, settings, family, features.plan);
    if settings.mode.value == ProxyMode::Nftables {
        let version = settings.version.value;
        let generation =
            nftables::Generation::of(version).ok_or(Unsupported::NoNftables(version))?;
        let by_prefix = matches!(settings.detector.value, LocalDetector::InterfaceNamePrefix(_));
        if by_prefix && !generation.knows_prefixes() {
            return Err(Unsupported::NoPrefixInNftables(version));
        }
        let ranges = &cluster.network.service_cidrs.value;
        return Ok(nftables::write(&plan, settings, ranges, generation));
    }
    if settings.mode.value == ProxyMode::Ipvs {
        return Ok(ipvs::write(&plan, settings, features.ipvs, options));
    }
    Ok(iptables::write(&plan, settings, features.iptables, options))
}

/// Checks settings that are written into rules verbatim.
fn check(settings: &ProxySettings) -> Result<(), Unsupported> {
    let (name, longest) = match &settings.detector.value {
        LocalDetector::BridgeInterface(name) => (Some(name), 15),
        LocalDetector::InterfaceNamePrefix(prefix) => (Some(prefix), 14),
        LocalDetector::ClusterCidr(_) | LocalDetector::NodeCidr | LocalDetector::None => (None, 0),
    };
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"/+\"'\\!".contains(&byte);
    let is_interface = |name: &Text| (1..=longest).contains(&name.len()) && name.bytes().all(fits);
    match name {
        Some(name) if !is_interface(name) => Err(Unsupported::NoInterface(name.clone())),
        _ if !is_scheduler(&settings.ipvs_scheduler) => {
            Err(Unsupported::NoScheduler(settings.ipvs_scheduler.clone()))
        }
        _ if settings.masquerade_bit > 31 => Err(Unsupported::NoSuchBit(settings.masquerade_bit)),
        _ => Ok(()),
    }
}

/// Returns whether the name of a scheduler is valid. An empty name means kube-proxy's default. The
/// kernel accepts names of up to 15 letters.
fn is_scheduler(name: &str) -> bool {
    name.len() <= 15 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}
