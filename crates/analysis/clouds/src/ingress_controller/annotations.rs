//! The effect of an Ingress's annotations on the controller in the cluster that serves it.
//!
//! The annotations of ingress-nginx are known: most of them do not affect whether a request is
//! answered. For Traefik, only the annotations are read that state the entry points of a rule; for
//! Kong, only those that state its protocols. For other controllers no annotation is read, so an
//! Ingress that has one of theirs is not judged.

use std::time::Duration;

use uturn_model::controller::{ControllerBehaviour, TlsRedirect};
use uturn_model::ingress::{IngressPath, PathKind};
use uturn_model::{Ingress, IngressController, Labels, Text};

/// The settings that annotations of an Ingress make.
pub(super) struct Read {
    pub(super) behaviour: ControllerBehaviour,
    /// Whether connections to endpoints use TLS.
    pub(super) backend_tls: bool,
    /// Whether the Ingress only takes a part of another Ingress's requests.
    pub(super) is_canary: bool,
    /// The entry points that the Ingress asks for.
    pub(super) entry_points: Option<Vec<Text>>,
    /// Whether the Ingress asks for requests over TLS.
    pub(super) asks_for_tls: bool,
    /// Whether the Ingress accepts no requests over TLS.
    pub(super) is_plain_only: bool,
    /// Whether clients without TLS are redirected to TLS, or refused, whatever certificates the
    /// Ingress names.
    pub(super) is_tls_only: bool,
    /// Whether the paths of the Ingress are regular expressions.
    has_patterns: bool,
    pub(super) unknown: Option<Text>,
}

const NGINX: &str = "nginx.ingress.kubernetes.io/";

const KONG: &str = "konghq.com/";
const TRAEFIK: &str = "traefik.ingress.kubernetes.io/";

/// Annotations of ingress-nginx with which something other than the endpoints decides whether a
/// request is answered.
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

/// Other controllers with the prefixes of their annotations.
const OTHERS: [(&str, &str); 3] = [
    ("NGINX Ingress Controller", "nginx.org/"),
    ("HAProxy", "haproxy.org/"),
    ("HAProxy Ingress", "haproxy-ingress.github.io/"),
];

/// The prefix of a path that ingress-nginx treats as a regular expression.
pub(super) const PATTERN: &str = "~* ^";

/// Reads the annotations that the controller reads.
pub(super) fn read(controller: &IngressController, ingress: &Ingress) -> Read {
    let mut read = Read {
        behaviour: controller.behaviour.clone(),
        backend_tls: false,
        is_canary: false,
        entry_points: None,
        asks_for_tls: false,
        is_plain_only: false,
        is_tls_only: false,
        has_patterns: false,
        unknown: None,
    };
    match &*controller.product {
        "ingress-nginx" => {
            nginx(&ingress.annotations, &mut read);
            return read;
        }
        "Traefik" => {
            traefik(&ingress.annotations, &mut read);
            return read;
        }
        "Kong" => {
            kong(ingress, &mut read);
            return read;
        }
        _ => {}
    }
    let own = OTHERS.iter().find(|(product, _)| *product == &*controller.product);
    let key = own.and_then(|(_, begins)| ingress.annotations.key_from(begins));
    read.unknown = key.map(|key| format!("what {key} asks for is not read").into());
    read
}

/// Reads the annotations of Traefik, which ignores the case of their names. Traefik reads those
/// below `service.` from Services only.
fn traefik(annotations: &Labels, read: &mut Read) {
    for (key, value) in annotations.iter() {
        let Some(name) = key.strip_prefix(TRAEFIK) else { continue };
        let name = name.to_ascii_lowercase();
        let is_known = match (name.as_str(), value) {
            ("router.entrypoints", _) => {
                let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                let names: Vec<Text> = names.map(Text::from).collect();
                read.entry_points = Some(names).filter(|names| !names.is_empty());
                true
            }
            ("router.tls", "true") => {
                read.asks_for_tls = true;
                true
            }
            // The choice of the certificate has no effect here.
            (name, _)
                if name == "router.tls.certresolver" || name.starts_with("router.tls.domains.") =>
            {
                read.asks_for_tls = true;
                true
            }
            ("router.tls", "false") | ("router.middlewares", "") => true,
            ("router.pathmatcher", "PathPrefix") => true,
            (name, _) => name.starts_with("service.") || name.starts_with("router.observability."),
        };
        if !is_known {
            read.unknown = Some(format!("what {key} asks for is not read").into());
        }
    }
}

