//! What the controllers know beside the cluster's objects.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{Name, NamespacedName, Node, ObjectRef};

use crate::clb::Certificate;
use crate::ledger::Ledger;
use crate::shares::Shares;

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
    /// When Services and Ingresses were created, in the API server's words: in UTC, so that the
    /// order of the texts is that of the times. Without a time, an object counts as the newest.
    pub created: BTreeMap<ObjectRef, String>,
    /// What the status of Services and Ingresses names.
    pub statuses: BTreeMap<ObjectRef, Status>,
    /// The Services and Ingresses that cannot be read, and why. They keep what they have.
    pub unread: BTreeMap<ObjectRef, Unread>,
    /// Who has which port of the load balancers that users made.
    pub ledger: Ledger,
    /// Who may use which of them.
    pub shares: Shares,
}

/// What the status of a Service or an Ingress names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Its addresses and host names.
    pub addresses: BTreeSet<String>,
    /// The id of the load balancer, in the annotation that its controller writes.
    pub balancer: Option<String>,
    /// Whether the object is being deleted, or wants no load balancer any more.
    pub is_leaving: bool,
}

/// A Service or an Ingress that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// What of it cannot be read.
    pub why: String,
    /// The load balancers of users that it names.
    pub existing: BTreeSet<String>,
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

    /// What decides between newcomers: the time of creation, then the UID. Names do not count.
    pub fn age(&self, object: &ObjectRef) -> (bool, &str, String) {
        let created = self.created.get(object).map(String::as_str);
        (created.is_none(), created.unwrap_or_default(), self.uid(object))
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
