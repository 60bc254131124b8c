//! Why a cluster cannot be read at all. What is only refused is part of a reading.

use std::error::Error;
use std::io;

use thiserror::Error;

/// Why a cluster cannot be read.
#[derive(Debug, Error)]
pub enum LiveError {
    /// Nothing says which cluster.
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
        /// What is wrong with them.
        why: String,
    },
    /// The API server does not know who asks.
    #[error("{server} does not accept the credentials of {user}: {why}")]
    Unauthenticated {
        /// Its URL.
        server: String,
        /// Whose credentials they are.
        user: String,
        /// What it says.
        why: String,
    },
    /// The API server does not answer.
    #[error("{server} cannot be reached: {why}")]
    Unreachable {
        /// Its URL.
        server: String,
        /// What came instead of an answer.
        why: String,
    },
    /// The API server answered before, and does no more.
    #[error("{server} does not answer any more while {during}: {why}")]
    Lost {
        /// Its URL.
        server: String,
        /// What was being read.
        during: String,
        /// What came instead of an answer.
        why: String,
    },
    /// This process cannot wait for anything.
    #[error("cannot wait for answers: {0}")]
    Runtime(io::Error),
}

/// An error with its causes, each once.
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
    // Names of layers tell a user nothing.
    let layers = ["ServiceError: ", "HyperError: ", "client error (Connect): "];
    while let Some(rest) = layers.iter().find_map(|layer| text.strip_prefix(layer)) {
        text = rest.to_owned();
    }
    text
}
