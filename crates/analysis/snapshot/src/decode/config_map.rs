//! The few ConfigMaps that matter, and those that may be an nginx's configuration; all others
//! are not looked into.

use std::ops::ControlFlow;

use uturn_clouds::cloud;
use uturn_model::dns::{COREFILE_FOLDER, Corefile, CorefileFile};
use uturn_model::{NamespacedName, Origin, Text};

use super::objects::{ConfigMap, Objects};
use super::{Doc, cni, istio, meta, proxy_config};
use crate::document::{self, Keep, Node};

/// The namespace of the ConfigMaps that matter.
const NAMESPACE: &str = "kube-system";

/// The keys that matter of ConfigMaps that have the settings of an Ingress controller.
pub(crate) const CONTROLLER_SETTINGS: [&str; 12] = [
    "use-proxy-protocol",
    "proxy-protocol",
    "proxy-connect-timeout",
    "proxy-next-upstream",
    "proxy-next-upstream-tries",
    "proxy-next-upstream-timeout",
    "ssl-redirect",
    "force-ssl-redirect",
    "http-redirect-code",
    "service-upstream",
    "custom-http-errors",
    "default-backend",
];

/// The ConfigMaps with the configuration of CNI plugins that make a bridge. In other namespaces they are
/// read where they are given, and not asked for: a role there may not be had.
const CNI: [(&str, &str); 2] = [(NAMESPACE, "kube-flannel-cfg"), (NAMESPACE, "kube-router-cfg")];

/// The names of the ConfigMaps that matter, which are in [`NAMESPACE`] unless they were installed
/// elsewhere. The settings of a mesh are read where they are given, and not asked for.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = [
        "coredns",
        "coredns-custom",
        "node-local-dns",
        "nodelocaldns",
        "kubelet-config",
        "kube-proxy",
        "kube-proxy-config",
        "ip-masq-agent",
        "ip-masq-agent-config",
        "cilium-config",
    ];
    let switches = cloud::ALL.into_iter().filter_map(|entry| entry.switches_config_map);
    own.into_iter().chain(switches).map(|name| (NAMESPACE, name)).chain(CNI)
}

/// Reads a ConfigMap, if it is one that matters.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let name = doc.root.get("metadata").and_then(|meta| meta.get("name")).and_then(Node::as_str);
    let read: fn(&Doc<'_>, &mut Objects, &NamespacedName) = match name {
        Some("coredns") => corefile,
        Some("coredns-custom") => corefile_custom,
        Some("node-local-dns" | "nodelocaldns") => node_local,
        Some(name) if is_of_kubelets(name) => kubelet,
        Some("kube-proxy" | "kube-proxy-config") => kube_proxy,
        Some("ip-masq-agent" | "ip-masq-agent-config") => masq_agent,
        // Their namespaces are whatever they were installed in.
        Some("cilium-config") => return cilium(doc, objects),
        Some("istio") => return mesh(doc, objects),
        Some(name) if has_switches(name) => controller_switches,
        _ => return configuration(doc, objects),
    };
    let Some(meta) = meta::read(doc) else { return };
    if meta.name.namespace.as_str() != NAMESPACE {
        return configuration(doc, objects);
    }
    let map = ConfigMap { name: meta.name.clone(), origin: meta.origin };
    objects.config_maps.add(doc, meta.name.clone(), map);
    read(doc, objects, &meta.name);
}

/// Whether a ConfigMap of this name has the switches of a cloud's controller.
fn has_switches(name: &str) -> bool {
    cloud::ALL.iter().any(|entry| entry.switches_config_map == Some(name))
}

