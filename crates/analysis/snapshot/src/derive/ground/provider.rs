//! Determines the cloud of the cluster.

use uturn_clouds::cloud::{self, Observed};
use uturn_model::Known;
use uturn_model::cluster::Provider;
use uturn_model::service::ServiceKind;

use super::{clouds, kube_proxy};
use crate::decode::objects::Objects;

/// Returns the cloud that Facts state, or else the one that left traces. It is unknown if an object
/// needs a load balancer and there is no trace.
pub(super) fn derive(objects: &Objects) -> Known<Provider> {
    if let Some((provider, origin)) = &objects.facts.provider {
        return Known::stated(*provider, origin.clone());
    }
    let observed = Observed {
        kube_proxy_image: kube_proxy::image(objects),
        nodes: &objects.nodes.0,
        services: &objects.services.0,
        ingresses: &objects.ingresses.0,
        overrides: &objects.listener_overrides.0,
        controller_switches: &objects.controller_switches,
    };
    for (entry, model) in cloud::modelled() {
        if let Some(trace) = model.recognise(&observed) {
            return Known::derived(Provider::Cloud(entry.cloud), trace);
        }
    }
    if let Some((cloud, trace)) = clouds::by_trace(objects) {
        return Known::derived(Provider::Cloud(cloud), trace);
    }
    let mut services = objects.services.0.values();
    let service = services.find(|service| service.kind == ServiceKind::LoadBalancer);
    let classes = &objects.ingress_classes.0;
    let mut ingresses = objects.ingresses.0.values();
    let mut ingress = || ingresses.find(|ingress| cloud::any_serves(ingress, classes));
    let object = service.map(|service| service.object());
    match object.or_else(|| ingress().map(|ingress| ingress.object())) {
        Some(object) => {
            let because = format!("{object} needs a load balancer, and nothing names a cloud");
            Known::derived(Provider::Unknown, because)
        }
        None => Known::derived(Provider::None, "nothing here asks for a cloud's load balancer"),
    }
}
