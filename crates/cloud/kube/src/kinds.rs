//! The kinds of objects that the controllers read.

use kube::core::{ApiResource, GroupVersionKind};

/// A kind of objects.
#[derive(Debug, PartialEq, Eq)]
pub struct WatchedKind {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The name of the kind in URLs.
    pub plural: &'static str,
    /// Whether a cluster may lack the kind.
    pub is_optional: bool,
}

/// Services.
pub static SERVICE: WatchedKind = known("", "v1", "Service", "services");
/// Ingresses.
pub static INGRESS: WatchedKind = known("networking.k8s.io", "v1", "Ingress", "ingresses");
/// Secrets, which are read one by one.
pub static SECRET: WatchedKind = known("", "v1", "Secret", "secrets");
/// Events, which are only written.
pub static EVENT: WatchedKind = known("", "v1", "Event", "events");

/// ConfigMaps, in which the controllers keep the ledger of ports.
pub static CONFIG_MAP: WatchedKind = known("", "v1", "ConfigMap", "configmaps");

/// Leases.
pub static LEASE: WatchedKind = known("coordination.k8s.io", "v1", "Lease", "leases");

/// Nodes.
pub static NODE: WatchedKind = known("", "v1", "Node", "nodes");
/// EndpointSlices.
pub static SLICE: WatchedKind = known("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
/// Pods. The store keeps only those with the controllers' readiness gate.
pub static POD: WatchedKind = known("", "v1", "Pod", "pods");
static CLASS: WatchedKind = known("networking.k8s.io", "v1", "IngressClass", "ingressclasses");
/// TkeServiceConfigs, with users' settings for listeners.
pub static CONFIG: WatchedKind = WatchedKind {
    is_optional: true,
    ..known("cloud.tencent.com", "v1alpha1", "TkeServiceConfig", "tkeserviceconfigs")
};

/// The kinds that are watched.
pub static WATCHED: [&WatchedKind; 7] = [&SERVICE, &INGRESS, &NODE, &SLICE, &CLASS, &CONFIG, &POD];

const fn known(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> WatchedKind {
    WatchedKind { group, version, kind, plural, is_optional: false }
}

impl WatchedKind {
    /// Returns the kind in the form that the client needs.
    pub fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group, self.version, self.kind);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }

    /// Returns the value of `apiVersion`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}
