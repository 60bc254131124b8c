//! Network Load Balancers of classic clusters: nodes hold their addresses. Version 1.0 is
//! kube-proxy on such a node; version 2.0 has IPVS there, which forwards packets unchanged.

use uturn_model::lb::{BehaviourAssumption, Delivery, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::is_private;
use crate::cloud::product::{Announced, PortPlan, Product, Targets, passing, plain_protocol};

pub(super) const NLB_1: &str = "IBM Cloud NLB 1.0";
pub(super) const NLB_2: &str = "IBM Cloud NLB 2.0";

/// Version 1.0: a node announces the address; if the node fails, another one takes over.
pub(super) struct Nlb1;

impl Product for Nlb1 {
    fn name(&self) -> &'static str {
        NLB_1
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_private(service))
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        Announced(NLB_1).port(service, port, family)
    }
}

/// Version 2.0: packets are tunnelled to nodes with a pod, which answer clients directly.
pub(super) struct Nlb2;

impl Product for Nlb2 {
    fn name(&self) -> &'static str {
        NLB_2
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_private(service))
    }

    fn port(&self, _: &Service, port: &ServicePort, _: Family) -> Option<PortPlan> {
        let mut profile = passing(NLB_2, Source::Kept);
        profile.delivery = Delivery::KeepsAddress;
        profile.panic_threshold = None;
        let because = "nodes with a pod answer clients directly";
        profile.assumption =
            Some(BehaviourAssumption::new("it hands packets on as clients sent them", because));
        Some(PortPlan { protocol: plain_protocol(port), targets: Targets::NodesWithPods, profile })
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::service::Policy;

    use super::*;
    use crate::cloud::product::tests::{PORTS, plan_of, service};

    #[test]
    fn version_1_follows_the_policy_and_version_2_needs_pods() {
        let mut service = service(&[], &PORTS);
        assert_eq!(plan_of(&Nlb1, &service, 80).targets, Targets::Nodes);
        assert_eq!(plan_of(&Nlb2, &service, 80).targets, Targets::NodesWithPods);
        service.external_policy = Policy::Local;
        assert_eq!(plan_of(&Nlb1, &service, 80).targets, Targets::NodesWithPods);
        for product in [&Nlb1 as &dyn Product, &Nlb2] {
            let profile = plan_of(product, &service, 80).profile;
            assert_eq!(profile.delivery, Delivery::KeepsAddress);
            assert_eq!(profile.source, Source::Kept);
        }
    }
}
