//! What annotations make the load balancer do otherwise.

use uturn_model::Service;

use crate::cloud::remedy::{NAME_COSTS, OWN_NAME};
use crate::cloud::{NewStatus, Remedy, Want};

/// What brings about something that is wanted. It replaces the client's address anyway.
pub(super) fn remedies(_: &Service, want: Want, name: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![
            Remedy::annotation(HOST_NAME, name)
                .with_status(NewStatus::OnlyName)
                .needs(OWN_NAME.0, None, OWN_NAME.1)
                .costs(NAME_COSTS),
        ],
        _ => Vec::new(),
    }
}

const HOST_NAME: &str = "load-balancer.hetzner.cloud/hostname";
