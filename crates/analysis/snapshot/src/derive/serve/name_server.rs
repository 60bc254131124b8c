//! Determines the release of CoreDNS, which decides what a Corefile may contain.

use uturn_model::{NamespacedName, Version, image};

use crate::decode::objects::Objects;
use crate::derive::ground::kube_proxy;

/// Returns the release in the images of CoreDNS in the namespace of the cluster's DNS Service, if
/// they agree.
pub(super) fn release(objects: &Objects, service: Option<&NamespacedName>) -> Option<Version> {
    let namespace = service.map_or("kube-system", |name| name.namespace.as_str());
    let pods = objects.pods.0.values().map(|pod| (&pod.name, &pod.spec));
    let workloads = objects.workloads.0.values();
    let templates = workloads.map(|workload| (&workload.name, &workload.template));
    let in_system = pods.chain(templates).filter(|(name, spec)| {
        let is_labelled = spec.labels.is("k8s-app", "kube-dns");
        name.namespace.as_str() == namespace
            && (is_labelled || namespace != "kube-system" || name.name.as_str().contains("coredns"))
    });
    let containers = in_system.flat_map(|(_, spec)| &spec.containers);
    let mut releases =
        containers.filter(|own| is_coredns(&own.image)).map(|own| kube_proxy::tag(&own.image));
    let first = releases.next()??;
    releases.all(|other| other == Some(first)).then_some(first)
}

/// Returns whether an image is CoreDNS, in any registry: `…/coredns/coredns:1.12.0`.
fn is_coredns(image: &str) -> bool {
    image::name(image).ends_with("coredns")
}
