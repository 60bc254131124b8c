//! Network Load Balancers: they forward packets, and keep the client's address unless they
//! terminate TLS or an annotation switches that off.

use uturn_model::lb::{BehaviourAssumption, ListenerProtocol, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Family, Service};

use super::annotations::{CROSS_ZONE, KEEPS_SOURCE, get, is_private, protocol};
use super::{plan, with_default_targets};
use crate::cloud::StatusEntry;
use crate::cloud::product::{LIKE_OTHERS, PortPlan, Product, passing, replaced};

pub(super) const NAME: &str = "Alibaba Cloud NLB";

/// Network Load Balancers.
pub(super) struct Nlb;

impl Product for Nlb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn writes(&self, _: &Service) -> StatusEntry {
        StatusEntry::Name
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_private(service))
    }

    fn serves_by_zone(&self, service: &Service) -> bool {
        get(service, CROSS_ZONE) == Some("off")
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let keeps = protocol(service, port) != ListenerProtocol::TcpSsl
            && get(service, KEEPS_SOURCE).is_none_or(|value| value.eq_ignore_ascii_case("on"));
        let mut profile = passing(NAME, if keeps { Source::Kept } else { replaced(family) });
        let taken = "it keeps the client's address unless it is asked not to";
        profile.assumption = keeps.then(|| BehaviourAssumption::new(taken, LIKE_OTHERS));
        Some(plan(service, port, profile, (10, 5)))
    }

    fn port_in(
        &self,
        cluster: &Cluster,
        service: &Service,
        port: &ServicePort,
        family: Family,
    ) -> Option<PortPlan> {
        Some(with_default_targets(self.port(service, port, family)?, cluster, service))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{PORTS, plan_of, service};

    const PREFIX: &str = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-";

    #[test]
    fn the_source_is_kept_unless_an_annotation_or_tls_forbids_it() {
        let key = format!("{PREFIX}preserve-client-ip");
        let list = format!("{PREFIX}protocol-port");
        let is_kept = |annotations: &[(&str, &str)], port| {
            let profile = plan_of(&Nlb, &service(annotations, &PORTS), port).profile;
            assert_eq!(profile.assumption.is_some(), profile.source == Source::Kept);
            profile.source == Source::Kept
        };
        assert!(is_kept(&[], 80) && is_kept(&[(&key, "on")], 80));
        assert!(!is_kept(&[(&key, "off")], 80));
        assert!(!is_kept(&[(&list, "tcpssl:443")], 443));
    }

    #[test]
    fn addresses_serve_all_zones_unless_it_is_switched_off() {
        let key = format!("{PREFIX}cross-zone-enabled");
        assert!(!Nlb.serves_by_zone(&service(&[], &PORTS)));
        assert!(Nlb.serves_by_zone(&service(&[(&key, "off")], &PORTS)));
    }
}
