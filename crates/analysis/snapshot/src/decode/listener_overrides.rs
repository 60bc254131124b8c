//! Reads objects of a cloud that set properties of listeners. The cloud's entry states the kinds of
//! these objects; their fields are `spec.loadBalancer.l4Listeners` and `l7Listeners`.

use uturn_document::Node;
use uturn_model::Port;
use uturn_model::lb::{
    DomainOverride, Layer, ListenerOverride, ListenerOverrides, ListenerProtocol, RuleOverride,
    Scheduler, StatedHealthCheck, StatedProbeSource,
};

use super::objects::Objects;
use super::{Doc, meta};

/// Reads an object with overrides of listeners.
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
    let check = doc.map(node, "healthCheck").filter(|_| layer == Layer::L4);
    let domains = doc.maps(node, "domains").map(|item| domain(doc, item)).collect();
    Some(ListenerOverride {
        keepalive: doc.read::<u8>(node, "keepaliveEnable").map(|on| on == 1),
        scheduler: parts().find_map(|part| doc.read::<Scheduler>(part, "scheduler")),
        health_check: checks.iter().find_map(|check| doc.read(check, "enable")),
        probe_source: source.map(probe_source),
        snat: doc.read(node, "snatEnable"),
        resets_on_unbind: doc.read(node, "deregisterTargetRst"),
        session_seconds: session_seconds(doc, node).filter(|_| layer == Layer::L4),
        check: check.map(|check| health_check(doc, check)),
        default_domain: doc.read(node, "defaultServer"),
        domains,
        port: port?,
        protocol: protocol?,
        origin: doc.origin(node),
    })
}

fn probe_source(kind: u8) -> StatedProbeSource {
    match kind {
        0 => StatedProbeSource::Vip,
        _ => StatedProbeSource::Reserved,
    }
}

fn domain<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> DomainOverride {
    DomainOverride {
        domain: doc.read(node, "domain").unwrap_or_default(),
        http2: doc.read(node, "http2"),
        rules: doc.maps(node, "rules").map(|item| rule(doc, item)).collect(),
    }
}

fn rule<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> RuleOverride {
    RuleOverride {
        url: doc.read(node, "url").unwrap_or_else(|| "/".into()),
        forward_type: doc.read(node, "forwardType"),
        session_seconds: session_seconds(doc, node),
        scheduler: doc.read(node, "scheduler"),
        check: doc.map(node, "healthCheck").map(|check| health_check(doc, check)),
    }
}

/// Returns for how many seconds a client stays with its target: 0 if `session` is off, and 30 if it
/// states no time.
fn session_seconds<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<u32> {
    let session = doc.map(node, "session")?;
    if doc.read::<bool>(session, "enable")? {
        Some(doc.read(session, "sessionExpireTime").unwrap_or(30))
    } else {
        Some(0)
    }
}

fn health_check<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> StatedHealthCheck {
    StatedHealthCheck {
        enabled: doc.read(node, "enable"),
        interval: doc.read(node, "intervalTime"),
        timeout: doc.read(node, "timeout"),
        rise: doc.read(node, "healthNum"),
        fall: doc.read(node, "unHealthNum"),
        protocol: doc.read(node, "checkType"),
        port: doc.read(node, "checkPort"),
        path: doc.read(node, "httpCheckPath"),
        host: doc.read(node, "httpCheckDomain"),
        method: doc.read(node, "httpCheckMethod"),
        codes: doc.read(node, "httpCode"),
        source: doc.read::<u8>(node, "sourceIpType").map(probe_source),
    }
}
