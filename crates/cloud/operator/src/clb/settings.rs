//! Settings of load balancers, listeners, rules and domains, and the differences between wanted and
//! observed ones.

use serde_json::Value;
use uturn_cloud_api::clb::HealthCheck;

use super::Certificate;

/// The settings of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalancerSettings {
    /// Whether targets accept traffic that the load balancer's security groups accepted.
    pub passes_to_target: Option<bool>,
    /// The security groups that clients have to pass.
    pub security_groups: Option<Vec<String>>,
    /// The addresses that replace clients' addresses. Others on the load balancer are kept.
    pub snat_addresses: Option<Vec<SnatAddress>>,
}

/// An address that replaces clients' addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnatAddress {
    /// The subnet of the address.
    pub subnet: String,
    /// The address; `None` for any.
    pub address: Option<String>,
}

/// The settings of a listener.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListenerSettings {
    /// Seconds a client stays with its target, 0 for no session persistence; layer 4 only.
    pub session_seconds: Option<i64>,
    /// The scheduler, which picks targets; layer 4 only.
    pub scheduler: Option<String>,
    /// The health check of targets; layer 4 only.
    pub health_check: Option<HealthCheck>,
    /// Whether connections to targets are kept open; layer 7 only.
    pub keepalive: Option<bool>,
    /// Whether the client's address is replaced.
    pub snat: Option<bool>,
    /// Whether connections to a target that is unbound are reset; layer 4 only.
    pub resets_on_unbind: Option<bool>,
}

/// The settings of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSettings {
    /// Seconds a client stays with its target, 0 for no session persistence.
    pub session_seconds: Option<i64>,
    /// The scheduler, which picks targets.
    pub scheduler: Option<String>,
    /// The health check of targets.
    pub health_check: Option<HealthCheck>,
    /// The protocol towards targets.
    pub forward_type: Option<String>,
}

/// The settings of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainSettings {
    /// The domain's certificate. Without SNI, the listener's certificate counts instead.
    pub certificate: Option<Certificate>,
    /// Whether clients may speak HTTP/2.
    pub http2: Option<bool>,
    /// Whether the domain serves requests for hosts that no rule matches.
    pub is_default: Option<bool>,
}

impl BalancerSettings {
    /// Returns the settings that are stated and differ in `observed`.
    pub fn difference(&self, observed: &Self) -> Self {
        let groups = |groups: &Vec<String>| {
            let mut groups = groups.clone();
            groups.sort();
            groups
        };
        let same = self.security_groups.as_ref().map(groups)
            == observed.security_groups.as_ref().map(groups);
        Self {
            passes_to_target: other(&self.passes_to_target, &observed.passes_to_target),
            security_groups: self.security_groups.clone().filter(|_| !same),
            snat_addresses: self.missing_snat(observed),
        }
    }

    /// Returns the addresses that are stated and are not in `observed`.
    fn missing_snat(&self, observed: &Self) -> Option<Vec<SnatAddress>> {
        let mut there = observed.snat_addresses.clone().unwrap_or_default();
        let mut stated = self.snat_addresses.clone()?;
        // Entries with a stated address come first; entries for any address take those that are
        // left.
        stated.sort_by_key(|wanted| wanted.address.is_none());
        stated.retain(|wanted| {
            let is_it = |own: &SnatAddress| {
                own.subnet == wanted.subnet
                    && (wanted.address.is_none() || own.address == wanted.address)
            };
            let found = there.iter().position(is_it);
            found.map(|at| there.remove(at)).is_none()
        });
        (!stated.is_empty()).then_some(stated)
    }

    /// Returns whether no setting is stated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ListenerSettings {
    /// Returns the settings that are stated and differ in `observed`.
    pub fn difference(&self, observed: &Self) -> Self {
        Self {
            session_seconds: other(&self.session_seconds, &observed.session_seconds),
            scheduler: other(&self.scheduler, &observed.scheduler),
            health_check: other_check(self.health_check.as_ref(), observed.health_check.as_ref()),
            keepalive: other(&self.keepalive, &observed.keepalive),
            snat: other(&self.snat, &observed.snat),
            resets_on_unbind: other(&self.resets_on_unbind, &observed.resets_on_unbind),
        }
    }

    /// Returns whether no setting is stated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl RuleSettings {
    /// Returns the settings that are stated and differ in `observed`.
    pub fn difference(&self, observed: &Self) -> Self {
        Self {
            session_seconds: other(&self.session_seconds, &observed.session_seconds),
            scheduler: other(&self.scheduler, &observed.scheduler),
            health_check: other_check(self.health_check.as_ref(), observed.health_check.as_ref()),
            forward_type: other(&self.forward_type, &observed.forward_type),
        }
    }

    /// Returns whether no setting is stated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl DomainSettings {
    /// Returns the settings that are stated and differ in `observed`. Certificates count only on a
    /// listener with SNI.
    pub fn difference(&self, observed: &Self, sni: bool) -> Self {
        Self {
            certificate: other(&self.certificate, &observed.certificate).filter(|_| sni),
            http2: other(&self.http2, &observed.http2),
            is_default: other(&self.is_default, &observed.is_default),
        }
    }

    /// Returns whether no setting is stated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the setting, if it is stated and differs in `observed`.
fn other<T: Clone + PartialEq>(wanted: &Option<T>, observed: &Option<T>) -> Option<T> {
    wanted.clone().filter(|_| wanted != observed)
}

/// Returns the whole health check, if one of its members is stated and differs in `observed`.
fn other_check(
    wanted: Option<&HealthCheck>,
    observed: Option<&HealthCheck>,
) -> Option<HealthCheck> {
    let wanted = wanted?;
    let members = |check: &HealthCheck| serde_json::to_value(check).unwrap_or_default();
    let observed = observed.map(members).unwrap_or_default();
    let is_other =
        |(name, value): (&String, &Value)| !value.is_null() && observed.get(name) != Some(value);
    let differs = members(wanted).as_object().is_some_and(|all| all.iter().any(is_other));
    differs.then(|| wanted.clone())
}
