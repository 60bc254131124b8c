//! The Network Load Balancer: it forwards packets to node ports. It keeps the client's address
//! under policy Local only.

use uturn_model::lb::{BehaviourAssumption, ProxyVersion, Source};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Family, Protocol, Service};

use crate::cloud::product::{
    LIKE_OTHERS, PortPlan, Product, Targets, passing, plain_protocol, replaced,
};
use crate::cloud::values::is_on;
use crate::cloud::{Annotation, ValueKind};

pub(super) const NAME: &str = "Oracle Cloud Network Load Balancer";

const INTERNAL: &str = "oci-network-load-balancer.oraclecloud.com/internal";
pub(super) const KEEPS_SOURCE: &str =
    "oci-network-load-balancer.oraclecloud.com/is-preserve-source";
pub(super) const PROXY_PROTOCOL: &str = "oci-network-load-balancer.oraclecloud.com/is-ppv2-enabled";

/// The Network Load Balancer.
pub(super) struct Nlb;

impl Product for Nlb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_on(service, INTERNAL))
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let keeps = keeps_source(service);
        let mut profile = passing(NAME, if keeps { Source::Kept } else { replaced(family) });
        profile.panic_threshold = None;
        profile.health_check = Some(super::health_check(service));
        let has_header = port.protocol == Protocol::Tcp && is_on(service, PROXY_PROTOCOL);
        profile.proxy_header = has_header.then_some(ProxyVersion::V2);
        let taken = "it sends connections back to the node that opened them";
        profile.assumption = keeps.then(|| BehaviourAssumption::new(taken, LIKE_OTHERS));
        Some(PortPlan { protocol: plain_protocol(port), targets: Targets::Nodes, profile })
    }
}

/// Returns whether targets see the client's address: they do under policy Local, unless the Service
/// switches that off.
fn keeps_source(service: &Service) -> bool {
    let is_allowed =
        service.annotations.get(KEEPS_SOURCE).is_none() || is_on(service, KEEPS_SOURCE);
    service.external_policy == Policy::Local && is_allowed
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(INTERNAL, ValueKind::Switch),
    Annotation::new(KEEPS_SOURCE, ValueKind::Switch),
    Annotation::new(PROXY_PROTOCOL, ValueKind::Switch),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{PORTS, plan_of, service};

    #[test]
    fn only_policy_local_keeps_the_source() {
        let kept = |annotations, policy| {
            let mut service = service(annotations, &PORTS);
            service.external_policy = policy;
            let profile = plan_of(&Nlb, &service, 80).profile;
            assert_eq!(profile.assumption.is_some(), profile.source == Source::Kept);
            profile.source == Source::Kept
        };
        assert!(kept(&[], Policy::Local) && kept(&[(KEEPS_SOURCE, "true")], Policy::Local));
        assert!(!kept(&[(KEEPS_SOURCE, "false")], Policy::Local));
        assert!(!kept(&[], Policy::Cluster) && !kept(&[(KEEPS_SOURCE, "true")], Policy::Cluster));
    }

    #[test]
    fn a_header_and_who_reaches_it_are_asked_for() {
        let asked = service(&[(PROXY_PROTOCOL, "true"), (INTERNAL, "true")], &PORTS);
        assert_eq!(plan_of(&Nlb, &asked, 80).profile.proxy_header, Some(ProxyVersion::V2));
        assert_eq!(Nlb.is_private(&asked), Some(true));
        assert_eq!(plan_of(&Nlb, &service(&[], &PORTS), 80).profile.proxy_header, None);
    }
}
