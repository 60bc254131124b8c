//! Reads nodes.

use std::net::IpAddr;

use uturn_clouds::cloud;
use uturn_model::{Node, Text};

use super::objects::Objects;
use super::{Doc, meta, scheduling};

/// Reads a Node.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let mut node = Node::new(meta.name.name.clone(), meta.origin);
    node.labels = meta.labels;
    node.annotations = meta.annotations;
    if let Some(spec) = doc.map(doc.root, "spec") {
        node.pod_cidrs = doc.list(spec, "podCIDRs");
        if node.pod_cidrs.is_empty() {
            let empty = spec.get("podCIDR").is_some_and(|cidr| cidr.as_str() == Some(""));
            node.pod_cidrs.extend(
                (!empty).then(|| doc.read::<uturn_model::IpNet>(spec, "podCIDR")).flatten(),
            );
        }
        node.provider_id = doc.read(spec, "providerID");
        node.unschedulable = doc.read(spec, "unschedulable").unwrap_or_default();
        node.taints = scheduling::taints(doc, spec);
    }
    if let Some(status) = doc.map(doc.root, "status") {
        for address in doc.maps(status, "addresses") {
            let list = match address.get("type").and_then(|kind| kind.as_str()) {
                Some("InternalIP") => &mut node.internal_ips,
                Some("ExternalIP") => &mut node.external_ips,
                _ => continue,
            };
            list.extend(doc.need::<IpAddr>(address, "address"));
        }
        for condition in doc.maps(status, "conditions") {
            if condition.get("type").and_then(|kind| kind.as_str()) == Some("Ready") {
                node.ready =
                    condition.get("status").and_then(|status| status.as_str()) == Some("True");
            }
        }
        if let Some(info) = doc.map(status, "nodeInfo") {
            // Distributions may write any text here. A text that is not a version is ignored.
            let version = |field: &str| info.get(field)?.as_str()?.parse().ok();
            // Releases since v1.31 leave kubeProxyVersion empty, and distributions without a
            // kube-proxy of its own never wrote it. Both programs come from one release.
            node.kube_proxy_version = version("kubeProxyVersion")
                .or_else(|| version("kubeletVersion"))
                .map(cloud::with_known_build);
            node.kernel = doc.read::<Text>(info, "kernelVersion");
            let system = info.get("operatingSystem").and_then(|system| system.as_str());
            node.is_windows = system == Some("windows");
        }
    }
    node.is_windows |= node.labels.is("kubernetes.io/os", "windows");
    objects.nodes.add(doc, node.name.clone(), node);
}
