//! Reads NetworkPolicies: only the pods to which they apply.

use uturn_model::cluster::NetworkPolicy;

use super::objects::Objects;
use super::{Doc, meta, selector};

/// Reads a NetworkPolicy.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let spec = doc.map(doc.root, "spec");
    let pods = spec.and_then(|spec| selector::read(doc, spec, "podSelector")).unwrap_or_default();
    let policy = NetworkPolicy { pods, origin: meta.origin, name: meta.name };
    objects.network_policies.add(doc, policy.name.clone(), policy);
}
