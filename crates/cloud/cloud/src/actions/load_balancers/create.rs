//! `CreateLoadBalancer`.

use uturn_cloud_api::clb::{CreateLoadBalancerRequest, CreateLoadBalancerResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::addresses::AddressPool;
use super::order::Order;
use crate::actions::check::{self, given, parameter_error, quota_error};
use crate::actions::deal;
use crate::state::{IpVersion, LoadBalancer, SnatAddress, Transaction};

/// The longest client token.
const TOKEN_LENGTH: usize = 64;

/// `CreateLoadBalancer`. A client token that was used before returns the load balancers that were
/// created with it.
pub(in crate::actions) fn create(
    transaction: &mut Transaction<'_>,
    request: &CreateLoadBalancerRequest,
) -> Result<CreateLoadBalancerResponse, ApiError> {
    let token = given(request.client_token.as_ref());
    if let Some(token) = token {
        check_token(token)?;
    }
    let order = Order::of(request, &transaction.context)?;
    if let Some(ids) = token.and_then(|token| created_before(transaction, token)) {
        check_same(transaction, &ids, &order)?;
        transaction.leave_task_like(&ids);
        return Ok(answer(transaction, ids));
    }
    check_quota(transaction, &order)?;
    let mut pool = AddressPool::of(transaction);
    let mut ids = Vec::with_capacity(order.number);
    for _ in 0..order.number {
        let load_balancer = build(transaction, &order, &mut pool)?;
        ids.push(load_balancer.id.clone());
        transaction.insert_load_balancer(load_balancer);
    }
    if let Some(token) = token {
        transaction.put_client_token(token.to_owned(), ids.clone());
    }
    Ok(answer(transaction, ids))
}

fn answer(transaction: &Transaction<'_>, ids: Vec<String>) -> CreateLoadBalancerResponse {
    CreateLoadBalancerResponse {
        load_balancer_ids: Some(ids),
        deal_name: Some(deal::name(transaction)),
    }
}

fn check_token(token: &str) -> Result<(), ApiError> {
    check::length("ClientToken", token, 1..=TOKEN_LENGTH)?;
    if token.is_ascii() {
        return Ok(());
    }
    let message = "the parameter `ClientToken` has characters that are not ASCII";
    Err(ApiError::new(ErrorCode::FormatError, message))
}

/// Returns the load balancers that were created with a token. INF: once all of them are deleted,
/// the token can be used again.
fn created_before(transaction: &Transaction<'_>, token: &str) -> Option<Vec<String>> {
    let ids = transaction.client_token(token)?;
    let is_there = ids.iter().any(|id| transaction.load_balancer(id).is_some());
    is_there.then(|| ids.to_vec())
}

/// Refuses a token with an order other than its first one. INF: names, tags and prices may differ,
/// since a copied Service, which keeps its token, gets the same load balancer.
fn check_same(
    transaction: &Transaction<'_>,
    ids: &[String],
    order: &Order,
) -> Result<(), ApiError> {
    let mut existing = ids.iter().filter_map(|id| transaction.load_balancer(id));
    let is_same = ids.len() == order.number
        && existing.all(|load_balancer| {
            load_balancer.is_public == order.is_public
                && load_balancer.ip_version == order.ip_version
                && load_balancer.vpc == order.vpc
                && load_balancer.subnet == order.subnet
        });
    if is_same {
        return Ok(());
    }
    let message = format!(
        "the parameter `ClientToken` stands for {}, which other parameters created",
        ids.join(", ")
    );
    Err(parameter_error(message))
}

fn check_quota(transaction: &Transaction<'_>, order: &Order) -> Result<(), ApiError> {
    let load_balancers = transaction.each_load_balancer();
    let of_type = load_balancers.filter(|existing| existing.is_public == order.is_public).count();
    let quotas = transaction.context.quotas;
    let (what, limit) = if order.is_public {
        ("public load balancers", quotas.public_load_balancers)
    } else {
        ("private load balancers", quotas.private_load_balancers)
    };
    if of_type + order.number > limit { Err(quota_error(what, limit)) } else { Ok(()) }
}

fn build(
    transaction: &Transaction<'_>,
    order: &Order,
    pool: &mut AddressPool,
) -> Result<LoadBalancer, ApiError> {
    let context = &transaction.context;
    let id = context.ids.resource("lb");
    let is_v6 = order.ip_version != IpVersion::V4;
    let address = match &order.subnet {
        Some(subnet) if !order.is_public => {
            let code = ErrorCode::ResourceInsufficient;
            pool.private(context, subnet, is_v6, order.vip, code)?
        }
        _ => pool.public(context, is_v6, order.vip)?,
    };
    let mut load_balancers = transaction.each_load_balancer();
    let name = order.name.as_ref();
    let name = name.filter(|name| load_balancers.all(|existing| existing.name != **name));
    Ok(LoadBalancer {
        name: name.cloned().unwrap_or_else(|| id.clone()),
        id,
        is_public: order.is_public,
        ip_version: order.ip_version,
        addresses: vec![address],
        vpc: order.vpc.clone(),
        subnet: order.subnet.clone(),
        project: order.project,
        created: context.now,
        status_changed: context.now,
        is_stopped: false,
        tags: order.tags.clone(),
        security_groups: Vec::new(),
        passes_to_target: order.passes_to_target,
        snat_pro: order.snat_pro,
        snat_addresses: snat_addresses(transaction, order, pool)?,
        is_delete_protected: false,
        zone: order.zone.clone(),
        internet_charge_type: order.internet_charge_type.clone(),
        bandwidth: order.bandwidth,
        charge_type: order.charge_type.clone(),
        vip_isp: order.vip_isp.clone(),
        sla_type: order.sla_type.clone(),
        custom_config: None,
        listeners: Vec::new(),
        attributes: order.attributes.clone(),
        last_task: String::new(),
    })
}

fn snat_addresses(
    transaction: &Transaction<'_>,
    order: &Order,
    pool: &mut AddressPool,
) -> Result<Vec<SnatAddress>, ApiError> {
    let limit = transaction.context.quotas.snat_addresses;
    if order.snat_ips.len() > limit {
        return Err(quota_error("SNAT addresses of a load balancer", limit));
    }
    let addresses = order.snat_ips.iter().map(|wanted| {
        pool.snat(&transaction.context, &wanted.subnet_id, given(wanted.ip.as_ref()))
    });
    addresses.collect()
}
