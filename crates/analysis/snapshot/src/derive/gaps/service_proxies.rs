//! Finds Services that something serves whose behaviour is not modelled.

use std::net::IpAddr;

use uturn_clouds::cloud;
use uturn_model::proxy::Translates;
use uturn_model::{Known, ServiceProxy, Text};

use crate::decode::objects::Objects;
use crate::derive::ground::service_proxy::trace;
use crate::derive::serve::endpoints::Slices;
use crate::derive::unjudged::Gaps;

/// Lists the Services whose calls are not judged: those of programs that are not modelled.
pub(super) fn find_unmodelled(objects: &Objects, proxy: &Known<ServiceProxy>, gaps: &mut Gaps) {
    if proxy.value == ServiceProxy::KubeProxy || proxy.value.translates() != Translates::Nothing {
        return;
    }
    let unknown = uturn_model::Unknown::ServiceProxy(proxy.value.to_string().into());
    let settle = "state spec.kubeProxy.replacedBy: none in Facts if kube-proxy serves them";
    for service in objects.services.0.values().filter(|service| !service.cluster_ips.is_empty()) {
        gaps.add(service.object(), unknown.clone(), trace(proxy).into(), settle.into());
    }
}

/// The label with which a Service selects another proxy than kube-proxy, by name.
const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";

/// Lists the Services that have a label for another proxy.
pub(super) fn find_left_to_others(objects: &Objects, gaps: &mut Gaps) {
    for service in objects.services.0.values().filter(|service| !service.cluster_ips.is_empty()) {
        let Some(name) = service.labels.get(PROXY_NAME) else { continue };
        let proxy = if name.is_empty() { "another proxy" } else { name };
        let because = format!("its label {PROXY_NAME} leaves it to that");
        let unknown = uturn_model::Unknown::ServiceProxy(proxy.into());
        gaps.add(service.object(), unknown, because.into(), Text::default());
    }
}

/// Lists the Services whose only endpoint is a placeholder address: a program on nodes serves them
/// itself.
pub(super) fn find_placeholders(objects: &Objects, slices: &Slices, gaps: &mut Gaps) {
    for service in objects.services.0.values() {
        let own = slices.get(&service.name).into_iter().flatten();
        let addresses: Vec<IpAddr> =
            own.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address).collect();
        let Some(address) = addresses.first() else { continue };
        let Some(program) = cloud::by_placeholder_endpoint(*address) else { continue };
        if addresses.iter().all(|other| other == address) {
            let unknown = uturn_model::Unknown::ServiceProxy(program.name().into());
            let because = format!("its only endpoint is {address}, which stands for its own proxy");
            gaps.add(service.object(), unknown, because.into(), Text::default());
        }
    }
}
