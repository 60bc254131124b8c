//! Messages for failures of the cloud's API.

use uturn_cloud_api::client::CallError;

/// Returns why a call failed, without the parts that differ between attempts.
pub(super) fn lasting(error: &CallError) -> String {
    match error {
        CallError::Api { code, message, .. } if code == "AuthFailure.SignatureExpire" => {
            format!("{code}: {message} (the clock of this machine may be wrong)")
        }
        CallError::Api { code, message, .. } => format!("{code}: {message}"),
        other => other.to_string(),
    }
}
