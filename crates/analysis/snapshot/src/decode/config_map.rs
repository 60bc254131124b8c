//! Reads the few ConfigMaps that matter, and those that may be a configuration of nginx. All others
//! are skipped.

use std::ops::ControlFlow;

use uturn_clouds::cloud;
use uturn_document::{self as document, Keep, Node};
use uturn_model::dns::{COREFILE_FOLDER, Corefile, CorefileFile};
use uturn_model::{NamespacedName, Origin, Text};

use super::objects::{ConfigEntry, ConfigMap, Objects};
use super::proxy_config::{self, ProxyConfig};
use super::{Doc, announcement, called_names, cni, istio, meta};

/// The namespace of the ConfigMaps that matter.
const NAMESPACE: &str = "kube-system";

/// The relevant keys of ConfigMaps that have the settings of an Ingress controller.
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

/// The ConfigMaps with configurations of CNI plugins that create a bridge. In other namespaces such
/// ConfigMaps are read if they are given, but not requested: the role there may lack the right to
/// read them.
const CNI: [(&str, &str); 2] = [(NAMESPACE, "kube-flannel-cfg"), (NAMESPACE, "kube-router-cfg")];

/// Returns the names of the ConfigMaps that matter, which are in [`NAMESPACE`] unless they were
/// installed elsewhere. The settings of a mesh, and pools of addresses, are read if they are given,
/// but not requested.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = [
        "coredns",
        "coredns-custom",
        "rke2-coredns-rke2-coredns",
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
    let switches = switches.chain(cloud::policy_switches().map(|(map, _)| map));
    own.into_iter().chain(switches).map(|name| (NAMESPACE, name)).chain(CNI)
}

/// Reads a ConfigMap if it is one that matters.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let name = doc.root.get("metadata").and_then(|meta| meta.get("name")).and_then(Node::as_str);
    let read: fn(&Doc<'_>, &mut Objects, &NamespacedName) = match name {
        Some("coredns") => corefile,
        Some("coredns-custom") => corefile_custom,
        Some("node-local-dns" | "nodelocaldns") => node_local,
        Some(name) if is_of_kubelets(name) => kubelet,
        Some("kube-proxy" | "kube-proxy-config") => kube_proxy,
        Some("ip-masq-agent" | "ip-masq-agent-config") => masq_agent,
        // These are in the namespace in which the product was installed.
        Some("cilium-config") => return cilium(doc, objects),
        Some("istio") => return mesh(doc, objects),
        Some(name) if has_switches(name) => controller_switches,
        Some(name) if policy_switch(name).is_some() => policies,
        _ => return configuration(doc, objects),
    };
    let Some(meta) = meta::read(doc) else { return };
    if meta.name.namespace.as_str() != NAMESPACE {
        return configuration(doc, objects);
    }
    let map = ConfigMap { name: meta.name.clone(), origin: meta.origin };
    objects.config_maps.add(doc, meta.name.clone(), map);
    keep_corefiles(doc, entries(doc), objects);
    read(doc, objects, &meta.name);
}

/// Returns whether a ConfigMap of this name has the switches of a cloud's controller.
fn has_switches(name: &str) -> bool {
    cloud::ALL.iter().any(|entry| entry.switches_config_map == Some(name))
}

/// Returns the entries of a ConfigMap, whatever else is wrong with them.
fn entries<'d>(doc: &Doc<'d>) -> &'d [document::Entry<'d>] {
    match doc.root.get("data").map(|data| &data.value) {
        Some(document::Value::Map(entries)) => entries,
        _ => &[],
    }
}

/// Keeps the entries of a ConfigMap that has a Corefile or parts of one, under whatever name: the
/// pods of the cluster's name servers tell which one they mount. Returns whether it has any.
fn keep_corefiles(doc: &Doc<'_>, entries: &[document::Entry<'_>], objects: &mut Objects) -> bool {
    let is_part = |key: &str| {
        key.starts_with("Corefile") || key.ends_with(".server") || key.ends_with(".override")
    };
    if !entries.iter().any(|entry| is_part(&entry.key)) {
        return false;
    }
    let Some(name) = plain_name(doc) else { return false };
    let entry = |entry: &document::Entry<'_>| {
        let (key, text) = (entry.key.to_string().into(), entry.value.as_str()?.into());
        Some(ConfigEntry { key, text, origin: doc.origin(&entry.value) })
    };
    objects.corefiles.insert(name, entries.iter().filter_map(entry).collect());
    true
}

/// Keeps a ConfigMap that may be the configuration of a server, until it is known whether it is.
fn configuration(doc: &Doc<'_>, objects: &mut Objects) {
    let entries = entries(doc);
    bridges(doc, entries, objects);
    if pools(doc, entries, objects) {
        return objects.other_config_maps.extend(plain_name(doc));
    }
    if keep_corefiles(doc, entries, objects) {
        return objects.other_config_maps.extend(plain_name(doc));
    }
    keep_called(doc, entries, objects);
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
    if is_controllers {
        let settings = texts.iter().filter(|setting| is_setting(setting)).cloned();
        objects.controller_settings.insert(meta.name.clone(), settings.collect());
    } else {
        objects.other_config_maps.insert(meta.name.clone());
    }
    if is_servers {
        objects.configurations.insert(meta.name, texts);
    }
}

/// Keeps the names that the texts of a ConfigMap call, until it is known who reads it.
fn keep_called(doc: &Doc<'_>, entries: &[document::Entry<'_>], objects: &mut Objects) {
    let of_entry = |entry: &document::Entry<'_>| {
        let called = called_names::read_file(entry.value.as_str()?);
        (!called.is_empty()).then(|| (entry.key.to_string().into(), called))
    };
    let called: Vec<_> = entries.iter().filter_map(of_entry).collect();
    if !called.is_empty()
        && let Some(name) = plain_name(doc)
    {
        objects.called_in_maps.insert(name, called);
    }
}

