//! `DescribeResourceTags` and `DescribeResourceTagsByResourceIds`: tags with the resources that
//! have them.

use uturn_cloud_api::tag::{
    DescribeResourceTagsByResourceIdsRequest, DescribeResourceTagsByResourceIdsResponse,
    DescribeResourceTagsRequest, DescribeResourceTagsResponse, TagResource,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::resource::SERVICE;
use crate::actions::check::given;
use crate::actions::page::Page;
use crate::state::Transaction;

/// The number of tags in an answer if the request sets none.
const DEFAULT_LIMIT: u64 = 15;
/// The code for numbers outside their ranges.
const RANGE: ErrorCode = ErrorCode::InvalidParameter;

/// `DescribeResourceTags`: lists tags with their resources. Parameters that the request leaves out
/// do not filter.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeResourceTagsRequest,
) -> Result<DescribeResourceTagsResponse, ApiError> {
    let is = |text: Option<&String>, wanted: &str| given(text).is_none_or(|text| text == wanted);
    let is_here = is(request.service_type.as_ref(), SERVICE)
        && is(request.resource_prefix.as_ref(), SERVICE)
        && request.cos_resource_id.unwrap_or(0) == 0;
    let found = attached(transaction, |region, id| {
        is_here
            && is(request.resource_region.as_ref(), region)
            && is(request.resource_id.as_ref(), id)
    });
    let limit = request.limit.unwrap_or(DEFAULT_LIMIT);
    let page = Page::of_unsigned(request.offset, Some(limit), RANGE)?;
    Ok(DescribeResourceTagsResponse {
        total_count: u64::try_from(found.len()).ok(),
        offset: Some(request.offset.unwrap_or(0)),
        limit: Some(limit),
        rows: Some(page.take(found)),
    })
}

/// `DescribeResourceTagsByResourceIds`: lists the tags of resources by their ids. Ids that do not
/// exist have no tags.
pub(in crate::actions) fn describe_by_ids(
    transaction: &mut Transaction<'_>,
    request: &DescribeResourceTagsByResourceIdsRequest,
) -> Result<DescribeResourceTagsByResourceIdsResponse, ApiError> {
    let is_here = request.service_type == SERVICE && request.resource_prefix == SERVICE;
    let found = attached(transaction, |region, id| {
        is_here
            && region == request.resource_region
            && request.resource_ids.iter().any(|known| known == id)
    });
    let limit = request.limit.unwrap_or(DEFAULT_LIMIT);
    let page = Page::of_unsigned(request.offset, Some(limit), RANGE)?;
    Ok(DescribeResourceTagsByResourceIdsResponse {
        total_count: u64::try_from(found.len()).ok(),
        offset: Some(request.offset.unwrap_or(0)),
        limit: Some(limit),
        tags: Some(page.take(found)),
    })
}

/// Returns the tags of the load balancers for whose regions and ids `is_asked` returns `true`.
fn attached(
    transaction: &Transaction<'_>,
    is_asked: impl Fn(&str, &str) -> bool,
) -> Vec<TagResource> {
    let load_balancers = transaction.load_balancers_of_all_regions();
    let asked = load_balancers.filter(|(region, known)| is_asked(region, &known.id));
    asked
        .flat_map(|(_, load_balancer)| {
            load_balancer.tags.iter().map(|tag| TagResource {
                tag_key: Some(tag.tag_key.clone()),
                tag_value: Some(tag.tag_value.clone()),
                resource_id: Some(load_balancer.id.clone()),
                service_type: Some(SERVICE.to_owned()),
                category: Some("Custom".to_owned()),
                ..TagResource::default()
            })
        })
        .collect()
}
