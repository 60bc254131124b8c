//! Annotations that change the behaviour of load balancers of Octavia.

use uturn_model::Service;

use super::annotations::{HEALTH_MONITOR, HOST_NAME, key};
use crate::cloud::{Remedy, Want};

/// Returns the remedies for a [`Want`]. A proxy always replaces the client's address, and OVN does
/// so if a client is its own target.
pub(super) fn remedies(_: &Service, want: Want, name: &str) -> Vec<Remedy> {
    match want {
        Want::CallsFromInside => vec![Remedy::own_name(key(HOST_NAME), name)],
        Want::HealthChecks => vec![Remedy::annotation(key(HEALTH_MONITOR), "true")],
        _ => Vec::new(),
    }
}
