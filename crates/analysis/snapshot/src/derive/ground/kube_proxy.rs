//! Finds the container that runs kube-proxy.

use uturn_clouds::cloud;
use uturn_model::{Origin, Pod, Text, Version, Workload, WorkloadKind, image};

use crate::decode::objects::Objects;

/// Returns kube-proxy's image, if its DaemonSet or one of its pods is known.
pub(super) fn image(objects: &Objects) -> Option<&str> {
    container(objects).map(|(image, _, _)| image)
}

/// Returns the image, the arguments and the place of kube-proxy's container.
pub(in crate::derive) fn container(objects: &Objects) -> Option<(&str, &[Text], &Origin)> {
    let (spec, origin) = match maker(objects)? {
        ProxyMaker::DaemonSet(daemon) => (&daemon.template, &daemon.origin),
        ProxyMaker::Pod(pod) => (&pod.spec, &pod.origin),
    };
    let container = spec.containers.iter().find(|container| &*container.name == "kube-proxy");
    let container = container.or(spec.containers.first())?;
    Some((&container.image, &container.arguments, origin))
}

/// The object that runs kube-proxy.
pub(in crate::derive) enum ProxyMaker<'o> {
    DaemonSet(&'o Workload),
    /// One of several pods that no given DaemonSet makes.
    Pod(&'o Pod),
}

/// Returns the object that runs kube-proxy, if it is given.
pub(in crate::derive) fn maker(objects: &Objects) -> Option<ProxyMaker<'_>> {
    let workloads = objects.workloads.0.values();
    let daemon = workloads
        .filter(|workload| workload.kind == WorkloadKind::DaemonSet)
        .filter(|workload| workload.name.namespace.as_str() == "kube-system")
        .find(|workload| {
            workload.name.name.as_str() == "kube-proxy"
                || workload.template.labels.is("k8s-app", "kube-proxy")
        });
    let pod = || {
        // GKE and RKE2 run kube-proxy as static pods, whose label is not that of a DaemonSet's
        // pods.
        let ours = |pod: &&Pod| {
            pod.name.namespace.as_str() == "kube-system"
                && ["k8s-app", "component"].iter().any(|key| pod.spec.labels.is(key, "kube-proxy"))
        };
        objects.pods.0.values().find(ours).map(ProxyMaker::Pod)
    };
    daemon.map(ProxyMaker::DaemonSet).or_else(pod)
}

/// Parses the tag of an image as a version.
pub(in crate::derive) fn tag(image: &str) -> Option<Version> {
    image::tag(image)?.parse().ok().map(cloud::with_known_build)
}
