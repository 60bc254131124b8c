//! The settings of kube-proxy that affect the rules it programs.

use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

use crate::{Cloud, Known, Labels, Text, Version};

/// The settings of kube-proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySettings {
    /// The program that implements Services. The other settings are kube-proxy's, and do not
    /// apply to other programs.
    pub served_by: Known<ServiceProxy>,
    /// The version of the program that replaces kube-proxy, if it is known.
    pub replacement_version: Option<Version>,
    /// The mode: iptables, ipvs or nftables.
    pub mode: Known<ProxyMode>,
    /// Its version.
    pub version: Known<Version>,
    /// The build: upstream's or a cloud's.
    pub variant: Known<Variant>,
    /// The load-balancer addresses that this build binds on its node in IPVS mode.
    pub address_binding: AddressBinding,
    /// The way in which it recognises traffic from pods of its own node or cluster.
    pub detector: Known<LocalDetector>,
    /// `masqueradeAll`.
    pub masquerade_all: bool,
    /// `masqueradeBit`: the bit of the packet mark that requests masquerading.
    pub masquerade_bit: u8,
    /// `nodePortAddresses`.
    pub node_port_addresses: NodePortAddresses,
    /// `localhostNodePorts`.
    pub localhost_node_ports: bool,
    /// `ipvs.scheduler`.
    pub ipvs_scheduler: Text,
    /// `ipvs.strictARP`.
    pub strict_arp: bool,
    /// The ranges around nodes in which the nodes are known to answer ARP requests for every
    /// address that IPVS mode binds: kube-proxy's configuration is given and does not ask for
    /// strictARP.
    pub arp_ranges: Vec<IpNet>,
    /// `conntrack.tcpBeLiberal`.
    pub conntrack_tcp_be_liberal: bool,
    /// The feature gate `LoadBalancerIPMode`, if it is set.
    pub ip_mode_gate: Option<bool>,
    /// A program beside kube-proxy that handles calls of pods to addresses of load balancers, if it
    /// may serve those under policy Local from the pod's own node alone.
    pub beside: Option<ServiceProxy>,
    /// Whether the program that replaces kube-proxy keeps the source of calls that it hands to
    /// other nodes, which then answer the client themselves.
    pub replacement_keeps_source: bool,
}

impl ProxySettings {
    /// Makes the default settings of kube-proxy for this version and mode.
    pub fn new(mode: Known<ProxyMode>, version: Known<Version>) -> Self {
        Self {
            served_by: Known::derived(ServiceProxy::KubeProxy, "nothing replaces it"),
            replacement_version: None,
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
            arp_ranges: Vec::new(),
            conntrack_tcp_be_liberal: false,
            ip_mode_gate: None,
            beside: None,
            replacement_keeps_source: false,
        }
    }

    /// Returns the program that replaces kube-proxy, if any.
    pub fn replaced_by(&self) -> Option<ServiceProxy> {
        Some(self.served_by.value).filter(|proxy| *proxy != ServiceProxy::KubeProxy)
    }

    /// Returns whether the program that replaces kube-proxy does not translate addresses of load
    /// balancers with `ipMode: Proxy`. Returns `None` if that is not known.
    pub fn replacement_reads_ip_mode(&self) -> Option<bool> {
        match self.served_by.value {
            // Since v1.17, except v1.18.0.
            ServiceProxy::Cilium => self.replacement_version.map(|version| {
                version >= Version::new(1, 17, 0) && version != Version::new(1, 18, 0)
            }),
            _ => None,
        }
    }

    /// Returns whether the program that handles calls may serve those of a load balancer's address
    /// under policy Local from the client's own node alone.
    pub fn may_stay_on_node(&self) -> bool {
        match self.served_by.value {
            // v1.19 does so, as users reported and its developers confirmed. It is not documented
            // since when it does not.
            ServiceProxy::Cilium => {
                self.replacement_version.is_some_and(|version| version >= Version::new(1, 19, 0))
            }
            _ => self.beside.is_some(),
        }
    }

    /// Returns the mark that requests masquerading: `0x4000` for bit 14.
    pub fn masquerade_mark(&self) -> u32 {
        1 << self.masquerade_bit
    }
}

/// The program that implements Services: kube-proxy or a replacement.
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

/// The Service addresses that a program translates to an endpoint on the client's node, before any
/// rule or route sees the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translates {
    /// None that is modelled.
    Nothing,
    /// Cluster IPs.
    ClusterIps,
    /// Cluster IPs, load balancer addresses and node ports: a socket-level load balancer
    /// translates at `connect`.
    AtConnect,
}

impl ServiceProxy {
    /// All programs, with their word in Facts and their usual name.
    pub const ALL: [(Self, &'static str, &'static str); 6] = [
        (Self::KubeProxy, "none", "kube-proxy"),
        (Self::Cilium, "cilium", "Cilium"),
        (Self::CalicoEbpf, "calico-ebpf", "Calico's eBPF data plane"),
        (Self::KubeRouter, "kube-router", "kube-router"),
        (Self::OvnKubernetes, "ovn-kubernetes", "OVN-Kubernetes"),
        (Self::Antrea, "antrea", "AntreaProxy"),
    ];

    /// Returns the addresses that it translates for the cluster's own pods and nodes.
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

    /// Returns the name that kube-proxy uses.
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

/// The text is not a mode of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProxyMode;

impl fmt::Display for UnknownProxyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a mode of kube-proxy: expected iptables, ipvs or nftables")
    }
}

impl std::error::Error for UnknownProxyMode {}

/// The build of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// The Kubernetes release.
    Upstream,
    /// The build of a cloud.
    Cloud(Cloud),
}

impl Variant {
    /// Returns the word of Facts and JSON.
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

/// The load-balancer addresses that kube-proxy binds on its node in IPVS mode. A bound address is
/// local to the node, so packets to it never leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressBinding {
    /// All addresses, as upstream does.
    All,
    /// No address, whatever a Service asks for.
    None,
    /// The addresses of Services that have this annotation with the value `true`.
    OnRequest(&'static str),
}

impl AddressBinding {
    /// Returns whether the addresses of a Service that asks for it are bound.
    pub fn honours_request(self) -> bool {
        self != Self::None
    }

    /// Returns whether the addresses of a Service with these annotations are bound.
    pub fn binds(self, annotations: &Labels) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::OnRequest(annotation) => annotations.is(annotation, "true"),
        }
    }
}

/// The subject of the assumption about the ranges by which kube-proxy recognises pods of the
/// cluster.
pub const CLUSTER_CIDR: &str = "kube-proxy cluster CIDR";

/// `detectLocalMode` and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalDetector {
    /// Sources in these ranges are pods of the cluster.
    ClusterCidr(Vec<IpNet>),
    /// Sources in the node's pod range are its pods.
    NodeCidr,
    /// Traffic from this bridge is from pods of the node.
    BridgeInterface(Text),
    /// Traffic from interfaces with this prefix is from pods of the node.
    InterfaceNamePrefix(Text),
    /// Local traffic is not recognised.
    None,
}

/// `nodePortAddresses`: the node addresses on which NodePorts listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePortAddresses {
    /// All addresses (the default in iptables and IPVS mode).
    All,
    /// The node's primary addresses (the default in nftables mode).
    Primary,
    /// Addresses in these ranges.
    Ranges(Vec<IpNet>),
}