/// Reads the configurations of CNI plugins that create a bridge, and flannel's own.
fn bridges(doc: &Doc<'_>, entries: &[document::Entry<'_>], objects: &mut Objects) {
    for entry in entries {
        if entry.value.as_str().is_some_and(|text| cni::is_of_bridge(&entry.key, text)) {
            within(doc, &entry.value, |inner| objects.bridges.extend(cni::read(inner)));
        }
        if entry.key == "net-conf.json" {
            within(doc, &entry.value, |inner| {
                if let Some(backend) = cni::backend(inner) {
                    objects.flannel_backend = Some(backend);
                }
            });
        }
    }
}

/// Reads the pools of addresses that a ConfigMap states. Returns whether it states any.
fn pools(doc: &Doc<'_>, entries: &[document::Entry<'_>], objects: &mut Objects) -> bool {
    let found = entries.iter().find_map(|entry| {
        let text = entry.value.as_str()?;
        let has_pools = |line: &str| {
            cloud::announcement_maps()
                .find(|map| entry.key == *map.key && line.trim_end() == format!("{}:", map.pools))
        };
        Some((text.lines().find_map(has_pools)?, &entry.value))
    });
    let (Some((map, node)), Some(name)) = (found, plain_name(doc)) else { return false };
    within(doc, node, |inner| announcement::read_map(inner, map, &name, objects));
    true
}

/// Returns the key of the switch for NetworkPolicies in a ConfigMap of this name.
fn policy_switch(name: &str) -> Option<&'static str> {
    cloud::policy_switches().find(|(map, _)| *map == name).map(|(_, key)| key)
}

fn policies<'d>(doc: &Doc<'d>, objects: &mut Objects, name: &NamespacedName) {
    let key = policy_switch(name.name.as_str());
    let data = meta::labels(doc, doc.root, "data");
    let value = key.and_then(|key| data.get(key)).map(|value| value == "true");
    objects.policy_switch = value.map(|is_on| (is_on, doc.origin(doc.root)));
}

/// Returns the name of an object that is skipped, whatever else is wrong with the object.
fn plain_name(doc: &Doc<'_>) -> Option<NamespacedName> {
    let meta = doc.root.get("metadata")?;
    let namespace = meta.get("namespace").and_then(Node::as_str).unwrap_or("default");
    NamespacedName::new(namespace, meta.get("name")?.as_str()?).ok()
}

fn corefile(doc: &Doc<'_>, objects: &mut Objects, _: &NamespacedName) {
    objects.corefile = corefile_of(doc);
}

/// Reads the Corefile of the DNS cache on every node, which is a CoreDNS too.
fn node_local(doc: &Doc<'_>, objects: &mut Objects, _: &NamespacedName) {
    objects.node_local = corefile_of(doc);
}

/// Returns whether a ConfigMap configures kubelets. Older releases have one for each version of
/// Kubernetes: `kubelet-config-1.22`.
fn is_of_kubelets(name: &str) -> bool {
    let rest = name.strip_prefix("kubelet-config");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("-1."))
}

/// Reads the configuration that kubeadm gives to the kubelets of all nodes.
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

/// Reads the files that several clouds mount beside the Corefile, for their users to write.
fn corefile_custom(doc: &Doc<'_>, objects: &mut Objects, _: &NamespacedName) {
    objects.corefile_custom = files(doc, &format!("{COREFILE_FOLDER}/custom")).collect();
}

/// Returns the texts of a ConfigMap as files in a folder.
fn files<'d>(doc: &Doc<'d>, folder: &str) -> impl Iterator<Item = CorefileFile> {
    doc.entries(doc.root, "data").iter().filter_map(move |entry| {
        let text = entry.value.as_str()?.into();
        let path = format!("{folder}/{}", entry.key).into();
        Some(CorefileFile { path, text, origin: doc.origin(&entry.value) })
    })
}

fn kube_proxy(doc: &Doc<'_>, objects: &mut Objects, name: &NamespacedName) {
    let Some(data) = doc.map(doc.root, "data") else { return };
    let Some(node) = data.get("config.conf").or_else(|| data.get("config")) else { return };
    within(doc, node, |inner| {
        let config_map = Some(name.clone());
        objects.proxy_config = Some(ProxyConfig { config_map, ..proxy_config::read(inner) });
    });
}

/// Reads the ranges from the first file that states any: the file's name within the ConfigMap is
/// free.
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

/// Reads the settings of Cilium's agents.
fn cilium<'d>(doc: &Doc<'d>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    objects.cilium_config = Some((meta::labels(doc, doc.root, "data"), meta.origin));
}

/// Reads the settings of a mesh's gateways.
fn mesh(doc: &Doc<'_>, objects: &mut Objects) {
    match doc.root.get("data").and_then(|data| data.get("mesh")) {
        Some(node) => within(doc, node, |inner| istio::read_mesh(inner, objects)),
        None => configuration(doc, objects),
    }
}

fn controller_switches<'d>(doc: &Doc<'d>, objects: &mut Objects, _: &NamespacedName) {
    objects.controller_switches = meta::labels(doc, doc.root, "data");
}

/// Reads a document within a text of another document. Its places are places in the file, as far as
/// they can be told: in a block scalar.
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

/// Moves a node to lines of the file. Its columns become 0, which means the whole line: columns
/// within the text are not columns of the file.
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
