//! Determines the name that each kube-proxy uses for its node. Endpoints whose `nodeName` is this
//! name are local to it.

use std::collections::HashMap;

use uturn_model::{Name, Node, Pod, Text, Version};

use super::nodes::value;
use crate::decode::facts::NodeFacts;
use crate::decode::objects::Objects;
use crate::derive::ground::kube_proxy;

/// The first version in which the command line overrides the configuration file. Before, the flag
/// is ignored if there is a file.
const FLAG_WINS: Version = Version::new(1, 13, 0);

/// The label in which a kubelet records its host's name, or the name that it was told to use
/// instead.
const HOST_NAME: &str = "kubernetes.io/hostname";

/// The source of the name that a kube-proxy uses.
enum Told {
    /// A stated name, which may be that of any node.
    Name(Name),
    /// The node's own name, as far as is known.
    Own,
    /// The name of the host, since nothing is stated.
    Nothing,
}

/// Sets on nodes the names that differ from the nodes' own.
pub(super) fn complete(objects: &mut Objects, version: Version) {
    let every = &objects.facts.every_node;
    let nothing = NodeFacts::default();
    let of_all = kube_proxy::container(objects).map(|(_, arguments, _)| arguments);
    let mut of_nodes: HashMap<&Name, &[Text]> = HashMap::new();
    for pod in objects.pods.0.values() {
        if let (Some(node), Some(arguments)) = (&pod.node, arguments(pod)) {
            of_nodes.entry(node).or_insert(arguments);
        }
    }
    let names = objects.nodes.0.values().map(|node| {
        let own = objects.facts.nodes.get(&node.name).unwrap_or(&nothing);
        if let Some(name) = value(&own.proxy_name, &every.proxy_name) {
            return (Some(name), None);
        }
        // If its arguments are not known, kube-proxy is assumed to use the node's name, as kubeadm
        // sets it up.
        let of_node = of_nodes.get(&node.name).copied();
        let Some(arguments) = of_node.or(of_all) else { return (None, None) };
        match told(objects, arguments, version) {
            Told::Name(name) => (Some(name), None),
            Told::Own => (None, None),
            Told::Nothing => (None, host_name(node)),
        }
    });
    let names: Vec<(Option<Name>, Option<Name>)> = names.collect();
    for (node, (told, host)) in objects.nodes.0.values_mut().zip(names) {
        node.proxy_name = told.filter(|name| *name != node.name);
        node.host_name = host.filter(|name| *name != node.name);
    }
}

/// Returns the arguments of a kube-proxy pod.
fn arguments(pod: &Pod) -> Option<&[Text]> {
    let is_proxy = |name: &str| name == "kube-proxy";
    let container = pod.spec.containers.iter().find(|container| is_proxy(&container.name))?;
    Some(&container.arguments)
}

fn told(objects: &Objects, arguments: &[Text], version: Version) -> Told {
    let words: Vec<&str> = arguments.iter().flat_map(|text| text.split_whitespace()).collect();
    // If the arguments are not given, nothing is known.
    if words.is_empty() {
        return Told::Own;
    }
    let written = words.iter().enumerate().find_map(|(at, word)| {
        match word.strip_prefix("--hostname-override")? {
            "" => Some(words.get(at + 1).copied().unwrap_or_default()),
            rest => rest.strip_prefix('='),
        }
    });
    let has_file = words.iter().any(|word| word.starts_with("--config"));
    if let Some(written) = written.filter(|_| !has_file || version >= FLAG_WINS) {
        // A value with an environment variable names the node.
        return name(written).map_or(Told::Own, Told::Name);
    }
    if !has_file {
        return Told::Nothing;
    }
    match &objects.proxy_config {
        Some(config) => match &config.hostname_override {
            Some(written) => name(written).map_or(Told::Own, Told::Name),
            None => Told::Nothing,
        },
        None => Told::Own,
    }
}

/// Parses a name in lower case, as kube-proxy compares names.
fn name(written: &str) -> Option<Name> {
    Name::new(written.trim().trim_matches(['"', '\'']).to_ascii_lowercase()).ok()
}

/// Returns the host's name, as the node's kubelet recorded it.
fn host_name(node: &Node) -> Option<Name> {
    name(node.labels.get(HOST_NAME)?)
}
