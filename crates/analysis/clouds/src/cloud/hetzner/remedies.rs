//! Annotations that change the behaviour of the load balancer.

use uturn_model::Service;

use crate::cloud::{NewStatus, Remedy, Want};

/// Returns the remedies for a [`Want`]. The load balancer always replaces the client's address.
pub(super) fn remedies(_: &Service, want: Want, name: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![Remedy::own_name(HOST_NAME, name)],
        Want::ForeignAddress => vec![
            Remedy::annotation(NO_PRIVATE_ADDRESS, "true")
                .with_status(NewStatus::OnlyPublic)
                .costs("calls of the private address go to the load balancer from everywhere in the network"),
        ],
        _ => Vec::new(),
    }
}

/// The annotation that keeps the load balancer's address in a private network out of the status.
pub(super) const NO_PRIVATE_ADDRESS: &str = "load-balancer.hetzner.cloud/disable-private-ingress";
pub(super) const HOST_NAME: &str = "load-balancer.hetzner.cloud/hostname";
