//! Oracle Cloud and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `lb` | the Load Balancer: a proxy in front of node ports |
//! | `nlb` | the Network Load Balancer: it passes packets on to node ports |
//! | `remedies` | what annotations make them do otherwise |

mod lb;
mod nlb;
mod remedies;

use uturn_model::Service;
use uturn_model::lb::{HealthCheck, HealthQuestion};
use uturn_model::service::Policy;

use super::{Annotation, CloudEntry, Markers, ValueKind, Words};
use crate::cloud::product::check;

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
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

/// The product of a Service: an annotation asks for the Network Load Balancer.
fn product(service: &Service) -> &'static str {
    match service.annotations.get(TYPE) {
        Some(kind) if kind.eq_ignore_ascii_case("nlb") => nlb::NAME,
        _ => lb::NAME,
    }
}

/// Health checks ask the node's kube-proxy: whether it works, and under policy Local whether the
/// node has an endpoint.
fn health_check(service: &Service) -> HealthCheck {
    let question = match service.external_policy {
        Policy::Local => HealthQuestion::LocalEndpoint,
        Policy::Cluster => HealthQuestion::ServiceProxy,
    };
    check(question, (10, 3))
}

/// What its annotations hold.
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
