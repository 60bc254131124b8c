//! Workloads that may run an Ingress controller, and reasons why an Ingress is not judged.

use uturn_model::pod::PodSpec;
use uturn_model::{Name, ObjectRef, Origin, Selector, Text};

use super::products::Product;

/// The reason why an Ingress that a controller in the cluster serves is not judged, and what would
/// settle it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Open {
    pub(crate) because: Text,
    pub(crate) settle: Text,
}

impl Open {
    pub(super) fn new(because: impl Into<Text>, settle: impl Into<Text>) -> Self {
        Self { because: because.into(), settle: settle.into() }
    }
}

/// A workload that runs a controller's pods.
pub(super) struct Candidate<'o> {
    pub(super) product: &'static Product,
    pub(super) workload: ObjectRef,
    pub(super) namespace: Name,
    pub(super) pods: Selector,
    pub(super) template: &'o PodSpec,
    pub(super) origin: Origin,
}
