//! vpc `DescribeSecurityGroups` and `DescribeSecurityGroupPolicies`.

use uturn_cloud_api::vpc::{
    DescribeSecurityGroupPoliciesRequest, DescribeSecurityGroupPoliciesResponse,
    DescribeSecurityGroupsRequest, DescribeSecurityGroupsResponse, SecurityGroup,
    SecurityGroupPolicySet,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::networks::{CREATED, page, rules, selection};
use super::selection::{Rules, check_found};
use crate::state::Transaction;

/// The filters.
const FILTERS: Rules = rules(
    "security-group-id",
    &["security-group-id", "security-group-name", "project-id", "tag-key", "tag:"],
);

/// `DescribeSecurityGroups`.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeSecurityGroupsRequest,
) -> Result<DescribeSecurityGroupsResponse, ApiError> {
    let wanted = request.security_group_ids.as_ref();
    let selection = selection(wanted, request.filters.as_ref(), FILTERS)?;
    let page = page(request.offset.as_ref(), request.limit.as_ref())?;
    let context = &transaction.context;
    let mut found = context.inventory.security_groups(context.region, selection.ids());
    let is_there = |id: &str| found.iter().any(|known| known == id);
    check_found(wanted, is_there, ErrorCode::ResourceNotFound)?;
    found.retain(|id| {
        selection.passes(|filter| match filter {
            "security-group-id" | "security-group-name" => vec![id.clone()],
            "project-id" => vec!["0".to_owned()],
            _ => Vec::new(),
        })
    });
    let total_count = u64::try_from(found.len()).ok();
    let described = page.take(found).into_iter().map(|id| SecurityGroup {
        security_group_name: id.clone(),
        security_group_id: id,
        project_id: Some("0".to_owned()),
        is_default: Some(false),
        created_time: Some(CREATED.to_owned()),
        update_time: Some(CREATED.to_owned()),
        tag_set: Some(Vec::new()),
        ..SecurityGroup::default()
    });
    let described = described.collect();
    Ok(DescribeSecurityGroupsResponse { security_group_set: Some(described), total_count })
}

/// `DescribeSecurityGroupPolicies`. Only the ids of groups are known, so that no group has rules.
pub(in crate::actions) fn describe_policies(
    transaction: &mut Transaction<'_>,
    request: &DescribeSecurityGroupPoliciesRequest,
) -> Result<DescribeSecurityGroupPoliciesResponse, ApiError> {
    let id = &request.security_group_id;
    let context = &transaction.context;
    if !context.inventory.has_security_group(context.region, id) {
        let message = format!("{id} does not exist");
        return Err(ApiError::new(ErrorCode::ResourceNotFound, message));
    }
    let security_group_policy_set = Some(SecurityGroupPolicySet {
        version: Some("0".to_owned()),
        egress: Some(Vec::new()),
        ingress: Some(Vec::new()),
        policy_statistics: None,
    });
    Ok(DescribeSecurityGroupPoliciesResponse { security_group_policy_set })
}
