//! `DescribeQuota`.

use uturn_cloud_api::clb::{DescribeQuotaRequest, DescribeQuotaResponse, Quota};
use uturn_cloud_api::wire::error::ApiError;

use crate::state::Transaction;

/// `DescribeQuota`. Quotas of one load balancer, listener or rule have no current value.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    _: &DescribeQuotaRequest,
) -> Result<DescribeQuotaResponse, ApiError> {
    let quotas = transaction.context.quotas;
    let load_balancers = transaction.load_balancers();
    let count = |is_public| {
        load_balancers.values().filter(|existing| existing.is_public == is_public).count()
    };
    let of_one_provider = load_balancers
        .values()
        .filter(|existing| existing.vip_isp.as_ref().is_some_and(|isp| isp != "BGP"))
        .count();
    let quota_set = [
        ("TOTAL_OPEN_CLB_QUOTA", Some(count(true)), quotas.public_load_balancers),
        ("TOTAL_INTERNAL_CLB_QUOTA", Some(count(false)), quotas.private_load_balancers),
        ("TOTAL_LISTENER_QUOTA", None, quotas.listeners),
        ("TOTAL_LISTENER_RULE_QUOTA", None, quotas.rules),
        ("TOTAL_TARGET_BIND_QUOTA", None, quotas.targets),
        ("TOTAL_SNAT_IP_QUOTA", None, quotas.snat_addresses),
        ("TOTAL_ISP_CLB_QUOTA", Some(of_one_provider), quotas.public_load_balancers),
        ("TOTAL_FULL_PORT_RANGE_LISTENER_QUOTA", None, 1),
    ];
    let number = |count: usize| i64::try_from(count).ok();
    let quota_set = quota_set.into_iter().map(|(id, current, limit)| Quota {
        quota_id: Some(id.to_owned()),
        quota_current: current.and_then(number),
        quota_limit: number(limit),
    });
    Ok(DescribeQuotaResponse { quota_set: Some(quota_set.collect()) })
}
