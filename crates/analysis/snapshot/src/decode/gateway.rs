//! Reads objects of the Gateway API: classes, Gateways, and the grants for references across
//! namespaces.

use uturn_document::Node;
use uturn_model::service::{IpMode, LbIngress};
use uturn_model::{Labels, Name, NamespacedName, Origin, Port, Text};

use super::objects::Objects;
use super::value::one_of;
use super::{Doc, FromNode, gateway_route, meta};

/// A GatewayClass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GatewayClass {
    pub(crate) name: Name,
    pub(crate) controller: Text,
    pub(crate) parameters: Option<Parameters>,
    pub(crate) origin: Origin,
}

/// A reference of a GatewayClass or a Gateway to an object with more settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) kind: Text,
    pub(crate) name: NamespacedName,
}

/// A Gateway.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gateway {
    pub(crate) name: NamespacedName,
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
    pub(crate) class: Text,
    /// The `spec.infrastructure.parametersRef`.
    pub(crate) parameters: Option<Parameters>,
    pub(crate) listeners: Vec<GatewayListener>,
    /// The `status.addresses`.
    pub(crate) addresses: Vec<LbIngress>,
    pub(crate) origin: Origin,
}

/// The `spec.listeners[]` of a Gateway.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GatewayListener {
    pub(crate) name: Text,
    pub(crate) port: Port,
    pub(crate) protocol: Text,
    pub(crate) hostname: Option<Text>,
    /// Whether the listener forwards TLS without ending it.
    pub(crate) passes_tls: bool,
    /// The namespaces whose routes may attach.
    pub(crate) from: AllowedFrom,
    /// The kinds of routes that may attach. Without any, all kinds that fit the protocol may.
    pub(crate) kinds: Vec<Text>,
    /// The reason why its controller has not accepted it.
    pub(crate) refusal: Option<Text>,
}

/// The `allowedRoutes.namespaces.from` of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedFrom {
    Same,
    All,
    Selector,
    None,
}

/// A ReferenceGrant, which allows routes of other namespaces to lead to Services of its own
/// namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReferenceGrant {
    pub(crate) name: NamespacedName,
    /// The kinds of routes, with their namespaces.
    pub(crate) from: Vec<(Text, Name)>,
    /// The Services; `None` for all.
    pub(crate) to: Vec<Option<Name>>,
    pub(crate) origin: Origin,
}

pub(super) const GROUP: &str = "gateway.networking.k8s.io";

/// Reads a GatewayClass.
pub(crate) fn read_class(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let spec = doc.need_map(doc.root, "spec");
    let controller = spec.and_then(|spec| doc.need(spec, "controllerName"));
    let (Some(meta), Some(controller)) = (meta, controller) else { return };
    let parameters = spec.and_then(|spec| parameters(doc, spec, &meta.name.namespace));
    let name = meta.name.name;
    let class = GatewayClass { name, controller, parameters, origin: meta.origin };
    objects.gateway_classes.add(doc, class.name.clone(), class);
}

/// Reads a Gateway.
pub(crate) fn read_gateway(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let Some(spec) = doc.need_map(doc.root, "spec") else { return };
    let class = doc.need::<Text>(spec, "gatewayClassName");
    if doc.items(spec, "listeners").is_empty() {
        doc.missing(spec, "listeners", "at least one listener");
    }
    let mut listeners: Vec<GatewayListener> =
        doc.maps(spec, "listeners").filter_map(|item| listener(doc, item)).collect();
    add_refusals(doc, &mut listeners);
    let addresses = addresses(doc);
    let (Some(meta), Some(class)) = (meta, class) else { return };
    let infrastructure = doc.map(spec, "infrastructure");
    let parameters = infrastructure.and_then(|own| parameters(doc, own, &meta.name.namespace));
    let gateway = Gateway {
        name: meta.name,
        labels: meta.labels,
        annotations: meta.annotations,
        class,
        parameters,
        listeners,
        addresses,
        origin: meta.origin,
    };
    objects.gateways.add(doc, gateway.name.clone(), gateway);
}

/// Reads a `parametersRef`. If it states no namespace, the object is in the Gateway's own
/// namespace, or for a class in `default`, as are all objects without a namespace.
fn parameters<'d>(doc: &Doc<'d>, parent: &'d Node<'d>, own: &Name) -> Option<Parameters> {
    let reference = doc.map(parent, "parametersRef")?;
    let namespace = doc.read::<Name>(reference, "namespace").unwrap_or_else(|| own.clone());
    let name = NamespacedName { namespace, name: doc.need(reference, "name")? };
    Some(Parameters { kind: doc.need(reference, "kind")?, name })
}

