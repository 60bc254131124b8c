//! Errors that prevent reading a cluster. Refusals of single kinds are part of a reading instead.

use std::error::Error;
use std::io;

use thiserror::Error;

/// The reason why a cluster cannot be read.
#[derive(Debug, Error)]
pub enum LiveError {
    /// No cluster is named.
    #[error(
        "no cluster: {0}; name a kubeconfig with --kubeconfig or KUBECONFIG, or manifests with -f \
         PATH or --bundle PATH"
    )]
    NoCluster(String),
    /// A kubeconfig cannot be used.
    #[error("{0}")]
    Kubeconfig(String),
    /// Credentials cannot be obtained.
    #[error("no credentials for {server}: {why}")]
    Credentials {
        /// The URL of the API server.
        server: String,
        /// The problem with the credentials.
        why: String,
    },
    /// The API server does not accept the credentials.
    #[error("{server} does not accept the credentials of {user}: {why}")]
    Unauthenticated {
        /// The URL of the API server.
        server: String,
        /// The user that the credentials belong to.
        user: String,
        /// The server's message.
        why: String,
    },
    /// The API server does not answer.
    #[error("{server} cannot be reached: {why}")]
    Unreachable {
        /// The URL of the API server.
        server: String,
        /// The error that came instead of an answer.
        why: String,
    },
    /// The API server answered before, but does not any more.
    #[error("{server} does not answer any more while {during}: {why}")]
    Lost {
        /// The URL of the API server.
        server: String,
        /// The activity at that time, such as `reading pods`.
        during: String,
        /// The error that came instead of an answer.
        why: String,
    },
    /// The asynchronous runtime cannot be started.
    #[error("cannot start the async runtime: {0}")]
    Runtime(io::Error),
}

/// Writes an error with its causes, each once.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    // The names of software layers tell a user nothing.
    let layers = ["ServiceError: ", "HyperError: ", "client error (Connect): "];
    while let Some(rest) = layers.iter().find_map(|layer| text.strip_prefix(layer)) {
        text = rest.to_owned();
    }
    text
}
