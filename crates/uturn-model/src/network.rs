//! The network around the nodes: VPC, pod network, security groups.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Known, Origin, Protocol, Text};

/// How pods get addresses and how packets to them find the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Global Router or VPC-CNI.
    pub mode: Known<NetworkMode>,
    /// All ranges that pods have addresses from.
    pub pod_cidrs: Known<Vec<IpNet>>,
    /// All ranges that ClusterIPs are taken from.
    pub service_cidrs: Known<Vec<IpNet>>,
    /// The ranges of the VPC: nodes, private load balancers.
    pub vpc_cidrs: Known<Vec<IpNet>>,
    /// Destinations to which a pod keeps its own address (ip-masq-agent).
    pub non_masquerade_cidrs: Known<Vec<IpNet>>,
}

/// The pod network's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkMode {
    /// A bridge (`cbr0`) and a range of pod addresses a node; the VPC routes the ranges.
    GlobalRouter,
    /// Pods have addresses of the VPC, on network cards of the node.
    VpcCni,
}

impl std::fmt::Display for NetworkMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GlobalRouter => "global-router",
            Self::VpcCni => "vpc-cni",
        })
    }
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
