//! Redacts the few ConfigMaps that are read.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use uturn_document::json_value;
use uturn_snapshot::config_maps;

use crate::controllers;
use crate::names::Names;
use crate::objects::{Redacted, text_of};
use crate::settings::{self, values};
use crate::text::{NAMES, Vocabulary, redact};
use crate::words::list;

static COREFILE: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| list(include_str!("known/corefile.txt")));

/// The keys of Cilium's configuration that are read.
const CILIUM: [&str; 7] = [
    "kube-proxy-replacement",
    "routing-mode",
    "tunnel",
    "enable-l2-announcements",
    "enable-bgp-control-plane",
    "bpf-lb-mode",
    "node-port-mode",
];

/// Redacts a ConfigMap. One that is not read is left out.
pub(crate) fn config_map(object: &Value, names: &mut Names) -> Redacted {
    let meta = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let (namespace, name) = (meta("namespace"), meta("name"));
    let data = match &object["data"] {
        Value::Object(data) => data.clone(),
        _ => Map::new(),
    };
    let is_known = config_maps().any(|(of, own)| own == name && of == namespace);
    let data = match name {
        "cilium-config" => cilium(data, names),
        "istio" if data.contains_key("mesh") => mesh(&data),
        // The cluster's name servers may mount it, whatever its name is.
        _ if data.keys().any(|key| key.starts_with("Corefile")) => each(data, names, corefile),
        _ if !is_known => match cni(&data).or_else(|| antrea(&data)) {
            Some(data) => data,
            None => {
                let mut kept = controllers::settings(&data, names).unwrap_or_default();
                kept.extend(server_files(&data, names));
                if kept.is_empty() {
                    return Redacted::Stub(named(namespace, name, names));
                }
                kept
            }
        },
        "coredns-custom" => each(data, names, corefile),
        "kubelet-config" => kubelet(&data, names),
        "kube-proxy" | "kube-proxy-config" => proxy(&data, names),
        "ip-masq-agent" | "ip-masq-agent-config" => {
            each(data, names, |_, text, names| document(text, names).unwrap_or_default())
        }
        _ => match cni(&data) {
            Some(data) => data,
            None => each(data, names, |_, text, names| redact(text, names, values())),
        },
    };
    let mut redacted = named(namespace, name, names);
    redacted["apiVersion"] = text_of(object, "apiVersion").into();
    // A ConfigMap without data is read differently from one with empty data.
    if object["data"].is_object() {
        redacted["data"] = data.into();
    }
    Redacted::Object(redacted)
}

/// Keeps the names of the configuration files of servers, without their contents. No verdict
/// depends on the contents; only the lab starts servers with them.
fn server_files(data: &Map<String, Value>, names: &mut Names) -> Map<String, Value> {
    let is_file = |key: &str| key.ends_with(".conf") || key == "haproxy.cfg";
    let keys = data.keys().filter(|key| is_file(key));
    keys.map(|key| (redact(key, names, NAMES), Value::from(""))).collect()
}

/// Returns a ConfigMap without its data. An argument of a controller may name it.
fn named(namespace: &str, name: &str, names: &mut Names) -> Value {
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": redact(name, names, NAMES),
            "namespace": redact(namespace, names, NAMES),
        },
    })
}

/// Redacts the text of each entry.
fn each(
    data: Map<String, Value>,
    names: &mut Names,
    of: impl Fn(&str, &str, &mut Names) -> String,
) -> Map<String, Value> {
    let entry = |(key, value): (String, Value)| {
        let text = value.as_str()?;
        let text = of(&key, text, names);
        let key = if settings::FIELDS.contains(&*key) || &*key == "config" {
            key
        } else {
            file_name(&key, names)
        };
        Some((key, text.into()))
    };
    data.into_iter().filter_map(entry).collect()
}

/// Redacts a document in YAML or JSON, and returns it as JSON.
fn document(text: &str, names: &mut Names) -> Option<String> {
    let document = json_value(text)?;
    Some(settings::document(document, names).to_string())
}

fn proxy(data: &Map<String, Value>, names: &mut Names) -> Map<String, Value> {
    let found = ["config.conf", "config"]
        .iter()
        .find_map(|key| Some(((*key).to_owned(), data.get(*key)?.as_str()?)));
    let Some((key, text)) = found else { return Map::new() };
    let Some(Value::Object(mut config)) = json_value(text) else { return Map::new() };
    config.retain(|key, _| settings::FIELDS.contains(&**key));
    for inner in config.values_mut().filter_map(Value::as_object_mut) {
        inner.retain(|key, _| settings::FIELDS.contains(&**key));
    }
    let text = settings::document(Value::Object(config), names).to_string();
    Map::from_iter([(key, text.into())])
}

/// Keeps the name servers that kubelets give to pods: nothing else of their configuration is read.
fn kubelet(data: &Map<String, Value>, names: &mut Names) -> Map<String, Value> {
    let configuration = data.get("kubelet").and_then(Value::as_str).and_then(json_value);
    let servers = configuration.map(|configuration| configuration["clusterDNS"].clone());
    let servers = servers.unwrap_or_default();
    let servers = servers.as_array().into_iter().flatten().filter_map(Value::as_str);
    let servers: Vec<String> = servers.map(|ip| redact(ip, names, values())).collect();
    Map::from_iter([("kubelet".to_owned(), json!({ "clusterDNS": servers }).to_string().into())])
}

fn cilium(data: Map<String, Value>, names: &mut Names) -> Map<String, Value> {
    let known = data.into_iter().filter(|(key, _)| CILIUM.contains(&&**key));
    let entry = |(key, value): (String, Value)| {
        let value = value.as_str().map(|text| redact(text, names, values()));
        (key, value.unwrap_or_default().into())
    };
    known.map(entry).collect()
}

