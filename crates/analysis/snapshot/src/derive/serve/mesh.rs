//! Finds programs that take over the calls of pods before the Service proxy sees them: the sidecars
//! and node proxies of a mesh.

use uturn_model::pod::PodSpec;
use uturn_model::wording::count;

use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// The containers with which meshes take over the calls of a pod, and the names of the meshes.
const SIDECARS: &[(&str, &str)] = &[("istio-proxy", "Istio"), ("linkerd-proxy", "Linkerd")];

/// Lists the assumption that calls of pods of a mesh go as without it. Their sidecar picks
/// endpoints itself.
pub(super) fn suppose_none(objects: &Objects, assumptions: &mut Assumptions) {
    // In ambient mode the node's proxy does so. A label of the pod states it, or an annotation,
    // since the label may be on the namespace only.
    let is_ambient = |spec: &PodSpec| {
        spec.labels.is("istio.io/dataplane-mode", "ambient")
            || spec.annotations.is("ambient.istio.io/redirection", "enabled")
    };
    let (mut with_sidecar, mut ambient) = ([0; SIDECARS.len()], 0);
    for pod in objects.pods.0.values().filter(|pod| pod.is_alive()) {
        let has_it = |name: &str| pod.spec.containers.iter().any(|own| &*own.name == name);
        for (many, (container, _)) in with_sidecar.iter_mut().zip(SIDECARS) {
            *many += usize::from(has_it(container));
        }
        ambient += usize::from(is_ambient(&pod.spec));
    }
    for (many, (container, mesh)) in with_sidecar.into_iter().zip(SIDECARS) {
        if many > 0 {
            let pods = format!("calls of {}", count(many, "pod"));
            let because = format!("{mesh}'s sidecar takes them over and picks endpoints itself");
            let settle = format!("look at what {container} is told");
            assumptions.assume(pods, format!("as without {mesh}"), because, settle);
        }
    }
    if ambient > 0 {
        assumptions.assume(
            format!("calls of {} in ambient mode", count(ambient, "pod")),
            "as without Istio",
            "Istio's ztunnel takes them over and picks endpoints itself",
            "look at what ztunnel is told",
        );
    }
}
