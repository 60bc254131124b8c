//! What kube-proxy makes of a cluster's Services, as one node's kernel holds it.
//!
//! **Owns** the way from Services and endpoints to a node's rules: [`compile`] gives the
//! text that `iptables-restore` loads as it is. That text is the only statement of the
//! rules: who wants to walk them reads it with the same parser as a node's own dump.
//!
//! **Refuses** to load anything, to read a dump, and to guess: a mode it does not write
//! is an [`Unsupported`], not an empty program.
//!
//! **Start reading** at `plan`, the part that every mode shares (which endpoints serve
//! a Service port on this node, and under which policy); then `iptables`, its writer.

mod iptables;
mod names;
mod plan;
mod text;

use std::fmt;
use std::net::IpAddr;

use plan::Plan;
use uturn_model::proxy::LocalDetector;
use uturn_model::{Cluster, Family, Name, ProxyMode, ProxySettings, Text};

/// What kube-proxy leaves in a node's kernel for one family of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// What `iptables-restore` (or `ip6tables-restore`) loads into an empty kernel, in the
    /// words in which `iptables-save` would print it again.
    pub iptables: String,
    /// Addresses that kube-proxy binds on the node; none outside IPVS mode.
    pub bound: Vec<IpAddr>,
    /// Kernel settings it changes: name (`net.ipv4.conf.all.route_localnet`) and value.
    pub sysctls: Vec<(String, String)>,
}

/// What a node's kernel offers beyond what every kernel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether kube-proxy could make its accounting objects (nfacct). The rules then name
    /// them, and load only where these objects exist; so this is off unless a dump of a
    /// real node is to be matched to the letter. It changes no packet's way.
    pub accounting: bool,
}

/// Why there is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The mode is not written yet.
    Mode(ProxyMode),
    /// The cluster has no node of this name.
    NoSuchNode(Name),
    /// The local detector names an interface, or a prefix of some, that cannot be one.
    NoInterface(Text),
    /// `masqueradeBit` is none of a mark's 32 bits.
    NoSuchBit(u8),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode(mode) => {
                write!(
                    f,
                    "the rules of kube-proxy's {mode} mode cannot be worked out yet; those of \
                     iptables mode can"
                )
            }
            Self::NoSuchNode(name) => write!(f, "the cluster has no node {name}"),
            Self::NoInterface(name) => write!(
                f,
                "kube-proxy's local detector names the interface {name:?}: expected 1 to 15 \
                 letters (a prefix: 14) without blanks, '/', '+' or quotes"
            ),
            Self::NoSuchBit(bit) => {
                write!(f, "kube-proxy's masqueradeBit is {bit}: expected a number from 0 to 31")
            }
        }
    }
}

impl std::error::Error for Unsupported {}

/// What kube-proxy with these settings programs on a node, for one family.
///
/// Rules are those of v1.34, whichever version the settings name. Which addresses take
/// NodePorts when only ranges are stated is decided among those that the [node] states:
/// what else its interfaces carry is not known here.
///
/// [node]: uturn_model::Node
pub fn compile(
    cluster: &Cluster,
    node: &Name,
    settings: &ProxySettings,
    family: Family,
) -> Result<Program, Unsupported> {
    compile_with(cluster, node, settings, family, Options::default())
}

/// The same, for a kernel that offers more.
pub fn compile_with(
    cluster: &Cluster,
    node: &Name,
    settings: &ProxySettings,
    family: Family,
    options: Options,
) -> Result<Program, Unsupported> {
    if settings.mode.value != ProxyMode::Iptables {
        return Err(Unsupported::Mode(settings.mode.value));
    }
    let Some(node) = cluster.nodes.get(node) else {
        return Err(Unsupported::NoSuchNode(node.clone()));
    };
    check(settings)?;
    Ok(iptables::write(&Plan::new(cluster, node, settings, family), settings, options))
}

/// What goes into rules as it is must be what the kernel takes.
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
        _ if settings.masquerade_bit > 31 => Err(Unsupported::NoSuchBit(settings.masquerade_bit)),
        _ => Ok(()),
    }
}
