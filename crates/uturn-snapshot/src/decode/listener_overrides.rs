//! Objects of a cloud in which users set properties of listeners. Which kinds these are, the
//! cloud's entry says; their fields are `spec.loadBalancer.l4Listeners` and `l7Listeners`.

use uturn_model::Port;
use uturn_model::lb::{
    Layer, ListenerOverride, ListenerOverrides, ListenerProtocol, Scheduler, StatedProbeSource,
};

use super::objects::Objects;
use super::{Doc, meta};
use crate::document::Node;

/// Reads one of these objects.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let spec = doc.map(doc.root, "spec").and_then(|spec| doc.map(spec, "loadBalancer"));
    let mut listeners = Vec::new();
    if let Some(spec) = spec {
        let l4 = doc.maps(spec, "l4Listeners").map(|item| listener(doc, item, Layer::L4));
        listeners.extend(l4.flatten());
        let l7 = doc.maps(spec, "l7Listeners").map(|item| listener(doc, item, Layer::L7));
        listeners.extend(l7.flatten());
    }
    let Some(meta) = meta else { return };
    let overrides = ListenerOverrides { name: meta.name, listeners, origin: meta.origin };
    objects.listener_overrides.add(doc, overrides.name.clone(), overrides);
}

fn listener<'d>(doc: &Doc<'d>, node: &'d Node<'d>, layer: Layer) -> Option<ListenerOverride> {
    let port = doc.need::<Port>(node, "port");
    let protocol = doc.need::<ListenerProtocol>(node, "protocol");
    if let (Some(protocol), Some(written)) = (protocol, node.get("protocol"))
        && protocol.layer() != layer
    {
        let expected = if layer == Layer::L4 { "TCP or UDP" } else { "HTTP or HTTPS" };
        doc.fault(written, format!("expected {expected}, found {protocol}"));
    }
    let rules: Vec<&Node<'_>> =
        doc.maps(node, "domains").flat_map(|domain| doc.maps(domain, "rules")).collect();
    let parts = || std::iter::once(node).chain(rules.iter().copied());
    let checks: Vec<&Node<'_>> = parts().filter_map(|part| doc.map(part, "healthCheck")).collect();
    let source = checks.iter().find_map(|check| doc.read::<u8>(check, "sourceIpType"));
    Some(ListenerOverride {
        keepalive: doc.read::<u8>(node, "keepaliveEnable").map(|on| on == 1),
        scheduler: parts().find_map(|part| doc.read::<Scheduler>(part, "scheduler")),
        health_check: checks.iter().find_map(|check| doc.read(check, "enable")),
        probe_source: source.map(|kind| match kind {
            0 => StatedProbeSource::Vip,
            _ => StatedProbeSource::Reserved,
        }),
        port: port?,
        protocol: protocol?,
        origin: doc.origin(node),
    })
}
