//! Lists of resources that this cloud never has: target groups, exclusive clusters, and targets in
//! other networks.

use uturn_cloud_api::clb::{
    DescribeClusterResourcesRequest, DescribeClusterResourcesResponse, DescribeCrossTargetsRequest,
    DescribeCrossTargetsResponse, DescribeExclusiveClustersRequest,
    DescribeExclusiveClustersResponse, DescribeTargetGroupListRequest,
    DescribeTargetGroupListResponse, DescribeTargetGroupsRequest, DescribeTargetGroupsResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::page::Page;
use crate::state::Transaction;

/// The code for numbers outside their ranges.
const RANGE: ErrorCode = ErrorCode::InvalidParameterValue;
/// The total number of resources in an answer.
const NONE: Option<u64> = Some(0);

/// `DescribeTargetGroups`: lists no target groups.
pub(super) fn target_groups(
    _: &mut Transaction<'_>,
    request: &DescribeTargetGroupsRequest,
) -> Result<DescribeTargetGroupsResponse, ApiError> {
    Page::of_unsigned(request.offset, request.limit, RANGE)?;
    Ok(DescribeTargetGroupsResponse { total_count: NONE, target_group_set: Some(Vec::new()) })
}

/// `DescribeTargetGroupList`: lists no target groups.
pub(super) fn target_group_list(
    _: &mut Transaction<'_>,
    request: &DescribeTargetGroupListRequest,
) -> Result<DescribeTargetGroupListResponse, ApiError> {
    Page::of_unsigned(request.offset, request.limit, RANGE)?;
    Ok(DescribeTargetGroupListResponse { total_count: NONE, target_group_set: Some(Vec::new()) })
}

/// `DescribeExclusiveClusters`: lists no clusters.
pub(super) fn exclusive_clusters(
    _: &mut Transaction<'_>,
    request: &DescribeExclusiveClustersRequest,
) -> Result<DescribeExclusiveClustersResponse, ApiError> {
    Page::of_unsigned(request.offset, request.limit, RANGE)?;
    Ok(DescribeExclusiveClustersResponse { cluster_set: Some(Vec::new()), total_count: NONE })
}

/// `DescribeClusterResources`: lists no resources.
pub(super) fn cluster_resources(
    _: &mut Transaction<'_>,
    request: &DescribeClusterResourcesRequest,
) -> Result<DescribeClusterResourcesResponse, ApiError> {
    Page::of_unsigned(request.offset, request.limit, RANGE)?;
    Ok(DescribeClusterResourcesResponse {
        cluster_resource_set: Some(Vec::new()),
        total_count: NONE,
    })
}

/// `DescribeCrossTargets`: lists no targets.
pub(super) fn cross_targets(
    _: &mut Transaction<'_>,
    request: &DescribeCrossTargetsRequest,
) -> Result<DescribeCrossTargetsResponse, ApiError> {
    Page::of_unsigned(request.offset, request.limit, RANGE)?;
    Ok(DescribeCrossTargetsResponse { total_count: NONE, cross_target_set: Some(Vec::new()) })
}