/// One that may be the configuration of a server: kept until it is known whether it is.
fn configuration(doc: &Doc<'_>, objects: &mut Objects) {
    let data = doc.root.get("data").map(|data| &data.value);
    let entries = match data {
        Some(document::Value::Map(entries)) => &entries[..],
        _ => &[],
    };
    bridges(doc, entries, objects);
    let text = |entry: &document::Entry<'_>| {
        Some((entry.key.to_string().into(), entry.value.as_str()?.into()))
    };
    let texts: Vec<(Text, Text)> = entries.iter().filter_map(text).collect();
    let is_setting = |(key, _): &(Text, Text)| CONTROLLER_SETTINGS.contains(&&**key);
    let is_file = |(key, _): &(Text, Text)| key.ends_with(".conf") || &**key == "haproxy.cfg";
    let (is_controllers, is_servers) = (texts.iter().any(is_setting), texts.iter().any(is_file));
    if !is_controllers && !is_servers {
        objects.other_config_maps.extend(plain_name(doc));
        return objects.skip("v1/ConfigMap");
    }
    let Some(meta) = meta::read(doc) else { return };
    match is_controllers {
        true => {
            let settings = texts.iter().filter(|setting| is_setting(setting)).cloned();
            objects.controller_settings.insert(meta.name.clone(), settings.collect());
        }
        false => drop(objects.other_config_maps.insert(meta.name.clone())),
    }
    if is_servers {
        objects.configurations.insert(meta.name, texts);
    }
}

/// The configurations of CNI plugins that make a bridge.
fn bridges(doc: &Doc<'_>, entries: &[document::Entry<'_>], objects: &mut Objects) {
    for entry in entries {
        if entry.value.as_str().is_some_and(|text| cni::is_of_bridge(&entry.key, text)) {
            within(doc, &entry.value, |inner| objects.bridges.extend(cni::read(inner)));
        }
    }
}

/// The name of an object that is not looked into, whatever else is wrong with it.
fn plain_name(doc: &Doc<'_>) -> Option<NamespacedName> {
    let meta = doc.root.get("metadata")?;
    let namespace = meta.get("namespace").and_then(Node::as_str).unwrap_or("default");
    NamespacedName::new(namespace, meta.get("name")?.as_str()?).ok()
}

fn corefile(doc: &Doc<'_>, objects: &mut Objects, _: &NamespacedName) {
    objects.corefile = corefile_of(doc);
}

/// The cache that runs on every node is a CoreDNS too.
fn node_local(doc: &Doc<'_>, objects: &mut Objects, _: &NamespacedName) {
    objects.node_local = corefile_of(doc);
}

/// Older releases have one for each version of Kubernetes: `kubelet-config-1.22`.
fn is_of_kubelets(name: &str) -> bool {
    let rest = name.strip_prefix("kubelet-config");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("-1."))
}

/// What kubeadm hands to the kubelets of all nodes.
fn kubelet(doc: &Doc<'_>, objects: &mut Objects, name: &NamespacedName) {
    let Some(data) = doc.map(doc.root, "data") else { return };
    let Some(node) = data.get("kubelet") else { return };
    within(doc, node, |inner| {
        let servers = inner.list(inner.root, "clusterDNS");
        objects.kubelet_dns.insert(name.clone(), servers);
    });
}

fn corefile_of(doc: &Doc<'_>) -> Option<Corefile> {
    let data = doc.map(doc.root, "data")?;
    let Some(node) = data.get("Corefile") else {
        doc.missing(data, "Corefile", "CoreDNS's configuration");
        return None;
    };
    let beside = files(doc, COREFILE_FOLDER).filter(|file| !file.path.ends_with("/Corefile"));
    let (text, origin) = (doc.value(node)?, doc.origin(node));
    Some(Corefile { text, origin, beside: beside.collect(), release: None })
}

/// What several clouds mount beside the Corefile, for their users to write.
fn corefile_custom(doc: &Doc<'_>, objects: &mut Objects, _: &NamespacedName) {
    objects.corefile_custom = files(doc, &format!("{COREFILE_FOLDER}/custom")).collect();
}

