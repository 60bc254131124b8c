//! The load balancer that k3s includes: for each Service, a pod on each node accepts connections at
//! the Service's ports of the node and forwards them to the Service. The addresses of those nodes
//! are the status.

use uturn_model::service::ServicePort;
use uturn_model::{Family, NamespacedName, Pod, Service};

use super::{CloudEntry, Markers, PortPlan, Product, StatusShape};

const NAME: &str = "K3s ServiceLB";

/// The description of k3s.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&OnNodes],
    serves_services_only: true,
    writes: StatusShape::Addresses,
    ..CloudEntry::recognised(
        "k3s",
        NAME,
        Markers {
            service_keys: &["svccontroller.k3s.cattle.io/"],
            service_product: |_| Some(NAME),
            service_workloads: &["svclb-"],
            distribution_ids: &["k3s://"],
            ..Markers::NONE
        },
    )
};

/// The load balancer: pods on nodes.
struct OnNodes;

impl Product for OnNodes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_on_nodes(&self) -> bool {
        true
    }

    fn service_of(&self, pod: &Pod) -> Option<NamespacedName> {
        let label = |key: &str| pod.spec.labels.get(&format!("{LABELS}{key}"));
        NamespacedName::new(label("svcnamespace")?, label("svcname")?).ok()
    }

    /// No machine of the load balancer's own listens.
    fn port(&self, _: &Service, _: &ServicePort, _: Family) -> Option<PortPlan> {
        None
    }
}

/// The prefix of the labels with which the load balancer's pods name the Service.
const LABELS: &str = "svccontroller.k3s.cattle.io/";
