//! Reads configurations of CNI plugins in ConfigMaps: whether the pods' bridge sends a frame back
//! through the port on which it arrived (hairpin mode).

use uturn_document::Node;
use uturn_model::{Origin, Text};

use super::Doc;

/// The settings of a plugin that creates a bridge.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BridgeConfig {
    /// Whether flannel's plugin has the bridge created, rather than a configuration of the bridge
    /// plugin itself.
    pub(crate) by_flannel: bool,
    /// Whether a frame that a pod sends can come back to the pod.
    pub(crate) hairpin: bool,
    pub(crate) origin: Origin,
}

/// Returns whether an entry of a ConfigMap is a configuration of plugins that create a bridge.
pub(crate) fn is_of_bridge(key: &str, text: &str) -> bool {
    let is_configuration =
        key.contains("cni") || key.ends_with(".conflist") || key.ends_with(".conf");
    let names = |what: &str| text.contains(what);
    is_configuration
        && text.trim_start().starts_with('{')
        && names("\"type\"")
        && (names("\"flannel\"") || names("\"bridge\""))
}

/// Reads a list of plugins, or a single plugin. Returns the first that creates a bridge.
pub(crate) fn read(doc: &Doc<'_>) -> Option<BridgeConfig> {
    let plugins = doc.items(doc.root, "plugins");
    let all = if plugins.is_empty() { std::slice::from_ref(doc.root) } else { plugins };
    all.iter().find_map(|plugin| bridge(doc, plugin))
}

/// Reads the backend in flannel's configuration: `{"Network": …, "Backend": {"Type": "host-gw"}}`.
pub(crate) fn backend(doc: &Doc<'_>) -> Option<(Text, Origin)> {
    doc.root.get("Network").or_else(|| doc.root.get("IPv6Network"))?;
    let kind = doc.root.get("Backend")?.get("Type")?;
    Some((kind.as_str()?.into(), doc.origin(kind)))
}

fn bridge<'d>(doc: &Doc<'d>, plugin: &'d Node<'d>) -> Option<BridgeConfig> {
    let kind = |of: &Node<'_>| of.get("type").and_then(Node::as_str).map(str::to_owned);
    let by_flannel = match kind(plugin)?.as_str() {
        "flannel" => true,
        "bridge" => false,
        _ => return None,
    };
    let settings = if by_flannel { doc.map(plugin, "delegate") } else { Some(plugin) };
    // flannel's plugin delegates to the bridge plugin unless another one is configured.
    let other = settings.filter(|_| by_flannel).and_then(kind);
    if other.is_some_and(|kind| kind != "bridge") {
        return None;
    }
    // Both settings are off by default.
    let is_on = |key| settings.and_then(|settings| doc.read(settings, key)).unwrap_or(false);
    let hairpin = is_on("hairpinMode") || is_on("promiscMode");
    let origin = doc.origin(settings.and_then(|all| all.get("hairpinMode")).unwrap_or(plugin));
    Some(BridgeConfig { by_flannel, hairpin, origin })
}