/// The texts of a ConfigMap as files in a folder.
fn files<'d>(doc: &Doc<'d>, folder: &str) -> impl Iterator<Item = CorefileFile> {
    doc.entries(doc.root, "data").iter().filter_map(move |entry| {
        let text = entry.value.as_str()?.into();
        let path = format!("{folder}/{}", entry.key).into();
        Some(CorefileFile { path, text, origin: doc.origin(&entry.value) })
    })
}

fn kube_proxy(doc: &Doc<'_>, objects: &mut Objects, _: &NamespacedName) {
    let Some(data) = doc.map(doc.root, "data") else { return };
    let Some(node) = data.get("config.conf").or_else(|| data.get("config")) else { return };
    within(doc, node, |inner| objects.proxy_config = Some(proxy_config::read(inner)));
}

/// The file's name within the ConfigMap is free: the first that names ranges is it.
fn masq_agent(doc: &Doc<'_>, objects: &mut Objects, _: &NamespacedName) {
    for entry in doc.entries(doc.root, "data") {
        within(doc, &entry.value, |inner| {
            if objects.non_masquerade.is_none()
                && let Some(ranges) = proxy_config::ranges(inner, "nonMasqueradeCIDRs")
            {
                objects.non_masquerade = Some((ranges, inner.origin(inner.root)));
            }
        });
    }
}

/// How Cilium's agents are set.
fn cilium<'d>(doc: &Doc<'d>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    objects.cilium_config = Some((meta::labels(doc, doc.root, "data"), meta.origin));
}

/// How the gateways of a mesh are set.
fn mesh(doc: &Doc<'_>, objects: &mut Objects) {
    match doc.root.get("data").and_then(|data| data.get("mesh")) {
        Some(node) => within(doc, node, |inner| istio::read_mesh(inner, objects)),
        None => configuration(doc, objects),
    }
}

fn controller_switches<'d>(doc: &Doc<'d>, objects: &mut Objects, _: &NamespacedName) {
    objects.controller_switches = meta::labels(doc, doc.root, "data");
}

/// Reads a document that is written within a text of another one. Places in it are places
/// in the file, as far as that can be told: in a block scalar.
fn within(doc: &Doc<'_>, node: &Node<'_>, read: impl FnOnce(&Doc<'_>)) {
    let Some(text) = node.as_str() else {
        return doc.fault(node, format!("expected a text, found {}", node.describe()));
    };
    let mut first = None;
    document::read(text, Keep::All, &mut |document| match document {
        Err(trouble) if trouble.note.is_some() => ControlFlow::Continue(()),
        other => {
            first.get_or_insert(other);
            ControlFlow::Break(())
        }
    });
    let shift = |line: u32| if node.column == 0 { node.line + line - 1 } else { node.line };
    match first {
        None => {}
        Some(Ok(mut root)) => {
            move_to(&mut root, &shift);
            let (file, prefix, faults) = (doc.file, "", doc.faults);
            read(&Doc { file, root: &root, prefix, faults, live: doc.live });
        }
        Some(Err(trouble)) => {
            let origin = match doc.live {
                Some(_) => doc.origin(node),
                None => Origin::at(doc.file.clone(), shift(trouble.line), 0),
            };
            let fault =
                crate::Fault { hint: trouble.hint, ..crate::Fault::new(origin, trouble.message) };
            doc.faults.borrow_mut().push(fault);
        }
    }
}

/// Columns within the text are not columns of the file: whole lines are meant.
fn move_to(node: &mut Node<'_>, shift: &dyn Fn(u32) -> u32) {
    (node.line, node.column) = (shift(node.line), 0);
    match &mut node.value {
        document::Value::Seq(items) => items.iter_mut().for_each(|item| move_to(item, shift)),
        document::Value::Map(entries) => {
            for entry in entries {
                (entry.line, entry.column) = (shift(entry.line), 0);
                move_to(&mut entry.value, shift);
            }
        }
        _ => {}
    }
}
