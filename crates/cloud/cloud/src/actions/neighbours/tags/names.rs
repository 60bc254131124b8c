//! `GetTagKeys`, `GetTagValues` and `GetTags`: the tags that resources have.

use uturn_cloud_api::clb::TagInfo;
use uturn_cloud_api::tag::{
    GetTagKeysRequest, GetTagKeysResponse, GetTagValuesRequest, GetTagValuesResponse,
    GetTagsRequest, GetTagsResponse, Tag,
};
use uturn_cloud_api::wire::error::ApiError;

use super::list::{part, view};
use crate::state::Transaction;

/// `GetTagKeys`.
pub(in crate::actions) fn describe_keys(
    transaction: &mut Transaction<'_>,
    request: &GetTagKeysRequest,
) -> Result<GetTagKeysResponse, ApiError> {
    let mut keys: Vec<String> =
        attached(transaction, None).into_iter().map(|tag| tag.tag_key).collect();
    keys.dedup();
    let bounds = part(request.pagination_token.as_ref(), request.max_results)?;
    let (tag_keys, token) = cut(keys, bounds);
    Ok(GetTagKeysResponse { pagination_token: Some(token), tag_keys: Some(tag_keys) })
}

/// `GetTagValues`: lists the values of these keys.
pub(in crate::actions) fn describe_values(
    transaction: &mut Transaction<'_>,
    request: &GetTagValuesRequest,
) -> Result<GetTagValuesResponse, ApiError> {
    let tags = attached(transaction, Some(&request.tag_keys));
    let bounds = part(request.pagination_token.as_ref(), request.max_results)?;
    let (tags, token) = cut(tags, bounds);
    Ok(GetTagValuesResponse { pagination_token: Some(token), tags: Some(written(&tags)) })
}

/// `GetTags`: lists the tags with these keys, or all tags.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &GetTagsRequest,
) -> Result<GetTagsResponse, ApiError> {
    let keys = request.tag_keys.as_ref().filter(|keys| !keys.is_empty());
    let bounds = part(request.pagination_token.as_ref(), request.max_results)?;
    let (tags, token) = cut(attached(transaction, keys), bounds);
    Ok(GetTagsResponse { pagination_token: Some(token), tags: Some(written(&tags)) })
}

/// Returns the tags with one of these keys, without duplicates and in order.
fn attached(transaction: &Transaction<'_>, keys: Option<&Vec<String>>) -> Vec<TagInfo> {
    let load_balancers = transaction.load_balancers_of_all_regions();
    let tags = load_balancers.flat_map(|(_, load_balancer)| &load_balancer.tags);
    let tags = tags.filter(|tag| keys.is_none_or(|keys| keys.contains(&tag.tag_key)));
    let mut tags: Vec<TagInfo> = tags.cloned().collect();
    tags.sort_by(|left, right| {
        (&left.tag_key, &left.tag_value).cmp(&(&right.tag_key, &right.tag_value))
    });
    tags.dedup();
    tags
}

/// Returns the requested part of a list, and the token of the next part; the empty text if there is
/// none.
fn cut<T>(items: Vec<T>, (offset, size): (usize, usize)) -> (Vec<T>, String) {
    let total = items.len();
    let items: Vec<T> = items.into_iter().skip(offset).take(size).collect();
    let end = offset.saturating_add(items.len());
    (items, if end < total { end.to_string() } else { String::new() })
}

fn written(tags: &[TagInfo]) -> Vec<Tag> {
    tags.iter().map(view).collect()
}
