//! IBM Cloud and its load balancers, of classic clusters and of those in a VPC.
//!
//! | file | what it says |
//! | --- | --- |
//! | `classic` | Network Load Balancers 1.0 and 2.0, which run on the nodes of classic clusters |
//! | `vpc` | Application and Network Load Balancers for VPC |

mod classic;
mod vpc;

use uturn_model::Service;

use super::{Annotation, CloudEntry, Markers, ValueKind};

/// The description of IBM Cloud.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&vpc::Alb, &vpc::Nlb, &classic::Nlb1, &classic::Nlb2],
    ..CloudEntry::recognised(
        "ibm",
        "IBM Cloud",
        Markers {
            provider_ids: &["ibm://"],
            node_keys: &["ibm-cloud.kubernetes.io/"],
            service_keys: &["service.kubernetes.io/ibm-"],
            service_product: |service| Some(product(service)),
            host_names: &[(".appdomain.cloud", "IBM Cloud")],
            ..Markers::NONE
        },
    )
};

/// The annotation with a list of features of the load balancer.
const FEATURES: &str = "service.kubernetes.io/ibm-load-balancer-cloud-provider-enable-features";
/// The annotation for the kind of address: `public` or `private`.
const REACH: &str = "service.kubernetes.io/ibm-load-balancer-cloud-provider-ip-type";

/// Returns whether a Service asks for a feature.
fn asks_for(service: &Service, feature: &str) -> bool {
    let list = service.annotations.get(FEATURES).unwrap_or_default();
    list.split(',').any(|asked| asked.trim() == feature)
}

/// Returns whether a Service asks for a load balancer that is reachable from the private network
/// only. A classic one is public by default.
fn is_private(service: &Service) -> bool {
    service.annotations.is(REACH, "private")
}

/// Returns the product of a Service: the one that it asks for, otherwise by its status. Only load
/// balancers in a VPC have names, and of these only Network Load Balancers also have an address.
fn product(service: &Service) -> &'static str {
    if asks_for(service, "nlb") {
        return vpc::NLB;
    }
    if asks_for(service, "ipvs") {
        return classic::NLB_2;
    }
    let has_name = service.load_balancer.iter().any(|entry| entry.hostname.is_some());
    let has_address = service.load_balancer.iter().any(|entry| entry.ip.is_some());
    match (has_name, has_address) {
        (true, true) => vpc::NLB,
        (false, true) => classic::NLB_1,
        (_, false) => vpc::ALB,
    }
}

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::new(FEATURES, ValueKind::Words(&["nlb", "ipvs", "proxy-protocol"])),
    Annotation::new(REACH, ValueKind::Words(&["public", "private"])),
];

#[cfg(test)]
mod tests {
    use uturn_model::service::{IpMode, LbIngress};

    use super::*;
    use crate::cloud::product::tests::{PORTS, service};

    #[test]
    fn features_and_the_status_tell_the_product() {
        let of = |features: &[(&str, &str)], name: bool, address: bool| {
            let mut service = service(features, &PORTS);
            service.load_balancer = vec![LbIngress {
                ip: address.then(|| "192.0.2.80".parse().unwrap()),
                hostname: name.then(|| "0123-eu-de.lb.appdomain.cloud".into()),
                mode: IpMode::Vip,
            }];
            product(&service)
        };
        assert_eq!(of(&[], true, false), vpc::ALB);
        assert_eq!(of(&[(FEATURES, "proxy-protocol")], true, false), vpc::ALB);
        assert_eq!(of(&[], true, true), vpc::NLB);
        assert_eq!(of(&[(FEATURES, "nlb")], false, false), vpc::NLB);
        assert_eq!(of(&[], false, true), classic::NLB_1);
        assert_eq!(of(&[(FEATURES, "ipvs")], false, true), classic::NLB_2);
        assert_eq!(product(&service(&[], &PORTS)), vpc::ALB, "what new clusters make");
    }
}
