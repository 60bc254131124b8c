//! Finds the container that runs kube-proxy.

use uturn_clouds::cloud;
use uturn_model::{Origin, Pod, Text, Version, WorkloadKind, image};

use crate::decode::objects::Objects;

/// Returns kube-proxy's image, if its DaemonSet or one of its pods is known.
pub(super) fn image(objects: &Objects) -> Option<&str> {
    container(objects).map(|(image, _, _)| image)
}

/// Returns the image, the arguments and the place of kube-proxy's container.
pub(in crate::derive) fn container(objects: &Objects) -> Option<(&str, &[Text], &Origin)> {
    let workloads = objects.workloads.0.values();
    let daemon = workloads
        .filter(|workload| workload.kind == WorkloadKind::DaemonSet)
        .filter(|workload| workload.name.namespace.as_str() == "kube-system")
        .find(|workload| {
            workload.name.name.as_str() == "kube-proxy"
                || workload.template.labels.is("k8s-app", "kube-proxy")
        });
    let daemon = daemon.map(|workload| (&workload.template, &workload.origin));
    let pods = || {
        // GKE and RKE2 run kube-proxy as static pods, whose label is not that of a DaemonSet's
        // pods.
        let ours = |pod: &&Pod| {
            pod.name.namespace.as_str() == "kube-system"
                && ["k8s-app", "component"].iter().any(|key| pod.spec.labels.is(key, "kube-proxy"))
        };
        let pod = objects.pods.0.values().find(ours)?;
        Some((&pod.spec, &pod.origin))
    };
    let (spec, origin) = daemon.or_else(pods)?;
    let container = spec.containers.iter().find(|container| &*container.name == "kube-proxy");
    let container = container.or(spec.containers.first())?;
    Some((&container.image, &container.arguments, origin))
}

/// Parses the tag of an image as a version.
pub(in crate::derive) fn tag(image: &str) -> Option<Version> {
    image::tag(image)?.parse().ok().map(cloud::with_known_build)
}
