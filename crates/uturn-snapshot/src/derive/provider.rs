//! Which cloud the cluster is in.

use uturn_model::cluster::Provider;
use uturn_model::service::ServiceKind;
use uturn_model::{Known, Labels};

use super::{balancers, clouds, proxy};
use crate::objects::Objects;

/// Stated, or seen by its traces. Where there is a load balancer and no trace, it is not known.
pub(super) fn derive(objects: &Objects) -> Known<Provider> {
    if let Some((provider, origin)) = &objects.facts.provider {
        return Known::stated(*provider, origin.clone());
    }
    if let Some(trace) = trace(objects) {
        return Known::derived(Provider::Tke, trace);
    }
    if let Some((cloud, trace)) = clouds::elsewhere(objects) {
        return Known::derived(Provider::Other(cloud), trace);
    }
    let service = objects.services.0.values().find(|one| one.kind == ServiceKind::LoadBalancer);
    let ingress = objects.ingresses.0.values().find(|one| balancers::is_of_cloud(one, objects));
    match service.map(|one| one.object()).or_else(|| ingress.map(|one| one.object())) {
        Some(object) => {
            let because = format!("{object} needs a load balancer, and nothing names a cloud");
            Known::derived(Provider::Unknown, because)
        }
        None => Known::derived(Provider::None, "nothing here asks for a cloud's load balancer"),
    }
}

/// What only TKE leaves behind.
fn trace(objects: &Objects) -> Option<String> {
    if let Some(image) = proxy::image(objects).filter(|image| image.contains("-tke.")) {
        return Some(format!("kube-proxy's image {image}"));
    }
    let by_id = objects.nodes.0.values().find(|node| {
        let id = node.provider_id.as_deref().unwrap_or_default();
        id.starts_with("qcloud://") || id.starts_with("tencentcloud://")
    });
    if let Some(node) = by_id {
        return Some(format!("the providerID of node {}", node.name));
    }
    let by_version = objects
        .nodes
        .0
        .values()
        .find(|node| node.kube_proxy_version.is_some_and(|version| version.tke.is_some()));
    if let Some(node) = by_version {
        return Some(format!("the kube-proxy version of node {}", node.name));
    }
    if let Some(config) = objects.tke_service_configs.0.values().next() {
        return Some(format!("TkeServiceConfig {}", config.name));
    }
    if !objects.controller_switches.is_empty() {
        return Some("ConfigMap kube-system/tke-service-controller-config".into());
    }
    let services = objects.services.0.values();
    let services = services.map(|one| (one.object().to_string(), [&one.annotations, &one.labels]));
    let ingresses = objects.ingresses.0.values();
    let none = Labels::new();
    let ingresses = ingresses.map(|one| (one.object().to_string(), [&one.annotations, &none]));
    let nodes = objects.nodes.0.values();
    let nodes = nodes.map(|one| (format!("Node {}", one.name), [&one.labels, &one.annotations]));
    let labelled = services.chain(ingresses).chain(nodes).find_map(|(object, both)| {
        let key = both.into_iter().find_map(clouds::own_key)?;
        Some(format!("{key} of {object}"))
    });
    let by_class = || {
        let ingress =
            objects.ingresses.0.values().find(|one| one.class.as_deref() == Some("qcloud"))?;
        Some(format!("the class qcloud of {}", ingress.object()))
    };
    labelled.or_else(by_class)
}
