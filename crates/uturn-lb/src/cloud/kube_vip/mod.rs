//! kube-vip: a leader announces the addresses of Services, and has them on an interface.

use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Family, Node, Service};

use super::{Annotation, CloudEntry, Holds, Traces};
use crate::cloud::product::{Announced, PortPlan, Product};

const NAME: &str = "kube-vip";

/// The node that has the addresses of a Service, which kube-vip itself writes.
const HOST: &str = "kube-vip.io/vipHost";

/// The load balancer: the leader has the address on an interface.
struct OnLeader;

impl Product for OnLeader {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_announced(&self) -> bool {
        true
    }

    fn reads_exclusion(&self, _: &Cluster) -> bool {
        false
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        Announced(NAME).port(service, port, family)
    }

    fn is_held_by(&self, service: &Service, node: &Node) -> bool {
        service.annotations.is(HOST, node.name.as_str())
    }
}

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&OnLeader],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "kube-vip",
        NAME,
        Traces {
            service_keys: &["kube-vip.io/"],
            load_balancer_classes: &[("kube-vip.io/", NAME)],
            program_names: &["kube-vip"],
            ..Traces::NONE
        },
    )
};

/// What its annotations hold.
const READ: &[Annotation] = &[Annotation::new(HOST, Holds::Names)];
