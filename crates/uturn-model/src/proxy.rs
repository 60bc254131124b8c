//! Settings of kube-proxy that change what it programs.

use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

use crate::{Cloud, Known, Labels, Text, Version};

/// All of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySettings {
    /// What serves Services on nodes. All else here is kube-proxy's, and does not
    /// apply where another program does it.
    pub served_by: Known<ServiceProxy>,
    /// iptables, ipvs or nftables.
    pub mode: Known<ProxyMode>,
    /// Its version.
    pub version: Known<Version>,
    /// Upstream's or a cloud's.
    pub variant: Known<Variant>,
    /// Which load-balancer addresses this variant binds on its node in IPVS mode.
    pub address_binding: AddressBinding,
    /// How it tells traffic from pods of its own node or cluster.
    pub detector: Known<LocalDetector>,
    /// `masqueradeAll`.
    pub masquerade_all: bool,
    /// `masqueradeBit`: which bit of the packet's mark asks for masquerade.
    pub masquerade_bit: u8,
    /// `nodePortAddresses`.
    pub node_port_addresses: NodePortAddresses,
    /// `localhostNodePorts`.
    pub localhost_node_ports: bool,
    /// `ipvs.scheduler`.
    pub ipvs_scheduler: Text,
    /// `ipvs.strictARP`.
    pub strict_arp: bool,
    /// `conntrack.tcpBeLiberal`.
    pub conntrack_tcp_be_liberal: bool,
}

impl ProxySettings {
    /// What kube-proxy of this version and mode does when nothing is configured.
    pub fn new(mode: Known<ProxyMode>, version: Known<Version>) -> Self {
        Self {
            served_by: Known::derived(ServiceProxy::KubeProxy, "nothing replaces it"),
            mode,
            version,
            variant: Known::supposed(Variant::Upstream, "nothing says otherwise"),
            address_binding: AddressBinding::All,
            detector: Known::supposed(LocalDetector::None, "no cluster CIDR is configured"),
            masquerade_all: false,
            masquerade_bit: 14,
            node_port_addresses: NodePortAddresses::All,
            localhost_node_ports: true,
            ipvs_scheduler: "rr".into(),
            strict_arp: false,
            conntrack_tcp_be_liberal: false,
        }
    }

    /// What serves Services in place of kube-proxy, where something does.
    pub fn replaced_by(&self) -> Option<ServiceProxy> {
        Some(self.served_by.value).filter(|proxy| *proxy != ServiceProxy::KubeProxy)
    }

    /// The mark that asks for masquerade: `0x4000` for bit 14.
    pub fn masquerade_mark(&self) -> u32 {
        1 << self.masquerade_bit
    }
}

/// What serves Services on nodes: kube-proxy, or a program in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the program of that name")]
pub enum ServiceProxy {
    KubeProxy,
    Cilium,
    CalicoEbpf,
    KubeRouter,
    OvnKubernetes,
    Antrea,
}

/// Which addresses of Services a program replaces by an endpoint's at the client's own node,
/// before any rule or route sees the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translates {
    /// None that is modelled.
    Nothing,
    /// Cluster IPs.
    ClusterIps,
    /// Cluster IPs, load balancers' addresses and node ports: a socket balancer does it when a
    /// client connects.
    AtConnect,
}

impl ServiceProxy {
    /// All of them, with the word of Facts and the name that people know.
    pub const ALL: [(Self, &'static str, &'static str); 6] = [
        (Self::KubeProxy, "none", "kube-proxy"),
        (Self::Cilium, "cilium", "Cilium"),
        (Self::CalicoEbpf, "calico-ebpf", "Calico's eBPF data plane"),
        (Self::KubeRouter, "kube-router", "kube-router"),
        (Self::OvnKubernetes, "ovn-kubernetes", "OVN-Kubernetes"),
        (Self::Antrea, "antrea", "AntreaProxy"),
    ];

    /// What it does with calls from the cluster's own pods and nodes.
    pub fn translates(self) -> Translates {
        match self {
            Self::Cilium => Translates::AtConnect,
            Self::CalicoEbpf | Self::OvnKubernetes | Self::Antrea => Translates::ClusterIps,
            Self::KubeProxy | Self::KubeRouter => Translates::Nothing,
        }
    }
}

impl fmt::Display for ServiceProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = Self::ALL.into_iter().find(|(proxy, ..)| proxy == self);
        f.write_str(row.expect("every proxy is listed").2)
    }
}

/// `mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is kube-proxy's mode of that name")]
pub enum ProxyMode {
    Iptables,
    Ipvs,
    Nftables,
}

impl ProxyMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Iptables, Self::Ipvs, Self::Nftables];

    /// As kube-proxy spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iptables => "iptables",
            Self::Ipvs => "ipvs",
            Self::Nftables => "nftables",
        }
    }
}

impl fmt::Display for ProxyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ProxyMode {
    type Err = UnknownProxyMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or(UnknownProxyMode)
    }
}

/// The text names no mode of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProxyMode;

impl fmt::Display for UnknownProxyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a mode of kube-proxy: expected iptables, ipvs or nftables")
    }
}

impl std::error::Error for UnknownProxyMode {}

/// Whose kube-proxy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// As Kubernetes releases it.
    Upstream,
    /// As this cloud builds it.
    Cloud(Cloud),
}

impl Variant {
    /// The word of Facts and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Cloud(cloud) => cloud.word(),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Which load-balancer addresses kube-proxy binds on its node in IPVS mode. A bound address is
/// local to the node, so packets to it never leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressBinding {
    /// All of them, as upstream does.
    All,
    /// None, whatever a Service asks for.
    None,
    /// Those of Services that have this annotation with the value `true`.
    OnRequest(&'static str),
}

impl AddressBinding {
    /// Whether a Service that asks for it has its addresses bound.
    pub fn honours_request(self) -> bool {
        self != Self::None
    }

    /// Whether the addresses of a Service with these annotations are bound.
    pub fn binds(self, annotations: &Labels) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::OnRequest(annotation) => annotations.is(annotation, "true"),
        }
    }
}

/// What the ranges are called by which kube-proxy tells pods of the cluster, where they are
/// supposed.
pub const CLUSTER_CIDR: &str = "kube-proxy cluster CIDR";

/// `detectLocalMode` and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalDetector {
    /// Sources within these ranges are pods of the cluster.
    ClusterCidr(Vec<IpNet>),
    /// Sources within the node's own pod range are its pods.
    NodeCidr,
    /// What comes from this bridge is a pod of the node.
    BridgeInterface(Text),
    /// What comes from an interface with this prefix is a pod of the node.
    InterfaceNamePrefix(Text),
    /// It cannot tell.
    None,
}

/// `nodePortAddresses`: on which of the node's addresses NodePorts listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePortAddresses {
    /// On every address (the default of iptables and IPVS mode).
    All,
    /// On the node's primary addresses (the default of nftables mode).
    Primary,
    /// On addresses within these ranges.
    Ranges(Vec<IpNet>),
}
