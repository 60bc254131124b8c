//! The error of starting or changing the load balancer.

use std::io;

use thiserror::Error;

/// The reason why the load balancer does not serve.
#[derive(Debug, Error)]
#[error("cannot {doing}: {source}")]
pub struct StartError {
    pub(crate) doing: String,
    pub(crate) source: io::Error,
}
