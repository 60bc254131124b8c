//! Why the load balancer does not serve.

use std::io;

use thiserror::Error;

/// Why the load balancer does not serve.
#[derive(Debug, Error)]
#[error("cannot {doing}: {source}")]
pub struct StartError {
    pub(crate) doing: String,
    pub(crate) source: io::Error,
}
