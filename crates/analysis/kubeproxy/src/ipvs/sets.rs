//! The ipsets that the rules of IPVS mode match.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::{Family, Port, Protocol};

/// A set, by its purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    LoopBack,
    ClusterIp,
    ExternalIp,
    ExternalIpLocal,
    LoadBalancer,
    LoadBalancerFw,
    LoadBalancerLocal,
    LoadBalancerSourceIp,
    LoadBalancerSourceCidr,
    NodePortTcp,
    NodePortLocalTcp,
    NodePortUdp,
    NodePortLocalUdp,
    NodePortSctp,
    NodePortLocalSctp,
    HealthCheckNodePort,
    IpvsIps,
}

impl Set {
    const ALL: [Self; 17] = [
        Self::LoopBack,
        Self::ClusterIp,
        Self::ExternalIp,
        Self::ExternalIpLocal,
        Self::LoadBalancer,
        Self::LoadBalancerFw,
        Self::LoadBalancerLocal,
        Self::LoadBalancerSourceIp,
        Self::LoadBalancerSourceCidr,
        Self::NodePortTcp,
        Self::NodePortLocalTcp,
        Self::NodePortUdp,
        Self::NodePortLocalUdp,
        Self::NodePortSctp,
        Self::NodePortLocalSctp,
        Self::HealthCheckNodePort,
        Self::IpvsIps,
    ];

    /// Returns the set of NodePorts of a protocol. There is one for policy Local, and one for all
    /// NodePorts.
    pub(super) fn node_ports(protocol: Protocol, local: bool) -> Self {
        match (protocol, local) {
            (Protocol::Tcp, false) => Self::NodePortTcp,
            (Protocol::Tcp, true) => Self::NodePortLocalTcp,
            (Protocol::Udp, false) => Self::NodePortUdp,
            (Protocol::Udp, true) => Self::NodePortLocalUdp,
            (Protocol::Sctp, false) => Self::NodePortSctp,
            (Protocol::Sctp, true) => Self::NodePortLocalSctp,
        }
    }

    /// Returns the part of the name after `KUBE-` or `KUBE-6-`.
    fn stem(self) -> &'static str {
        match self {
            Self::LoopBack => "LOOP-BACK",
            Self::ClusterIp => "CLUSTER-IP",
            Self::ExternalIp => "EXTERNAL-IP",
            Self::ExternalIpLocal => "EXTERNAL-IP-LOCAL",
            Self::LoadBalancer => "LOAD-BALANCER",
            Self::LoadBalancerFw => "LOAD-BALANCER-FW",
            Self::LoadBalancerLocal => "LOAD-BALANCER-LOCAL",
            Self::LoadBalancerSourceIp => "LOAD-BALANCER-SOURCE-IP",
            Self::LoadBalancerSourceCidr => "LOAD-BALANCER-SOURCE-CIDR",
            Self::NodePortTcp => "NODE-PORT-TCP",
            Self::NodePortLocalTcp => "NODE-PORT-LOCAL-TCP",
            Self::NodePortUdp => "NODE-PORT-UDP",
            Self::NodePortLocalUdp => "NODE-PORT-LOCAL-UDP",
            Self::NodePortSctp => "NODE-PORT-SCTP-HASH",
            Self::NodePortLocalSctp => "NODE-PORT-LOCAL-SCTP-HASH",
            Self::HealthCheckNodePort => "HEALTH-CHECK-NODE-PORT",
            Self::IpvsIps => "IPVS-IPS",
        }
    }

    /// Returns the comment of rules that match the set.
    pub(super) fn remark(self) -> &'static str {
        match self {
            Self::LoopBack => {
                "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose"
            }
            Self::ClusterIp => "Kubernetes service cluster ip + port for masquerade purpose",
            Self::ExternalIp => {
                "Kubernetes service external ip + port for masquerade and filter purpose"
            }
            Self::ExternalIpLocal => {
                "Kubernetes service external ip + port with externalTrafficPolicy=local"
            }
            Self::LoadBalancer => "Kubernetes service lb portal",
            Self::LoadBalancerFw => {
                "Kubernetes service load balancer ip + port for load balancer with sourceRange"
            }
            Self::LoadBalancerLocal => {
                "Kubernetes service load balancer ip + port with externalTrafficPolicy=local"
            }
            Self::LoadBalancerSourceIp => {
                "Kubernetes service load balancer ip + port + source IP for packet filter purpose"
            }
            Self::LoadBalancerSourceCidr => {
                "Kubernetes service load balancer ip + port + source cidr for packet filter purpose"
            }
            Self::NodePortTcp => "Kubernetes nodeport TCP port for masquerade purpose",
            Self::NodePortLocalTcp => {
                "Kubernetes nodeport TCP port with externalTrafficPolicy=local"
            }
            Self::NodePortUdp => "Kubernetes nodeport UDP port for masquerade purpose",
            Self::NodePortLocalUdp => {
                "Kubernetes nodeport UDP port with externalTrafficPolicy=local"
            }
            Self::NodePortSctp => {
                "Kubernetes nodeport SCTP port for masquerade purpose with type \'hash ip:port\'"
            }
            Self::NodePortLocalSctp => {
                "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type \
                 \'hash ip:port\'"
            }
            Self::HealthCheckNodePort => "Kubernetes health check node port",
            Self::IpvsIps => "Addresses on the ipvs interface",
        }
    }

    /// Returns the parts of a packet that are matched against the set.
    pub(super) fn directions(self) -> &'static str {
        match self.kind() {
            SetType::Ip | SetType::Port => "dst",
            SetType::IpPort => "dst,dst",
            SetType::IpPortIp | SetType::IpPortNet => "dst,dst,src",
        }
    }

    fn kind(self) -> SetType {
        match self {
            Self::LoopBack | Self::LoadBalancerSourceIp => SetType::IpPortIp,
            Self::LoadBalancerSourceCidr => SetType::IpPortNet,
            Self::ClusterIp
            | Self::ExternalIp
            | Self::ExternalIpLocal
            | Self::LoadBalancer
            | Self::LoadBalancerFw
            | Self::LoadBalancerLocal
            | Self::NodePortSctp
            | Self::NodePortLocalSctp => SetType::IpPort,
            Self::NodePortTcp
            | Self::NodePortLocalTcp
            | Self::NodePortUdp
            | Self::NodePortLocalUdp
            | Self::HealthCheckNodePort => SetType::Port,
            Self::IpvsIps => SetType::Ip,
        }
    }
}

