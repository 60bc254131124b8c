//! Redirections between the rules of a load balancer.

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::value_error;
use crate::state::{LoadBalancer, Redirection};

/// The status of a redirection whose request names none.
const DEFAULT_CODE: i64 = 302;

/// Returns the status that a request asks for.
pub(super) fn code(code: Option<i64>) -> Result<u16, ApiError> {
    match code.unwrap_or(DEFAULT_CODE) {
        301 => Ok(301),
        // Some clients send 0 for a parameter that they leave out.
        302 | 0 => Ok(302),
        307 => Ok(307),
        other => Err(value_error(format!(
            "the parameter `RewriteCode` is {other}; one of 301, 302, 307 is needed"
        ))),
    }
}

/// Redirects a rule.
///
/// # Errors
///
/// Returns `RewriteAlreadyExist` if the rule is redirected already, and `InvalidParameter` if the
/// redirection would be part of a chain: a rule that others are redirected to is not redirected
/// itself.
pub(super) fn add(
    load_balancer: &mut LoadBalancer,
    source: &str,
    redirection: Redirection,
) -> Result<(), ApiError> {
    let target = redirection.rule.as_str();
    let chained = |message: String| Err(ApiError::new(ErrorCode::InvalidParameter, message));
    if source == target {
        return chained(format!("the rule {source} cannot be redirected to itself"));
    }
    let mut rules = load_balancer.listeners.iter().flat_map(|listener| &listener.rules);
    for rule in rules.clone() {
        let Some(existing) = &rule.redirection else { continue };
        if rule.id == source {
            let message = format!("the rule {source} is redirected to {} already", existing.rule);
            return Err(ApiError::new(ErrorCode::RewriteAlreadyExist, message));
        }
        if rule.id == target {
            return chained(format!("the rule {target} is redirected to {}", existing.rule));
        }
        if existing.rule == source {
            return chained(format!("the rule {} is redirected to {source}", rule.id));
        }
    }
    if !rules.any(|rule| rule.id == target) {
        let message = format!("the rule {target} does not exist");
        return Err(ApiError::new(ErrorCode::LocationNotFound, message));
    }
    let mut rules = load_balancer.listeners.iter_mut().flat_map(|listener| &mut listener.rules);
    if let Some(rule) = rules.find(|rule| rule.id == source) {
        rule.redirection = Some(redirection);
    }
    Ok(())
}

/// Removes redirections whose target no longer exists. INF: the documentation does not state what
/// happens to them.
pub(in crate::actions) fn forget_broken(load_balancer: &mut LoadBalancer) {
    let rules = load_balancer.listeners.iter().flat_map(|listener| &listener.rules);
    let ids: Vec<String> = rules.map(|rule| rule.id.clone()).collect();
    for rule in load_balancer.listeners.iter_mut().flat_map(|listener| &mut listener.rules) {
        rule.redirection.take_if(|redirection| !ids.contains(&redirection.rule));
    }
}
