//! The controllers' knowledge beside the cluster's objects.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{Name, NamespacedName, Node, ObjectRef};

use crate::clb::Certificate;
use crate::ledger::Ledger;
use crate::shares::Shares;

/// The controllers' knowledge beside the cluster's objects.
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
    /// The contents of the Secrets that the cluster names for TLS.
    pub secrets: BTreeMap<NamespacedName, CertificateSecret>,
    /// The Secrets that the cluster names for TLS and that cannot be read, and why.
    pub unreadable: BTreeMap<NamespacedName, String>,
    /// The creation times of Services and Ingresses as texts of the API server: in UTC, so that the
    /// texts sort like the times. An object without a time counts as the newest.
    pub created: BTreeMap<ObjectRef, String>,
    /// The statuses of Services and Ingresses, as far as they identify load balancers.
    pub statuses: BTreeMap<ObjectRef, Status>,
    /// The Services and Ingresses that cannot be read, and why. Their load balancers stay as they
    /// are.
    pub unread: BTreeMap<ObjectRef, Unread>,
    /// The owners of ports of the load balancers that users made.
    pub ledger: Ledger,
    /// The namespaces that may use each of these load balancers.
    pub shares: Shares,
}

/// The load balancer that the status of a Service or an Ingress names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The addresses and host names.
    pub addresses: BTreeSet<String>,
    /// The id of the load balancer, in the annotation that its controller writes.
    pub balancer: Option<String>,
    /// Whether the object is being deleted, or no longer wants a load balancer.
    pub is_leaving: bool,
}

/// A Service or an Ingress that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// The reason.
    pub why: String,
    /// The users' load balancers that the object names.
    pub existing: BTreeSet<String>,
}

/// The content of a Secret for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSecret {
    /// The ids of certificates.
    Certificate(Certificate),
    /// The Secret has no key `qcloud_cert_id`.
    WithoutId,
}

impl Environment {
    /// Returns the UID of an object. For manifests that were never applied, returns the object's
    /// name instead.
    pub fn uid(&self, object: &ObjectRef) -> String {
        self.uids.get(object).cloned().unwrap_or_else(|| object.short())
    }

    /// Returns the order of objects that compete for a port: by the time of creation, then by the
    /// UID. Names do not count.
    pub fn age(&self, object: &ObjectRef) -> (bool, &str, String) {
        let created = self.created.get(object).map(String::as_str);
        (created.is_none(), created.unwrap_or_default(), self.uid(object))
    }

    /// Returns the id of a node's instance. Returns `None` for a node that is not an instance; its
    /// address is used as the target instead.
    pub fn instance(&self, node: &Node) -> Option<String> {
        let stated = || {
            let id = node.provider_id.as_deref()?.rsplit('/').next()?;
            id.starts_with("ins-").then(|| id.to_owned())
        };
        self.instances.get(&node.name).cloned().or_else(stated)
    }
}
