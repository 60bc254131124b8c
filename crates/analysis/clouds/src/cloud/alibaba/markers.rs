//! The markers by which the cloud is recognised, and the product of a Service.

use uturn_model::Service;

use super::annotations::{CLASS, TYPE, get};
use super::{clb, nlb};
use crate::cloud::Markers;

/// The markers that the cloud leaves on objects.
pub(super) const MARKERS: Markers = Markers {
    provider_ids: &["alicloud://", "ack-hybrid://"],
    provider_id_part: region,
    node_keys: &["alibabacloud.com/"],
    service_keys: &[
        "service.beta.kubernetes.io/alibaba-cloud-",
        "service.beta.kubernetes.io/alicloud-",
        "service.beta.kubernetes.io/backend-type",
    ],
    service_product: product,
    load_balancer_classes: &[("alibabacloud.com/nlb", nlb::NAME)],
    host_names: &[(".nlb.aliyuncs.com", nlb::NAME), (".alb.aliyuncs.com", "Alibaba Cloud ALB")],
    ingress_controllers: &[("ingress.k8s.alibabacloud/alb", "Alibaba Cloud ALB")],
    ..Markers::NONE
};

/// Returns the region of a providerID without a scheme: `cn-hangzhou.i-bp1…`.
fn region(id: &str) -> Option<&str> {
    let (region, instance) = id.split_once('.')?;
    let is_region = region.contains('-')
        && region.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (is_region && instance.starts_with("i-")).then_some(region)
}

/// Returns whether a Service gets a Network Load Balancer: its class decides, or without a class
/// its annotations and status.
pub(super) fn is_network(service: &Service) -> bool {
    match service.load_balancer_class.as_deref() {
        Some(class) => MARKERS.load_balancer_classes.iter().any(|(known, _)| *known == class),
        None => product(service) == Some(nlb::NAME),
    }
}

/// Returns the product of a Service without a class. Returns `None` if an annotation names another
/// controller.
fn product(service: &Service) -> Option<&'static str> {
    if service.annotations.get(CLASS).is_some_and(|class| !class.is_empty()) {
        return None;
    }
    let mut names = service.load_balancer.iter().filter_map(|entry| entry.hostname.as_deref());
    match get(service, TYPE) {
        Some("nlb") => Some(nlb::NAME),
        _ if names.any(|name| name.ends_with(".nlb.aliyuncs.com")) => Some(nlb::NAME),
        _ => Some(clb::NAME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{PORTS, service};

    #[test]
    fn annotations_name_the_product() {
        let key = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-type";
        assert_eq!(product(&service(&[], &PORTS)), Some(clb::NAME));
        assert_eq!(product(&service(&[(key, "nlb")], &PORTS)), Some(nlb::NAME));
        assert_eq!(product(&service(&[(CLASS, "another")], &PORTS)), None);
    }
}
