//! `SetLoadBalancerStartStatus`.

use uturn_cloud_api::clb::{SetLoadBalancerStartStatusRequest, SetLoadBalancerStartStatusResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::{check, find};
use crate::state::Transaction;

/// `SetLoadBalancerStartStatus`: starts or stops a load balancer, or some of its listeners.
pub(in crate::actions) fn set(
    transaction: &mut Transaction<'_>,
    request: &SetLoadBalancerStartStatusRequest,
) -> Result<SetLoadBalancerStartStatusResponse, ApiError> {
    check::choice("OperationType", &request.operation_type, &["Start", "Stop"])?;
    let is_stopped = request.operation_type == "Stop";
    let now = transaction.context.now;
    let id = &request.load_balancer_id;
    let load_balancer = transaction.load_balancer_mut(id, ErrorCode::InvalidParameter)?;
    let listeners = request.listener_ids.clone().unwrap_or_default();
    if load_balancer.listeners.is_empty() && listeners.is_empty() {
        let message = format!("{id} has no listener to be started or stopped");
        return Err(ApiError::new(ErrorCode::NoListenerInLb, message));
    }
    if listeners.is_empty() {
        load_balancer.is_stopped = is_stopped;
        load_balancer.status_changed = now;
    }
    for listener in &listeners {
        let code = ErrorCode::ListenerIdNotFound;
        find::listener_mut(load_balancer, listener, code)?.is_stopped = is_stopped;
    }
    Ok(SetLoadBalancerStartStatusResponse {})
}
