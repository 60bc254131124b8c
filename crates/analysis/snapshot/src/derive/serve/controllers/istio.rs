//! Determines whether Istio's gateways expect a PROXY header: by EnvoyFilters for their pods, or
//! else by the settings of the pods or the mesh.

use uturn_document::json_value;
use uturn_model::controller::ProxyExpectation;
use uturn_model::pod::PodSpec;
use uturn_model::{Name, Port, Version, image};

use crate::decode::istio::Effect;
use crate::decode::objects::Objects;

/// The annotation of pods that overrides settings of the mesh.
const OWN_SETTINGS: &str = "proxy.istio.io/config";
/// The first release whose proxies read `gatewayTopology.proxyProtocol`.
const READS_TOPOLOGY: (u16, u16) = (1, 19);

/// Returns whether a gateway's pods expect a PROXY header on one of their ports.
pub(super) fn proxy_header(
    objects: &Objects,
    namespace: &Name,
    template: &PodSpec,
    port: Port,
) -> ProxyExpectation {
    let filters = objects.proxy_filters.iter();
    let own = filters.filter(|own| own.is_for(namespace, &template.labels, port.number()));
    match own.map(|own| own.effect).max() {
        Some(Effect::Requires) => return ProxyExpectation::Required(Vec::new()),
        Some(Effect::Unknown) => {
            return ProxyExpectation::Unknown("an EnvoyFilter is not read in full".into());
        }
        Some(Effect::Accepts) => return ProxyExpectation::Accepted(Vec::new()),
        None => {}
    }
    let stated = template.annotations.get(OWN_SETTINGS).and_then(json_value);
    let is_stated = stated.is_some_and(|own| own["gatewayTopology"]["proxyProtocol"].is_object());
    if !is_stated && !objects.gateways_expect_header {
        return ProxyExpectation::Unknown("its settings for that are not read".into());
    }
    match release(template) {
        Some(release) if release < READS_TOPOLOGY => ProxyExpectation::Unknown(
            "its release may not read gatewayTopology.proxyProtocol".into(),
        ),
        _ => ProxyExpectation::Required(Vec::new()),
    }
}

/// Returns the release of a gateway's proxy, by the tag of its image.
fn release(template: &PodSpec) -> Option<(u16, u16)> {
    let mut containers = template.containers.iter();
    let proxy = containers.find(|container| &*container.name == "istio-proxy")?;
    let version: Version = image::tag(&proxy.image)?.parse().ok()?;
    Some((version.major, version.minor))
}
