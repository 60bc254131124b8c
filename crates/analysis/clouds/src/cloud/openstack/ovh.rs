//! OVHcloud, whose clusters run on OpenStack: load balancers of Octavia, and before them its own
//! proxies.

use uturn_model::lb::ProxyVersion;
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::octavia::{Driver, Octavia};
use crate::cloud::product::{plain_protocol, proxying};
use crate::cloud::{Annotation, CloudEntry, Markers, PortPlan, Product, ValueKind, Words};

const OCTAVIA_NAME: &str = "OVHcloud Public Cloud Load Balancer";
const OWN_NAME: &str = "OVHcloud Load Balancer for Kubernetes";

/// The description of OVHcloud.
pub static OVH: CloudEntry = CloudEntry {
    annotations: &[READ],
    words: Words::with_firewall("security group"),
    products: &[&OCTAVIA, &Own],
    ..CloudEntry::recognised(
        "ovh",
        "OVHcloud",
        Markers {
            own_node_keys: &["node.k8s.ovh/"],
            service_keys: &[
                "loadbalancer.ovhcloud.com/",
                "service.beta.kubernetes.io/ovh-loadbalancer-",
            ],
            host_names: &[(".k8s.ovh.net", OWN_NAME)],
            service_product: |service| Some(product(service)),
            ..Markers::NONE
        },
    )
};

/// The load balancers of Octavia. The vendor's documentation states that targets have health checks
/// unless an annotation switches them off.
const OCTAVIA: Octavia =
    Octavia { name: OCTAVIA_NAME, driver: Driver::AmphoraOnly, makes_monitors: Some(true) };

/// Returns the product of a Service: the cloud's own proxies if their class or an annotation that
/// only they read asks for them. Clusters of Kubernetes 1.32 and later have only load balancers of
/// Octavia.
fn product(service: &Service) -> &'static str {
    let is_own = match service.annotations.get(CLASS).map(str::trim) {
        Some(class) => class.eq_ignore_ascii_case("iolb"),
        None => service.annotations.get(PROXY_PROTOCOL).is_some(),
    };
    if is_own { OWN_NAME } else { OCTAVIA_NAME }
}

/// The cloud's own proxies.
struct Own;

impl Product for Own {
    fn name(&self) -> &'static str {
        OWN_NAME
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let mut plan = proxying(OWN_NAME, service, plain_protocol(port), family);
        plan.profile.proxy_header = match service.annotations.get(PROXY_PROTOCOL).map(str::trim) {
            Some("v1") => Some(ProxyVersion::V1),
            // Some versions add details of TLS to the header.
            Some(word) if word.starts_with("v2") => Some(ProxyVersion::V2),
            _ => None,
        };
        Some(plan)
    }
}

const CLASS: &str = "loadbalancer.ovhcloud.com/class";
/// The annotation for the PROXY header of the cloud's own proxies: `v1`, `v2`, `v2-ssl`,
/// `v2-ssl-cn`.
const PROXY_PROTOCOL: &str = "service.beta.kubernetes.io/ovh-loadbalancer-proxy-protocol";

/// The annotations of OVHcloud that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::new(CLASS, ValueKind::Words(&["iolb", "octavia"])),
    Annotation::new(PROXY_PROTOCOL, ValueKind::Words(&["v1", "v2", "v2-ssl", "v2-ssl-cn"])),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{plan_of, service};

    #[test]
    fn the_class_or_an_older_key_tells_the_product() {
        let of = |notes: &[(&str, &str)]| product(&service(notes, &[80]));
        assert_eq!(of(&[(CLASS, "octavia")]), OCTAVIA_NAME);
        assert_eq!(of(&[(CLASS, "iolb")]), OWN_NAME);
        assert_eq!(of(&[(PROXY_PROTOCOL, "v2")]), OWN_NAME);
        assert_eq!(of(&[(PROXY_PROTOCOL, "v2"), (CLASS, "octavia")]), OCTAVIA_NAME);
        assert_eq!(of(&[("loadbalancer.ovhcloud.com/flavor", "small")]), OCTAVIA_NAME);
    }

    #[test]
    fn words_of_the_proxy_header() {
        let of = |word| plan_of(&Own, &service(&[(PROXY_PROTOCOL, word)], &[80]), 80).profile;
        assert_eq!(of("v1").proxy_header, Some(ProxyVersion::V1));
        assert_eq!(of("v2-ssl-cn").proxy_header, Some(ProxyVersion::V2));
        assert_eq!(of("no").proxy_header, None);
    }
}
