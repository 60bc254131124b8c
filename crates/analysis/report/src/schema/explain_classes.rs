//! `scan --explain-classes -o json`.

use serde::Serialize;
use uturn_scan::{ClassExplanation, ClassTrait, Closeness, TargetExplanation};

use crate::classes::{outcome, parts};

/// What `uturn scan --explain-classes -o json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Classes<'a> {
    /// The targets that are scanned.
    pub targets: Vec<Target<'a>>,
}

impl<'a> From<&'a [TargetExplanation]> for Classes<'a> {
    fn from(targets: &'a [TargetExplanation]) -> Self {
        Self { targets: targets.iter().map(Target::from).collect() }
    }
}

/// A target and the equivalence classes of its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target<'a> {
    /// The object that the target belongs to: `KIND NAMESPACE/NAME`.
    pub object: String,
    /// Its port, host or path.
    pub label: &'a str,
    /// The destination, as `--to` takes it.
    pub to: String,
    /// `TCP` or `UDP`.
    pub protocol: String,
    /// How finely its clients are divided.
    pub closeness: Division,
    /// The classes; each pod is in one of them.
    pub classes: Vec<Class>,
}

impl<'a> From<&'a TargetExplanation> for Target<'a> {
    fn from(explanation: &'a TargetExplanation) -> Self {
        let target = &explanation.target;
        Self {
            object: target.object.to_string(),
            label: &target.label,
            to: target.to.to_string(),
            protocol: target.protocol.to_string(),
            closeness: explanation.closeness.into(),
            classes: explanation.classes.iter().map(Class::from).collect(),
        }
    }
}

/// How finely the clients of a target are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Division {
    /// Into classes of nodes and pods.
    Classes,
    /// Every node by itself.
    EveryNode,
    /// Every pod by itself.
    EveryPod,
}

impl From<Closeness> for Division {
    fn from(closeness: Closeness) -> Self {
        match closeness {
            Closeness::Classes => Self::Classes,
            Closeness::EveryNode => Self::EveryNode,
            Closeness::EveryPod => Self::EveryPod,
        }
    }
}

/// Clients whose calls end alike, for the same reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Class {
    /// The pod that was walked: `pod/NAMESPACE/NAME`.
    pub first: String,
    /// How many pods are in the class.
    pub pods: usize,
    /// How many nodes they are on.
    pub nodes: usize,
    /// How their calls end, in words; several where something that is not known decides.
    pub outcomes: Vec<String>,
    /// What all pods of the class have in common.
    pub common: Vec<Trait>,
    /// What the next class of the list does not have; empty for the last class.
    pub not_in_next: Vec<Trait>,
    /// What only the next class of the list has; empty for the last class.
    pub only_in_next: Vec<Trait>,
}

impl From<&ClassExplanation> for Class {
    fn from(class: &ClassExplanation) -> Self {
        let clients = &class.result.clients;
        let traits = |all: &[ClassTrait]| all.iter().map(Trait::from).collect();
        let [own, next] = &class.unlike_next;
        Self {
            first: format!("pod/{}", clients.first),
            pods: clients.pods.len(),
            nodes: clients.nodes,
            outcomes: class.result.verdicts.iter().map(outcome).collect(),
            common: traits(&class.common),
            not_in_next: traits(own),
            only_in_next: traits(next),
        }
    }
}

/// A property of pods or of their nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trait {
    /// What it is: `host-network`, `endpoint-of`, `zone` and the like.
    #[serde(rename = "trait")]
    pub name: &'static str,
    /// Its value; null where the property is there or not.
    pub value: Option<String>,
}

impl From<&ClassTrait> for Trait {
    fn from(class_trait: &ClassTrait) -> Self {
        let (name, value) = parts(class_trait);
        Self { name, value }
    }
}
