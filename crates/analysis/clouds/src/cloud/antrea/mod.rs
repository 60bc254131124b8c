//! Antrea's ServiceExternalIP: an agent announces the address of a Service from its node.

use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Family, Service};

use super::{Annotation, CloudEntry, Markers, PortPlan, Product, ValueKind};
use crate::cloud::product::Announced;

const NAME: &str = "Antrea ServiceExternalIP";

/// The annotation with the pool that a Service asks for.
const POOL: &str = "service.antrea.io/external-ip-pool";

/// The load balancer: a node of the pool announces the address, under policy Local one with an
/// endpoint.
struct OnNode;

impl Product for OnNode {
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
}

/// The description of Antrea's load balancer. Antrea's other objects and programs do not show it:
/// most clusters with Antrea do not use it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&OnNode],
    annotations: &[&[Annotation::new(POOL, ValueKind::Names)]],
    serves_services_only: true,
    ..CloudEntry::recognised("antrea", NAME, Markers { service_keys: &[POOL], ..Markers::NONE })
};
