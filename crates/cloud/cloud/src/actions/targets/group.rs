//! The group of targets that a request means: a listener's own on layer 4, a rule's on layer 7.

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check;
use crate::state::{Listener, Target};

/// The name of a rule in a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RuleName<'a> {
    pub(super) location: Option<&'a str>,
    pub(super) domain: Option<&'a str>,
    pub(super) url: Option<&'a str>,
}

impl<'a> RuleName<'a> {
    /// Returns the name of a rule by its id, or by domain and URL.
    pub(super) fn new(
        location: Option<&'a String>,
        domain: Option<&'a String>,
        url: Option<&'a String>,
    ) -> Self {
        Self {
            location: check::given(location),
            // The empty domain is the load balancer's own address.
            domain: domain.map(String::as_str),
            url: check::given(url),
        }
    }
}

/// Returns the targets that a request means, to be changed. `missing` is the action's error code
/// for a rule that does not exist.
///
/// # Errors
///
/// Returns `missing` for a rule that does not exist, and `InvalidParameter` if a listener on layer
/// 7 is named without a rule.
pub(super) fn targets_mut<'l>(
    listener: &'l mut Listener,
    name: RuleName<'_>,
    missing: ErrorCode,
) -> Result<&'l mut Vec<Target>, ApiError> {
    let id = rule_id(listener, name, missing)?;
    let error = unknown(listener, id.as_deref().unwrap_or_default(), missing);
    listener.targets_mut(id.as_deref()).ok_or(error)
}

/// Returns the id of the rule that a request means; `None` for a listener on layer 4, where a named
/// rule is ignored.
fn rule_id(
    listener: &Listener,
    name: RuleName<'_>,
    missing: ErrorCode,
) -> Result<Option<String>, ApiError> {
    if !listener.protocol.is_layer_7() {
        return Ok(None);
    }
    if let Some(id) = name.location {
        let rule = listener.rule(id).ok_or_else(|| unknown(listener, id, missing))?;
        return Ok(Some(rule.id.clone()));
    }
    let Some(url) = name.url else {
        return Err(check::parameter_error(format!(
            "the listener {} is {}: `LocationId`, or `Domain` and `Url`, is needed",
            listener.id,
            listener.protocol.as_str()
        )));
    };
    let domain = name.domain.unwrap_or_default();
    let rule = listener
        .rule_for(domain, url)
        .ok_or_else(|| unknown(listener, &format!("{domain}{url}"), missing))?;
    Ok(Some(rule.id.clone()))
}

fn unknown(listener: &Listener, rule: &str, code: ErrorCode) -> ApiError {
    ApiError::new(code, format!("the rule {rule} does not exist on {}", listener.id))
}
