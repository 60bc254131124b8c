//! Load balancers of Octavia. Its usual driver, amphora, runs a proxy in a machine of its own; the
//! driver of OVN rewrites addresses within the network.

use std::net::IpAddr;
use std::time::Duration;

use uturn_model::lb::{
    BehaviourAssumption, HealthCheck, HealthQuestion, ListenerProtocol, ProxyVersion, Source,
};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Family, Service};

use super::annotations::{
    ADDRESS, FORWARDED_FOR, HEALTH_MONITOR, PROXY_PROTOCOL, TLS, get, is_internal, switch,
};
use crate::cloud::StatusEntry;
use crate::cloud::product::mode_by_header;
use crate::cloud::product::{
    PortPlan, Product, SourceRanges, Targets, check, own_address, passing, plain_protocol,
    proxying, question_by_policy,
};

pub(super) const AMPHORA_NAME: &str = "OpenStack Octavia";
pub(super) const OVN_NAME: &str = "OpenStack Octavia (OVN)";

/// Octavia with its usual driver, if it is not known whether the controller makes health monitors.
pub(super) const AMPHORA: Octavia =
    Octavia { name: AMPHORA_NAME, driver: Driver::Amphora, makes_monitors: None };
/// Octavia with the driver of OVN, if it is not known whether the controller makes health monitors.
pub(super) const OVN: Octavia =
    Octavia { name: OVN_NAME, driver: Driver::Ovn, makes_monitors: None };

/// Load balancers of Octavia.
pub(super) struct Octavia {
    /// The vendor's name for them.
    pub(super) name: &'static str,
    /// The driver that forwards the traffic.
    pub(super) driver: Driver,
    /// Whether the controller makes health monitors if no annotation states it. `None` if that is
    /// not known.
    pub(super) makes_monitors: Option<bool>,
}

/// A driver of Octavia.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    /// A proxy; the driver itself may not be known.
    Amphora,
    /// A proxy whose driver is known to be amphora.
    AmphoraOnly,
    /// The driver of OVN: flows in the network.
    Ovn,
}

impl Product for Octavia {
    fn name(&self) -> &'static str {
        self.name
    }

    fn writes(&self, service: &Service) -> StatusEntry {
        mode_by_header(self, service)
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_internal(service))
    }

    /// The controller writes the source ranges into the allowed ranges of listeners, which
    /// listeners of OVN do not have.
    fn source_ranges(&self, _: &Service) -> SourceRanges {
        match self.driver {
            Driver::Amphora | Driver::AmphoraOnly => SourceRanges::Applied,
            Driver::Ovn => SourceRanges::Ignored,
        }
    }

    /// With a PROXY header, the controller may write a name that consists of the address and a
    /// suffix; it resolves to the address.
    fn address_of_name(&self, service: &Service, host: &str) -> Option<IpAddr> {
        let written = get(service, ADDRESS).and_then(|text| text.parse().ok());
        let labels: Vec<&str> = host.splitn(5, '.').collect();
        let made = labels.get(..4).and_then(|first| first.join(".").parse().ok());
        written.or(made)
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let mut plan = match self.driver {
            Driver::Amphora | Driver::AmphoraOnly => self.proxy(service, port, family),
            Driver::Ovn => {
                let mut profile = passing(self.name, Source::Kept);
                profile.hairpin_source = Some(own_address(family));
                profile.panic_threshold = None;
                let protocol = plain_protocol(port);
                PortPlan { protocol, targets: Targets::Nodes, profile }
            }
        };
        let asked = switch(service, HEALTH_MONITOR).or(self.makes_monitors);
        plan.profile.health_check = asked.unwrap_or(false).then(|| self.monitor(service));
        // Where every node answers, a probe makes no difference.
        if asked.is_none() && service.external_policy == Policy::Local {
            plan.profile.assumption = Some(BehaviourAssumption {
                assumed: "it has no health monitor, and sends to nodes without an endpoint too"
                    .into(),
                because: "no annotation asks for one, and its controller makes none by default"
                    .into(),
                settle: "look at create-monitor of the controller's cloud.conf, or state \
                         loadbalancer.openstack.org/enable-health-monitor"
                    .into(),
            });
        }
        Some(plan)
    }
}

