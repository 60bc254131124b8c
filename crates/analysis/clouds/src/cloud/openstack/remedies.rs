//! What annotations make load balancers of Octavia do otherwise.

use uturn_model::Service;

use super::annotations::{HEALTH_MONITOR, HOST_NAME, key};
use crate::cloud::{Remedy, Want};

/// What brings about something that is wanted. A proxy replaces the client's address anyway, and OVN
/// does where a client is its own target.
pub(super) fn remedies(_: &Service, want: Want, name: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![Remedy::own_name(key(HOST_NAME), name)],
        Want::HealthChecks => vec![Remedy::annotation(key(HEALTH_MONITOR), "true")],
        _ => Vec::new(),
    }
}
