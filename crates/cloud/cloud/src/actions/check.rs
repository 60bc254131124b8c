//! Checks of single parameters, each with the error that it is answered with.

use std::ops::RangeInclusive;

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

/// The longest names of load balancers and listeners.
const NAME_LENGTH: usize = 80;

/// Refuses a text whose number of characters is not allowed.
pub(super) fn length(
    parameter: &str,
    text: &str,
    allowed: RangeInclusive<usize>,
) -> Result<(), ApiError> {
    let found = text.chars().count();
    if allowed.contains(&found) {
        return Ok(());
    }
    let message = format!(
        "the parameter `{parameter}` has {found} characters; {} to {} are allowed",
        allowed.start(),
        allowed.end()
    );
    Err(ApiError::new(ErrorCode::ValueLength, message))
}

/// Refuses a list whose number of items is not allowed.
pub(super) fn count<T>(
    parameter: &str,
    items: &[T],
    allowed: RangeInclusive<usize>,
) -> Result<(), ApiError> {
    if allowed.contains(&items.len()) {
        return Ok(());
    }
    let message = format!(
        "the parameter `{parameter}` has {} items; {} to {} are allowed",
        items.len(),
        allowed.start(),
        allowed.end()
    );
    Err(ApiError::new(ErrorCode::ValueLength, message))
}

/// Refuses a number out of range. `code` differs between actions: few of them have
/// `InvalidParameterValue.Range`.
pub(super) fn range(
    parameter: &str,
    value: i64,
    allowed: RangeInclusive<i64>,
    code: ErrorCode,
) -> Result<(), ApiError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let message = format!(
        "the parameter `{parameter}` is {value}; {} to {} are allowed",
        allowed.start(),
        allowed.end()
    );
    Err(ApiError::new(code, message))
}

/// Returns the port, or the error for a number that is not a port.
pub(super) fn port(parameter: &str, value: i64) -> Result<u16, ApiError> {
    u16::try_from(value).ok().filter(|port| *port > 0).ok_or_else(|| {
        value_error(format!("the parameter `{parameter}` is {value}, not a port (1 to 65535)"))
    })
}

/// Returns whether a switch is on, or the error for a number that is neither 0 nor 1.
pub(super) fn switch(parameter: &str, value: i64) -> Result<bool, ApiError> {
    range(parameter, value, 0..=1, ErrorCode::InvalidParameterValue)?;
    Ok(value == 1)
}

/// Refuses a text that is not one of these.
pub(super) fn choice(parameter: &str, text: &str, allowed: &[&str]) -> Result<(), ApiError> {
    if allowed.contains(&text) {
        return Ok(());
    }
    let allowed = allowed.join(", ");
    Err(value_error(format!("the parameter `{parameter}` is {text:?}; one of {allowed} is needed")))
}

/// Refuses a name of another length than 1 to 80, or with characters outside the basic plane.
pub(super) fn name(parameter: &str, text: &str) -> Result<(), ApiError> {
    length(parameter, text, 1..=NAME_LENGTH)?;
    let is_usual = |character: char| u32::from(character) <= 0xffff && !character.is_control();
    if text.chars().all(is_usual) {
        return Ok(());
    }
    let message = format!("the parameter `{parameter}` has characters that names may not have");
    Err(ApiError::new(ErrorCode::FormatError, message))
}

/// Returns the text unless it is empty: clients send empty texts for parameters that they leave
/// out.
pub(super) fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// Returns the error for a required parameter that is absent, in the actions that have
/// `MissingParameter`.
pub(super) fn missing(parameter: &str) -> ApiError {
    let message = format!("the parameter `{parameter}` is missing");
    ApiError::new(ErrorCode::MissingParameter, message)
}

/// Returns the error for parameters that exclude each other.
pub(super) fn parameter_error(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidParameter, message)
}

/// Returns the name of a cookie, which consists of letters, digits and the signs that a header
/// allows.
pub(super) fn cookie(text: &str) -> Result<String, ApiError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if text.len() <= 100 && text.bytes().all(is_allowed) {
        return Ok(text.to_owned());
    }
    Err(value_error("the parameter `CookieName` is not the name of a cookie"))
}

/// Returns the error for a value that is not allowed.
pub(super) fn value_error(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidParameterValue, message)
}

/// Returns the error for a request that the state of its objects forbids.
pub(super) fn operation_error(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::FailedOperation, message)
}

/// Returns the error for a quota that is used up.
pub(super) fn quota_error(what: &str, limit: usize) -> ApiError {
    let message = format!("the quota of {what} is used up: {limit}");
    ApiError::new(ErrorCode::LimitExceeded, message)
}

/// Returns the seconds that a client stays with its target: 0, or a number in this range.
pub(super) fn session_seconds(seconds: i64, allowed: RangeInclusive<i64>) -> Result<u32, ApiError> {
    if seconds != 0 {
        let code = ErrorCode::InvalidParameterValue;
        range("SessionExpireTime", seconds, allowed, code)?;
    }
    Ok(u32::try_from(seconds).unwrap_or_default())
}
