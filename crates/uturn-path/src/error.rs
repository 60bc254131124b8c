//! Why a flow cannot be walked.

use std::fmt;

use uturn_kubeproxy::Unsupported;
use uturn_model::{Family, Name, NamespacedName};

/// Why a flow cannot be walked.
#[derive(Clone, Debug, PartialEq)]
pub enum WalkError {
    /// A node's rules cannot be compiled.
    Compile(Name, Unsupported),
    /// A node's rules cannot be read.
    Read(Vec<String>),
    /// There is no such object.
    Unknown(String),
    /// The workload has no pods.
    NoPods(String),
    /// The pod is on no known node.
    NotPlaced(NamespacedName),
    /// The client has no address of the target's family.
    NoAddress(String, Family),
    /// Something is missing that uturn would need.
    Later(String),
    /// The flow depends on more than a reduced [`Population`](crate::Population) knows: the whole
    /// cluster has to be walked.
    NeedsWhole,
}

impl WalkError {
    pub(crate) fn unknown(what: &dyn fmt::Display) -> Self {
        Self::Unknown(what.to_string())
    }

    /// Whether both have the same cause, even if on different nodes.
    pub(crate) fn has_same_cause(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Compile(_, a), Self::Compile(_, b)) => a == b,
            _ => self == other,
        }
    }
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compile(node, why) => write!(f, "node {node}: {why}"),
            Self::Read(faults) => f.write_str(&faults.join("\n")),
            Self::Unknown(what) => write!(f, "there is no {what} in this cluster"),
            Self::NoPods(what) => write!(f, "{what} has no pods in this cluster"),
            Self::NotPlaced(pod) => write!(f, "pod/{pod} is on no node that is known"),
            Self::NoAddress(who, family) => write!(f, "{who} has no {family} address"),
            Self::Later(what) => f.write_str(what),
            Self::NeedsWhole => f.write_str("only the whole cluster can tell"),
        }
    }
}

impl std::error::Error for WalkError {}
