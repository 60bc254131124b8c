//! F5's controller for its own devices: proxies in front of node ports or pods, which use an
//! address of their own as the source unless a policy states otherwise.

use uturn_model::lb::{BehaviourAssumption, HealthQuestion};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Family, Service};

use super::{Annotation, CloudEntry, Markers, PortPlan, Product, Targets, ValueKind};
use crate::cloud::product::{check, plain_protocol, proxying};

const NAME: &str = "F5 BIG-IP";

/// The description of F5.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&Device],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "f5",
        "F5",
        Markers {
            service_keys: &["cis.f5.com/", "virtual-server.f5.com/"],
            service_product: |_| Some(NAME),
            ..Markers::NONE
        },
    )
};

/// A device.
struct Device;

impl Product for Device {
    fn name(&self) -> &'static str {
        NAME
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let mut plan = proxying(NAME, service, plain_protocol(port), family);
        // Without the annotation there are no health checks; with it, they test whether members
        // accept connections.
        let is_probed = service.annotations.get(HEALTH).is_some();
        plan.profile.health_check = is_probed.then(|| check(HealthQuestion::Target, (5, 16)));
        // A Service without node ports has pods as members.
        if port.node_port.is_none() {
            plan.targets = Targets::Pods;
        }
        let policy = service.annotations.get(POLICY);
        plan.profile.assumption = match (policy, port.node_port, service.external_policy) {
            (Some(policy), ..) => Some(BehaviourAssumption {
                assumed: "it passes connections on with an address of its own, and ends no TLS"
                    .into(),
                because: format!("Policy {policy} of {} is not read", service.object()).into(),
                settle: "look at snat and at the profiles of that Policy".into(),
            }),
            (None, Some(_), Policy::Local) => Some(BehaviourAssumption {
                assumed: "its members are the node ports of all nodes".into(),
                because: "what its controller was told is not given, and this is the default"
                    .into(),
                settle: "look at --pool-member-type of k8s-bigip-ctlr".into(),
            }),
            _ => None,
        };
        Some(plan)
    }
}

const HEALTH: &str = "cis.f5.com/health";
/// The annotation with the name of a Policy, an object of the controller's own that sets profiles,
/// rules and the source address.
const POLICY: &str = "cis.f5.com/policyName";

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] =
    &[Annotation::new(HEALTH, ValueKind::Names), Annotation::new(POLICY, ValueKind::Names)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{plan_of, service};

    #[test]
    fn what_is_not_read_leaves_a_doubt() {
        let mut service = service(&[("cis.f5.com/ip", "192.0.2.80")], &[80]);
        assert_eq!(plan_of(&Device, &service, 80).profile.assumption, None);
        service.external_policy = Policy::Local;
        let settle =
            |service: &Service| plan_of(&Device, service, 80).profile.assumption.unwrap().settle;
        assert!(settle(&service).contains("pool-member-type"));
        service.annotations = [(POLICY, "web")].into_iter().collect();
        assert!(settle(&service).contains("snat"));
    }

    #[test]
    fn without_node_ports_pods_are_members() {
        let mut service = service(&[], &[80]);
        assert_eq!(plan_of(&Device, &service, 80).targets, Targets::Nodes);
        service.ports[0].node_port = None;
        assert_eq!(plan_of(&Device, &service, 80).targets, Targets::Pods);
    }
}
