//! Reads EndpointSlices, and the older Endpoints.

use std::net::IpAddr;

use uturn_document::Node;
use uturn_model::{
    Endpoint, EndpointPort, EndpointSlice, Family, Name, NamespacedName, Port, Text,
};

use super::objects::{Objects, OldEndpoints};
use super::{Doc, meta};

const SERVICE: &str = "kubernetes.io/service-name";

/// Reads an EndpointSlice of discovery.k8s.io/v1 or v1beta1.
pub(crate) fn read_slice(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let family = match doc.root.get("addressType") {
        None => {
            doc.missing(doc.root, "addressType", "IPv4 or IPv6");
            None
        }
        // The endpoints are host names, which kube-proxy ignores.
        Some(node) if node.as_str() == Some("FQDN") => {
            return objects.skip("EndpointSlice of names");
        }
        Some(node) => doc.value::<Family>(node),
    };
    let ports = doc.maps(doc.root, "ports").filter_map(|item| port(doc, item)).collect();
    let endpoints: Vec<Endpoint> = doc
        .maps(doc.root, "endpoints")
        .filter_map(|item| endpoint(doc, item, meta.as_ref().map(|meta| &meta.name.namespace)))
        .collect();
    let (Some(meta), Some(family)) = (meta, family) else { return };
    let Some(service) = meta.labels.get(SERVICE) else {
        // kube-proxy ignores a slice without a Service as well.
        return objects.skip("EndpointSlice without a Service");
    };
    let Ok(service) = NamespacedName::new(meta.name.namespace.as_str(), service) else {
        return doc.fault(doc.root, format!("the label {SERVICE} is not the name of a Service"));
    };
    let name = meta.name.clone();
    let slice = EndpointSlice {
        name: meta.name,
        service,
        family,
        ports,
        endpoints,
        derived: false,
        origin: meta.origin,
    };
    objects.slices.add(doc, name, slice);
}

fn port<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<EndpointPort> {
    // A missing port means all ports, with which no Service can be served.
    node.get("port")?;
    let name = node.get("name").filter(|name| name.as_str() != Some(""));
    let name = name.and_then(|name| doc.value::<Text>(name));
    let protocol = doc.read(node, "protocol").unwrap_or_default();
    Some(EndpointPort { name, protocol, port: doc.need::<Port>(node, "port")? })
}

fn endpoint<'d>(doc: &Doc<'d>, node: &'d Node<'d>, namespace: Option<&Name>) -> Option<Endpoint> {
    let Some(address) = doc.items(node, "addresses").first() else {
        doc.missing(node, "addresses", "an address");
        return None;
    };
    let conditions = doc.map(node, "conditions");
    let condition = |key| conditions.and_then(|conditions| doc.read::<bool>(conditions, key));
    let ready = condition("ready").unwrap_or(true);
    let hints = doc.map(node, "hints");
    let hinted = |key| hints.map(|hints| doc.maps(hints, key)).into_iter().flatten();
    let topology = |key| {
        let old = doc.map(node, "topology")?;
        doc.read::<Text>(old, key)
    };
    Some(Endpoint {
        address: doc.value::<IpAddr>(address)?,
        ready,
        serving: condition("serving").unwrap_or(ready),
        terminating: condition("terminating").unwrap_or(false),
        hostname: doc.read(node, "hostname"),
        node: doc
            .read::<Name>(node, "nodeName")
            .or_else(|| Name::new(topology("kubernetes.io/hostname")?).ok()),
        zone: doc.read(node, "zone").or_else(|| topology("topology.kubernetes.io/zone")),
        zone_hints: hinted("forZones").filter_map(|hint| doc.need(hint, "name")).collect(),
        node_hints: hinted("forNodes").filter_map(|hint| doc.need(hint, "name")).collect(),
        pod: target_pod(doc, node, namespace),
    })
}

fn target_pod<'d>(
    doc: &Doc<'d>,
    node: &'d Node<'d>,
    namespace: Option<&Name>,
) -> Option<NamespacedName> {
    let target = doc.map(node, "targetRef")?;
    if target.get("kind").and_then(Node::as_str) != Some("Pod") {
        return None;
    }
    let namespace = match target.get("namespace") {
        Some(node) => doc.value::<Name>(node)?,
        None => namespace?.clone(),
    };
    Some(NamespacedName { namespace, name: doc.need(target, "name")? })
}

/// Reads an Endpoints object. It becomes one slice for each subset and family.
pub(crate) fn read_endpoints(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let mut slices = Vec::new();
    for (at, subset) in doc.maps(doc.root, "subsets").enumerate() {
        let ports: Vec<EndpointPort> =
            doc.maps(subset, "ports").filter_map(|item| port(doc, item)).collect();
        let mut endpoints = Vec::new();
        for (key, ready) in [("addresses", true), ("notReadyAddresses", false)] {
            for item in doc.maps(subset, key) {
                let Some(address) = doc.need::<IpAddr>(item, "ip") else { continue };
                endpoints.push(Endpoint {
                    ready,
                    serving: ready,
                    hostname: doc.read(item, "hostname"),
                    node: doc.read(item, "nodeName"),
                    pod: target_pod(doc, item, Some(&meta.name.namespace)),
                    ..Endpoint::new(address)
                });
            }
        }
        for family in Family::BOTH {
            let mine = |endpoint: &&Endpoint| Family::of(endpoint.address) == family;
            let endpoints: Vec<Endpoint> = endpoints.iter().filter(mine).cloned().collect();
            let Ok(name) = Name::new(format!("{}-{at}-{}", meta.name.name, family.bits())) else {
                continue;
            };
            if !endpoints.is_empty() {
                slices.push(EndpointSlice {
                    name: NamespacedName { namespace: meta.name.namespace.clone(), name },
                    service: meta.name.clone(),
                    family,
                    ports: ports.clone(),
                    endpoints,
                    derived: false,
                    origin: doc.origin(subset),
                });
            }
        }
    }
    let old = OldEndpoints { name: meta.name, slices, origin: meta.origin };
    objects.endpoints.add(doc, old.name.clone(), old);
}
