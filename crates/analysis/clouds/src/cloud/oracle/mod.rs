//! Oracle Cloud and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `lb` | the Load Balancer: a proxy in front of node ports |
//! | `nlb` | the Network Load Balancer: it forwards packets to node ports |
//! | `remedies` | the annotations that change their behaviour |

mod lb;
mod nlb;
mod remedies;

use uturn_model::Service;
use uturn_model::lb::{HealthCheck, HealthQuestion};
use uturn_model::service::Policy;

use super::{Annotation, CloudEntry, Markers, ValueKind, Words};
use crate::cloud::product::check;

/// The description of Oracle Cloud.
pub static ENTRY: CloudEntry = CloudEntry {
    translates_public_addresses: true,
    annotations: &[READ, lb::READ, nlb::READ],
    words: Words::with_firewall("security list"),
    products: &[&lb::Lb, &nlb::Nlb],
    remedies: remedies::remedies,
    ..CloudEntry::recognised(
        "oracle",
        "Oracle Cloud",
        Markers {
            provider_ids: &["oci://", "ocid1."],
            node_keys: &["oci.oraclecloud.com/"],
            service_keys: &[
                "oci.oraclecloud.com/",
                "service.beta.kubernetes.io/oci-",
                "oci-network-load-balancer.oraclecloud.com/",
            ],
            service_product: |service| Some(product(service)),
            ..Markers::NONE
        },
    )
};

const TYPE: &str = "oci.oraclecloud.com/load-balancer-type";

/// Returns the product of a Service: the Network Load Balancer only if an annotation asks for it.
fn product(service: &Service) -> &'static str {
    match service.annotations.get(TYPE) {
        Some(kind) if kind.eq_ignore_ascii_case("nlb") => nlb::NAME,
        _ => lb::NAME,
    }
}

/// Returns the health check of nodes. It asks the node's kube-proxy whether kube-proxy works, and
/// under policy Local whether the node has an endpoint.
fn health_check(service: &Service) -> HealthCheck {
    let question = match service.external_policy {
        Policy::Local => HealthQuestion::LocalEndpoint,
        Policy::Cluster => HealthQuestion::ServiceProxy,
    };
    check(question, (10, 3))
}

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::new(TYPE, ValueKind::Words(&["lb", "nlb"])),
    Annotation::new(remedies::IP_MODE, ValueKind::Words(&["vip", "proxy"])),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{PORTS, service};

    #[test]
    fn an_annotation_names_the_product() {
        assert_eq!(product(&service(&[], &PORTS)), lb::NAME);
        assert_eq!(product(&service(&[(TYPE, "lb")], &PORTS)), lb::NAME);
        assert_eq!(product(&service(&[(TYPE, "NLB")], &PORTS)), nlb::NAME);
    }
}
