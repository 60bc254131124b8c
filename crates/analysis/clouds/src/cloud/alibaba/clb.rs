//! Classic Load Balancers. On layer 4 they forward packets with the client's address; on layer 7
//! they are proxies.

use uturn_model::lb::{Layer, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Family, Service};

use super::annotations::{is_private, protocol};
use super::{plan, with_default_targets};
use crate::cloud::product::{PortPlan, Product, passing, replaced};

pub(super) const NAME: &str = "Alibaba Cloud CLB";

/// Classic Load Balancers.
pub(super) struct Clb;

impl Product for Clb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_private(service))
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let source = match protocol(service, port).layer() {
            Layer::L4 => Source::Kept,
            Layer::L7 => replaced(family),
        };
        Some(plan(service, port, passing(NAME, source), (2, 5)))
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
    use uturn_model::lb::{ListenerProtocol, ProxyVersion};
    use uturn_model::service::Policy;

    use super::*;
    use crate::cloud::Targets;
    use crate::cloud::product::tests::{PORTS, plan_of, service};

    const PREFIX: &str = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-";

    #[test]
    fn layer_4_keeps_the_source_and_layer_7_does_not() {
        let list = format!("{PREFIX}protocol-port");
        let header = format!("{PREFIX}proxy-protocol");
        let asked = service(&[(&list, "https:443"), (&header, "on")], &PORTS);
        let (plain, tls) = (plan_of(&Clb, &asked, 80), plan_of(&Clb, &asked, 443));
        assert_eq!((plain.protocol, plain.profile.source), (ListenerProtocol::Tcp, Source::Kept));
        assert_eq!(plain.profile.proxy_header, Some(ProxyVersion::V2));
        assert_eq!(tls.protocol, ListenerProtocol::Https);
        assert!(matches!(tls.profile.source, Source::Replaced(_)));
        assert_eq!(tls.profile.proxy_header, None);
    }

    #[test]
    fn targets_are_nodes_those_with_pods_or_pods() {
        let key = "service.beta.kubernetes.io/backend-type";
        let mut asked = service(&[], &PORTS);
        assert_eq!(plan_of(&Clb, &asked, 80).targets, Targets::Nodes);
        asked.external_policy = Policy::Local;
        assert_eq!(plan_of(&Clb, &asked, 80).targets, Targets::NodesByPods);
        assert_eq!(plan_of(&Clb, &service(&[(key, "eni")], &PORTS), 80).targets, Targets::Pods);
    }
}
