//! `TagResources`, `UnTagResources` and `ModifyResourceTags`.

use uturn_cloud_api::clb::TagInfo;
use uturn_cloud_api::tag::{
    FailedResource, ModifyResourceTagsRequest, ModifyResourceTagsResponse, Tag,
    TagResourcesRequest, TagResourcesResponse, UnTagResourcesRequest, UnTagResourcesResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::resource::Resource;
use crate::actions::check::parameter_error;
use crate::state::Transaction;

/// The most resources of a request.
pub(super) const MAX_RESOURCES: usize = 10;
/// The most tags or keys of a request.
const MAX_TAGS: usize = 10;
/// The most tags of a resource.
const MAX_ATTACHED: usize = 50;
/// The longest key and value.
const KEY_LENGTH: usize = 127;
const VALUE_LENGTH: usize = 255;

/// `TagResources`: adds tags, and replaces the values of existing ones. The answer names resources
/// that do not exist; the others are tagged.
pub(in crate::actions) fn add(
    transaction: &mut Transaction<'_>,
    request: &TagResourcesRequest,
) -> Result<TagResourcesResponse, ApiError> {
    check_count(ErrorCode::TagNumPerRequest, "Tags", request.tags.len(), MAX_TAGS)?;
    check_tags(&request.tags)?;
    let failed = change(transaction, &request.resource_list, |tags| put_tags(tags, &request.tags))?;
    Ok(TagResourcesResponse { failed_resources: Some(named(failed)) })
}

/// `ModifyResourceTags`: adds, replaces and removes tags of one resource.
pub(in crate::actions) fn modify(
    transaction: &mut Transaction<'_>,
    request: &ModifyResourceTagsRequest,
) -> Result<ModifyResourceTagsResponse, ApiError> {
    let replaced = request.replace_tags.as_deref().unwrap_or_default();
    let deleted = request.delete_tags.as_deref().unwrap_or_default();
    if replaced.is_empty() && deleted.is_empty() {
        let message = "one of the parameters `ReplaceTags` and `DeleteTags` is needed";
        return Err(parameter_error(message));
    }
    check_tags(replaced)?;
    let names = std::slice::from_ref(&request.resource);
    let failed = change(transaction, names, |tags| {
        put_tags(tags, replaced);
        tags.retain(|tag| !deleted.iter().any(|key| key.tag_key == tag.tag_key));
    })?;
    match failed.into_iter().next() {
        None => Ok(ModifyResourceTagsResponse {}),
        Some((_, code, message)) => Err(ApiError::new(code, message)),
    }
}

fn check_tags(tags: &[Tag]) -> Result<(), ApiError> {
    for (position, tag) in tags.iter().enumerate() {
        check_tag(tag)?;
        if tags[..position].iter().any(|earlier| earlier.tag_key == tag.tag_key) {
            let message = format!("the tag {} stands twice", tag.tag_key);
            return Err(ApiError::new(ErrorCode::TagKeyDuplicate, message));
        }
    }
    Ok(())
}

/// Adds tags, and replaces the values of existing ones.
fn put_tags(tags: &mut Vec<TagInfo>, wanted: &[Tag]) {
    for Tag { tag_key, tag_value, .. } in wanted {
        match tags.iter_mut().find(|existing| existing.tag_key == *tag_key) {
            Some(existing) => existing.tag_value.clone_from(tag_value),
            None => {
                let (tag_key, tag_value) = (tag_key.clone(), tag_value.clone());
                tags.push(TagInfo { tag_key, tag_value });
            }
        }
    }
}

/// `UnTagResources`: removes tags. INF: keys that a resource does not have are not an error.
pub(in crate::actions) fn remove(
    transaction: &mut Transaction<'_>,
    request: &UnTagResourcesRequest,
) -> Result<UnTagResourcesResponse, ApiError> {
    check_count(ErrorCode::TagNumPerRequest, "TagKeys", request.tag_keys.len(), MAX_TAGS)?;
    let failed = change(transaction, &request.resource_list, |tags| {
        tags.retain(|tag| !request.tag_keys.contains(&tag.tag_key));
    })?;
    Ok(UnTagResourcesResponse { failed_resources: Some(named(failed)) })
}

/// A resource whose tags cannot be changed: its name, the code and the reason.
type Failed = (String, ErrorCode, String);

fn named(failed: Vec<Failed>) -> Vec<FailedResource> {
    let failed = failed.into_iter().map(|(resource, code, message)| FailedResource {
        resource,
        code: code.as_str().to_owned(),
        message,
    });
    failed.collect()
}

/// Changes the tags of these resources. Returns the resources whose tags cannot be changed.
fn change(
    transaction: &mut Transaction<'_>,
    names: &[String],
    apply: impl Fn(&mut Vec<TagInfo>),
) -> Result<Vec<Failed>, ApiError> {
    check_count(ErrorCode::ResourceNumPerRequest, "ResourceList", names.len(), MAX_RESOURCES)?;
    let resources: Result<Vec<Resource<'_>>, ApiError> =
        names.iter().map(|name| Resource::parse(name, transaction)).collect();
    let mut failed = Vec::new();
    for (name, resource) in names.iter().zip(resources?) {
        let mut fail =
            |code: ErrorCode, message: String| failed.push((name.clone(), code, message));
        let Some(found) = transaction.load_balancer_in(resource.region, resource.id) else {
            let message = format!("the load balancer {} does not exist", resource.id);
            fail(ErrorCode::ResourceIdInvalid, message);
            continue;
        };
        let mut load_balancer = found.clone();
        apply(&mut load_balancer.tags);
        if load_balancer.tags.len() > MAX_ATTACHED {
            let message = format!("{} would have more than {MAX_ATTACHED} tags", resource.id);
            fail(ErrorCode::ResourceAttachedTags, message);
            continue;
        }
        if load_balancer.tags != found.tags {
            transaction.put_load_balancer_in(resource.region, load_balancer);
        }
    }
    Ok(failed)
}

fn check_tag(tag: &Tag) -> Result<(), ApiError> {
    let error = |code, message: String| Err(ApiError::new(code, message));
    let key = &tag.tag_key;
    if key.is_empty() {
        return error(ErrorCode::TagKeyEmpty, "a tag has no key".to_owned());
    }
    if key.starts_with("qcs:") {
        let message = format!("the tag key {key} begins with qcs:, which is reserved");
        return error(ErrorCode::ReservedTagKey, message);
    }
    if key.chars().count() > KEY_LENGTH {
        let message = format!("a tag key has more than {KEY_LENGTH} characters");
        return error(ErrorCode::TagKeyLengthExceeded, message);
    }
    if tag.tag_value.chars().count() > VALUE_LENGTH {
        let message = format!("the value of {key} has more than {VALUE_LENGTH} characters");
        return error(ErrorCode::TagValueLengthExceeded, message);
    }
    Ok(())
}

/// Refuses an empty list, and one that is too long.
fn check_count(code: ErrorCode, name: &str, count: usize, limit: usize) -> Result<(), ApiError> {
    if (1..=limit).contains(&count) {
        return Ok(());
    }
    let code = if count == 0 { ErrorCode::InvalidParameter } else { code };
    let message = format!("the parameter `{name}` has {count} items; 1 to {limit} are allowed");
    Err(ApiError::new(code, message))
}
