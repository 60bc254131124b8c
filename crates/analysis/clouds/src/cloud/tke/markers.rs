//! The markers by which the cloud is recognised.

use uturn_model::Labels;

use super::annotations;
use super::kube_proxy::VENDOR;
use super::listeners::CLASS;
use crate::cloud::Observed;

/// The ConfigMap with the feature switches of TKE's Service controller.
pub(super) const SWITCHES: &str = "tke-service-controller-config";

/// Describes a marker that only TKE leaves in a cluster.
pub(super) fn find(observed: &Observed<'_>) -> Option<String> {
    let image = observed.kube_proxy_image.filter(|image| image.contains("-tke."));
    if let Some(image) = image {
        return Some(format!("kube-proxy's image {image}"));
    }
    let nodes = || observed.nodes.values();
    let by_id = nodes().find(|node| {
        let id = node.provider_id.as_deref().unwrap_or_default();
        id.starts_with("qcloud://") || id.starts_with("tencentcloud://")
    });
    if let Some(node) = by_id {
        return Some(format!("the providerID of node {}", node.name));
    }
    let by_version = nodes().find(|node| {
        let build = node.kube_proxy_version.and_then(|version| version.vendor_build);
        build.is_some_and(|build| build.vendor == VENDOR)
    });
    if let Some(node) = by_version {
        return Some(format!("the kube-proxy version of node {}", node.name));
    }
    if let Some(config) = observed.overrides.values().next() {
        return Some(format!("TkeServiceConfig {}", config.name));
    }
    if !observed.controller_switches.is_empty() {
        return Some(format!("ConfigMap kube-system/{SWITCHES}"));
    }
    by_key(observed).or_else(|| {
        let mut ingresses = observed.ingresses.values();
        let ingress = ingresses.find(|ingress| ingress.class.as_deref() == Some(CLASS))?;
        Some(format!("the class {CLASS} of {}", ingress.object()))
    })
}

/// Describes an annotation or a label that only TKE's components read or write.
fn by_key(observed: &Observed<'_>) -> Option<String> {
    let none = Labels::new();
    let services = observed.services.values();
    let services = services
        .map(|service| (service.object().to_string(), [&service.annotations, &service.labels]));
    let ingresses = observed.ingresses.values();
    let ingresses =
        ingresses.map(|ingress| (ingress.object().to_string(), [&ingress.annotations, &none]));
    let nodes = observed.nodes.values();
    let nodes =
        nodes.map(|node| (format!("Node {}", node.name), [&node.labels, &node.annotations]));
    services.chain(ingresses).chain(nodes).find_map(|(object, both)| {
        let keys = both.into_iter().flat_map(|labels| labels.iter().map(|(key, _)| key));
        let key = keys.into_iter().find(|key| annotations::is_own(key))?;
        Some(format!("{key} of {object}"))
    })
}
