//! `ModifyLoadBalancerAttributes`.

use uturn_cloud_api::clb::{
    InternetAccessible, ModifyLoadBalancerAttributesRequest, ModifyLoadBalancerAttributesResponse,
    TargetRegionInfo,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::order::check_internet_charge;
use crate::actions::check::{self, given, missing, operation_error, parameter_error, value_error};
use crate::actions::deal;
use crate::state::{LoadBalancer, Transaction};

/// `ModifyLoadBalancerAttributes`. Attributes that the request leaves out stay as they are.
pub(in crate::actions) fn modify(
    transaction: &mut Transaction<'_>,
    request: &ModifyLoadBalancerAttributesRequest,
) -> Result<ModifyLoadBalancerAttributesResponse, ApiError> {
    check_any(request)?;
    check_name(transaction, request)?;
    check_target_region(transaction, request.target_region_info.as_ref())?;
    if let Some(flag) = request.switch_flag
        && flag > 2
    {
        return Err(value_error(format!(
            "the parameter `SwitchFlag` is {flag}; 0 to 2 are allowed"
        )));
    }
    let id = &request.load_balancer_id;
    let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
    apply(load_balancer, request)?;
    Ok(ModifyLoadBalancerAttributesResponse { deal_name: Some(deal::name(transaction)) })
}

fn check_any(request: &ModifyLoadBalancerAttributesRequest) -> Result<(), ApiError> {
    let empty = ModifyLoadBalancerAttributesRequest {
        load_balancer_id: request.load_balancer_id.clone(),
        ..ModifyLoadBalancerAttributesRequest::default()
    };
    if *request == empty { Err(missing("LoadBalancerName")) } else { Ok(()) }
}

fn check_name(
    transaction: &Transaction<'_>,
    request: &ModifyLoadBalancerAttributesRequest,
) -> Result<(), ApiError> {
    let Some(name) = &request.load_balancer_name else { return Ok(()) };
    check::name("LoadBalancerName", name)?;
    let mut load_balancers = transaction.load_balancers().into_values();
    let is_taken = load_balancers
        .any(|existing| existing.name == *name && existing.id != request.load_balancer_id);
    if is_taken {
        let message = format!("another load balancer has the name {name}");
        return Err(ApiError::new(ErrorCode::ValueDuplicate, message));
    }
    Ok(())
}

fn check_target_region(
    transaction: &Transaction<'_>,
    target: Option<&TargetRegionInfo>,
) -> Result<(), ApiError> {
    let Some(TargetRegionInfo { region, vpc_id, .. }) = target else { return Ok(()) };
    let inventory = transaction.context.inventory;
    if !inventory.has_region(region) {
        let message = format!("there is no region {region}");
        return Err(ApiError::new(ErrorCode::RegionNotFound, message));
    }
    if inventory.network(region, Some(vpc_id)).is_none() {
        return Err(value_error(format!("{region} has no network {vpc_id}")));
    }
    Ok(())
}

fn apply(
    load_balancer: &mut LoadBalancer,
    request: &ModifyLoadBalancerAttributesRequest,
) -> Result<(), ApiError> {
    if let Some(charge) = &request.internet_charge_info {
        apply_charge(load_balancer, charge)?;
    }
    if request.snat_pro == Some(false) && !load_balancer.snat_addresses.is_empty() {
        let message = "`SnatPro` cannot be turned off before the SNAT addresses are deleted";
        return Err(operation_error(message));
    }
    let change = |current: &mut bool, wanted: Option<bool>| *current = wanted.unwrap_or(*current);
    change(&mut load_balancer.passes_to_target, request.load_balancer_pass_to_target);
    change(&mut load_balancer.snat_pro, request.snat_pro);
    change(&mut load_balancer.is_delete_protected, request.delete_protect);
    if let Some(name) = &request.load_balancer_name {
        load_balancer.name.clone_from(name);
    }
    if let Some(target) = &request.target_region_info {
        load_balancer.attributes.target_region = Some(target.clone());
    }
    if let Some(endpoint) = &request.associate_endpoint {
        load_balancer.attributes.endpoint =
            Some(endpoint.clone()).filter(|endpoint| !endpoint.is_empty());
    }
    Ok(())
}

fn apply_charge(
    load_balancer: &mut LoadBalancer,
    charge: &InternetAccessible,
) -> Result<(), ApiError> {
    let has_sla = load_balancer.sla_type.is_some();
    check_internet_charge(Some(charge), has_sla)?;
    if !load_balancer.is_public && !has_sla {
        let message = "the parameter `InternetChargeInfo` is not for private load balancers";
        return Err(parameter_error(message));
    }
    if let Some(charge_type) = given(charge.internet_charge_type.as_ref()) {
        load_balancer.internet_charge_type = Some(charge_type.to_owned());
    }
    load_balancer.bandwidth = charge.internet_max_bandwidth_out.or(load_balancer.bandwidth);
    Ok(())
}
