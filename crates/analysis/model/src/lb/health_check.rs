//! Active health checks: the question that a probe asks, and the probe's source.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::{Ipv4Net, Ipv6Net};

use crate::{Family, Mechanism};

/// A health check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthCheck {
    /// The source address of probes.
    pub source: ProbeSource,
    /// The time between two probes.
    pub interval: Duration,
    /// The timeout of a probe.
    pub timeout: Duration,
    /// The number of consecutive successes that make a target healthy.
    pub rise: u32,
    /// The number of consecutive failures that make a target unhealthy.
    pub fall: u32,
    /// The question that a probe asks.
    pub question: HealthQuestion,
    /// Whether probes are addressed to the load balancer's own address, as requests are, instead of
    /// the target's.
    pub keeps_address: bool,
}

/// The question that a health check asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HealthQuestion {
    /// Whether the target answers at the address and port to which requests are sent.
    #[default]
    Target,
    /// Whether the node has a ready endpoint of the Service: kube-proxy answers that at the
    /// Service's `healthCheckNodePort`.
    LocalEndpoint,
    /// Whether the node has a ready endpoint, asked with a PROXY header before the request.
    /// kube-proxy does not expect one and answers with an error, so no node passes.
    LocalEndpointWithHeader,
    /// Whether the node's kube-proxy works, at its own health port.
    ServiceProxy,
    /// Whether the target answers a request for this page with 200.
    Page {
        /// The path.
        path: &'static str,
        /// Whether the request is made over TLS.
        tls: bool,
    },
    /// What no target answers as it has to, as objects show, and the reason.
    Unanswered(Mechanism),
}

/// The source address of health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeSource {
    /// The load balancer's own address.
    Vip,
    /// A range that the cloud reserves for probes, or that a data plane's own file names.
    Reserved(ProbeRanges),
}

impl ProbeSource {
    /// Returns the source address of a load balancer's probes.
    pub fn address(self, vip: IpAddr) -> IpAddr {
        match self {
            Self::Vip => vip,
            Self::Reserved(ranges) => ranges.prober(Family::of(vip)),
        }
    }
}

/// The ranges that a cloud reserves for probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProbeRanges {
    /// The range for targets with an IPv4 address.
    pub v4: Ipv4Net,
    /// The range for targets with an IPv6 address.
    pub v6: Ipv6Net,
}

impl ProbeRanges {
    /// Returns whether probes may come from this address.
    pub fn contains(self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(ip) => self.v4.contains(&ip),
            IpAddr::V6(ip) => self.v6.contains(&ip),
        }
    }

    /// Returns the source address of probes: the first host address of the family's range.
    pub fn prober(self, family: Family) -> IpAddr {
        let first = match family {
            Family::V4 => self.v4.hosts().next().map(IpAddr::V4),
            Family::V6 => self.v6.hosts().next().map(IpAddr::V6),
        };
        first.unwrap_or(match family {
            Family::V4 => self.v4.addr().into(),
            Family::V6 => self.v6.addr().into(),
        })
    }
}
