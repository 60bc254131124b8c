//! What annotations make load balancers of Octavia do otherwise.

use uturn_model::Service;

use super::annotations::{HEALTH_MONITOR, HOST_NAME, key};
use crate::cloud::remedy::{NAME_COSTS, own_name};
use crate::cloud::{NewStatus, Remedy, Want};

/// What brings about something that is wanted. A proxy replaces the client's address anyway, and OVN
/// does where a client is its own target.
pub(super) fn remedies(_: &Service, want: Want, name: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![
            own_name(Remedy::annotation(key(HOST_NAME), name), name)
                .with_status(NewStatus::OnlyName)
                .costs(NAME_COSTS),
        ],
        Want::HealthChecks => vec![Remedy::annotation(key(HEALTH_MONITOR), "true")],
        _ => Vec::new(),
    }
}
