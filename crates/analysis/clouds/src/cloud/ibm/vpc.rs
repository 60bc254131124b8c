//! Load balancers for VPC: the Application Load Balancer, which is a proxy although Services ask
//! for connections only, and the Network Load Balancer, which keeps the client's address and lets
//! nodes answer clients directly.

use uturn_model::lb::{BehaviourAssumption, Delivery, ProxyVersion, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Protocol, Service};

use super::{asks_for, is_private};
use crate::cloud::StatusEntry;
use crate::cloud::product::{
    PortPlan, Product, Targets, check, passing, plain_protocol, proxying, question_by_policy,
};

pub(super) const ALB: &str = "IBM Cloud ALB for VPC";
pub(super) const NLB: &str = "IBM Cloud NLB for VPC";

/// The Application Load Balancer.
pub(super) struct Alb;

impl Product for Alb {
    fn name(&self) -> &'static str {
        ALB
    }

    fn writes(&self, _: &Service) -> StatusEntry {
        StatusEntry::Name
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_private(service))
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        if port.protocol != Protocol::Tcp {
            return None;
        }
        let mut plan = proxying(ALB, service, plain_protocol(port), family);
        plan.profile.proxy_header = asks_for(service, "proxy-protocol").then_some(ProxyVersion::V1);
        Some(plan)
    }
}

/// The Network Load Balancer.
pub(super) struct Nlb;

impl Product for Nlb {
    fn name(&self) -> &'static str {
        NLB
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_private(service))
    }

    fn port(&self, service: &Service, port: &ServicePort, _: Family) -> Option<PortPlan> {
        let mut profile = passing(NLB, Source::Kept);
        profile.delivery = Delivery::KeepsAddress;
        profile.panic_threshold = None;
        profile.health_check = Some(check(question_by_policy(service), (5, 2)));
        let because = "nodes answer clients directly";
        profile.assumption =
            Some(BehaviourAssumption::new("it hands packets on as clients sent them", because));
        Some(PortPlan { protocol: plain_protocol(port), targets: Targets::Nodes, profile })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::ibm::{FEATURES, REACH};
    use crate::cloud::product::tests::{PORTS, plan_of, service};

    #[test]
    fn features_and_reach_are_asked_for() {
        let asked = service(&[(FEATURES, "proxy-protocol"), (REACH, "private")], &PORTS);
        assert_eq!(plan_of(&Alb, &asked, 80).profile.proxy_header, Some(ProxyVersion::V1));
        assert_eq!((Alb.is_private(&asked), Nlb.is_private(&asked)), (Some(true), Some(true)));
        let plain = service(&[], &PORTS);
        assert_eq!(plan_of(&Alb, &plain, 80).profile.proxy_header, None);
        assert!(matches!(plan_of(&Alb, &plain, 80).profile.source, Source::Replaced(_)));
        let nlb = plan_of(&Nlb, &plain, 80).profile;
        assert_eq!((nlb.source, nlb.delivery), (Source::Kept, Delivery::KeepsAddress));
    }
}
