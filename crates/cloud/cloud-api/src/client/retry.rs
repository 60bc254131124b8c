//! Decides which failures are retried.

use std::time::Duration;

use serde_json::Value;

use super::CallError;
use crate::wire::error::ErrorCode;

/// The number of retries, and the pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The most retries.
    pub most: u32,
    /// The first pause. Each further one is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for Retries {
    /// The values of the cloud's documentation and of its controllers: half a second, doubled up to
    /// eight.
    fn default() -> Self {
        Self {
            most: 8,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(8),
        }
    }
}

impl Retries {
    /// Returns the pause after a failed attempt; `None` if it is not retried.
    pub(super) fn pause(
        &self,
        attempt: u32,
        error: &CallError,
        is_repeatable: bool,
    ) -> Option<Duration> {
        let is_worth_it = match error {
            CallError::Api { code, .. } => did_nothing(code) || (is_repeatable && broke(code)),
            CallError::Connect(_) => true,
            CallError::Network(_) => is_repeatable,
            CallError::Status(status) => is_repeatable && *status >= 500,
            CallError::Task { .. } | CallError::Answer(_) | CallError::Setup(_) => false,
        };
        let pause = self.first_pause.saturating_mul(1 << attempt.min(16)).min(self.longest_pause);
        (is_worth_it && attempt < self.most).then_some(pause)
    }
}

/// Returns whether a code means that the server refused before it did anything.
fn did_nothing(code: &str) -> bool {
    code == ErrorCode::ResourceInOperating.as_str()
        || code.split('.').next() == Some(ErrorCode::RequestLimitExceeded.as_str())
}

/// Returns whether a code means that the server may have done something.
fn broke(code: &str) -> bool {
    [ErrorCode::InternalError.as_str(), "FailedOperation.RequestTimeout"].contains(&code)
        || code.starts_with("InternalError.")
}

/// Returns whether an action may be performed twice without harm: it reads, or its request carries
/// a client token, by which the server recognizes it.
pub(super) fn is_repeatable(action: &str, body: &Value) -> bool {
    action.starts_with("Describe")
        || body.get("ClientToken").and_then(Value::as_str).is_some_and(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn api(code: &str) -> CallError {
        CallError::Api { code: code.to_owned(), message: String::new(), request_id: String::new() }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let busy = api("FailedOperation.ResourceInOperating");
        let pauses = (0..10).map(|attempt| Retries::default().pause(attempt, &busy, false));
        let pauses: Vec<u128> = pauses.flatten().map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 8000, 8000, 8000]);
    }

    #[test]
    fn what_may_have_been_done_is_not_done_twice() {
        let is_repeated = |error: &CallError, is_repeatable| {
            Retries::default().pause(0, error, is_repeatable).is_some()
        };
        let broken = CallError::Network("reset".to_owned());
        for error in [&api("InternalError"), &api("FailedOperation.RequestTimeout"), &broken] {
            assert!(is_repeated(error, true) && !is_repeated(error, false), "{error}");
        }
        for error in [&api("RequestLimitExceeded.UinLimitExceeded"), &CallError::Connect("".into())]
        {
            assert!(is_repeated(error, false), "{error}");
        }
        for code in
            ["InvalidParameter.LBIdNotFound", "AuthFailure.SignatureFailure", "FailedOperation"]
        {
            assert!(!is_repeated(&api(code), true), "{code}");
        }
    }

    #[test]
    fn reads_and_requests_with_a_token_may_be_repeated() {
        assert!(is_repeatable("DescribeListeners", &json!({})));
        assert!(is_repeatable("CreateLoadBalancer", &json!({ "ClientToken": "a" })));
        assert!(!is_repeatable("CreateLoadBalancer", &json!({ "ClientToken": "" })));
        assert!(!is_repeatable("CreateListener", &json!({})));
    }
}
