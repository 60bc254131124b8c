//! What the controllers know beside the cluster's objects.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{Name, NamespacedName, Node, ObjectRef};

use crate::clb::Certificate;

/// What the controllers know beside the cluster's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The cluster's id, which is a tag of its load balancers: `cls-3f8k2m1q`.
    pub cluster: String,
    /// The cluster's network, in which private load balancers are created.
    pub network: String,
    /// The ids of instances whose nodes do not state them in `spec.providerID`.
    pub instances: BTreeMap<Name, String>,
    /// The UIDs of Services and Ingresses.
    pub uids: BTreeMap<ObjectRef, String>,
    /// What the Secrets hold that the cluster names for TLS.
    pub secrets: BTreeMap<NamespacedName, CertificateSecret>,
    /// The Secrets that the cluster names for TLS and that cannot be read, and why.
    pub unreadable: BTreeMap<NamespacedName, String>,
    /// Load balancers that users made, and that objects which are being deleted used until now:
    /// the controllers' listeners on them are removed.
    pub released: BTreeSet<String>,
}

/// What a Secret for TLS holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSecret {
    /// The ids of certificates.
    Certificate(Certificate),
    /// No key `qcloud_cert_id`.
    WithoutId,
}

impl Environment {
    /// The UID of an object. Manifests that were never applied have none; their name stands for
    /// it.
    pub fn uid(&self, object: &ObjectRef) -> String {
        self.uids.get(object).cloned().unwrap_or_else(|| object.short())
    }

    /// The id of a node's instance. Returns `None` for a node that is no instance, whose address
    /// is a target instead.
    pub fn instance(&self, node: &Node) -> Option<String> {
        let stated = || {
            let id = node.provider_id.as_deref()?.rsplit('/').next()?;
            id.starts_with("ins-").then(|| id.to_owned())
        };
        self.instances.get(&node.name).cloned().or_else(stated)
    }
}
