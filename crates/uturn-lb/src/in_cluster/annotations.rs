//! What annotations of an Ingress change for the controller in the cluster that serves it.
//!
//! Those of ingress-nginx are known: most of them do not decide whether a request is answered. Of
//! other controllers no annotation is read, so an Ingress that has one of theirs is not judged.

use std::time::Duration;

use uturn_model::controller::{ControllerBehaviour, TlsRedirect};
use uturn_model::ingress::{IngressPath, PathKind};
use uturn_model::{Ingress, IngressController, Labels, Text};

/// What annotations change.
pub(super) struct Read {
    pub(super) behaviour: ControllerBehaviour,
    /// Whether endpoints are spoken to by TLS.
    pub(super) speaks_tls: bool,
    /// Whether it only takes a part of another Ingress's requests.
    pub(super) is_canary: bool,
    /// Whether its paths are regular expressions.
    has_patterns: bool,
    pub(super) unknown: Option<Text>,
}

const NGINX: &str = "nginx.ingress.kubernetes.io/";

/// Annotations of ingress-nginx with which something else than the endpoints decides.
const DECIDES: [&str; 12] = [
    "auth-url",
    "auth-type",
    "auth-tls-secret",
    "permanent-redirect",
    "temporal-redirect",
    "app-root",
    "from-to-www-redirect",
    "whitelist-source-range",
    "allowlist-source-range",
    "denylist-source-range",
    "server-snippet",
    "proxy-next-upstream-timeout",
];

/// How annotations of other controllers begin.
const OTHERS: [(&str, &str); 5] = [
    ("NGINX Ingress Controller", "nginx.org/"),
    ("Traefik", "traefik.ingress.kubernetes.io/"),
    ("HAProxy", "haproxy.org/"),
    ("HAProxy Ingress", "haproxy-ingress.github.io/"),
    ("Kong", "konghq.com/"),
];

/// How a path begins that is a regular expression for ingress-nginx.
pub(super) const PATTERN: &str = "~* ^";

/// Reads the annotations that the controller reads.
pub(super) fn read(controller: &IngressController, ingress: &Ingress) -> Read {
    let mut read = Read {
        behaviour: controller.behaviour.clone(),
        speaks_tls: false,
        is_canary: false,
        has_patterns: false,
        unknown: None,
    };
    if &*controller.product == "ingress-nginx" {
        nginx(&ingress.annotations, &mut read);
        return read;
    }
    let own = OTHERS.iter().find(|(product, _)| *product == &*controller.product);
    let key = own.and_then(|(_, begins)| ingress.annotations.key_from(begins));
    read.unknown = key.map(|key| format!("what {key} asks for is not read").into());
    read
}

fn nginx(annotations: &Labels, read: &mut Read) {
    let get = |name: &str| annotations.get(&format!("{NGINX}{name}"));
    let is_on = |name: &str| get(name) == Some("true");
    read.is_canary = is_on("canary");
    read.has_patterns = is_on("use-regex") || get("rewrite-target").is_some();
    if let Some(protocol) = get("backend-protocol") {
        read.speaks_tls = matches!(&*protocol.to_ascii_uppercase(), "HTTPS" | "GRPCS");
    }
    if get("service-upstream").is_some() {
        read.behaviour.dials_services = is_on("service-upstream");
    }
    match get("ssl-redirect") {
        Some("false") => read.behaviour.redirects_to_tls = TlsRedirect::Never,
        Some(_) if read.behaviour.redirects_to_tls == TlsRedirect::Never => {
            read.behaviour.redirects_to_tls = TlsRedirect::With(308);
        }
        _ => {}
    }
    if let Some(seconds) = get("proxy-connect-timeout") {
        read.behaviour.connect_timeout = seconds.parse().ok().map(Duration::from_secs);
    }
    if let Some(tries) = get("proxy-next-upstream-tries") {
        read.behaviour.tries = match tries.parse() {
            Ok(0) => Some(u32::MAX),
            Ok(tries) => Some(tries),
            Err(_) => None,
        };
    }
    if let Some(when) = get("proxy-next-upstream") {
        read.behaviour.tries = match (when.contains("error"), when.contains("timeout")) {
            (true, true) => read.behaviour.tries,
            (false, false) => Some(1),
            _ => None,
        };
    }
    let decides = DECIDES.iter().find(|name| get(name).is_some());
    let is_open = |name: &'static str| is_on(name).then_some(name);
    let decides = decides.copied().or_else(|| is_open("ssl-passthrough"));
    let decides = decides.or_else(|| is_open("force-ssl-redirect"));
    let decides = decides.or_else(|| {
        let snippet = get("configuration-snippet")?;
        let words = ["return", "proxy_pass", "rewrite", "deny", "internal"];
        words.iter().any(|word| snippet.contains(word)).then_some("configuration-snippet")
    });
    read.unknown =
        decides.map(|name| format!("what {NGINX}{name} leads to is not modelled").into());
}

/// A path as rules are compared: a regular expression is one that begins with the path.
pub(super) fn path(read: &Read, path: &IngressPath) -> Text {
    let is_pattern = read.has_patterns
        && path.kind == PathKind::ImplementationSpecific
        && path.path.contains(['(', '[', '*', '+', '|', '$', '?', '\\']);
    match is_pattern {
        true => format!("{PATTERN}{}", path.path).into(),
        false => path.path.clone(),
    }
}
