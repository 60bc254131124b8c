//! `DescribeLBOperateProtect`.

use uturn_cloud_api::clb::{
    DescribeLBOperateProtectRequest, DescribeLBOperateProtectResponse, LBOperateProtectInfo,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::{check, find};
use crate::state::Transaction;

/// The most ids of a request.
const MAX_IDS: usize = 20;

/// `DescribeLBOperateProtect`. No load balancer is protected against changes, because no action
/// sets the protection.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeLBOperateProtectRequest,
) -> Result<DescribeLBOperateProtectResponse, ApiError> {
    check::count("LoadBalancerIds", &request.load_balancer_ids, 1..=MAX_IDS)?;
    let states = request.load_balancer_ids.iter().map(|id| {
        find::load_balancer(transaction, id, ErrorCode::LbIdNotFound)?;
        Ok(LBOperateProtectInfo { load_balancer_id: id.clone(), ..LBOperateProtectInfo::default() })
    });
    let states = states.collect::<Result<_, ApiError>>()?;
    Ok(DescribeLBOperateProtectResponse { load_balancer_set: Some(states) })
}
