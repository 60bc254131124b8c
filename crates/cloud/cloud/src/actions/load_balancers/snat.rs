//! Addresses that replace clients' addresses.

use std::net::IpAddr;

use uturn_cloud_api::clb::{
    CreateLoadBalancerSnatIpsRequest, CreateLoadBalancerSnatIpsResponse,
    DeleteLoadBalancerSnatIpsRequest, DeleteLoadBalancerSnatIpsResponse, SnatIp,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::addresses::AddressPool;
use crate::actions::check::{given, parameter_error, quota_error, value_error};
use crate::actions::find;
use crate::state::{SnatAddress, Transaction};

/// The most addresses that a request adds.
const MAX_CREATED: u64 = 10;
/// The most addresses that a request deletes.
const MAX_DELETED: usize = 20;

/// `CreateLoadBalancerSnatIps`. Also turns SnatPro on. `Number` is the number of addresses for each
/// subnet that is named without an address.
pub(in crate::actions) fn create(
    transaction: &mut Transaction<'_>,
    request: &CreateLoadBalancerSnatIpsRequest,
) -> Result<CreateLoadBalancerSnatIpsResponse, ApiError> {
    let id = &request.load_balancer_id;
    let existing = find::load_balancer(transaction, id, ErrorCode::LbIdNotFound)?;
    let existing = existing.snat_addresses.len();
    let number = request.number.unwrap_or(1);
    if !(1..=MAX_CREATED).contains(&number) {
        let message = format!("the parameter `Number` is {number}; 1 to {MAX_CREATED} are allowed");
        return Err(value_error(message));
    }
    if request.snat_ips.is_empty() {
        return Err(value_error("the parameter `SnatIps` is empty"));
    }
    let has_address = |wanted: &SnatIp| given(wanted.ip.as_ref()).is_some();
    if number > 1 && request.snat_ips.iter().any(has_address) {
        return Err(parameter_error("`Number` and `SnatIps.Ip` do not go together"));
    }
    let number = usize::try_from(number).unwrap_or_default();
    let limit = transaction.context.quotas.snat_addresses;
    if existing + number * request.snat_ips.len() > limit {
        return Err(quota_error("SNAT addresses of a load balancer", limit));
    }
    let mut pool = AddressPool::of(transaction);
    let mut addresses: Vec<SnatAddress> = Vec::new();
    for wanted in &request.snat_ips {
        for _ in 0..number {
            let ip = given(wanted.ip.as_ref());
            addresses.push(pool.snat(&transaction.context, &wanted.subnet_id, ip)?);
        }
    }
    let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
    load_balancer.snat_pro = true;
    load_balancer.snat_addresses.append(&mut addresses);
    Ok(CreateLoadBalancerSnatIpsResponse {})
}

/// `DeleteLoadBalancerSnatIps`: deletes all of the addresses or none.
pub(in crate::actions) fn delete(
    transaction: &mut Transaction<'_>,
    request: &DeleteLoadBalancerSnatIpsRequest,
) -> Result<DeleteLoadBalancerSnatIpsResponse, ApiError> {
    if !(1..=MAX_DELETED).contains(&request.ips.len()) {
        let found = request.ips.len();
        let message =
            format!("the parameter `Ips` has {found} items; 1 to {MAX_DELETED} are allowed");
        return Err(value_error(message));
    }
    let id = &request.load_balancer_id;
    let load_balancer = transaction.load_balancer_mut(id, ErrorCode::LbIdNotFound)?;
    for text in &request.ips {
        let position = text.parse().ok().and_then(|ip: IpAddr| {
            load_balancer.snat_addresses.iter().position(|address| address.ip == ip)
        });
        let position =
            position.ok_or_else(|| value_error(format!("{id} has no SNAT address {text}")))?;
        load_balancer.snat_addresses.remove(position);
    }
    Ok(DeleteLoadBalancerSnatIpsResponse {})
}
