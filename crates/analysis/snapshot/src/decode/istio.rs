//! Reads the objects that decide which ports Istio's gateways open, for which hosts, and whether they
//! expect a PROXY header there: Gateways, VirtualServices, EnvoyFilters and the settings of the mesh.

use uturn_document::Node;
use uturn_model::{Labels, MeshGateway, MeshRoute, Name, NamespacedName, Port, Text};

use super::objects::Objects;
use super::{Doc, meta};

/// The namespace whose EnvoyFilters apply to pods of every namespace.
const ROOT: &str = "istio-system";

/// The effect of an EnvoyFilter on PROXY headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyFilter {
    /// The pods to which the filter applies. The namespace [`ROOT`] means all namespaces.
    namespace: Name,
    selector: Labels,
    /// The port of the listener; `None` for all listeners.
    port: Option<u16>,
    pub(crate) effect: Effect,
}

/// The effect of an EnvoyFilter on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// Connections may begin with a PROXY header.
    Accepts,
    /// The effect depends on settings that are not read.
    Unknown,
    /// Connections must begin with a PROXY header.
    Requires,
}

impl ProxyFilter {
    /// Returns whether the filter applies to a port of pods with these labels.
    pub(crate) fn is_for(&self, namespace: &Name, labels: &Labels, port: u16) -> bool {
        (self.namespace == *namespace || self.namespace.as_str() == ROOT)
            && self.selector.iter().all(|(key, value)| labels.is(key, value))
            && self.port.is_none_or(|own| own == port)
    }
}

/// Reads an EnvoyFilter.
pub(crate) fn read_filter(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let Some(spec) = doc.map(doc.root, "spec") else { return };
    let selector = match doc.map(spec, "workloadSelector") {
        Some(selector) => meta::labels(doc, selector, "labels"),
        None => Labels::new(),
    };
    for patch in doc.maps(spec, "configPatches") {
        let Some(mut effect) = effect(doc, patch) else { continue };
        let condition = doc.map(patch, "match");
        let text = |node: Option<&Node<'_>>, key: &str| Some(node?.get(key)?.as_str()?.to_owned());
        if text(condition, "context")
            .is_some_and(|context| !matches!(context.as_str(), "GATEWAY" | "ANY"))
        {
            continue;
        }
        let listener = condition.and_then(|condition| doc.map(condition, "listener"));
        let named = text(listener, "name");
        let port = match (listener, &named) {
            (Some(listener), _) if listener.get("portNumber").is_some() => {
                doc.read::<u16>(listener, "portNumber")
            }
            // Listeners are named after their address: 0.0.0.0_8443.
            (_, Some(name)) => name.rsplit_once('_').and_then(|(_, port)| port.parse().ok()),
            _ => None,
        };
        let is_open = spec.get("targetRefs").is_some()
            || condition.is_some_and(|condition| condition.get("proxy").is_some())
            || (named.is_some() && port.is_none());
        if is_open {
            effect = Effect::Unknown;
        }
        let (namespace, selector) = (meta.name.namespace.clone(), selector.clone());
        objects.proxy_filters.push(ProxyFilter { namespace, selector, port, effect });
    }
}

/// Reads a Gateway: the ports that it opens at the pods that it selects.
pub(crate) fn read_gateway(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let Some(spec) = doc.map(doc.root, "spec") else { return };
    let servers = doc.maps(spec, "servers").filter_map(|server| doc.map(server, "port"));
    let gateway = MeshGateway {
        selector: meta::labels(doc, spec, "selector"),
        ports: servers.filter_map(|port| doc.read::<Port>(port, "number")).collect(),
        name: meta.name,
        origin: meta.origin,
    };
    objects.mesh_gateways.add(doc, gateway.name.clone(), gateway);
}

/// The word for the proxies beside the programs of pods, in the place of a Gateway.
const MESH: &str = "mesh";

/// Reads the hosts of a VirtualService, and the Gateways that read it.
pub(crate) fn read_route(doc: &Doc<'_>, objects: &mut Objects) {
    let (Some(meta), Some(spec)) = (meta::read(doc), doc.map(doc.root, "spec")) else { return };
    let named = doc.list::<Text>(spec, "gateways");
    let own = meta.name.namespace.as_str();
    let gateway = |name: &Text| match name.split_once('/') {
        Some((".", name)) => NamespacedName::new(own, name).ok(),
        Some((namespace, name)) => NamespacedName::new(namespace, name).ok(),
        // Old releases know the name in the form of a host.
        None => {
            let mut labels = name.split('.');
            let short = labels.next().unwrap_or_default();
            NamespacedName::new(labels.next().unwrap_or(own), short).ok()
        }
    };
    let is_mesh = |name: &&Text| &***name == MESH;
    let route = MeshRoute {
        hosts: doc.list(spec, "hosts"),
        gateways: named.iter().filter(|name| !is_mesh(name)).filter_map(gateway).collect(),
        is_for_mesh: named.is_empty() || named.iter().any(|name| is_mesh(&name)),
        name: meta.name,
        origin: meta.origin,
    };
    objects.mesh_routes.add(doc, route.name.clone(), route);
}

/// Returns the effect of a patch on PROXY headers. `None` if the patch does not concern them.
fn effect<'d>(doc: &Doc<'d>, patch: &'d Node<'d>) -> Option<Effect> {
    let change = doc.map(patch, "patch")?;
    let value = doc.map(change, "value");
    let filters: Vec<&Node<'_>> = match patch.get("applyTo")?.as_str()? {
        "LISTENER_FILTER" => value.into_iter().collect(),
        "LISTENER" => ["listener_filters", "listenerFilters"]
            .iter()
            .flat_map(|key| value.map_or(&[][..], |value| doc.items(value, key)))
            .collect(),
        _ => return None,
    };
    let filter = filters.into_iter().find(|filter| is_of_headers(filter))?;
    if change.get("operation").and_then(Node::as_str) == Some("REMOVE") {
        return Some(Effect::Unknown);
    }
    let settings = typed(filter);
    let inner = settings.and_then(|settings| settings.get("value"));
    let names = ["allow_requests_without_proxy_protocol", "allowRequestsWithoutProxyProtocol"];
    let is_optional = [settings, inner].into_iter().flatten().any(|settings| {
        let mut known = names.iter().filter_map(|name| settings.get(name));
        known.any(|switch| doc.value::<bool>(switch) == Some(true))
    });
    Some(if is_optional { Effect::Accepts } else { Effect::Requires })
}

fn typed<'n, 'd>(filter: &'n Node<'d>) -> Option<&'n Node<'d>> {
    filter.get("typed_config").or_else(|| filter.get("typedConfig"))
}

/// Returns whether a listener filter reads PROXY headers, by its name or its type.
fn is_of_headers(filter: &Node<'_>) -> bool {
    let name = filter.get("name").and_then(Node::as_str);
    let kind = typed(filter).and_then(|typed| typed.get("@type")).and_then(Node::as_str);
    [name, kind].into_iter().flatten().any(|word| word.contains("proxy_protocol"))
}

/// Reads from the settings of a mesh whether all of its gateways expect a PROXY header.
pub(super) fn read_mesh(doc: &Doc<'_>, objects: &mut Objects) {
    let expects = doc
        .map(doc.root, "defaultConfig")
        .and_then(|config| doc.map(config, "gatewayTopology"))
        .is_some_and(|topology| topology.get("proxyProtocol").is_some());
    objects.gateways_expect_header |= expects;
}
