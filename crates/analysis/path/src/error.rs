//! The reasons why a flow cannot be walked.

use std::fmt;

use thiserror::Error;
use uturn_kubeproxy::Unsupported;
use uturn_model::{Family, Name, NamespacedName};

/// A reason why a flow cannot be walked.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum WalkError {
    /// A node's rules cannot be compiled.
    #[error("node {0}: {1}")]
    Compile(Name, Unsupported),
    /// A node's rules cannot be read.
    #[error("{}", .0.join("\n"))]
    Read(Vec<String>),
    /// The object does not exist.
    #[error("there is no {0} in this cluster")]
    Unknown(String),
    /// The workload has no pods.
    #[error("{0} has no pods in this cluster")]
    NoPods(String),
    /// The pod is on no known node.
    #[error("pod/{0} is on no node that is known")]
    NotPlaced(NamespacedName),
    /// The client has no address of the target's family.
    #[error("{0} has no {1} address")]
    NoAddress(String, Family),
    /// A fact that uturn needs is missing.
    #[error("{0}")]
    Later(String),
    /// The flow depends on more than a reduced [`Population`](crate::Population) knows: the whole
    /// cluster has to be walked.
    #[error("only the whole cluster can tell")]
    NeedsWhole,
}

impl WalkError {
    pub(crate) fn unknown(what: &dyn fmt::Display) -> Self {
        Self::Unknown(what.to_string())
    }

    /// Returns whether both errors have the same cause, even if on different nodes.
    pub(crate) fn has_same_cause(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Compile(_, a), Self::Compile(_, b)) => a == b,
            _ => self == other,
        }
    }
}
