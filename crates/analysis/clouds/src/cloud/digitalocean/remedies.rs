//! Annotations that change the behaviour of the load balancer.

use uturn_model::Service;

use crate::cloud::{Remedy, Want};

/// Returns the remedies for a [`Want`]. A load balancer of the type REGIONAL always replaces the
/// client's address.
pub(super) fn remedies(_: &Service, want: Want, name: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![Remedy::own_name(HOST_NAME, name)],
        _ => Vec::new(),
    }
}

pub(super) const HOST_NAME: &str = "service.beta.kubernetes.io/do-loadbalancer-hostname";
