//! Filters of lists: names with values, one of which has to match.

use uturn_cloud_api::clb::{Filter, TagInfo};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

/// The most filters of a request.
const MAX_FILTERS: usize = 10;
/// The most values of a filter.
const MAX_VALUES: usize = 100;

/// Refuses too many filters, filters with too many values, and filters that the action does not
/// know. `tag:` in `known` stands for every name that begins with it.
pub(super) fn check(filters: &[Filter], known: &[&str]) -> Result<(), ApiError> {
    let error = |message| Err(ApiError::new(ErrorCode::ValueInvalidFilter, message));
    if filters.len() > MAX_FILTERS {
        return error(format!("{} filters; {MAX_FILTERS} are allowed", filters.len()));
    }
    for Filter { name, values } in filters {
        let is_known = |known: &&str| {
            if known.ends_with(':') {
                name.len() > known.len() && name.starts_with(*known)
            } else {
                name == known
            }
        };
        if !known.iter().any(is_known) {
            return error(format!("there is no filter {name:?}; there are {}", known.join(", ")));
        }
        if values.is_empty() || values.len() > MAX_VALUES {
            let count = values.len();
            return error(format!(
                "the filter {name} has {count} values; 1 to {MAX_VALUES} are allowed"
            ));
        }
    }
    Ok(())
}

/// Returns whether tags match the filter `tag-key` or `tag:KEY`; `None` for another filter.
pub(super) fn tags(filter: &Filter, tags: &[TagInfo]) -> Option<bool> {
    let has = |value: &String| filter.values.contains(value);
    if filter.name == "tag-key" {
        return Some(tags.iter().any(|tag| has(&tag.tag_key)));
    }
    let key = filter.name.strip_prefix("tag:")?;
    Some(tags.iter().any(|tag| tag.tag_key == key && has(&tag.tag_value)))
}
