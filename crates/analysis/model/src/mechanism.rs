//! The reasons why a flow fails, is slow, or bypasses the load balancer.

use std::fmt;
use std::str::FromStr;

/// A reason why a route fails, is slow, or bypasses the load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// The reply goes directly to the client and bypasses the load balancer.
    AsymmetricReturn,
    /// The kernel drops a packet whose source is one of its own addresses.
    LocalSourceDrop,
    /// The reverse path filter drops the packet.
    ReversePathFilter,
    /// The load balancer has no eligible target.
    NoCandidate,
    /// The load balancer has no target: none is registered, or nothing announces its address.
    NoTarget,
    /// Replies to health checks do not return.
    ProbeBlackhole,
    /// A security group drops the packet.
    SecurityGroup,
    /// NetworkPolicies do not allow the connection.
    NetworkPolicy,
    /// The Service has no endpoint.
    NoEndpoint,
    /// Nothing listens on the port.
    WrongPort,
    /// The address belongs to another machine, and a Service took it.
    AddressTaken,
    /// Nothing forwards the port of the node to the pod that asks for it.
    HostPortOff,
    /// A node port is called at a loopback address, where kube-proxy does not serve it.
    NotOnLoopback,
    /// A node lacks rules that it should have.
    RuleMissing,
    /// The node has no internet bandwidth.
    NoBandwidth,
    /// The name does not resolve.
    NameUnresolved,
    /// No rule matches the host and path.
    NoRuleForPath,
    /// TLS is not terminated, because the load balancer is bypassed.
    TlsBypassed,
    /// The server expects the PROXY header of a load balancer that is bypassed, or gets one that
    /// it does not expect.
    ProxyHeader,
    /// A load balancer hands on packets with its own address as the destination, and no rule on the
    /// node has that address.
    VipUnknown,
    /// kube-proxy's own filter rejects a packet to an address of a Service.
    ProxyFilter,
    /// A node's firewall drops or rejects the packet.
    Firewall,
    /// A bridge does not send a frame back by the link by which it came.
    HairpinOff,
    /// There is no route to the destination.
    NoRoute,
    /// Nodes cannot reach each other's pods.
    CrossNode,
    /// A node is down.
    NodeDown,
    /// A component that decides, such as a load balancer or proxy, is not modelled.
    NotModelled,
    /// An object that decides is not given.
    NotGiven,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 28] = [
        Self::AsymmetricReturn,
        Self::LocalSourceDrop,
        Self::ReversePathFilter,
        Self::NoCandidate,
        Self::NoTarget,
        Self::ProbeBlackhole,
        Self::SecurityGroup,
        Self::NetworkPolicy,
        Self::NoEndpoint,
        Self::WrongPort,
        Self::AddressTaken,
        Self::HostPortOff,
        Self::NotOnLoopback,
        Self::RuleMissing,
        Self::NoBandwidth,
        Self::NameUnresolved,
        Self::NoRuleForPath,
        Self::TlsBypassed,
        Self::ProxyHeader,
        Self::VipUnknown,
        Self::ProxyFilter,
        Self::Firewall,
        Self::HairpinOff,
        Self::NoRoute,
        Self::CrossNode,
        Self::NodeDown,
        Self::NotModelled,
        Self::NotGiven,
    ];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AsymmetricReturn => "asymmetric-return",
            Self::LocalSourceDrop => "local-source-drop",
            Self::ReversePathFilter => "reverse-path-filter",
            Self::NoCandidate => "no-candidate",
            Self::NoTarget => "no-target",
            Self::ProbeBlackhole => "probe-blackhole",
            Self::SecurityGroup => "security-group",
            Self::NetworkPolicy => "network-policy",
            Self::NoEndpoint => "no-endpoint",
            Self::WrongPort => "wrong-port",
            Self::AddressTaken => "address-taken",
            Self::HostPortOff => "host-port-off",
            Self::NotOnLoopback => "not-on-loopback",
            Self::RuleMissing => "rule-missing",
            Self::NoBandwidth => "no-bandwidth",
            Self::NameUnresolved => "name-unresolved",
            Self::NoRuleForPath => "no-rule-for-path",
            Self::TlsBypassed => "tls-bypassed",
            Self::ProxyHeader => "proxy-header",
            Self::VipUnknown => "vip-unknown",
            Self::ProxyFilter => "proxy-filter",
            Self::Firewall => "firewall",
            Self::HairpinOff => "hairpin-off",
            Self::NoRoute => "no-route",
            Self::CrossNode => "cross-node",
            Self::NodeDown => "node-down",
            Self::NotModelled => "not-modelled",
            Self::NotGiven => "not-given",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mechanism| mechanism.as_str() == text).ok_or(UnknownMechanism)
    }
}

/// The error that a text is not a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMechanism;

impl fmt::Display for UnknownMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a mechanism")
    }
}

impl std::error::Error for UnknownMechanism {}
