//! Elastic Load Balancers, shared and dedicated. They forward connections to nodes with a pod, or
//! to pods that have addresses of the nodes' network. A dedicated one keeps the client's address; a
//! shared one does if an annotation asks for it, and under policy Local.

use uturn_model::lb::{BehaviourAssumption, HealthQuestion, Layer, Source};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Cluster, Family, Service};

use super::annotations::{CLASS, KEEPS_SOURCE, NEW, PASS_THROUGH, protocol};
use crate::cloud::product::{
    PortPlan, Product, Targets, check, passing, pods_have_network_addresses, replaced, to_pods,
};
use crate::cloud::values::is_on;

/// A kind of Elastic Load Balancer.
pub(super) struct Elb {
    pub(super) name: &'static str,
    is_dedicated: bool,
}

pub(super) static SHARED: Elb = Elb { name: "Huawei Cloud shared ELB", is_dedicated: false };
pub(super) static DEDICATED: Elb = Elb { name: "Huawei Cloud dedicated ELB", is_dedicated: true };

/// Returns the kind of a Service's load balancer: by its class, otherwise by the properties
/// requested for a new one, as only dedicated ones have a chosen size and zones.
pub(super) fn of(service: &Service) -> &'static Elb {
    let is_dedicated = match service.annotations.get(CLASS) {
        Some(class) => matches!(class, "performance" | "dedicated"),
        None => {
            let new = service.annotations.get(NEW).unwrap_or_default();
            ["l4_flavor_name", "l7_flavor_name", "available_zone"]
                .iter()
                .any(|field| new.contains(field))
        }
    };
    if is_dedicated { &DEDICATED } else { &SHARED }
}

impl Product for Elb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_left_to_balancer(&self, service: &Service) -> bool {
        match service.annotations.get(PASS_THROUGH) {
            Some(value) => matches!(value, "true" | "onlyLocal"),
            None => is_set_to_only_local(service),
        }
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let protocol = protocol(service, port);
        let (keeps, doubt) = self.keeps_source(service, protocol.layer());
        let source = if keeps { Source::Kept } else { replaced(family) };
        let mut profile = passing(self.name, source);
        profile.panic_threshold = None;
        profile.health_check = Some(check(HealthQuestion::Target, (5, 3)));
        profile.assumption = doubt;
        let targets =
            if service.allocates_node_ports { Targets::NodesWithPods } else { Targets::Pods };
        Some(PortPlan { protocol, targets, profile })
    }

    fn port_in(
        &self,
        cluster: &Cluster,
        service: &Service,
        port: &ServicePort,
        family: Family,
    ) -> Option<PortPlan> {
        let plan = self.port(service, port, family)?;
        let has_pods = self.is_dedicated && pods_have_network_addresses(cluster);
        Some(if has_pods || plan.targets == Targets::Pods { to_pods(plan) } else { plan })
    }
}

impl Elb {
    /// Returns whether targets see the client's address, and the assumption on which this rests if
    /// no document states it.
    fn keeps_source(&self, service: &Service, layer: Layer) -> (bool, Option<BehaviourAssumption>) {
        if layer == Layer::L7 {
            let because = "its requests name the client's address in a header";
            return (
                false,
                Some(BehaviourAssumption::new(
                    "it replaces the client's address on layer 7",
                    because,
                )),
            );
        }
        if self.is_dedicated || is_on(service, KEEPS_SOURCE) {
            return (true, None);
        }
        let is_local = service.external_policy == Policy::Local;
        let because = "the vendor measured that calls which come back to their node fail";
        let doubt = || {
            BehaviourAssumption::new("it keeps the client's address under policy Local", because)
        };
        (is_local, is_local.then(doubt))
    }
}

/// Returns whether the controller of the vendor's own clusters leaves the address to the load
/// balancer by default: it does under policy Local. Clusters that run the open-source controller
/// with an ordinary kube-proxy use other words for the class.
fn is_set_to_only_local(service: &Service) -> bool {
    let is_open = matches!(service.annotations.get(CLASS), Some("shared" | "dedicated"));
    service.external_policy == Policy::Local && !is_open
}

#[cfg(test)]
mod tests {
    use uturn_model::lb::ListenerProtocol;

    use super::*;
    use crate::cloud::product::tests::{PORTS, plan_of, service};

    #[test]
    fn the_class_or_a_new_one_tells_the_kind() {
        for (annotations, elb) in [
            (&[(CLASS, "union")][..], &SHARED),
            (&[(CLASS, "shared")], &SHARED),
            (&[(CLASS, "performance")], &DEDICATED),
            (&[(CLASS, "dedicated")], &DEDICATED),
            (&[("kubernetes.io/elb.id", "1")], &SHARED),
            (&[(NEW, r#"{"type": "inner", "l4_flavor_name": "small"}"#)], &DEDICATED),
            (&[(NEW, r#"{"type": "public"}"#)], &SHARED),
        ] {
            assert_eq!(of(&service(annotations, &PORTS)).name, elb.name, "{annotations:?}");
        }
    }

    #[test]
    fn the_source_is_kept_by_kind_annotation_and_policy() {
        let is_kept = |elb: &Elb, annotations, policy| {
            let mut service = service(annotations, &PORTS);
            service.external_policy = policy;
            plan_of(elb, &service, 80).profile.source == Source::Kept
        };
        assert!(is_kept(&DEDICATED, &[], Policy::Cluster));
        assert!(!is_kept(&SHARED, &[], Policy::Cluster));
        assert!(is_kept(&SHARED, &[], Policy::Local));
        assert!(is_kept(&SHARED, &[(KEEPS_SOURCE, "true")], Policy::Cluster));
        let asked = service(&[("kubernetes.io/elb.protocol-port", "https:443,http:80")], &PORTS);
        let tls = plan_of(&DEDICATED, &asked, 443);
        assert_eq!(tls.protocol, ListenerProtocol::Https);
        assert!(
            matches!(tls.profile.source, Source::Replaced(_)) && tls.profile.assumption.is_some()
        );
    }

    #[test]
    fn an_annotation_or_policy_local_leaves_the_address_to_it() {
        let is_left = |annotations, policy| {
            let mut service = service(annotations, &PORTS);
            service.external_policy = policy;
            SHARED.is_left_to_balancer(&service)
        };
        assert!(!is_left(&[], Policy::Cluster) && is_left(&[], Policy::Local));
        assert!(is_left(&[(PASS_THROUGH, "true")], Policy::Cluster));
        assert!(is_left(&[(PASS_THROUGH, "onlyLocal")], Policy::Local));
        assert!(!is_left(&[(PASS_THROUGH, "false")], Policy::Local));
        assert!(!is_left(&[(CLASS, "dedicated")], Policy::Local), "the open controller");
    }

    #[test]
    fn without_node_ports_pods_are_the_targets() {
        let mut asked = service(&[], &PORTS);
        assert_eq!(plan_of(&DEDICATED, &asked, 80).targets, Targets::NodesWithPods);
        asked.allocates_node_ports = false;
        assert_eq!(plan_of(&DEDICATED, &asked, 80).targets, Targets::Pods);
    }
}
