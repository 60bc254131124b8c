//! Reads Ingresses and their classes.

use uturn_document::Node;
use uturn_model::ingress::{Backend, BackendPort, IngressPath, IngressRule, PathKind, Tls};
use uturn_model::{Ingress, IngressClass, Labels, Name, Port, Text};

use super::objects::Objects;
use super::value::one_of;
use super::{Doc, FromNode, fields, meta, service};

/// Reads an Ingress of networking.k8s.io/v1 or of an older version. Older versions write backends
/// differently, and need no type of a path.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let load_balancer = service::load_balancer(doc);
    let mut ingress = None;
    let Some(spec) = doc.root.get("spec") else {
        return doc.missing(doc.root, "spec", "rules or a default backend");
    };
    if !doc.is_map(spec) {
        return;
    }
    doc.spelled(spec, fields::INGRESS);
    let is_old = doc.root.get("apiVersion").and_then(Node::as_str) != Some("networking.k8s.io/v1");
    let default = if is_old { "backend" } else { "defaultBackend" };
    let default_backend = doc.map(spec, default).and_then(|item| backend(doc, item, is_old));
    let tls = doc
        .maps(spec, "tls")
        .map(|item| Tls { hosts: doc.list(item, "hosts"), secret: doc.read(item, "secretName") });
    let tls = tls.collect();
    let rules = doc.maps(spec, "rules").map(|item| rule(doc, item, is_old));
    let rules: Vec<IngressRule> = rules.collect();
    if spec.get(default).is_none() && doc.items(spec, "rules").is_empty() {
        doc.missing(spec, "rules", &format!("at least one rule, or a {default}"));
    }
    let class = doc.read::<Text>(spec, "ingressClassName");
    if let Some(meta) = meta {
        let old = || meta.annotations.get("kubernetes.io/ingress.class").map(Text::from);
        ingress = Some(Ingress {
            class: class.or_else(old),
            default_backend,
            tls,
            rules,
            is_pending: load_balancer.is_empty() && service::states_load_balancer(doc),
            load_balancer,
            controller: None,
            possible_controllers: Vec::new(),
            unserved: None,
            class_settings: Labels::new(),
            product: None,
            route: None,
            unjudged: Vec::new(),
            annotations: meta.annotations,
            origin: meta.origin,
            name: meta.name,
        });
    }
    if let Some(ingress) = ingress {
        objects.ingresses.add(doc, ingress.name.clone(), ingress);
    }
}

fn rule<'d>(doc: &Doc<'d>, node: &'d Node<'d>, is_old: bool) -> IngressRule {
    doc.spelled(node, fields::INGRESS_RULE);
    let host = node.get("host").filter(|host| host.as_str() != Some(""));
    let http = doc.map(node, "http");
    if let Some(http) = http {
        doc.spelled(http, fields::INGRESS_PATHS);
    }
    let paths = http.map(|http| doc.maps(http, "paths")).into_iter().flatten();
    IngressRule {
        host: host.and_then(|host| doc.value(host)),
        paths: paths.filter_map(|item| path(doc, item, is_old)).collect(),
    }
}

fn path<'d>(doc: &Doc<'d>, node: &'d Node<'d>, is_old: bool) -> Option<IngressPath> {
    doc.spelled(node, fields::INGRESS_PATH);
    let kind = match node.get("pathType") {
        None if is_old => Some(PathKind::ImplementationSpecific),
        _ => doc.need::<PathKind>(node, "pathType"),
    };
    let path = match node.get("path") {
        Some(path) => doc.value::<Text>(path),
        None => Some("/".into()),
    };
    let Some(target) = node.get("backend") else {
        doc.missing(node, "backend", "a Service and its port");
        return None;
    };
    let backend = if doc.is_map(target) { backend(doc, target, is_old) } else { None };
    Some(IngressPath { path: path?, kind: kind?, backend: backend? })
}

fn backend<'d>(doc: &Doc<'d>, node: &'d Node<'d>, is_old: bool) -> Option<Backend> {
    if let Some(resource) = doc.map(node, "resource") {
        let word = |key| resource.get(key).and_then(Node::as_str).unwrap_or("?");
        return Some(Backend::Resource(format!("{}/{}", word("kind"), word("name")).into()));
    }
    if is_old {
        let name = doc.need::<Name>(node, "serviceName");
        let port = match node.get("servicePort") {
            Some(port) if port.as_str().is_some() => doc.value(port).map(BackendPort::Name),
            _ => doc.need::<Port>(node, "servicePort").map(BackendPort::Number),
        };
        return Some(Backend::Service { name: name?, port: port? });
    }
    let Some(service) = node.get("service") else {
        if node.get("serviceName").is_some() {
            let message = "this is the form of v1beta1: expected service.name and service.port";
            doc.fault(node, message);
        } else {
            doc.missing(node, "service", "a Service and its port");
        }
        return None;
    };
    if !doc.is_map(service) {
        return None;
    }
    let name = doc.need::<Name>(service, "name");
    let Some(port) = doc.map(service, "port") else {
        if service.get("port").is_none() {
            doc.missing(service, "port", "a number or a name");
        }
        return None;
    };
    let by_name = port.get("name").filter(|name| name.as_str() != Some(""));
    let port = match by_name {
        Some(name) => doc.value(name).map(BackendPort::Name),
        None => doc.need::<Port>(port, "number").map(BackendPort::Number),
    };
    Some(Backend::Service { name: name?, port: port? })
}

impl FromNode for PathKind {
    const EXPECTED: &'static str = "Exact, Prefix or ImplementationSpecific";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(
            node,
            &[
                ("Exact", Self::Exact),
                ("Prefix", Self::Prefix),
                ("ImplementationSpecific", Self::ImplementationSpecific),
            ],
        )
    }
}

/// Reads an IngressClass.
pub(crate) fn read_class(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let spec = doc.map(doc.root, "spec");
    let controller = spec.and_then(|spec| doc.read(spec, "controller"));
    let parameters = spec.and_then(|spec| doc.map(spec, "parameters")).and_then(|parameters| {
        let (kind, name) = (doc.need(parameters, "kind"), doc.need(parameters, "name"));
        Some((kind?, name?))
    });
    let class = IngressClass {
        name: meta.name.name,
        controller: controller.unwrap_or_else(|| "".into()),
        parameters,
        is_default: meta.annotations.is("ingressclass.kubernetes.io/is-default-class", "true"),
        origin: meta.origin,
    };
    objects.ingress_classes.add(doc, class.name.clone(), class);
}
