//! `ModifyLoadBalancersProject`.

use uturn_cloud_api::clb::{ModifyLoadBalancersProjectRequest, ModifyLoadBalancersProjectResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check;
use crate::state::Transaction;

/// The most ids of a request.
const MAX_IDS: usize = 20;

/// `ModifyLoadBalancersProject`: moves all of the load balancers or none. Every project counts as
/// existing.
pub(in crate::actions) fn modify(
    transaction: &mut Transaction<'_>,
    request: &ModifyLoadBalancersProjectRequest,
) -> Result<ModifyLoadBalancersProjectResponse, ApiError> {
    check::count("LoadBalancerIds", &request.load_balancer_ids, 1..=MAX_IDS)?;
    for id in &request.load_balancer_ids {
        let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
        load_balancer.project = request.project_id;
    }
    Ok(ModifyLoadBalancersProjectResponse {})
}
