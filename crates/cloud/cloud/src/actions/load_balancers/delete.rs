//! `DeleteLoadBalancer`.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use uturn_cloud_api::clb::{DeleteLoadBalancerRequest, DeleteLoadBalancerResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::{self, operation_error};
use crate::state::{LoadBalancer, Transaction};

/// The most ids of a request.
const MAX_IDS: usize = 20;
/// The number of targets from which on a deletion has to be forced.
const MANY_TARGETS: usize = 20;
/// The period in which deletions are counted.
const COUNTED: SignedDuration = SignedDuration::from_mins(5);

/// `DeleteLoadBalancer`: deletes all load balancers of the request or none. Recent traffic is not
/// checked, because a data plane does not report it.
pub(in crate::actions) fn delete(
    transaction: &mut Transaction<'_>,
    request: &DeleteLoadBalancerRequest,
) -> Result<DeleteLoadBalancerResponse, ApiError> {
    check::count("LoadBalancerIds", &request.load_balancer_ids, 1..=MAX_IDS)?;
    let is_forced = request.force_delete.unwrap_or(false);
    let ids: BTreeSet<String> = request.load_balancer_ids.iter().cloned().collect();
    for id in &ids {
        let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
        check_deletable(load_balancer, is_forced)?;
    }
    if !is_forced {
        check_frequency(transaction, ids.len())?;
    }
    for id in &ids {
        transaction.remove_load_balancer(id);
    }
    Ok(DeleteLoadBalancerResponse {})
}

fn check_deletable(load_balancer: &LoadBalancer, is_forced: bool) -> Result<(), ApiError> {
    let id = &load_balancer.id;
    if load_balancer.is_delete_protected {
        let message = format!("{id} is protected against deletion (DeleteProtect)");
        return Err(operation_error(message));
    }
    if load_balancer.charge_type == "PREPAID" {
        return Err(operation_error(format!("{id} is prepaid and cannot be deleted here")));
    }
    let targets = load_balancer.targets().count();
    if !is_forced && targets >= MANY_TARGETS {
        let message = format!("{id} has {targets} targets; the parameter `ForceDelete` is needed");
        return Err(ApiError::new(ErrorCode::TargetNumCheckRisk, message));
    }
    Ok(())
}

/// Refuses deletions beyond the quota of five minutes.
fn check_frequency(transaction: &Transaction<'_>, number: usize) -> Result<(), ApiError> {
    let since = transaction.context.now - COUNTED;
    let limit = transaction.context.quotas.deletions;
    let deleted = deletions_since(transaction, since);
    if deleted + number <= limit {
        return Ok(());
    }
    let message = format!(
        "{deleted} load balancers were deleted in the last five minutes; more than {limit} need \
         the parameter `ForceDelete`"
    );
    Err(ApiError::new(ErrorCode::FrequencyCheckRisk, message))
}

/// Returns the number of load balancers deleted since this time: those that tasks of that time name
/// and that no longer exist.
fn deletions_since(transaction: &Transaction<'_>, since: Timestamp) -> usize {
    let tasks = transaction.tasks().values().filter(|task| task.began >= since);
    let named: BTreeSet<&String> = tasks.flat_map(|task| &task.load_balancers).collect();
    named.into_iter().filter(|id| transaction.load_balancer(id).is_none()).count()
}
