//! Properties that users set on the listeners that a cloud's controller makes.

use super::{ListenerProtocol, ProbeRanges, ProbeSource, Scheduler};
use crate::{NamespacedName, Origin, Port, Text};

/// An object of a cloud in which users set properties of the listeners that the cloud's
/// controller makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerOverrides {
    /// Its name.
    pub name: NamespacedName,
    /// The listeners whose properties it sets.
    pub listeners: Vec<ListenerOverride>,
    /// Where it was written.
    pub origin: Origin,
}

/// A listener of [`ListenerOverrides`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerOverride {
    /// Its port.
    pub port: Port,
    /// Its protocol.
    pub protocol: ListenerProtocol,
    /// Whether it keeps connections to targets open, and so translates the source.
    pub keepalive: Option<bool>,
    /// The scheduler; on layer 7, that of its first rule that names one.
    pub scheduler: Option<Scheduler>,
    /// Whether it probes its targets.
    pub health_check: Option<bool>,
    /// The source address of its probes.
    pub probe_source: Option<StatedProbeSource>,
    /// Whether it translates the client's address (SNAT).
    pub snat: Option<bool>,
    /// Whether connections to a target that is unbound are reset; layer 4 only.
    pub resets_on_unbind: Option<bool>,
    /// The seconds for which a client stays with its target, 0 for not at all; layer 4 only.
    pub session_seconds: Option<u32>,
    /// The health check of its targets; layer 4 only.
    pub check: Option<StatedHealthCheck>,
    /// The domain that serves hosts without a rule; layer 7 only.
    pub default_domain: Option<Text>,
    /// Its domains; layer 7 only.
    pub domains: Vec<DomainOverride>,
    /// Where it was written.
    pub origin: Origin,
}

impl ListenerOverride {
    /// Returns the first health check that is stated: its own, else that of a rule.
    pub fn first_check(&self) -> Option<&StatedHealthCheck> {
        let of_rules = || {
            let mut rules = self.domains.iter().flat_map(|domain| &domain.rules);
            rules.find_map(|rule| rule.check.as_ref())
        };
        self.check.as_ref().or_else(of_rules)
    }
}

/// A domain of a [`ListenerOverride`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainOverride {
    /// The domain; empty for the load balancer's address.
    pub domain: Text,
    /// Whether clients may speak HTTP/2.
    pub http2: Option<bool>,
    /// Its rules.
    pub rules: Vec<RuleOverride>,
}

/// A rule of a [`DomainOverride`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleOverride {
    /// The path.
    pub url: Text,
    /// The protocol towards targets: `HTTP`, `HTTPS` or `GRPC`.
    pub forward_type: Option<Text>,
    /// The seconds for which a client stays with its target, 0 for not at all.
    pub session_seconds: Option<u32>,
    /// The scheduler.
    pub scheduler: Option<Scheduler>,
    /// The health check of its targets.
    pub check: Option<StatedHealthCheck>,
}

/// The properties that users set on a health check. Those that are `None` are left to the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedHealthCheck {
    /// Whether targets are probed.
    pub enabled: Option<bool>,
    /// The seconds between two probes.
    pub interval: Option<u16>,
    /// The seconds that a probe may take.
    pub timeout: Option<u16>,
    /// The number of consecutive successes that make a target healthy.
    pub rise: Option<u8>,
    /// The number of consecutive failures that make a target unhealthy.
    pub fall: Option<u8>,
    /// The protocol of a probe: `TCP`, `HTTP`, `HTTPS` or `GRPC`.
    pub protocol: Option<Text>,
    /// The port that is probed, if it is not the target's.
    pub port: Option<Port>,
    /// The path of a request.
    pub path: Option<Text>,
    /// The host of a request.
    pub host: Option<Text>,
    /// The method of a request.
    pub method: Option<Text>,
    /// The classes of statuses that are successes, one bit each.
    pub codes: Option<u8>,
    /// The source address of probes.
    pub source: Option<StatedProbeSource>,
}

/// The source address of health checks, as users choose it. The cloud determines the reserved
/// range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatedProbeSource {
    /// The load balancer's own address.
    Vip,
    /// The range that the cloud reserves for probes.
    Reserved,
}

impl StatedProbeSource {
    /// Returns the source in a cloud that reserves these ranges.
    pub fn with_ranges(self, reserved: ProbeRanges) -> ProbeSource {
        match self {
            Self::Vip => ProbeSource::Vip,
            Self::Reserved => ProbeSource::Reserved(reserved),
        }
    }
}
