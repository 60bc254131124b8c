//! Decides whether the status of an object names a load balancer.

use uturn_model::ObjectRef;

use crate::environment::{Environment, Status};
use crate::observed::Balancer;

/// Returns whether the status of an object has an address of a load balancer, or its domain.
pub(super) fn has_status(environment: &Environment, object: &ObjectRef, found: &Balancer) -> bool {
    environment.statuses.get(object).is_some_and(|status| has_address(status, found))
}

/// Returns whether a status has an address of a load balancer, or its domain.
pub(super) fn has_address(status: &Status, found: &Balancer) -> bool {
    found.addresses.iter().any(|address| status.addresses.contains(&address.to_string()))
        || found.domain.as_ref().is_some_and(|domain| status.addresses.contains(domain))
}

/// Returns whether a status names a load balancer, by an address, its domain or its id.
pub(super) fn names(status: &Status, found: &Balancer) -> bool {
    has_address(status, found) || status.balancer.as_ref() == Some(&found.id)
}
