//! `GetResources`: resources with their tags.

use uturn_cloud_api::clb::TagInfo;
use uturn_cloud_api::tag::{
    GetResourcesRequest, GetResourcesResponse, ResourceTagMapping, Tag, TagFilter,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::change::MAX_RESOURCES;
use super::resource::{self, Resource};
use crate::actions::check::{self, given};
use crate::state::Transaction;

/// The most tags that a request filters by.
const MAX_FILTERS: usize = 6;
/// The number of resources in an answer if the request sets none, and the most that it may set.
const DEFAULT_RESULTS: u64 = 50;
const MAX_RESULTS: u64 = 200;

/// `GetResources`: lists resources with their tags. Resources without any tag are left out, even if
/// the request names them; resources of other services do not exist here.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &GetResourcesRequest,
) -> Result<GetResourcesResponse, ApiError> {
    let filters = request.tag_filters.as_deref().unwrap_or_default();
    if filters.len() > MAX_FILTERS {
        let message = format!("{} tag filters; {MAX_FILTERS} are allowed", filters.len());
        return Err(ApiError::new(ErrorCode::TagFiltersLengthExceeded, message));
    }
    let names = request.resource_list.as_deref().unwrap_or_default();
    if names.len() > MAX_RESOURCES {
        let message = format!("{} resources; {MAX_RESOURCES} are allowed", names.len());
        return Err(ApiError::new(ErrorCode::ResourceNumPerRequest, message));
    }
    let mut named = Vec::new();
    for name in names {
        if !resource::is_of_another_service(name)? {
            named.push(Resource::parse(name, transaction)?);
        }
    }
    let (offset, size) = part(request.pagination_token.as_ref(), request.max_results)?;
    let found = transaction.load_balancers_of_all_regions().filter(|(region, load_balancer)| {
        let tags = &load_balancer.tags;
        let is_named = || named.contains(&Resource { region, id: &load_balancer.id });
        !tags.is_empty()
            && (names.is_empty() || is_named())
            && filters.iter().all(|filter| passes(filter, tags))
    });
    let found: Vec<ResourceTagMapping> = found
        .map(|(region, load_balancer)| ResourceTagMapping {
            resource: Some(resource::name(transaction, region, &load_balancer.id)),
            tags: Some(load_balancer.tags.iter().map(view).collect()),
        })
        .collect();
    if !names.is_empty() {
        return Ok(answer(found, None));
    }
    let total = found.len();
    let part: Vec<ResourceTagMapping> = found.into_iter().skip(offset).take(size).collect();
    let end = offset.saturating_add(part.len());
    Ok(answer(part, (end < total).then_some(end)))
}

fn answer(found: Vec<ResourceTagMapping>, next: Option<usize>) -> GetResourcesResponse {
    GetResourcesResponse {
        pagination_token: Some(next.map(|next| next.to_string()).unwrap_or_default()),
        resource_tag_mapping_list: Some(found),
    }
}

/// Returns the position of the first item, which the token gives, and the number of items.
pub(super) fn part(token: Option<&String>, size: Option<u64>) -> Result<(usize, usize), ApiError> {
    let token = given(token).unwrap_or("0");
    let offset = token.parse().map_err(|_| {
        let message = format!("no answer had the token {token:?}");
        ApiError::new(ErrorCode::PaginationTokenInvalid, message)
    })?;
    let size = size.unwrap_or(DEFAULT_RESULTS);
    if !(1..=MAX_RESULTS).contains(&size) {
        let message = format!("`MaxResults` is {size}; 1 to {MAX_RESULTS} are allowed");
        return Err(check::parameter_error(message));
    }
    Ok((offset, usize::try_from(size).unwrap_or_default()))
}

/// Returns whether the tags include the filter's key, with one of its values if it has any.
fn passes(filter: &TagFilter, tags: &[TagInfo]) -> bool {
    let values = filter.tag_value.as_deref().unwrap_or_default();
    tags.iter().any(|tag| {
        tag.tag_key == filter.tag_key && (values.is_empty() || values.contains(&tag.tag_value))
    })
}

/// Returns a tag in the form of answers.
pub(super) fn view(tag: &TagInfo) -> Tag {
    let category = Some("Custom".to_owned());
    Tag { tag_key: tag.tag_key.clone(), tag_value: tag.tag_value.clone(), category }
}
