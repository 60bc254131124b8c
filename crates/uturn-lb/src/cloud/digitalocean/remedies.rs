//! What annotations make the load balancer do otherwise.

use uturn_model::Service;

use crate::cloud::remedy::{NAME_COSTS, own_name};
use crate::cloud::{NewStatus, Remedy, Want};

/// What brings about something that is wanted. It replaces the client's address anyway.
pub(super) fn remedies(_: &Service, want: Want, name: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![
            own_name(Remedy::annotation(HOST_NAME, name), name)
                .with_status(NewStatus::OnlyName)
                .costs(NAME_COSTS),
        ],
        _ => Vec::new(),
    }
}

pub(super) const HOST_NAME: &str = "service.beta.kubernetes.io/do-loadbalancer-hostname";