/// Annotations of Kong that do not affect whether a request is answered.
const KONG_DECIDES_NOT: [&str; 10] = [
    "host-header",
    "path-handling",
    "preserve-host",
    "read-timeout",
    "regex-priority",
    "request-buffering",
    "response-buffering",
    "strip-path",
    "tags",
    "write-timeout",
];

/// Reads the annotations of Kong, which serves an Ingress over HTTP and HTTPS unless the Ingress
/// names protocols.
fn kong(ingress: &Ingress, read: &mut Read) {
    const FORCES: &str = "ingress.kubernetes.io/force-ssl-redirect";
    let annotations = &ingress.annotations;
    let mut code = 426;
    if annotations.is(FORCES, "true") {
        (code, read.is_tls_only) = (302, true);
    }
    for (key, value) in annotations.iter() {
        let Some(name) = key.strip_prefix(KONG) else { continue };
        let mut words = value.split(',').map(str::trim);
        let is_known = match name {
            "protocols" => {
                let all: Vec<&str> = words.collect();
                let (http, https) = (all.contains(&"http"), all.contains(&"https"));
                (read.is_plain_only, read.is_tls_only) = (http && !https, https && !http);
                all.iter().all(|word| matches!(*word, "http" | "https"))
            }
            "https-redirect-status-code" => {
                let own = value.parse().ok();
                code = own.filter(|own| [301, 302, 307, 308, 426].contains(own)).unwrap_or(code);
                true
            }
            "methods" => words.any(|method| method == "GET"),
            "plugins" => value.trim().is_empty(),
            name => KONG_DECIDES_NOT.contains(&name),
        };
        if !is_known {
            read.unknown = Some(format!("what {key} asks for is not read").into());
        }
    }
    let mut paths = ingress.rules.iter().flat_map(|rule| &rule.paths);
    let is_pattern = |path: &IngressPath| {
        path.kind == PathKind::ImplementationSpecific && path.path.starts_with("/~")
    };
    if let Some(path) = paths.find(|path| is_pattern(path)) {
        read.unknown = Some(format!("which requests {} is for is not modelled", path.path).into());
    }
    read.behaviour.redirects_to_tls = match (read.is_tls_only, code) {
        (false, _) => TlsRedirect::Never,
        (true, 426) => TlsRedirect::Refuses(426),
        (true, code) => TlsRedirect::With(code),
    };
}

fn nginx(annotations: &Labels, read: &mut Read) {
    let get = |name: &str| annotations.get(&format!("{NGINX}{name}"));
    let is_on = |name: &str| get(name) == Some("true");
    read.is_canary = is_on("canary");
    read.has_patterns = is_on("use-regex") || get("rewrite-target").is_some();
    if let Some(protocol) = get("backend-protocol") {
        read.backend_tls = matches!(&*protocol.to_ascii_uppercase(), "HTTPS" | "GRPCS");
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

/// Returns a path in the form in which rules are compared: a regular expression matches paths that
/// begin with it.
pub(super) fn path(read: &Read, path: &IngressPath) -> Text {
    let is_pattern = read.has_patterns
        && path.kind == PathKind::ImplementationSpecific
        && path.path.contains(['(', '[', '*', '+', '|', '$', '?', '\\']);
    if is_pattern { format!("{PATTERN}{}", path.path).into() } else { path.path.clone() }
}
