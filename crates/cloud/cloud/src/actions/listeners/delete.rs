//! `DeleteListener` and `DeleteLoadBalancerListeners`.

use uturn_cloud_api::clb::{
    DeleteListenerRequest, DeleteListenerResponse, DeleteLoadBalancerListenersRequest,
    DeleteLoadBalancerListenersResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::{self, parameter_error};
use crate::actions::find;
use crate::actions::rules::redirections;
use crate::state::{LoadBalancer, Transaction};

/// The most ids of a request.
const MAX_IDS: usize = 20;
/// The code for unknown ids.
const MISSING: ErrorCode = ErrorCode::InvalidParameter;

/// `DeleteListener`.
pub(in crate::actions) fn delete(
    transaction: &mut Transaction<'_>,
    request: &DeleteListenerRequest,
) -> Result<DeleteListenerResponse, ApiError> {
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    find::listener(load_balancer, &request.listener_id, MISSING)?;
    remove(load_balancer, std::slice::from_ref(&request.listener_id));
    Ok(DeleteListenerResponse {})
}

/// `DeleteLoadBalancerListeners`: deletes these listeners, or all. One unknown id fails the whole
/// request, with a message that clients evaluate.
pub(in crate::actions) fn delete_several(
    transaction: &mut Transaction<'_>,
    request: &DeleteLoadBalancerListenersRequest,
) -> Result<DeleteLoadBalancerListenersResponse, ApiError> {
    let wanted = request.listener_ids.clone().unwrap_or_default();
    check::count("ListenerIds", &wanted, 0..=MAX_IDS)?;
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    let unknown: Vec<&str> = wanted
        .iter()
        .filter(|id| load_balancer.listener(id).is_none())
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        return Err(parameter_error(format!("some ListenerId {} not found", unknown.join(","))));
    }
    let ids = if wanted.is_empty() {
        load_balancer.listeners.iter().map(|listener| listener.id.clone()).collect()
    } else {
        wanted
    };
    remove(load_balancer, &ids);
    Ok(DeleteLoadBalancerListenersResponse {})
}

fn remove(load_balancer: &mut LoadBalancer, ids: &[String]) {
    load_balancer.listeners.retain(|listener| !ids.contains(&listener.id));
    redirections::forget_broken(load_balancer);
}
