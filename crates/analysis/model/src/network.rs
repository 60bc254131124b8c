//! The network around the nodes: VPC, pod network, security groups.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Family, Known, Origin, Protocol, Text};

/// The subject of the assumption that flannel masquerades.
pub const FLANNEL_MASQUERADE: &str = "whether flannel masquerades";

/// The network of pods: how they get addresses, and how packets reach other nodes' pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The network plugin.
    pub plugin: Known<Plugin>,
    /// The connection of pods to their node.
    pub mode: Known<NetworkMode>,
    /// The transport of packets to other nodes' pods.
    pub transport: Known<Transport>,
    /// The transport of IPv6 packets, if it differs.
    pub transport_v6: Option<Known<Transport>>,
    /// Whether packets from pods to addresses outside `non_masquerade_cidrs` are masqueraded.
    pub masquerades: Known<bool>,
    /// Whether nodes masquerade packets to other nodes' pods that no pod sent, as flannel and Weave do
    /// with the rest.
    pub masquerades_to_pods: Known<bool>,
    /// All pod address ranges.
    pub pod_cidrs: Known<Vec<IpNet>>,
    /// All ClusterIP ranges.
    pub service_cidrs: Known<Vec<IpNet>>,
    /// The address ranges of the VPC: nodes, private load balancers.
    pub vpc_cidrs: Known<Vec<IpNet>>,
    /// Destinations for which pod traffic is not masqueraded (ip-masq-agent).
    pub non_masquerade_cidrs: Known<Vec<IpNet>>,
    /// The reason why no node forwards ports of its own to pods (`hostPort`). `None` if nodes do.
    pub host_ports_off: Option<Text>,
}

impl Network {
    /// Makes a network without stated address ranges, in which packets are neither encapsulated nor
    /// masqueraded.
    pub fn new(plugin: Known<Plugin>, mode: Known<NetworkMode>) -> Self {
        let no_ranges = || Known::supposed(Vec::new(), "no ranges are stated");
        Self {
            plugin,
            mode,
            transport: Known::supposed(Transport::Underlay, "nothing states a tunnel"),
            transport_v6: None,
            masquerades: Known::supposed(false, "nothing states masquerading"),
            masquerades_to_pods: Known::supposed(false, "nothing states masquerading"),
            pod_cidrs: no_ranges(),
            service_cidrs: no_ranges(),
            vpc_cidrs: no_ranges(),
            non_masquerade_cidrs: no_ranges(),
            host_ports_off: None,
        }
    }

    /// Returns the transport of a family's packets to other nodes' pods.
    pub fn transport_of(&self, family: Family) -> &Known<Transport> {
        let other = self.transport_v6.as_ref().filter(|_| family == Family::V6);
        other.unwrap_or(&self.transport)
    }

    /// Returns whether packets of a family are encapsulated on their way to another node's pods.
    pub fn is_encapsulated(&self, family: Family) -> bool {
        self.transport_of(family).value == Transport::Tunnel
    }

    /// Returns whether packets of any family are encapsulated on their way to another node's pods.
    pub fn has_tunnels(&self) -> bool {
        Family::BOTH.iter().any(|family| self.is_encapsulated(*family))
    }
}

/// The CNI plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the plugin of that name")]
pub enum Plugin {
    /// The plugin of a cloud.
    OfCloud(CloudNetwork),
    Calico,
    Canal,
    Cilium,
    Flannel,
    Kubenet,
    AwsVpcCni,
    AzureCni,
    AzureCniOverlay,
    Gke,
    Terway,
    OvnKubernetes,
    Antrea,
    KubeRouter,
    Weave,
    Kindnet,
    /// Not known.
    Unknown,
}

impl Plugin {
    /// All plugins but [`Self::OfCloud`], with the word of Facts and JSON and the usual name.
    pub const ALL: [(Self, &'static str, &'static str); 16] = [
        (Self::Calico, "calico", "Calico"),
        (Self::Canal, "canal", "Canal"),
        (Self::Cilium, "cilium", "Cilium"),
        (Self::Flannel, "flannel", "flannel"),
        (Self::Kubenet, "kubenet", "kubenet"),
        (Self::AwsVpcCni, "aws-vpc-cni", "AWS VPC CNI"),
        (Self::AzureCni, "azure-cni", "Azure CNI"),
        (Self::AzureCniOverlay, "azure-cni-overlay", "Azure CNI Overlay"),
        (Self::Gke, "gke", "GKE VPC-native"),
        (Self::Terway, "terway", "Terway"),
        (Self::OvnKubernetes, "ovn-kubernetes", "OVN-Kubernetes"),
        (Self::Antrea, "antrea", "Antrea"),
        (Self::KubeRouter, "kube-router", "kube-router"),
        (Self::Weave, "weave", "Weave Net"),
        (Self::Kindnet, "kindnet", "kindnet"),
        (Self::Unknown, "unknown", "a network that nothing names"),
    ];

    fn row(self) -> (Self, &'static str, &'static str) {
        if let Self::OfCloud(network) = self {
            return (self, network.word, network.name);
        }
        let row = Self::ALL.into_iter().find(|(plugin, ..)| *plugin == self);
        row.expect("all other plugins are listed")
    }

