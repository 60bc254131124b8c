//! The kinds that are listed, and their paths.

use std::collections::BTreeSet;

use serde::Deserialize;
use uturn_snapshot::ReadKind;

/// Kinds without namespaces.
const GLOBAL: [&str; 10] = [
    "Node",
    "IngressClass",
    "IngressClassParams",
    "GatewayClass",
    "FelixConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "APIService",
    "PersistentVolume",
    "Namespace",
];

/// Kinds whose names are plurals already.
const PLURAL: [&str; 2] = ["Endpoints", "IngressClassParams"];

/// The group that kinds belonged to before they had groups of their own.
pub(crate) const OLD_GROUP: &str = "extensions";

/// A kind and how it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedKind {
    pub(crate) kind: &'static str,
    pub(crate) api_versions: &'static [&'static str],
}

/// Returns every kind that is listed. ConfigMaps are not listed: a few are read by name. Nor are
/// Leases, which all change every few seconds, and ScaledObjects, which add nothing where the pods
/// are read: both are read from files only.
pub(crate) fn listed_kinds() -> Vec<ListedKind> {
    let is_listed =
        |known: &ReadKind| !matches!(known.kind, "ConfigMap" | "Lease" | "ScaledObject");
    let all = uturn_snapshot::kinds().into_iter().filter(is_listed);
    all.map(|ReadKind { kind, api_versions }| ListedKind { kind, api_versions }).collect()
}

impl ListedKind {
    pub(crate) fn has_namespaces(self) -> bool {
        has_namespaces(self.kind)
    }

    /// Returns the plural of the kind in URLs and rights.
    pub(crate) fn plural(self) -> String {
        plural(self.kind).to_lowercase()
    }

    /// Returns the plural of the kind for messages.
    pub(crate) fn called(self) -> String {
        plural(self.kind)
    }

    /// Returns the path of all objects, or of those of a namespace.
    pub(crate) fn path(self, api_version: &str, namespace: Option<&str>) -> String {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let plural = self.plural();
        match namespace {
            Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
            None => format!("/{root}/{api_version}/{plural}"),
        }
    }
}

/// Returns whether objects of the kind are in namespaces.
pub(crate) fn has_namespaces(kind: &str) -> bool {
    !GLOBAL.contains(&kind)
}

fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        _ if PLURAL.contains(&kind) => kind.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        Some(_) => format!("{kind}s"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

/// The versions of groups that an API server has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups(Option<BTreeSet<String>>);

#[derive(Deserialize)]
struct GroupList {
    kind: String,
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

impl Groups {
    /// Reads the versions that an `APIGroupList` names. If the answer is not such a list, no group
    /// is known to be missing.
    pub(crate) fn read(text: &str) -> Self {
        let list: Option<GroupList> = serde_json::from_str(text).ok();
        Self(list.filter(|list| list.kind == "APIGroupList").map(|list| {
            let versions = list.groups.into_iter().flat_map(|group| group.versions);
            versions.map(|version| version.group_version).collect()
        }))
    }

    /// Returns the versions of a kind that the server may have, the preferred first.
    pub(crate) fn versions_of(&self, kind: ListedKind) -> Vec<&'static str> {
        let is_there = |version: &&&str| {
            let known = self.0.as_ref();
            !version.contains('/') || known.is_none_or(|known| known.contains(**version))
        };
        kind.api_versions.iter().filter(is_there).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_path() {
        let paths: Vec<String> = listed_kinds()
            .into_iter()
            .map(|kind| kind.path(kind.api_versions[0], kind.has_namespaces().then_some("shop")))
            .collect();
        assert_eq!(
            paths,
            [
                "/api/v1/nodes",
                "/api/v1/namespaces/shop/pods",
                "/api/v1/namespaces/shop/services",
                "/api/v1/namespaces/shop/endpoints",
                "/api/v1/persistentvolumes",
                "/api/v1/namespaces",
                "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices",
                "/apis/networking.k8s.io/v1/namespaces/shop/ingresses",
                "/apis/networking.k8s.io/v1/ingressclasses",
                "/apis/gateway.networking.k8s.io/v1/gatewayclasses",
                "/apis/gateway.networking.k8s.io/v1/namespaces/shop/gateways",
                "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes",
                "/apis/gateway.networking.k8s.io/v1/namespaces/shop/grpcroutes",
                "/apis/gateway.networking.k8s.io/v1/namespaces/shop/tcproutes",
                "/apis/gateway.networking.k8s.io/v1/namespaces/shop/tlsroutes",
                "/apis/gateway.networking.k8s.io/v1/namespaces/shop/referencegrants",
                "/apis/gateway.envoyproxy.io/v1alpha1/namespaces/shop/clienttrafficpolicies",
                "/apis/gateway.nginx.org/v1alpha2/namespaces/shop/nginxproxies",
                "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies",
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
                "/apis/apiregistration.k8s.io/v1/apiservices",
                "/apis/crd.projectcalico.org/v1/felixconfigurations",
                "/apis/networking.istio.io/v1/namespaces/shop/gateways",
                "/apis/networking.istio.io/v1alpha3/namespaces/shop/envoyfilters",
                "/apis/apps/v1/namespaces/shop/deployments",
                "/apis/apps/v1/namespaces/shop/statefulsets",
                "/apis/apps/v1/namespaces/shop/daemonsets",
                "/apis/apps/v1/namespaces/shop/replicasets",
                "/apis/batch/v1/namespaces/shop/jobs",
                "/apis/batch/v1/namespaces/shop/cronjobs",
                "/api/v1/namespaces/shop/replicationcontrollers",
                "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers",
                "/apis/cloud.tencent.com/v1alpha1/namespaces/shop/tkeserviceconfigs",
                "/apis/elbv2.k8s.aws/v1beta1/ingressclassparams",
                "/apis/metallb.io/v1beta1/namespaces/shop/ipaddresspools",
                "/apis/metallb.io/v1beta1/namespaces/shop/l2advertisements",
                "/apis/metallb.io/v1beta1/namespaces/shop/bgpadvertisements",
            ]
        );
    }

    #[test]
    fn only_versions_that_are_there_are_asked_for() {
        let kinds = listed_kinds();
        let kind = |name: &str| *kinds.iter().find(|kind| kind.kind == name).unwrap();
        let groups = Groups::read(
            r#"{"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": "networking.k8s.io/v1beta1"}]}]}"#,
        );
        assert_eq!(groups.versions_of(kind("Ingress")), ["networking.k8s.io/v1beta1"]);
        assert_eq!(groups.versions_of(kind("Pod")), ["v1"]);
        assert!(groups.versions_of(kind("EndpointSlice")).is_empty());
        for unknown in [Groups::default(), Groups::read("{}"), Groups::read("no list")] {
            let unknown = unknown.versions_of(kind("EndpointSlice"));
            assert_eq!(unknown, ["discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"]);
        }
    }
}
