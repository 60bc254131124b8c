//! Annotations that change the behaviour of the load balancer.

use uturn_model::Service;

use crate::cloud::remedy::NAME_COSTS;
use crate::cloud::{NewStatus, Remedy, Want};

/// Returns the remedies for a [`Want`]. The load balancer always replaces the client's address.
pub(super) fn remedies(_: &Service, want: Want, _: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![
            Remedy::annotation(IP_MODE, "Proxy").with_status(NewStatus::ModeProxy),
            Remedy::annotation(USE_NAME, "true").with_status(NewStatus::OnlyName).costs(NAME_COSTS),
        ],
        _ => Vec::new(),
    }
}

pub(super) const IP_MODE: &str = "service.beta.kubernetes.io/scw-loadbalancer-ip-mode";
pub(super) const USE_NAME: &str = "service.beta.kubernetes.io/scw-loadbalancer-use-hostname";
