//! Changes to what lives: nodes and zones that are lost, nodes that are drained, workloads that are
//! scaled, pods that are not ready.
//!
//! They change the cluster, not its objects' texts: the same is true whatever wrote the objects. What
//! controllers do afterwards is done here too, as far as it is certain: endpoints follow their pods.
//! Where the scheduler puts pods that are to run elsewhere is not known, so none is put anywhere:
//! [`Changed::assumed`] says so.

mod drain;
mod error;
mod lose;
mod parse;
mod pods;
mod scale;
#[cfg(test)]
mod tests;
mod unready;

use std::fmt;

use uturn_model::node::Loss;
use uturn_model::{Cluster, Name, NamespacedName, ObjectKind, ObjectRef, Text, WorkloadKind};

use super::{Change, What};

pub use error::LifeError;
pub use lose::{lost, nodes_of_zone, zones};

/// A change to what lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeChange {
    /// A node is lost.
    Lose {
        /// The node.
        node: Name,
        /// How far its loss is known.
        loss: Loss,
    },
    /// All nodes of a zone are lost.
    LoseZone {
        /// The zone, as nodes are labelled.
        zone: Text,
        /// How far the loss is known.
        loss: Loss,
    },
    /// A node is cordoned, and its pods are evicted.
    Drain(Name),
    /// A workload gets another number of pods.
    Scale {
        /// The kind of the workload.
        kind: WorkloadKind,
        /// The workload.
        name: NamespacedName,
        /// The number of its pods.
        replicas: u32,
    },
    /// A pod is not ready.
    Unready(NamespacedName),
}

/// A changed cluster.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The cluster as it is then.
    pub cluster: Cluster,
    /// What is assumed of it.
    pub assumed: Vec<Text>,
}

impl LifeChange {
    /// Returns the cluster as it is after the change.
    ///
    /// # Errors
    /// Returns an error if the cluster has no such node, zone, workload or pod, or if the workload
    /// cannot be scaled.
    pub fn apply(&self, cluster: &Cluster) -> Result<Changed, LifeError> {
        match self {
            Self::Lose { node, loss } => lose::node(cluster, node, *loss),
            Self::LoseZone { zone, loss } => lose::zone(cluster, zone, *loss),
            Self::Drain(node) => drain::drain(cluster, node),
            Self::Scale { kind, name, replicas } => scale::scale(cluster, *kind, name, *replicas),
            Self::Unready(pod) => unready::unready(cluster, pod),
        }
    }

    /// Returns whether nodes have other rules then, so that captured rules are none of that time.
    pub fn changes_rules(&self) -> bool {
        let (Self::Lose { loss, .. } | Self::LoseZone { loss, .. }) = self else { return true };
        *loss == Loss::Noticed
    }

    /// Returns the object that the change names; `None` for a zone.
    pub fn object(&self) -> Option<ObjectRef> {
        match self {
            Self::Lose { node, .. } | Self::Drain(node) => {
                Some(ObjectRef::global(ObjectKind::Node, node.as_str()))
            }
            Self::LoseZone { .. } => None,
            Self::Scale { kind, name, .. } => Some(ObjectRef::namespaced((*kind).into(), name)),
            Self::Unready(pod) => Some(ObjectRef::namespaced(ObjectKind::Pod, pod)),
        }
    }
}

impl fmt::Display for LifeChange {
    /// Formats the change as the command line has it: `--lose n1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = |loss: &Loss| match loss {
            Loss::Unnoticed => "=unnoticed",
            Loss::Noticed => "",
        };
        match self {
            Self::Lose { node, loss } => write!(f, "--lose {node}{}", when(loss)),
            Self::LoseZone { zone, loss } => write!(f, "--lose-zone {zone}{}", when(loss)),
            Self::Drain(node) => write!(f, "--drain {node}"),
            Self::Scale { kind, name, replicas } => {
                write!(f, "--scale {}/{name}={replicas}", kind.short())
            }
            Self::Unready(pod) => write!(f, "--unready pod/{pod}"),
        }
    }
}

/// Parses `--lose NODE`, or `--lose NODE=unnoticed`.
///
/// # Errors
/// Returns an error if the text is not the name of a node.
pub fn lose(text: &str) -> Result<Change, String> {
    change("--lose", text, LifeChange::lose(text))
}

/// Parses `--lose-zone ZONE`, or `--lose-zone ZONE=unnoticed`.
///
/// # Errors
/// Returns an error if the text names no zone.
pub fn lose_zone(text: &str) -> Result<Change, String> {
    change("--lose-zone", text, LifeChange::lose_zone(text))
}

/// Parses `--drain NODE`.
///
/// # Errors
/// Returns an error if the text is not the name of a node.
pub fn drain(text: &str) -> Result<Change, String> {
    change("--drain", text, LifeChange::drain(text))
}

/// Parses `--scale KIND/NS/NAME=REPLICAS`.
///
/// # Errors
/// Returns an error if the text names no workload, or no number.
pub fn scale(text: &str, namespace: Option<&str>) -> Result<Change, String> {
    change("--scale", text, LifeChange::scale(text, namespace))
}

/// Parses `--unready pod/NS/NAME`.
///
/// # Errors
/// Returns an error if the text names no pod.
pub fn unready(text: &str, namespace: Option<&str>) -> Result<Change, String> {
    change("--unready", text, LifeChange::unready(text, namespace))
}

fn change(flag: &str, text: &str, read: Result<LifeChange, LifeError>) -> Result<Change, String> {
    let change = read.map_err(|why| why.to_string())?;
    Ok(Change::new(flag, text, What::Life(change)))
}
