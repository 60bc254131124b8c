//! Finds programs that take over the calls of pods before the Service proxy sees them: the sidecars
//! and node proxies of a mesh.

use uturn_model::Labels;
use uturn_model::pod::PodSpec;
use uturn_model::wording::count;

use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// The containers with which meshes take over the calls of a pod, and the names of the meshes.
const SIDECARS: &[(&str, &str)] = &[("istio-proxy", "Istio"), ("linkerd-proxy", "Linkerd")];

/// Lists the assumption that calls of pods of a mesh go as without it. Their sidecar picks
/// endpoints itself.
pub(super) fn suppose_none(objects: &Objects, assumptions: &mut Assumptions) {
    for (container, mesh) in SIDECARS {
        let pods = objects.pods.0.values().filter(|pod| pod.is_alive());
        let has_it = |spec: &PodSpec| spec.containers.iter().any(|own| &*own.name == *container);
        let many = pods.filter(|pod| has_it(&pod.spec)).count();
        if many > 0 {
            let pods = format!("calls of {}", count(many, "pod"));
            let because = format!("{mesh}'s sidecar takes them over and picks endpoints itself");
            let settle = format!("look at what {container} is told");
            assumptions.assume(pods, format!("as without {mesh}"), because, settle);
        }
    }
    // In ambient mode the node's proxy does so. A label of the pod states it, or an annotation,
    // since the label may be on the namespace only.
    let is_ambient = |labels: &Labels| labels.is("istio.io/dataplane-mode", "ambient");
    let pods = objects.pods.0.values().filter(|pod| pod.is_alive());
    let by_annotation = |labels: &Labels| labels.is("ambient.istio.io/redirection", "enabled");
    let many = pods
        .filter(|pod| is_ambient(&pod.spec.labels) || by_annotation(&pod.spec.annotations))
        .count();
    if many > 0 {
        assumptions.assume(
            format!("calls of {} in ambient mode", count(many, "pod")),
            "as without Istio",
            "Istio's ztunnel takes them over and picks endpoints itself",
            "look at what ztunnel is told",
        );
    }
}
