//! Which cloud the cluster is in.

use uturn_model::cluster::Provider;
use uturn_model::service::ServiceKind;
use uturn_model::{Known, Labels};

use super::{Said, balancers, proxy};
use crate::objects::Objects;

/// Stated, seen by its traces, or supposed where there is a load balancer to be explained.
pub(super) fn derive(objects: &Objects, said: &mut Said) -> Known<Provider> {
    if let Some((provider, origin)) = &objects.facts.provider {
        return Known::stated(*provider, origin.clone());
    }
    if let Some(trace) = trace(objects) {
        return Known::derived(Provider::Tke, trace);
    }
    let service = objects.services.0.values().find(|one| one.kind == ServiceKind::LoadBalancer);
    let ingress = objects.ingresses.0.values().find(|one| balancers::is_of_cloud(one, objects));
    let object = service.map(|one| one.object()).or_else(|| ingress.map(|one| one.object()));
    let Some(object) = object else {
        return Known::derived(Provider::None, "nothing here asks for a cloud's load balancer");
    };
    if let Some((_, trace)) = elsewhere(objects) {
        return Known::derived(Provider::None, trace);
    }
    let because = format!("{object} needs a load balancer, and nothing names another cloud");
    said.suppose("cloud", "tke", because.as_str(), "state spec.provider in Facts");
    Known::supposed(Provider::Tke, because)
}

/// How keys of annotations and labels begin that other clouds read or write.
const OTHERS: &[(&str, &str)] = &[
    ("service.beta.kubernetes.io/aws-", "AWS"),
    ("eks.amazonaws.com/", "AWS"),
    ("service.beta.kubernetes.io/azure-", "Azure"),
    ("kubernetes.azure.com/", "Azure"),
    ("networking.gke.io/", "GCP"),
    ("cloud.google.com/", "GCP"),
    ("service.beta.kubernetes.io/alibaba-", "Alibaba"),
    ("service.beta.kubernetes.io/alicloud-", "Alibaba"),
    ("service.beta.kubernetes.io/do-", "DigitalOcean"),
    ("service.beta.kubernetes.io/oci-", "Oracle"),
    ("oci.oraclecloud.com/", "Oracle"),
    ("service.beta.kubernetes.io/linode-", "Linode"),
    ("service.beta.kubernetes.io/scw-", "Scaleway"),
    ("load-balancer.hetzner.cloud/", "Hetzner"),
    ("loadbalancer.openstack.org/", "OpenStack"),
    ("kubernetes.io/elb.", "Huawei"),
    ("metallb.universe.tf/", "MetalLB"),
    ("metallb.io/", "MetalLB"),
    ("kube-vip.io/", "kube-vip"),
];

/// Another cloud that the cluster is in, and what it left behind.
pub(super) fn elsewhere(objects: &Objects) -> Option<(&str, String)> {
    let nodes = objects.nodes.0.values();
    let by_id = nodes.clone().find_map(|node| {
        let (scheme, _) = node.provider_id.as_ref()?.split_once("://")?;
        let is_other = !scheme.is_empty() && scheme != "qcloud" && scheme != "tencentcloud";
        is_other.then(|| (scheme, format!("providerID {scheme}:// of Node {}", node.name)))
    });
    let of = |labels: &Labels, object: &str| {
        let mut keys = labels.iter().map(|(key, _)| key);
        keys.find_map(|key| {
            let (_, cloud) = OTHERS.iter().find(|(begins, _)| key.starts_with(begins))?;
            Some((*cloud, format!("{key} of {object} ({cloud})")))
        })
    };
    let by_label = || nodes.clone().find_map(|one| of(&one.labels, &format!("Node {}", one.name)));
    let by_service = || {
        let mut services = objects.services.0.values();
        services.find_map(|one| of(&one.annotations, &one.object().to_string()))
    };
    by_id.or_else(by_label).or_else(by_service)
}

/// What only TKE leaves behind.
fn trace(objects: &Objects) -> Option<String> {
    if let Some(image) = proxy::image(objects).filter(|image| image.contains("-tke.")) {
        return Some(format!("kube-proxy's image {image}"));
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
    let found = |labels: &Labels| {
        let ours = |key: &str| {
            key.contains("tencent")
                || key.contains("qcloud")
                || key == "kubernetes.io/ingress.subnetId"
        };
        labels.iter().map(|(key, _)| key).find(|key| ours(key)).map(str::to_owned)
    };
    let services = objects.services.0.values();
    let services = services.map(|one| (one.object().to_string(), [&one.annotations, &one.labels]));
    let ingresses = objects.ingresses.0.values();
    let none = Labels::new();
    let ingresses = ingresses.map(|one| (one.object().to_string(), [&one.annotations, &none]));
    let nodes = objects.nodes.0.values();
    let nodes = nodes.map(|one| (format!("Node {}", one.name), [&one.labels, &one.annotations]));
    let labelled = services.chain(ingresses).chain(nodes).find_map(|(object, both)| {
        let key = both.into_iter().find_map(found)?;
        Some(format!("{key} of {object}"))
    });
    let by_class = || {
        let ingress =
            objects.ingresses.0.values().find(|one| one.class.as_deref() == Some("qcloud"))?;
        Some(format!("the class qcloud of {}", ingress.object()))
    };
    labelled.or_else(by_class)
}