    /// Returns the word in Facts and JSON: `aws-vpc-cni`.
    pub fn word(self) -> &'static str {
        self.row().1
    }

    /// Returns how pods are usually connected to their node.
    pub fn usual_mode(self) -> NetworkMode {
        match self {
            Self::OfCloud(network) => network.mode,
            Self::Flannel | Self::Kubenet | Self::KubeRouter => NetworkMode::GlobalRouter,
            Self::Calico
            | Self::Canal
            | Self::Cilium
            | Self::AwsVpcCni
            | Self::AzureCni
            | Self::AzureCniOverlay
            | Self::Gke
            | Self::Terway
            | Self::OvnKubernetes
            | Self::Antrea
            | Self::Weave
            | Self::Kindnet
            | Self::Unknown => NetworkMode::Routed,
        }
    }

    /// Returns whether the plugin can connect pods by a bridge, although it usually gives each a link
    /// of its own or has a bridge that the routes do not show.
    pub fn may_bridge(self) -> bool {
        matches!(self, Self::AzureCni | Self::Weave)
    }

    /// Returns how packets usually reach other nodes' pods.
    pub fn usual_transport(self) -> Transport {
        match self {
            Self::Calico
            | Self::Canal
            | Self::Cilium
            | Self::Flannel
            | Self::OvnKubernetes
            | Self::Antrea
            | Self::Weave => Transport::Tunnel,
            Self::OfCloud(network) => network.transport,
            Self::Kubenet
            | Self::AwsVpcCni
            | Self::AzureCni
            | Self::AzureCniOverlay
            | Self::Gke
            | Self::Terway
            | Self::KubeRouter
            | Self::Kindnet
            | Self::Unknown => Transport::Underlay,
        }
    }

    /// Returns whether traffic from pods to other than pod addresses is usually masqueraded.
    pub fn usually_masquerades(self) -> bool {
        match self {
            Self::Calico
            | Self::Canal
            | Self::Cilium
            | Self::Flannel
            | Self::Kubenet
            | Self::AzureCniOverlay
            | Self::OvnKubernetes
            | Self::Antrea
            | Self::KubeRouter
            | Self::Weave
            | Self::Kindnet => true,
            Self::OfCloud(network) => network.masquerades,
            Self::AwsVpcCni | Self::AzureCni | Self::Gke | Self::Terway | Self::Unknown => false,
        }
    }
}

impl std::fmt::Display for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().2)
    }
}

/// The pod network of a cloud: its row in that cloud's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloudNetwork {
    /// The word of Facts and JSON.
    pub word: &'static str,
    /// The usual name.
    pub name: &'static str,
    /// The connection of pods to their node.
    pub mode: NetworkMode,
    /// The transport of packets to another node's pods.
    pub transport: Transport,
    /// Whether traffic from pods to other than pod addresses is masqueraded.
    pub masquerades: bool,
}

/// The connection of pods to their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetworkMode {
    /// By a bridge (`cbr0`) with the node's pod range.
    GlobalRouter,
    /// By network interfaces of the node, with VPC addresses.
    VpcCni,
    /// By a link and a route for each pod, without a bridge. A pod's address need not be in its
    /// node's range.
    Routed,
}

/// The transport of packets to another node's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// Unencapsulated: the network around the nodes has routes to pods.
    Underlay,
    /// Encapsulated between nodes: the network around the nodes has no routes to pods.
    Tunnel,
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Underlay => "underlay",
            Self::Tunnel => "tunnel",
        })
    }
}

impl std::fmt::Display for NetworkMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GlobalRouter => "global-router",
            Self::VpcCni => "vpc-cni",
            Self::Routed => "routed",
        })
    }
}

/// Returns the smallest range of each family that contains these.
pub fn covering_each(nets: &[IpNet]) -> Vec<IpNet> {
    let of = |family| nets.iter().copied().filter(move |net| Family::of(net.addr()) == family);
    Family::BOTH.into_iter().filter_map(|family| covering(of(family))).collect()
}

/// Returns the smallest range that contains these.
fn covering(mut nets: impl Iterator<Item = IpNet>) -> Option<IpNet> {
    let mut all = nets.next()?;
    for net in nets {
        while !all.contains(&net) {
            all = all.supernet()?;
        }
    }
    Some(all)
}

/// A stateful security group: the first matching rule decides; without a match, the packet is
/// dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityGroup {
    /// Its name or id.
    pub name: Text,
    /// The inbound rules.
    pub inbound: Vec<SecurityRule>,
    /// The outbound rules.
    pub outbound: Vec<SecurityRule>,
    /// Where it was written.
    pub origin: Origin,
}

/// A rule of a security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityRule {
    /// Whether it accepts rather than drops.
    pub accept: bool,
    /// The protocol; `None` for all.
    pub protocol: Option<Protocol>,
    /// The first and last port; `None` for all.
    pub ports: Option<(u16, u16)>,
    /// The range of the other side; `None` for all.
    pub peer: Option<IpNet>,
    /// Where it was written.
    pub origin: Origin,
}

impl SecurityRule {
    /// Returns whether the rule matches a packet; `None` stands for a protocol without ports.
    pub fn matches(&self, peer: IpAddr, protocol: Option<Protocol>, port: u16) -> bool {
        self.is_about(protocol, port) && self.peer.is_none_or(|net| net.contains(&peer))
    }

    /// Returns whether the rule matches packets of some address to a port; `None` stands for a
    /// protocol without ports.
    pub fn is_about(&self, protocol: Option<Protocol>, port: u16) -> bool {
        let ports = |(first, last)| protocol.is_some() && (first..=last).contains(&port);
        self.protocol.is_none_or(|wanted| Some(wanted) == protocol) && self.ports.is_none_or(ports)
    }
}

/// Returns the first address of a range that a host can have: a bridge between its pods has it.
pub fn first_host(range: &IpNet) -> Option<IpAddr> {
    range.hosts().find(|ip| *ip != range.network() || range.prefix_len() == range.max_prefix_len())
}
