//! The markers by which the cloud is recognised, and the product of a Service.

use uturn_model::Service;

use super::annotations::{TYPE, get};
use super::{alb, classic, nlb};
use crate::cloud::Markers;

/// The markers that the cloud leaves on objects.
pub(super) const MARKERS: Markers = Markers {
    provider_ids: &["aws://"],
    node_keys: &["eks.amazonaws.com/", "alpha.eksctl.io/"],
    service_keys: &["service.beta.kubernetes.io/aws-"],
    service_product: product,
    load_balancer_classes: &[("service.k8s.aws/nlb", nlb::NAME), (nlb::AUTO_MODE_CLASS, nlb::NAME)],
    host_names: &[(".amazonaws.com", "AWS"), (".amazonaws.com.cn", "AWS")],
    ingress_controllers: &[
        ("ingress.k8s.aws/alb", alb::NAME),
        (alb::AUTO_MODE_CONTROLLER, alb::NAME),
    ],
    ingress_classes: &[("alb", alb::NAME)],
    ingress_keys: &[(alb::PREFIX, alb::NAME)],
    gateway_classes: &[("gateway.k8s.aws/alb", alb::NAME)],
    ..Markers::NONE
};

/// Returns the product of a Service without a class: `aws-load-balancer-type` determines it,
/// otherwise the form of the name in the status. Any other type, and no type, mean a Classic Load
/// Balancer.
pub(super) fn product(service: &Service) -> Option<&'static str> {
    match get(service, TYPE) {
        Some("nlb" | "nlb-ip" | "external") => return Some(nlb::NAME),
        Some(_) => return Some(classic::NAME),
        None => {}
    }
    let mut names = service.load_balancer.iter().filter_map(|entry| entry.hostname.as_deref());
    Some(if names.any(is_of_nlb) { nlb::NAME } else { classic::NAME })
}

/// Returns whether a host name has the form of a Network Load Balancer: `NAME.elb.REGION.…`.
/// Classic ones have the reverse order: `NAME.REGION.elb.…`.
fn is_of_nlb(host: &str) -> bool {
    host.split('.').nth(1) == Some("elb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_product() {
        assert!(is_of_nlb("k8s-shop-web-0a1b2c-0123456789abcdef.elb.eu-west-1.amazonaws.com"));
        assert!(!is_of_nlb("internal-a0123456789-1234567890.eu-west-1.elb.amazonaws.com"));
    }
}
