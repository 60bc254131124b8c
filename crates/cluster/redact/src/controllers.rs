//! The arguments, images and settings by which Ingress controllers in the cluster are recognised
//! and configured.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use uturn_snapshot::controller_settings;

use crate::names::Names;
use crate::text::{HOSTS, NAMES, Vocabulary, redact};

/// The arguments that are read, without dashes and in lower case.
const ARGUMENTS: [&str; 17] = [
    "configfile",
    "configmap",
    "controller-class",
    "external-service",
    "ingress-class",
    "ingress-class-by-name",
    "ingress-class-name",
    "ingress.class",
    "nginx-configmaps",
    "providers.kubernetesingress.allowemptyservices",
    "providers.kubernetesingress.ingressclass",
    "providers.kubernetesingress.ingressendpoint.publishedservice",
    "providers.kubernetesingress.namespaces",
    "providers.kubernetesingress.nativelbbydefault",
    "publish-service",
    "use-proxy-protocol",
    "watch-ingress-without-class",
];

/// An argument that is also read, whose value is a list of namespaces.
const NAMESPACES: &str = "watch-namespace";

/// The prefix of the arguments of Traefik's entry points.
const ENTRY_POINTS: &str = "entrypoints.";
/// The default entry points of Traefik.
const USUAL_ENTRY_POINTS: [&str; 4] = ["web", "websecure", "http", "https"];

/// The settings of entry points that are read.
const ENTRY_POINT: [&str; 8] = [
    "address",
    "asdefault",
    "http.redirections.entrypoint.permanent",
    "http.redirections.entrypoint.priority",
    "http.redirections.entrypoint.scheme",
    "http.redirections.entrypoint.to",
    "http.tls",
    "proxyprotocol.insecure",
];
/// The setting with the ranges from which an entry point accepts headers.
const TRUSTED: &str = "proxyprotocol.trustedips";

/// The arguments without dashes by which programs are recognised.
const COMMANDS: [&str; 4] = ["/nginx-ingress-controller", "router", "serve", "shutdown-manager"];

/// Programs by the full name of their image.
const PROGRAMS: [&str; 9] = [
    "contour",
    "haproxy-ingress",
    "kong",
    "kong-gateway",
    "kubernetes-ingress-controller",
    // A server, which has a configuration of its own.
    "nginx",
    "nginx-ingress",
    "nginx-plus-ingress",
    "traefik",
];
/// Programs by the prefix of the name of their image.
const BEGINNINGS: [&str; 3] = ["envoy", "kubernetes-ingress", "nginx-ingress-controller"];

/// The causes that end an attempt at an endpoint, in the words of `proxy-next-upstream`.
static CAUSES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    HashSet::from(["error", "header", "idempotent", "invalid", "non", "off", "timeout"])
});

/// Words in snippets with which something other than the endpoints decides.
const DECIDE: [&str; 5] = ["return", "proxy_pass", "rewrite", "deny", "internal"];

/// Returns the name of an argument that is read, in the form to write. Names in it are redacted.
pub(crate) fn flag(text: &str, names: &mut Names) -> Option<String> {
    let bare = text.trim_start_matches('-');
    let small = bare.to_ascii_lowercase();
    if ARGUMENTS.contains(&&*small) || small == NAMESPACES {
        return Some(text.to_owned());
    }
    let (entry, what) = small.strip_prefix(ENTRY_POINTS)?.split_once('.')?;
    let is_read = ENTRY_POINT.contains(&what) || what == TRUSTED;
    // The settings below `http.tls` contain names of hosts; only the presence of a setting matters.
    let what = match what.starts_with("http.tls.") {
        true => "http.tls",
        false if is_read => what,
        false => return None,
    };
    Some(format!("--{ENTRY_POINTS}{}.{what}", entry_point(entry, names)))
}

/// Redacts the value of an argument that is read.
pub(crate) fn value(flag: &str, text: &str, names: &mut Names) -> String {
    let is_entry_point = flag.starts_with("--") && flag.ends_with("redirections.entrypoint.to");
    if is_entry_point && !text.starts_with(':') {
        entry_point(text, names)
    } else {
        redact(text, names, NAMES)
    }
}

/// Redacts the name of an entry point of Traefik.
fn entry_point(name: &str, names: &mut Names) -> String {
    if USUAL_ENTRY_POINTS.contains(&name) { name.to_owned() } else { redact(name, names, HOSTS) }
}

/// Returns whether an argument without dashes is kept.
pub(crate) fn is_command(text: &str) -> bool {
    COMMANDS.contains(&text)
}

/// Returns the part of an image's path that shows the controller, and its replacement.
pub(crate) fn program(path: &str) -> Option<(&str, &'static str)> {
    const INGRESS_NGINX: &str = "ingress-nginx/controller";
    if let Some(at) = path.find(INGRESS_NGINX) {
        return Some((&path[at..], INGRESS_NGINX));
    }
    let own = path.rsplit('/').next().unwrap_or_default();
    let mut whole = PROGRAMS.into_iter();
    let begins = || BEGINNINGS.into_iter().find(|program| own.starts_with(program));
    let traefik = || own.ends_with("-traefik").then_some("traefik");
    let found = whole.find(|program| *program == own).or_else(begins).or_else(traefik)?;
    Some((own, found))
}

/// Redacts the settings in a ConfigMap that are read, if it has any.
pub(crate) fn settings(data: &Map<String, Value>, names: &mut Names) -> Option<Map<String, Value>> {
    let read = data.iter().filter(|(key, _)| controller_settings().contains(&key.as_str()));
    let texts = read.filter_map(|(key, value)| Some((key, value.as_str()?)));
    let found: Map<String, Value> =
        texts.map(|(key, text)| (key.clone(), setting(key, text, names).into())).collect();
    (!found.is_empty()).then_some(found)
}

/// Redacts the value of a setting, in a ConfigMap or in an annotation whose key ends with the
/// setting's name.
pub(crate) fn setting(key: &str, text: &str, names: &mut Names) -> String {
    if key.ends_with("-snippet") {
        return DECIDE.into_iter().filter(|word| text.contains(word)).collect::<Vec<_>>().join(" ");
    }
    if key.ends_with("/router.entrypoints") {
        let all = text.split(',').map(|name| entry_point(name.trim(), names));
        return all.collect::<Vec<_>>().join(",");
    }
    let words = key.ends_with("proxy-next-upstream").then(|| &*CAUSES);
    redact(text, names, Vocabulary { words, ..NAMES })
}
