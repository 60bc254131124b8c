//! Determines the name that each kube-proxy uses for its node. Endpoints whose `nodeName` is this
//! name are local to it.

use std::collections::HashMap;

use uturn_model::{Name, Node, ObjectKind, ObjectRef, Origin, Pod, Text, Version, WorkloadKind};

use crate::decode::facts::NodeFacts;
use crate::decode::objects::Objects;
use crate::derive::ground::kube_proxy::{self, ProxyMaker};

/// The first version in which the command line overrides the configuration file. Before, the flag
/// is ignored if there is a file.
const FLAG_WINS: Version = Version::new(1, 13, 0);

/// The label in which a kubelet records its host's name, or the name that it was told to use
/// instead.
const HOST_NAME: &str = "kubernetes.io/hostname";

/// The source of the name that a kube-proxy uses.
enum Told {
    /// A stated name, which may be that of any node, and the object that states it.
    Name(Name, (ObjectRef, Origin)),
    /// The node's own name, as far as is known.
    Own,
    /// The name of the host, since nothing is stated.
    Nothing,
}

/// The arguments of kube-proxy's container.
struct Arguments<'o> {
    words: &'o [Text],
    /// The object that has them.
    object: ObjectRef,
    origin: &'o Origin,
    /// Whether they are a single pod's own: a name in them says nothing about other nodes.
    is_of_one: bool,
}

/// Sets on nodes the names that differ from the nodes' own.
pub(super) fn complete(objects: &mut Objects, version: Version) {
    let every = &objects.facts.every_node;
    let nothing = NodeFacts::default();
    let of_all = of_any(objects);
    let mut of_nodes: HashMap<&Name, Arguments<'_>> = HashMap::new();
    for pod in objects.pods.0.values() {
        if let (Some(node), Some(arguments)) = (&pod.node, of_pod(pod)) {
            of_nodes.entry(node).or_insert(arguments);
        }
    }
    let names = objects.nodes.0.values().map(|node| {
        let own = objects.facts.nodes.get(&node.name).unwrap_or(&nothing);
        if let Some((name, origin)) = own.proxy_name.as_ref().or(every.proxy_name.as_ref()) {
            return (Some((name.clone(), (node.object(), origin.clone()))), None);
        }
        // If its arguments are not known, kube-proxy is assumed to use the node's name, as kubeadm
        // sets it up.
        let of_node = of_nodes.get(&node.name);
        let is_another_s = of_node.is_none() && of_all.as_ref().is_some_and(|own| own.is_of_one);
        let Some(arguments) = of_node.or(of_all.as_ref()) else { return (None, None) };
        match told(objects, arguments, version) {
            Told::Name(..) if is_another_s => (None, None),
            Told::Name(name, by) => (Some((name, by)), None),
            Told::Own => (None, None),
            Told::Nothing => (None, host_name(node)),
        }
    });
    let names: Vec<_> = names.collect();
    for (node, (told, host)) in objects.nodes.0.values_mut().zip(names) {
        (node.proxy_name, node.proxy_name_by) = told.filter(|(name, _)| *name != node.name).unzip();
        node.host_name = host.filter(|name| *name != node.name);
    }
}

/// Returns the arguments of any kube-proxy: those of its DaemonSet if there is one.
fn of_any(objects: &Objects) -> Option<Arguments<'_>> {
    let (_, words, origin) = kube_proxy::container(objects)?;
    match kube_proxy::maker(objects)? {
        ProxyMaker::DaemonSet(daemon) => {
            Some(Arguments { words, object: daemon.object(), origin, is_of_one: false })
        }
        ProxyMaker::Pod(pod) => of_pod(pod),
    }
}

/// Returns the arguments of a kube-proxy pod.
fn of_pod(pod: &Pod) -> Option<Arguments<'_>> {
    let is_proxy = |name: &str| name == "kube-proxy";
    let container = pod.spec.containers.iter().find(|container| is_proxy(&container.name))?;
    let is_daemon = |owner: &&ObjectRef| owner.kind == WorkloadKind::DaemonSet.into();
    let daemon = pod.owner.as_ref().filter(is_daemon);
    Some(Arguments {
        words: &container.arguments,
        object: daemon.cloned().unwrap_or_else(|| pod.object()),
        origin: &pod.origin,
        is_of_one: daemon.is_none(),
    })
}

fn told(objects: &Objects, arguments: &Arguments<'_>, version: Version) -> Told {
    let words: Vec<&str> =
        arguments.words.iter().flat_map(|text| text.split_whitespace()).collect();
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
    // A value with an environment variable names the node.
    let stated = |written: &str, object: &ObjectRef, origin: &Origin| {
        let by = (object.clone(), origin.clone());
        name(written).map_or(Told::Own, |name| Told::Name(name, by))
    };
    if let Some(written) = written.filter(|_| !has_file || version >= FLAG_WINS) {
        return stated(written, &arguments.object, arguments.origin);
    }
    if !has_file {
        return Told::Nothing;
    }
    match &objects.proxy_config {
        Some(config) => match (&config.hostname_override, &config.config_map) {
            (Some((written, origin)), Some(config_map)) => {
                let object = ObjectRef::namespaced(ObjectKind::ConfigMap, config_map);
                stated(written, &object, origin)
            }
            _ => Told::Nothing,
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
