//! Security groups: sets the groups of one load balancer, or binds one group to several.

use uturn_cloud_api::clb::{
    SetLoadBalancerSecurityGroupsRequest, SetLoadBalancerSecurityGroupsResponse,
    SetSecurityGroupForLoadbalancersRequest, SetSecurityGroupForLoadbalancersResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::{self, quota_error, value_error};
use crate::state::Transaction;

/// The most security groups of a load balancer.
const MAX_GROUPS: usize = 50;
/// The most load balancers of a request.
const MAX_LOAD_BALANCERS: usize = 20;

/// `SetLoadBalancerSecurityGroups`: replaces the whole set. Without groups in the request, all are
/// unbound.
pub(in crate::actions) fn set(
    transaction: &mut Transaction<'_>,
    request: &SetLoadBalancerSecurityGroupsRequest,
) -> Result<SetLoadBalancerSecurityGroupsResponse, ApiError> {
    let mut groups: Vec<String> = Vec::new();
    for group in request.security_groups.iter().flatten() {
        check_group(transaction, group)?;
        if !groups.contains(group) {
            groups.push(group.clone());
        }
    }
    if groups.len() > MAX_GROUPS {
        return Err(quota_error("security groups of a load balancer", MAX_GROUPS));
    }
    let id = &request.load_balancer_id;
    let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
    load_balancer.security_groups = groups;
    Ok(SetLoadBalancerSecurityGroupsResponse {})
}

/// `SetSecurityGroupForLoadbalancers`: binds or unbinds one group.
pub(in crate::actions) fn set_for_load_balancers(
    transaction: &mut Transaction<'_>,
    request: &SetSecurityGroupForLoadbalancersRequest,
) -> Result<SetSecurityGroupForLoadbalancersResponse, ApiError> {
    check::choice("OperationType", &request.operation_type, &["ADD", "DEL"])?;
    let ids = &request.load_balancer_ids;
    check::count("LoadBalancerIds", ids, 1..=MAX_LOAD_BALANCERS)?;
    let group = &request.security_group;
    check_group(transaction, group)?;
    for id in ids {
        let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
        let groups = &mut load_balancer.security_groups;
        groups.retain(|bound| bound != group);
        if request.operation_type == "ADD" {
            if groups.len() == MAX_GROUPS {
                let message = format!("{id} has {MAX_GROUPS} security groups already");
                return Err(value_error(message));
            }
            groups.push(group.clone());
        }
    }
    Ok(SetSecurityGroupForLoadbalancersResponse {})
}

fn check_group(transaction: &Transaction<'_>, group: &str) -> Result<(), ApiError> {
    let context = &transaction.context;
    if context.inventory.has_security_group(context.region, group) {
        return Ok(());
    }
    Err(value_error(format!("the security group {group} does not exist")))
}