/// The type of a set.
enum SetType {
    Ip,
    IpPort,
    IpPortIp,
    IpPortNet,
    Port,
}

/// One member of a set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Entry {
    Ip(IpAddr),
    IpPort(IpAddr, Protocol, Port),
    IpPortIp(IpAddr, Protocol, Port, IpAddr),
    IpPortNet(IpAddr, Protocol, Port, IpNet),
    Port(Port),
}

impl Entry {
    /// Returns whether the kernel accepts the entry: a `hash:net` set cannot contain a /0 range.
    /// kube-proxy ignores the error and writes the rules that match the set anyway.
    fn fits(&self) -> bool {
        !matches!(self, Self::IpPortNet(_, _, _, range) if range.prefix_len() == 0)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::IpPort(ip, protocol, port) => write!(f, "{ip},{}:{port}", protocol.lower()),
            Self::IpPortIp(ip, protocol, port, source) => {
                write!(f, "{ip},{}:{port},{source}", protocol.lower())
            }
            Self::IpPortNet(ip, protocol, port, range) => {
                write!(f, "{ip},{}:{port},", protocol.lower())?;
                if range.prefix_len() == range.max_prefix_len() {
                    range.addr().fmt(f)
                } else {
                    range.fmt(f)
                }
            }
            Self::Port(port) => port.fmt(f),
        }
    }
}

/// All sets of one family.
pub(super) struct Sets {
    family: Family,
    members: [BTreeSet<Entry>; Set::ALL.len()],
}

impl Sets {
    pub(super) fn new(family: Family) -> Self {
        Self { family, members: Default::default() }
    }

    pub(super) fn insert(&mut self, set: Set, entry: Entry) {
        self.members[set as usize].insert(entry);
    }

    pub(super) fn is_empty(&self, set: Set) -> bool {
        self.members[set as usize].is_empty()
    }

    /// Returns the name of a set in the kernel.
    pub(super) fn name(&self, set: Set) -> Name {
        Name { family: self.family, set }
    }

    /// Appends the sets that `used` selects, in the format of `ipset save`.
    pub(super) fn print(&self, used: impl Fn(Set) -> bool, out: &mut String) {
        let mut printed = Ok(());
        for set in Set::ALL.into_iter().filter(|set| used(*set)) {
            let name = self.name(set);
            let (kind, of) = match set.kind() {
                SetType::Ip => ("hash:ip", self.hash()),
                SetType::IpPort => ("hash:ip,port", self.hash()),
                SetType::IpPortIp => ("hash:ip,port,ip", self.hash()),
                SetType::IpPortNet => ("hash:ip,port,net", self.hash()),
                SetType::Port => ("bitmap:port", "range 0-65535"),
            };
            printed = printed.and_then(|()| writeln!(out, "create {name} {kind} {of}"));
            for entry in self.members[set as usize].iter().filter(|member| member.fits()) {
                printed = printed.and_then(|()| writeln!(out, "add {name} {entry}"));
            }
        }
        debug_assert!(printed.is_ok(), "a string takes all");
    }

    fn hash(&self) -> &'static str {
        match self.family {
            Family::V4 => "family inet hashsize 1024 maxelem 65536 bucketsize 12",
            Family::V6 => "family inet6 hashsize 1024 maxelem 65536 bucketsize 12",
        }
    }
}

/// The name of a set: at most 31 letters.
#[derive(Clone, Copy)]
pub(super) struct Name {
    family: Family,
    set: Set,
}

impl Name {
    const LONGEST: usize = 31;
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.family {
            Family::V4 => "KUBE-",
            Family::V6 => "KUBE-6-",
        };
        let stem = self.set.stem();
        let end = stem.len().min(Self::LONGEST - prefix.len());
        write!(f, "{prefix}{}", &stem[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        let name = |set, family| Sets::new(family).name(set).to_string();
        assert_eq!(name(Set::LoadBalancerSourceCidr, Family::V4), "KUBE-LOAD-BALANCER-SOURCE-CIDR");
        assert_eq!(
            name(Set::LoadBalancerSourceCidr, Family::V6),
            "KUBE-6-LOAD-BALANCER-SOURCE-CID"
        );
        assert_eq!(name(Set::NodePortLocalSctp, Family::V6), "KUBE-6-NODE-PORT-LOCAL-SCTP-HAS");
    }

    #[test]
    fn every_set_has_its_place() {
        for (place, set) in Set::ALL.into_iter().enumerate() {
            assert_eq!(set as usize, place);
        }
    }
}
