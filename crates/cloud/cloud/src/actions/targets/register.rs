//! Binds and unbinds targets of one listener or rule.

use uturn_cloud_api::clb::{
    DeregisterTargetsRequest, DeregisterTargetsResponse, RegisterTargetsRequest,
    RegisterTargetsResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::group::{RuleName, targets_mut};
use super::named::{self, duplicate};
use super::refused;
use crate::actions::{check, find};
use crate::state::Transaction;

/// The most targets of a request.
const MAX_TARGETS: usize = 20;

/// The code for an unknown id; these actions have no special one.
const MISSING: ErrorCode = ErrorCode::InvalidParameter;

/// `RegisterTargets`. INF: a target that is already bound is refused.
pub(in crate::actions) fn register(
    transaction: &mut Transaction<'_>,
    request: &RegisterTargetsRequest,
) -> Result<RegisterTargetsResponse, ApiError> {
    let named = named::read_all(&request.targets, "Targets", MAX_TARGETS)?;
    let (inventory, region) = (transaction.context.inventory, transaction.context.region);
    for target in &named {
        target.check_exists(inventory, region)?;
    }
    refused::check(transaction, named.iter())?;
    let now = transaction.context.now;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    let rule =
        RuleName::new(request.location_id.as_ref(), request.domain.as_ref(), request.url.as_ref());
    let targets = targets_mut(listener, rule, MISSING)?;
    for target in named {
        if targets.iter().any(|bound| target.is(bound)) {
            return Err(duplicate(&format!("{} is bound already", target.describe())));
        }
        targets.push(target.bind(now));
    }
    Ok(RegisterTargetsResponse::default())
}

/// `DeregisterTargets`. INF: a target that is not bound is refused.
pub(in crate::actions) fn deregister(
    transaction: &mut Transaction<'_>,
    request: &DeregisterTargetsRequest,
) -> Result<DeregisterTargetsResponse, ApiError> {
    let named = named::read_all(&request.targets, "Targets", MAX_TARGETS)?;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    let rule =
        RuleName::new(request.location_id.as_ref(), request.domain.as_ref(), request.url.as_ref());
    let targets = targets_mut(listener, rule, MISSING)?;
    for target in named {
        let position = targets
            .iter()
            .position(|bound| target.is(bound))
            .ok_or_else(|| check::parameter_error(format!("{} is not bound", target.describe())))?;
        targets.remove(position);
    }
    Ok(DeregisterTargetsResponse::default())
}
