//! Errors of calls, and the parsing of answers.

use std::error::Error;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Answer;
use crate::wire::error::ErrorCode;

/// The reason why an action was not performed, or why the outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The API refused.
    #[error("{code}: {message} (request {request_id})")]
    Api {
        /// The code.
        code: String,
        /// The message for people.
        message: String,
        /// The id of the request.
        request_id: String,
    },
    /// The task of an asynchronous action failed.
    #[error("task {task}: {message}")]
    Task {
        /// The id of the task.
        task: String,
        /// The reason of the failure.
        message: String,
    },
    /// No connection was made: the server did nothing.
    #[error("no connection: {0}")]
    Connect(String),
    /// The connection broke, or the answer did not come in time.
    #[error("{0}")]
    Network(String),
    /// The server answered with an HTTP status other than success.
    #[error("the server answered with HTTP status {0}")]
    Status(u16),
    /// The answer is not one of this API.
    #[error("the answer is not understood: {0}")]
    Answer(String),
    /// The client could not be set up.
    #[error("{0}")]
    Setup(String),
}

impl CallError {
    /// Returns whether the API refused with this code.
    pub fn is(&self, code: ErrorCode) -> bool {
        matches!(self, Self::Api { code: found, .. } if found == code.as_str())
    }

    pub(super) fn network(error: &hyper_util::client::legacy::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = Error::source(error);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        if error.is_connect() { Self::Connect(text) } else { Self::Network(text) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Envelope {
    response: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Head {
    error: Option<ErrorMembers>,
    request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ErrorMembers {
    code: String,
    message: String,
}

/// Reads an answer.
///
/// # Errors
///
/// Returns the error that the answer carries, or why the answer is not understood.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<Answer<T>, CallError> {
    let not_understood = |error: serde_json::Error| CallError::Answer(error.to_string());
    let Envelope { response } = serde_json::from_slice(body).map_err(not_understood)?;
    let Head { error, request_id } = Head::deserialize(&response).map_err(not_understood)?;
    if let Some(ErrorMembers { code, message }) = error {
        return Err(CallError::Api { code, message, request_id });
    }
    let response = serde_json::from_value(response).map_err(not_understood)?;
    Ok(Answer { request_id, response })
}
