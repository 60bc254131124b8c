//! Faults of changes to what lives.

use thiserror::Error;
use uturn_model::{Name, NamespacedName, Text, WorkloadKind, misspelt};

/// A change that cannot be made, or a text that names none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LifeError {
    /// There is no such node.
    #[error("there is no node {node}{}", there_are(.known))]
    NoNode {
        /// The node.
        node: Name,
        /// The nodes that there are.
        known: Vec<Text>,
    },
    /// No node has the zone.
    #[error("no node is labelled topology.kubernetes.io/zone={zone}{}", there_are(.known))]
    NoZone {
        /// The zone.
        zone: Text,
        /// The zones that there are.
        known: Vec<Text>,
    },
    /// There is no such workload.
    #[error("there is no {} {name}{}", .kind.as_str(), there_are(.known))]
    NoWorkload {
        /// The kind.
        kind: WorkloadKind,
        /// The workload.
        name: NamespacedName,
        /// The workloads of the kind that there are.
        known: Vec<Text>,
    },
    /// The workload has no number of pods.
    #[error("{} {name} cannot be scaled: {why}", .kind.as_str())]
    NotScalable {
        /// The kind.
        kind: WorkloadKind,
        /// The workload.
        name: NamespacedName,
        /// The reason.
        why: &'static str,
    },
    /// There is no such pod.
    #[error("there is no pod {pod}{}", there_are(.known))]
    NoPod {
        /// The pod.
        pod: NamespacedName,
        /// The pods of its namespace.
        known: Vec<Text>,
    },
    /// The text is not what the option takes.
    #[error("{text:?}: expected {expected}")]
    Malformed {
        /// The text.
        text: Text,
        /// What the option takes, with an example.
        expected: &'static str,
    },
}

/// The number of known names that a message lists.
const SHOWN: usize = 5;

fn there_are(names: &[Text]) -> String {
    if names.is_empty() {
        return "; none is given".to_owned();
    }
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown: Vec<&str> = names.iter().take(SHOWN).map(|name| &**name).collect();
    format!("; there are {}{more}", shown.join(", "))
}

/// Sorts names by likeness to the wanted one.
pub(super) fn likest(names: impl Iterator<Item = Text>, wanted: &str) -> Vec<Text> {
    let mut names: Vec<Text> = names.collect();
    misspelt::sort_likest_first(&mut names, wanted);
    names
}
