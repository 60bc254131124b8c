//! What failures of the cloud's API mean.

use uturn_cloud::client::CallError;

/// Why a call failed, without what changes from attempt to attempt.
pub(super) fn lasting(error: &CallError) -> String {
    match error {
        CallError::Api { code, message, .. } if code == "AuthFailure.SignatureExpire" => {
            format!("{code}: {message} (the clock of this machine may be wrong)")
        }
        CallError::Api { code, message, .. } => format!("{code}: {message}"),
        other => other.to_string(),
    }
}
