//! The reasons why a cluster cannot be analysed.

use std::fmt;

use thiserror::Error;
use uturn_path::WalkError;

use super::{IgnoreError, MAX_FLOWS};

/// The reason why a cluster cannot be analysed.
#[derive(Debug, Error)]
pub enum AnalysisError {
    /// Flows cannot be walked.
    #[error("{}", lines(.0))]
    Walk(Vec<WalkError>),
    /// Annotations that ignore findings cannot be understood.
    #[error("{}", lines(.0))]
    Ignore(Vec<IgnoreError>),
    /// The requested namespace has nothing to call.
    #[error("namespace {namespace:?} has no Service and no Ingress; these have: {}", .others.join(", "))]
    NothingIn {
        /// The namespace.
        namespace: String,
        /// The namespaces that have something to call.
        others: Vec<String>,
    },
    /// There are too many flows to walk each by itself.
    #[error(
        "--exhaustive walks each flow by itself, and there are {0}: at most {limit} can be \
         walked (-n picks a namespace)",
        limit = MAX_FLOWS
    )]
    TooManyFlows(usize),
}

impl From<WalkError> for AnalysisError {
    fn from(why: WalkError) -> Self {
        Self::Walk(vec![why])
    }
}

fn lines(errors: &[impl fmt::Display]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