fn listener<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<GatewayListener> {
    let name = doc.need::<Text>(node, "name");
    let port = doc.need::<Port>(node, "port");
    let protocol = doc.need::<Text>(node, "protocol");
    let tls = doc.map(node, "tls");
    let mode = tls.and_then(|tls| doc.read::<Text>(tls, "mode"));
    let allowed = doc.map(node, "allowedRoutes");
    let namespaces = allowed.and_then(|allowed| doc.map(allowed, "namespaces"));
    let from = namespaces.and_then(|namespaces| doc.read::<AllowedFrom>(namespaces, "from"));
    let kinds = allowed.into_iter().flat_map(|allowed| doc.maps(allowed, "kinds"));
    let kinds = kinds.filter_map(|item| doc.need::<Text>(item, "kind")).collect();
    Some(GatewayListener {
        name: name?,
        port: port?,
        protocol: protocol?,
        hostname: hostname(doc, node, "hostname"),
        passes_tls: mode.as_deref() == Some("Passthrough"),
        from: from.unwrap_or(AllowedFrom::Same),
        kinds,
        refusal: None,
    })
}

/// Reads from `status.listeners` which listeners the controller has not accepted.
fn add_refusals(doc: &Doc<'_>, listeners: &mut [GatewayListener]) {
    let Some(status) = doc.map(doc.root, "status") else { return };
    for item in doc.maps(status, "listeners") {
        let name = item.get("name").and_then(Node::as_str);
        if let Some(own) = listeners.iter_mut().find(|own| Some(&*own.name) == name) {
            own.refusal = gateway_route::refusal(doc, item);
        }
    }
}

/// Reads a host name or another text. An empty text counts as missing.
pub(super) fn hostname<'d>(doc: &Doc<'d>, node: &'d Node<'d>, key: &str) -> Option<Text> {
    doc.read::<Text>(node, key).filter(|host| !host.is_empty())
}

/// Reads `status.addresses`: IP addresses, and host names of load balancers.
fn addresses(doc: &Doc<'_>) -> Vec<LbIngress> {
    let Some(status) = doc.map(doc.root, "status") else { return Vec::new() };
    let one = |item| {
        let kind = doc.read::<Text>(item, "type");
        let entry = LbIngress { ip: None, hostname: None, mode: IpMode::Vip };
        match kind.as_deref() {
            Some("Hostname") => {
                Some(LbIngress { hostname: Some(doc.need(item, "value")?), ..entry })
            }
            None | Some("IPAddress") => {
                Some(LbIngress { ip: Some(doc.need(item, "value")?), ..entry })
            }
            // The location of an address of the controller's own kind is not known.
            Some(_) => None,
        }
    };
    doc.maps(status, "addresses").filter_map(one).collect()
}

/// Reads a ReferenceGrant.
pub(crate) fn read_grant(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let Some(spec) = doc.need_map(doc.root, "spec") else { return };
    let of_group = |item: &&Node<'_>, group: &str| {
        item.get("group").and_then(Node::as_str).unwrap_or_default() == group
    };
    let from = doc.maps(spec, "from").filter(|item| of_group(item, GROUP));
    let from = from
        .filter_map(|item| Some((doc.need::<Text>(item, "kind")?, doc.need(item, "namespace")?)));
    let is_service = |item: &&Node<'_>| {
        of_group(item, "") && item.get("kind").and_then(Node::as_str) == Some("Service")
    };
    let to = doc.maps(spec, "to").filter(is_service).map(|item| doc.read::<Name>(item, "name"));
    let (from, to) = (from.collect(), to.collect());
    let Some(meta) = meta else { return };
    let grant = ReferenceGrant { name: meta.name, from, to, origin: meta.origin };
    objects.reference_grants.add(doc, grant.name.clone(), grant);
}

impl FromNode for AllowedFrom {
    const EXPECTED: &'static str = "All, Same, Selector or None";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let words = [
            ("All", Self::All),
            ("Same", Self::Same),
            ("Selector", Self::Selector),
            ("None", Self::None),
        ];
        one_of(node, &words)
    }
}