impl Octavia {
    /// Returns the plan of a port that a proxy serves.
    fn proxy(&self, service: &Service, port: &ServicePort, family: Family) -> PortPlan {
        let ends_tls = get(service, TLS).is_some_and(|text| !text.is_empty());
        let speaks_http = switch(service, FORWARDED_FOR) == Some(true);
        let protocol = match plain_protocol(port) {
            ListenerProtocol::Tcp if ends_tls => ListenerProtocol::Https,
            ListenerProtocol::Tcp if speaks_http => ListenerProtocol::Http,
            plain => plain,
        };
        let mut plan = proxying(self.name, service, protocol, family);
        plan.profile.proxy_header = match get(service, PROXY_PROTOCOL) {
            Some("true" | "v1") => Some(ProxyVersion::V1),
            Some("v2") => Some(ProxyVersion::V2),
            _ => None,
        };
        let is_sure = self.driver == Driver::AmphoraOnly
            || ends_tls
            || speaks_http
            || plan.profile.proxy_header.is_some();
        plan.profile.assumption = (!is_sure).then(|| BehaviourAssumption {
            assumed: "it is a proxy of the driver amphora".into(),
            because: "no annotation tells the driver, and this is the default".into(),
            settle: "look at lb-provider of the controller's cloud.conf".into(),
        });
        plan
    }

    /// Returns the health check of targets. The driver of OVN has no health checks over HTTP.
    fn monitor(&self, service: &Service) -> HealthCheck {
        let question = match self.driver {
            Driver::Ovn => HealthQuestion::Target,
            Driver::Amphora | Driver::AmphoraOnly => question_by_policy(service),
        };
        let timeout = Duration::from_secs(3);
        HealthCheck { rise: 1, fall: 3, timeout, ..check(question, (5, 3)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{plan_of, service};

    const PREFIX: &str = "loadbalancer.openstack.org/";

    fn plan(product: &Octavia, notes: &[(&str, &str)], policy: Policy) -> PortPlan {
        let keys: Vec<(String, &str)> =
            notes.iter().map(|(key, value)| (format!("{PREFIX}{key}"), *value)).collect();
        let notes: Vec<(&str, &str)> =
            keys.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let mut service = service(&notes, &[80]);
        service.external_policy = policy;
        plan_of(product, &service, 80)
    }

    #[test]
    fn words_of_the_proxy_header() {
        for (word, version) in [
            ("true", Some(ProxyVersion::V1)),
            ("v1", Some(ProxyVersion::V1)),
            ("v2", Some(ProxyVersion::V2)),
            ("false", None),
        ] {
            let plan = plan(&AMPHORA, &[(PROXY_PROTOCOL, word)], Policy::Cluster);
            assert_eq!(plan.profile.proxy_header, version, "{word}");
            assert_eq!(plan.profile.assumption.is_none(), version.is_some(), "{word}");
        }
    }

    #[test]
    fn certificates_and_headers_make_it_speak_http() {
        let of = |notes: &[(&str, &str)]| plan(&AMPHORA, notes, Policy::Cluster).protocol;
        assert_eq!(of(&[]), ListenerProtocol::Tcp);
        assert_eq!(of(&[(FORWARDED_FOR, "true")]), ListenerProtocol::Http);
        assert_eq!(of(&[(TLS, "ref"), (FORWARDED_FOR, "true")]), ListenerProtocol::Https);
    }

    #[test]
    fn only_what_is_asked_for_is_probed() {
        let asked = [(HEALTH_MONITOR, "true")];
        let question = |product, notes: &[(&str, &str)], policy| {
            plan(product, notes, policy).profile.health_check.map(|check| check.question)
        };
        assert_eq!(question(&AMPHORA, &[], Policy::Local), None);
        let local = Some(HealthQuestion::LocalEndpoint);
        assert_eq!(question(&AMPHORA, &asked, Policy::Local), local);
        assert_eq!(question(&AMPHORA, &asked, Policy::Cluster), Some(HealthQuestion::Target));
        assert_eq!(question(&OVN, &asked, Policy::Local), Some(HealthQuestion::Target));
        assert!(
            plan(&AMPHORA, &[], Policy::Local)
                .profile
                .assumption
                .unwrap()
                .settle
                .contains("create-monitor")
        );
        let sure =
            plan(&AMPHORA, &[(HEALTH_MONITOR, "false"), (PROXY_PROTOCOL, "v2")], Policy::Local);
        assert_eq!(sure.profile.assumption, None);
    }

    #[test]
    fn a_name_may_have_the_address_in_it() {
        let address = "203.0.113.7".parse().ok();
        let bare = service(&[], &[80]);
        assert_eq!(AMPHORA.address_of_name(&bare, "203.0.113.7.nip.io"), address);
        assert_eq!(AMPHORA.address_of_name(&bare, "shop.example.com"), None);
        let noted =
            service(&[("loadbalancer.openstack.org/load-balancer-address", "203.0.113.7")], &[80]);
        assert_eq!(AMPHORA.address_of_name(&noted, "shop.example.com"), address);
    }
}
