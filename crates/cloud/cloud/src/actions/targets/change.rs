//! Changes the weights and ports of targets of one listener or rule.

use uturn_cloud_api::clb::{
    ModifyTargetPortRequest, ModifyTargetPortResponse, ModifyTargetWeightRequest,
    ModifyTargetWeightResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::group::{RuleName, targets_mut};
use super::named::{self, NamedTarget, duplicate, read_weight};
use crate::actions::{check, find};
use crate::state::{Target, Transaction};

/// The most targets of a request.
const MAX_TARGETS: usize = 20;

/// The code for an unknown id; these actions have no special one.
const MISSING: ErrorCode = ErrorCode::InvalidParameter;

/// `ModifyTargetWeight`. A target's own weight takes precedence over the request's.
pub(in crate::actions) fn modify_weight(
    transaction: &mut Transaction<'_>,
    request: &ModifyTargetWeightRequest,
) -> Result<ModifyTargetWeightResponse, ApiError> {
    let named = named::read_all(&request.targets, "Targets", MAX_TARGETS)?;
    let weight = request.weight.map(|weight| read_weight("Weight", weight)).transpose()?;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    let rule =
        RuleName::new(request.location_id.as_ref(), request.domain.as_ref(), request.url.as_ref());
    let targets = targets_mut(listener, rule, MISSING)?;
    for target in &named {
        set_weight(targets, target, weight)?;
    }
    Ok(ModifyTargetWeightResponse::default())
}

/// Sets the weight of a bound target. If neither the target nor the request has a weight, sets the
/// default.
///
/// # Errors
///
/// Returns `InvalidParameter` for a target that is not bound.
pub(super) fn set_weight(
    targets: &mut [Target],
    named: &NamedTarget,
    weight: Option<u8>,
) -> Result<(), ApiError> {
    let bound = bound_mut(targets, named)?;
    bound.weight = match named.weight.or(weight) {
        Some(weight) => weight,
        None => named.bind(bound.registered).weight,
    };
    Ok(())
}

/// Returns the bound target.
///
/// # Errors
///
/// Returns `InvalidParameter` for a target that is not bound.
pub(super) fn bound_mut<'t>(
    targets: &'t mut [Target],
    named: &NamedTarget,
) -> Result<&'t mut Target, ApiError> {
    let bound = targets.iter_mut().find(|bound| named.is(bound));
    bound.ok_or_else(|| check::parameter_error(format!("{} is not bound", named.describe())))
}

/// `ModifyTargetPort`.
pub(in crate::actions) fn modify_port(
    transaction: &mut Transaction<'_>,
    request: &ModifyTargetPortRequest,
) -> Result<ModifyTargetPortResponse, ApiError> {
    let named = named::read_all(&request.targets, "Targets", MAX_TARGETS)?;
    let new_port = check::port("NewPort", request.new_port)?;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    let rule =
        RuleName::new(request.location_id.as_ref(), request.domain.as_ref(), request.url.as_ref());
    let targets = targets_mut(listener, rule, MISSING)?;
    for target in &named {
        if target.port != new_port
            && targets.iter().any(|bound| bound.is_same(&target.holder, new_port))
        {
            let message = format!("{} is bound at port {new_port} already", target.describe());
            return Err(duplicate(&message));
        }
        bound_mut(targets, target)?.port = new_port;
    }
    Ok(ModifyTargetPortResponse::default())
}
