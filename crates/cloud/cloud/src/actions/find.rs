//! Finds load balancers, listeners and rules. The error for an unknown id has the action's code;
//! many actions have no special one and answer `InvalidParameter`.

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::state::{Listener, LoadBalancer, Rule, Transaction};

/// Returns the load balancer with this id, to be read.
pub(super) fn load_balancer<'t>(
    transaction: &'t Transaction<'_>,
    id: &str,
    missing: ErrorCode,
) -> Result<&'t LoadBalancer, ApiError> {
    let found = transaction.load_balancer(id);
    found.ok_or_else(|| ApiError::new(missing, format!("the load balancer {id} does not exist")))
}

/// Returns the listener with this id, to be read.
pub(super) fn listener<'l>(
    load_balancer: &'l LoadBalancer,
    id: &str,
    missing: ErrorCode,
) -> Result<&'l Listener, ApiError> {
    load_balancer.listener(id).ok_or_else(|| no_listener(&load_balancer.id, id, missing))
}

/// Returns the listener with this id, to be changed.
pub(super) fn listener_mut<'l>(
    load_balancer: &'l mut LoadBalancer,
    id: &str,
    missing: ErrorCode,
) -> Result<&'l mut Listener, ApiError> {
    let error = no_listener(&load_balancer.id, id, missing);
    load_balancer.listener_mut(id).ok_or(error)
}

/// Returns the rule with this id, to be read.
pub(super) fn rule<'l>(
    listener: &'l Listener,
    id: &str,
    missing: ErrorCode,
) -> Result<&'l Rule, ApiError> {
    listener.rule(id).ok_or_else(|| no_rule(&listener.id, id, missing))
}

/// Returns the rule with this id, to be changed.
pub(super) fn rule_mut<'l>(
    listener: &'l mut Listener,
    id: &str,
    missing: ErrorCode,
) -> Result<&'l mut Rule, ApiError> {
    let error = no_rule(&listener.id, id, missing);
    listener.rules.iter_mut().find(|rule| rule.id == id).ok_or(error)
}

fn no_listener(load_balancer: &str, id: &str, code: ErrorCode) -> ApiError {
    ApiError::new(code, format!("the listener {id} does not exist on {load_balancer}"))
}

fn no_rule(listener: &str, id: &str, code: ErrorCode) -> ApiError {
    ApiError::new(code, format!("the rule {id} does not exist on {listener}"))
}
