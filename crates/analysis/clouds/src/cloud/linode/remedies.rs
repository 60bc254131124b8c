//! Annotations that change the behaviour of a NodeBalancer.

use uturn_model::Service;

use crate::cloud::remedy::NAME_COSTS;
use crate::cloud::{NewStatus, Remedy, Want};

/// Returns the remedies for a [`Want`]. A NodeBalancer always replaces the client's address.
pub(super) fn remedies(_: &Service, want: Want, _: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![
            Remedy::annotation(ONLY_NAME, "true")
                .with_status(NewStatus::OnlyName)
                .costs(NAME_COSTS),
        ],
        _ => Vec::new(),
    }
}

pub(super) const ONLY_NAME: &str =
    "service.beta.kubernetes.io/linode-loadbalancer-hostname-only-ingress";
