//! Targets of several listeners and rules of one load balancer at once.
//!
//! These actions are synchronous, yet clients ask for their tasks. Binding a target that is bound
//! sets its weight, and unbinding one that is not bound does nothing, as clients expect that repeat
//! a batch.

use uturn_cloud_api::clb::{
    BatchDeregisterTargetsRequest, BatchDeregisterTargetsResponse, BatchModifyTargetTagRequest,
    BatchModifyTargetTagResponse, BatchModifyTargetWeightRequest, BatchModifyTargetWeightResponse,
    BatchRegisterTargetsRequest, BatchRegisterTargetsResponse, BatchTarget,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::change::{bound_mut, set_weight};
use super::group::{RuleName, targets_mut};
use super::named::{NamedTarget, read_all, read_weight};
use super::refused;
use crate::actions::{check, find};
use crate::state::{Target, Transaction};

/// The most targets of a request.
const MAX_TARGETS: usize = 500;
/// The most rules of a request that changes weights.
const MAX_RULES: usize = 100;
/// The most targets of one rule in such a request.
const MAX_TARGETS_OF_RULE: usize = 50;

/// `BatchRegisterTargets`.
pub(in crate::actions) fn register_batch(
    transaction: &mut Transaction<'_>,
    request: &BatchRegisterTargetsRequest,
) -> Result<BatchRegisterTargetsResponse, ApiError> {
    let (inventory, region) = (transaction.context.inventory, transaction.context.region);
    let now = transaction.context.now;
    each(transaction, &request.load_balancer_id, &request.targets, |targets, named| {
        named.check_exists(inventory, region)?;
        match targets.iter_mut().find(|bound| named.is(bound)) {
            Some(bound) => *bound = Target { registered: bound.registered, ..named.bind(now) },
            None => targets.push(named.bind(now)),
        }
        Ok(())
    })?;
    let named = request.targets.iter().enumerate();
    let named = named.map(|(at, target)| NamedTarget::read_batch(target, &format!("Targets.{at}")));
    refused::check(transaction, named.collect::<Result<Vec<_>, _>>()?.iter())?;
    transaction.leave_task();
    Ok(BatchRegisterTargetsResponse { fail_listener_id_set: Some(Vec::new()), message: None })
}

/// `BatchDeregisterTargets`.
pub(in crate::actions) fn deregister_batch(
    transaction: &mut Transaction<'_>,
    request: &BatchDeregisterTargetsRequest,
) -> Result<BatchDeregisterTargetsResponse, ApiError> {
    each(transaction, &request.load_balancer_id, &request.targets, |targets, named| {
        targets.retain(|bound| !named.is(bound));
        Ok(())
    })?;
    transaction.leave_task();
    Ok(BatchDeregisterTargetsResponse { fail_listener_id_set: Some(Vec::new()), message: None })
}

/// Applies a change for each target of a batch to the target's group.
fn each(
    transaction: &mut Transaction<'_>,
    load_balancer: &str,
    batch: &[BatchTarget],
    mut change: impl FnMut(&mut Vec<Target>, &NamedTarget) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    check::count("Targets", batch, 1..=MAX_TARGETS)?;
    let load_balancer = transaction.load_balancer_mut(load_balancer, ErrorCode::LbIdNotFound)?;
    for (index, target) in batch.iter().enumerate() {
        let named = NamedTarget::read_batch(target, &format!("Targets.{index}"))?;
        let listener =
            find::listener_mut(load_balancer, &target.listener_id, ErrorCode::ListenerIdNotFound)?;
        let rule = RuleName::new(target.location_id.as_ref(), None, None);
        change(targets_mut(listener, rule, ErrorCode::LocationNotFound)?, &named)?;
    }
    Ok(())
}

/// `BatchModifyTargetWeight`.
pub(in crate::actions) fn modify_weights(
    transaction: &mut Transaction<'_>,
    request: &BatchModifyTargetWeightRequest,
) -> Result<BatchModifyTargetWeightResponse, ApiError> {
    let rules = &request.modify_list;
    check::count("ModifyList", rules, 1..=MAX_RULES)?;
    let all: usize = rules.iter().map(|rule| rule.targets.len()).sum();
    if all > MAX_TARGETS {
        let message = format!("`ModifyList` has {all} targets in all; {MAX_TARGETS} are allowed");
        return Err(ApiError::new(ErrorCode::ValueLength, message));
    }
    let missing = ErrorCode::InvalidParameter;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, missing)?;
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("ModifyList.{index}");
        let named = read_all(&rule.targets, &format!("{path}.Targets"), MAX_TARGETS_OF_RULE)?;
        let weight = rule.weight.map(|weight| read_weight(&format!("{path}.Weight"), weight));
        let weight = weight.transpose()?;
        let listener = find::listener_mut(load_balancer, &rule.listener_id, missing)?;
        let name =
            RuleName::new(rule.location_id.as_ref(), rule.domain.as_ref(), rule.url.as_ref());
        let targets = targets_mut(listener, name, missing)?;
        for target in &named {
            set_weight(targets, target, weight)?;
        }
    }
    Ok(BatchModifyTargetWeightResponse::default())
}

/// `BatchModifyTargetTag`.
pub(in crate::actions) fn modify_tags(
    transaction: &mut Transaction<'_>,
    request: &BatchModifyTargetTagRequest,
) -> Result<BatchModifyTargetTagResponse, ApiError> {
    check::count("ModifyList", &request.modify_list, 1..=MAX_RULES)?;
    let missing = ErrorCode::InvalidParameter;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, missing)?;
    for (index, rule) in request.modify_list.iter().enumerate() {
        let path = format!("ModifyList.{index}.Targets");
        let named = read_all(&rule.targets, &path, MAX_TARGETS_OF_RULE)?;
        let listener = find::listener_mut(load_balancer, &rule.listener_id, missing)?;
        let name = RuleName::new(rule.location_id.as_ref(), None, None);
        let targets = targets_mut(listener, name, missing)?;
        for target in &named {
            bound_mut(targets, target)?.tag = target.tag.clone().or_else(|| rule.tag.clone());
        }
    }
    Ok(BatchModifyTargetTagResponse::default())
}
