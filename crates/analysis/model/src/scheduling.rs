//! The conditions for the nodes on which a pod may run.

use crate::pod::PodSpec;
use crate::{Labels, Node, Selector, Text};

/// A taint of a node that keeps pods away: `NoSchedule` or `NoExecute`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: Text,
    /// Its value; empty without one.
    pub value: Text,
    /// Its effect.
    pub effect: Text,
}

/// A pod's toleration of taints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// The key; `None` for every key.
    pub key: Option<Text>,
    /// The value; `None` for every value.
    pub value: Option<Text>,
    /// The effect; `None` for every effect.
    pub effect: Option<Text>,
}

/// The conditions for the nodes on which a pod may run, by its specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// `nodeSelector`.
    pub node_selector: Labels,
    /// The terms of the required `nodeAffinity`, one of which has to match. Without any, every node
    /// matches.
    pub node_terms: Vec<Selector>,
    /// `tolerations`.
    pub tolerations: Vec<Toleration>,
}

impl Taint {
    /// Returns whether the taint marks a node with temporary trouble, rather than the node's
    /// purpose.
    fn is_passing(&self) -> bool {
        self.key.starts_with("node.kubernetes.io/")
            || self.key.starts_with("node.cloudprovider.kubernetes.io/")
    }
}

impl Toleration {
    fn covers(&self, taint: &Taint) -> bool {
        let is_same =
            |own: &Option<Text>, other: &Text| own.as_ref().is_none_or(|own| own == other);
        is_same(&self.key, &taint.key)
            && is_same(&self.value, &taint.value)
            && is_same(&self.effect, &taint.effect)
    }
}

impl PodSpec {
    /// Returns whether the scheduler may put the pod on a node, as far as the node's labels and
    /// taints show. A supposed node may have any labels, and has no taints.
    pub fn may_run_on(&self, node: &Node) -> bool {
        let Placement { node_selector, node_terms, tolerations } = &self.placement;
        let has_labels = || {
            node.labels.contains_all(node_selector)
                && (node_terms.is_empty()
                    || node_terms.iter().any(|term| term.matches(&node.labels)))
        };
        let mut taints = node.taints.iter().filter(|taint| !taint.is_passing());
        node.supposed
            || has_labels() && taints.all(|taint| tolerations.iter().any(|own| own.covers(taint)))
    }
}
