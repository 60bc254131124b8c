//! Annotations that change the behaviour of load balancers.

use uturn_model::Service;
use uturn_model::service::Policy;

use super::annotations::{CLASS, KEEPS_SOURCE, PASS_THROUGH};
use super::elb;
use crate::cloud::{Remedy, Want};

/// Returns the remedies for a [`Want`]. A dedicated load balancer always keeps the client's address
/// on layer 4, and a shared one does under policy Local.
pub(super) fn remedies(service: &Service, want: Want, _: &str) -> Vec<Remedy> {
    match want {
        Want::ReplacedSource
            if std::ptr::eq(elb::of(service), &elb::SHARED)
                && service.external_policy == Policy::Cluster =>
        {
            vec![Remedy::annotation(KEEPS_SOURCE, "false")]
        }
        Want::CallsFromInside => vec![
            Remedy::annotation(PASS_THROUGH, "true")
                .needs(
                    "kube-proxy is that of the vendor's clusters",
                    has_own_kube_proxy(service),
                    "an ordinary one, beside the open controller, does not read the annotation",
                )
                .needs(
                    "all Services of the load balancer have it",
                    None,
                    "in IPVS mode one without it binds the address on each node: look at those with \
                     the same kubernetes.io/elb.id",
                ),
        ],
        _ => Vec::new(),
    }
}

/// Returns whether kube-proxy is that of the vendor's own clusters: the open-source controller uses
/// other words for the class. Returns `None` if the class does not show it.
fn has_own_kube_proxy(service: &Service) -> Option<bool> {
    match service.annotations.get(CLASS)? {
        "union" | "performance" => Some(true),
        "shared" | "dedicated" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::service;

    #[test]
    fn only_shared_ones_replace_the_source() {
        let of = |class: &str| service(&[(CLASS, class), (KEEPS_SOURCE, "true")], &[80]);
        assert_eq!(remedies(&of("union"), Want::ReplacedSource, "").len(), 1);
        assert!(remedies(&of("performance"), Want::ReplacedSource, "").is_empty());
        let mut local = of("union");
        local.external_policy = Policy::Local;
        assert!(remedies(&local, Want::ReplacedSource, "").is_empty());
    }

    #[test]
    fn an_ordinary_kube_proxy_passes_nothing_through() {
        let holds = |class: &str| {
            let asked = service(&[(CLASS, class)], &[80]);
            remedies(&asked, Want::CallsFromInside, "").remove(0).needs[0].holds
        };
        assert_eq!(["union", "dedicated", "other"].map(holds), [Some(true), Some(false), None]);
    }
}
