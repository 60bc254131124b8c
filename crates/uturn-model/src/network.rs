//! The network around the nodes: VPC, pod network, security groups.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Family, Known, Origin, Protocol, Text};

/// How pods get addresses and how packets to them find the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Which plugin makes the pod network.
    pub plugin: Known<Plugin>,
    /// How pods hang off their node.
    pub mode: Known<NetworkMode>,
    /// How packets get to another node's pods.
    pub transport: Known<Transport>,
    /// Whether what pods send beyond `non_masquerade_cidrs` leaves with their node's address.
    pub masquerades: Known<bool>,
    /// All ranges that pods have addresses from.
    pub pod_cidrs: Known<Vec<IpNet>>,
    /// All ranges that ClusterIPs are taken from.
    pub service_cidrs: Known<Vec<IpNet>>,
    /// The ranges of the VPC: nodes, private load balancers.
    pub vpc_cidrs: Known<Vec<IpNet>>,
    /// Destinations to which a pod keeps its own address (ip-masq-agent).
    pub non_masquerade_cidrs: Known<Vec<IpNet>>,
}

/// The plugin that makes the pod network: the kubelet calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the plugin of that name")]
pub enum Plugin {
    /// A cloud's own.
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
    /// Nothing tells which.
    Unknown,
}

impl Plugin {
    /// All but [`Self::OfCloud`], with the word of Facts and JSON and the usual name.
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

    /// The word of Facts and JSON: `aws-vpc-cni`.
    pub fn word(self) -> &'static str {
        self.row().1
    }

    /// How pods usually hang off their node.
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

    /// How packets usually get to another node's pods.
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

    /// Whether what pods send to addresses that are no pods' usually gets their node's address.
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

/// A pod network that a cloud brings: its row in that cloud's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloudNetwork {
    /// The word of Facts and JSON.
    pub word: &'static str,
    /// The name that people know.
    pub name: &'static str,
    /// How pods hang off their node.
    pub mode: NetworkMode,
    /// How packets get to another node's pods.
    pub transport: Transport,
    /// Whether what pods send to addresses that are no pods' gets their node's address.
    pub masquerades: bool,
}

/// How pods hang off their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetworkMode {
    /// A bridge (`cbr0`) that has the node's range of pod addresses.
    GlobalRouter,
    /// Pods have addresses of the VPC, on network cards of the node.
    VpcCni,
    /// Each pod has a link of its own and a route to its address; there is no bridge. A pod's
    /// address need not be of its node's range.
    Routed,
}

/// How packets get to another node's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// As they are: the network around the nodes knows where pods are.
    Underlay,
    /// Wrapped in packets from node to node: the network around the nodes does not know pods.
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

/// One range for each family, the smallest that has all of these of that family.
pub fn covering_each(nets: &[IpNet]) -> Vec<IpNet> {
    let of = |family| nets.iter().copied().filter(move |net| Family::of(net.addr()) == family);
    Family::BOTH.into_iter().filter_map(|family| covering(of(family))).collect()
}

/// The smallest range that has all of these.
fn covering(mut nets: impl Iterator<Item = IpNet>) -> Option<IpNet> {
    let mut all = nets.next()?;
    for net in nets {
        while !all.contains(&net) {
            all = all.supernet()?;
        }
    }
    Some(all)
}

/// A security group: stateful; rules in order, the first that matches decides; what
/// nothing matches is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityGroup {
    /// Its name or id.
    pub name: Text,
    /// Rules for what comes in.
    pub inbound: Vec<SecurityRule>,
    /// Rules for what goes out.
    pub outbound: Vec<SecurityRule>,
    /// Where it was written.
    pub origin: Origin,
}

/// A rule of a security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityRule {
    /// Accept or drop.
    pub accept: bool,
    /// The protocol; none means every one.
    pub protocol: Option<Protocol>,
    /// The ports, first to last; none means every one.
    pub ports: Option<(u16, u16)>,
    /// The other side's range; none means every one.
    pub peer: Option<IpNet>,
    /// Where it was written.
    pub origin: Origin,
}

impl SecurityRule {
    /// Whether the rule speaks of this packet; no protocol is one without ports.
    pub fn matches(&self, peer: IpAddr, protocol: Option<Protocol>, port: u16) -> bool {
        let ports = |(first, last)| protocol.is_some() && (first..=last).contains(&port);
        self.protocol.is_none_or(|wanted| Some(wanted) == protocol)
            && self.ports.is_none_or(ports)
            && self.peer.is_none_or(|net| net.contains(&peer))
    }
}