/// The parts of Antrea's configuration that determine which program serves Services: sections,
/// switches within them, and a setting outside of sections.
const ANTREA_SECTIONS: [&str; 2] = ["antreaProxy", "featureGates"];
const ANTREA_SWITCHES: [&str; 4] = ["enable", "proxyAll", "proxyLoadBalancerIPs", "AntreaProxy"];
const ANTREA_MODE: &str = "trafficEncapMode";
/// The values that the analysis distinguishes.
const ANTREA_VALUES: [&str; 3] = ["true", "false", "networkPolicyOnly"];

/// Keeps the lines of Antrea's configuration that are read.
fn antrea(data: &Map<String, Value>) -> Option<Map<String, Value>> {
    let text = data.get("antrea-agent.conf")?.as_str()?;
    let mut is_in_section = false;
    let line = |line: &str| {
        let (key, value) = line.split('#').next().unwrap_or_default().split_once(':')?;
        let (own, value) = (key.trim(), value.trim().trim_matches(['"', '\'']));
        if !key.starts_with([' ', '\t']) {
            is_in_section = ANTREA_SECTIONS.contains(&own);
            if is_in_section {
                return Some(format!("{own}:\n"));
            }
        }
        let is_read = if is_in_section {
            ANTREA_SWITCHES.contains(&own)
        } else {
            own == ANTREA_MODE && key == own
        };
        let margin = if is_in_section { "  " } else { "" };
        (is_read && ANTREA_VALUES.contains(&value)).then(|| format!("{margin}{own}: {value}\n"))
    };
    let kept: String = text.lines().filter_map(line).collect();
    Some(Map::from_iter([("antrea-agent.conf".to_owned(), kept.into())]))
}

/// Keeps the parts of a configuration of CNI plugins that are read: those about the pods' bridge.
fn cni(data: &Map<String, Value>) -> Option<Map<String, Value>> {
    let read = |(key, text): (&String, &Value)| {
        let text =
            text.as_str().filter(|text| uturn_snapshot::is_bridge_configuration(key, text))?;
        let configuration = json_value(text)?;
        let plugins = match &configuration["plugins"] {
            Value::Array(plugins) => plugins.clone(),
            _ => vec![configuration],
        };
        let kept = plugins.iter().map(|plugin| {
            let mut kept = bridge(plugin);
            if plugin["delegate"].is_object() {
                kept.insert("delegate".to_owned(), bridge(&plugin["delegate"]).into());
            }
            Value::Object(kept)
        });
        Some(json!({ "plugins": kept.collect::<Vec<_>>() }).to_string())
    };
    let text = data.iter().find_map(read)?;
    Some(Map::from_iter([("cni-conf.json".to_owned(), text.into())]))
}

fn bridge(plugin: &Value) -> Map<String, Value> {
    let is_kept = |key: &str, value: &Value| match value {
        Value::Bool(_) => matches!(key, "hairpinMode" | "promiscMode"),
        Value::String(kind) => key == "type" && matches!(&**kind, "flannel" | "bridge" | "ptp"),
        _ => false,
    };
    let all = plugin.as_object().into_iter().flatten();
    all.filter(|(key, value)| is_kept(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Keeps the only setting of a mesh that is read.
fn mesh(data: &Map<String, Value>) -> Map<String, Value> {
    let own = data.get("mesh").and_then(Value::as_str).and_then(json_value).unwrap_or_default();
    let topology = &own["defaultConfig"]["gatewayTopology"];
    let text = if topology.get("proxyProtocol").is_some() {
        "defaultConfig:\n  gatewayTopology:\n    proxyProtocol: {}\n"
    } else {
        "{}\n"
    };
    Map::from_iter([("mesh".to_owned(), text.into())])
}

/// Redacts the name of a file, which a Corefile may import or read.
fn file_name(name: &str, names: &mut Names) -> String {
    redact(name, names, Vocabulary { words: Some(&COREFILE), ..NAMES })
}

/// Redacts CoreDNS's configuration. Comments are removed. A word belongs to the language only if it
/// stands alone and within a block; outside there are zones, and within a name with dots a word is
/// a part of that name.
fn corefile(key: &str, text: &str, names: &mut Names) -> String {
    let language = Vocabulary { words: Some(&COREFILE), ignores_case: true, ..NAMES };
    let name = Vocabulary { ignores_case: true, ..NAMES };
    let mut new = String::with_capacity(text.len());
    // An imported part of a block has no block of its own.
    let mut depth = usize::from(key.ends_with(".override"));
    for line in text.lines() {
        let line = match line.find('#') {
            Some(at) if line[..at].chars().all(char::is_whitespace) => "",
            _ => line,
        };
        let (mut rest, mut first) = (line, "");
        while !rest.is_empty() {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            if first.is_empty() {
                first = token;
            }
            let is_url = token.contains("://");
            let is_zone =
                depth == 0 && first != "import" && !is_url && !token.starts_with(['(', '{']);
            let is_file = token.contains('/')
                && !is_url
                && token.rsplit('/').next().is_some_and(|end| end.parse::<u8>().is_err());
            let is_name = is_zone
                || token.trim_matches(['.', '"', '{', '}', '(', ')']).contains('.')
                    && !token.starts_with(['/', '.'])
                    && !token.starts_with("{{");
            new.push_str(&match () {
                () if is_file => file_name(token, names),
                () if is_name => redact(token, names, name),
                () => redact(token, names, language),
            });
            match token {
                _ if token.starts_with("{{") || token.starts_with("{$") => {}
                _ if token.ends_with('{') => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let space = after.find(|letter: char| !letter.is_whitespace()).unwrap_or(after.len());
            new.push_str(&after[..space]);
            rest = &after[space..];
        }
        new.push('\n');
    }
    new
}
