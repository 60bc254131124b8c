//! The listeners that an Ingress asks TKE's controller for, and the rules that each listener
//! serves.
//!
//! Without annotations there is one listener: HTTP, or HTTPS if the Ingress has TLS.
//!
//! | annotation | what it does |
//! | --- | --- |
//! | `kubernetes.io/ingress.rule-mix: "true"` | a rule is served with HTTP or HTTPS if `http-rules` or `https-rules` names it (by host, path, Service and port), and with HTTPS if neither does |
//! | `kubernetes.io/ingress.rule-mix-both: "true"` | each rule is served with both |
//! | `ingress.cloud.tencent.com/auto-rewrite: "true"` | HTTP redirects to what is served with HTTPS |
//! | `ingress.cloud.tencent.com/rewrite-support: "true"` | a `rewrite` in `http-rules` or `https-rules` is a redirect |
//! | `ingress.cloud.tencent.com/listen-ports` | other ports than 80 and 443: `[{"HTTP":80},{"HTTPS":8443}]` |

use serde_json::Value;
use uturn_model::ingress::{Backend, BackendPort, PathKind};
use uturn_model::lb::{ListenerProtocol, Redirect};
use uturn_model::{Ingress, Port, Text};

use super::annotations::{
    AUTO_REWRITE, AUTO_REWRITE_CODE, BOTH, HTTP_RULES, HTTPS_RULES, LISTEN_PORTS, MIXED,
    REWRITE_SUPPORT,
};
use crate::cloud::{HTTP, HTTPS, RuleAction, WantedListener, WantedRule, rules};

/// The status of a redirect unless an annotation states another.
const FOUND: u16 = 302;

/// An entry of `http-rules` or `https-rules`.
struct Entry {
    host: Option<Text>,
    path: Text,
    backend: Option<(Text, Text)>,
    rewrite: Option<Rewrite>,
}

struct Rewrite {
    port: Option<Port>,
    host: Option<Text>,
    path: Option<Text>,
}

/// Returns the listeners of an Ingress, HTTP before HTTPS.
pub(super) fn wanted(ingress: &Ingress) -> Vec<WantedListener<'_>> {
    let is_set = |key: &str| ingress.annotations.is(key, "true");
    let all = rules(ingress);
    let (mut http_rules, mut https_rules) = (Vec::new(), Vec::new());
    let mut by_hand = [Vec::new(), Vec::new()];
    if is_set(BOTH) {
        (http_rules, https_rules) = (all.clone(), all);
    } else if is_set(MIXED) {
        let [http, https] = [HTTP_RULES, HTTPS_RULES].map(|key| entries(ingress, key));
        for rule in all {
            let names = |list: &Vec<Entry>| list.iter().any(|entry| entry.names(&rule));
            let (in_http, in_https) = (names(&http), names(&https));
            if in_http {
                http_rules.push(rule.clone());
            }
            if in_https || !in_http {
                https_rules.push(rule);
            }
        }
        if is_set(REWRITE_SUPPORT) {
            by_hand =
                [http, https].map(|list| list.into_iter().filter_map(Entry::rewritten).collect());
        }
    } else if ingress.tls.is_empty() {
        http_rules = all;
    } else {
        https_rules = all;
    }
    let http = ports(ingress, "HTTP", HTTP);
    let https = ports(ingress, "HTTPS", HTTPS);
    for (from, rules) in by_hand.into_iter().zip([&mut http_rules, &mut https_rules]) {
        // A rule that is redirected is not served.
        rules.retain(|rule| !from.iter().any(|(host, path, _)| is_for(rule, host.as_ref(), path)));
        for (host, path, to) in from {
            let port = to.port.or(https.first().copied());
            let Some(port) = port else { continue };
            let tls = !http.contains(&port);
            let redirect = Redirect { code: FOUND, tls, host: to.host, port, path: to.path };
            let path = Some((path, PathKind::ImplementationSpecific));
            rules.push(WantedRule { host, path, action: RuleAction::Redirect(redirect) });
        }
    }
    if is_set(AUTO_REWRITE)
        && !ingress.annotations.is(REWRITE_SUPPORT, "false")
        && let Some(port) = https.first().copied()
    {
        let code = code(ingress);
        let away = |rule: &WantedRule<'_>| WantedRule {
            action: RuleAction::Redirect(Redirect {
                code,
                tls: true,
                host: None,
                port,
                path: None,
            }),
            ..rule.clone()
        };
        let is_served = |rule: &&WantedRule<'_>| matches!(rule.action, RuleAction::Serve(_));
        let sent: Vec<_> = https_rules.iter().filter(is_served).map(away).collect();
        http_rules.retain(|rule| {
            !sent.iter().any(|away| (&rule.host, &rule.path) == (&away.host, &away.path))
        });
        http_rules.extend(sent);
    }
    let mut wanted = serving(&http_rules, ListenerProtocol::Http, &http);
    wanted.extend(serving(&https_rules, ListenerProtocol::Https, &https));
    if wanted.is_empty() {
        let (ports, protocol) = if ingress.tls.is_empty() {
            (http, ListenerProtocol::Http)
        } else {
            (https, ListenerProtocol::Https)
        };
        let bare = |port| WantedListener { port, protocol, rules: Vec::new() };
        wanted.extend(ports.into_iter().map(bare));
    }
    wanted
}

/// Makes a listener with these rules at each port. Makes none if there are no rules.
fn serving<'a>(
    rules: &[WantedRule<'a>],
    protocol: ListenerProtocol,
    ports: &[Port],
) -> Vec<WantedListener<'a>> {
    let many = if rules.is_empty() { &[] } else { ports };
    many.iter()
        .map(|port| WantedListener { port: *port, protocol, rules: rules.to_vec() })
        .collect()
}

/// Returns the annotations about listeners that cannot be read, each with a description of the
/// expected value.
pub(super) fn unreadable(ingress: &Ingress) -> Vec<(&'static str, &'static str)> {
    let annotations = &ingress.annotations;
    let is_list = |text: &str, is_entry: fn(&Value) -> bool| match serde_json::from_str(text) {
        Ok(Value::Null) => true,
        Ok(Value::Array(all)) => all.iter().all(is_entry),
        _ => false,
    };
    let mut unreadable = Vec::new();
    for key in [HTTP_RULES, HTTPS_RULES] {
        let text = annotations.get(key).filter(|text| !text.trim().is_empty());
        if text.is_some_and(|text| !is_list(text, |value| entry(value).is_some())) {
            unreadable.push((key, "a list of {host, path, backend} in JSON"));
        }
    }
    let is_port = |value: &Value| {
        let known = |(name, port): (&String, &Value)| {
            matches!(name.as_str(), "HTTP" | "HTTPS") && number(port).is_some()
        };
        value.as_object().is_some_and(|all| all.iter().all(known))
    };
    if annotations.get(LISTEN_PORTS).is_some_and(|text| !is_list(text, is_port)) {
        unreadable.push((LISTEN_PORTS, r#"a list such as [{"HTTP":80},{"HTTPS":443}]"#));
    }
    unreadable
}

/// Returns whether a rule is for exactly this host and path.
fn is_for(rule: &WantedRule<'_>, host: Option<&Text>, path: &Text) -> bool {
    let own = rule.path.as_ref().map_or("/", |(path, _)| path);
    rule.host.as_ref() == host && own == &**path
}

impl Entry {
    /// Returns whether the entry names a rule: by host, path, Service and port.
    fn names(&self, rule: &WantedRule<'_>) -> bool {
        let RuleAction::Serve(Backend::Service { name, port }) = &rule.action else { return false };
        let port = match port {
            BackendPort::Number(port) => port.to_string(),
            BackendPort::Name(name) => name.to_string(),
        };
        let same = |(own, own_port): &(Text, Text)| **own == *name.as_str() && **own_port == *port;
        is_for(rule, self.host.as_ref(), &self.path) && self.backend.as_ref().is_some_and(same)
    }

    fn rewritten(self) -> Option<(Option<Text>, Text, Rewrite)> {
        Some((self.host, self.path, self.rewrite?))
    }
}

fn entries(ingress: &Ingress, key: &str) -> Vec<Entry> {
    let text = ingress.annotations.get(key).unwrap_or_default();
    let all: Value = serde_json::from_str(text).unwrap_or_default();
    all.as_array().into_iter().flatten().filter_map(entry).collect()
}

fn entry(value: &Value) -> Option<Entry> {
    let text = |value: &Value, key: &str| {
        let text = value.get(key)?.as_str()?;
        (!text.is_empty()).then(|| Text::from(text))
    };
    let backend = value.get("backend").and_then(|backend| {
        let port = backend.get("servicePort")?;
        let port = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
        Some((text(backend, "serviceName")?, port.into()))
    });
    let rewrite = value.get("rewrite").filter(|target| target.is_object()).map(|target| Rewrite {
        port: target.get("port").and_then(number),
        host: text(target, "host"),
        path: text(target, "path"),
    });
    let path = text(value, "path").unwrap_or_else(|| "/".into());
    (backend.is_some() || rewrite.is_some()).then(|| Entry {
        host: text(value, "host"),
        path,
        backend,
        rewrite,
    })
}

/// Returns the ports for a protocol, in order.
fn ports(ingress: &Ingress, protocol: &str, usual: Port) -> Vec<Port> {
    let text = ingress.annotations.get(LISTEN_PORTS).unwrap_or_default();
    let all: Value = serde_json::from_str(text).unwrap_or_default();
    let stated = all.as_array().into_iter().flatten();
    let stated: Vec<Port> = stated.filter_map(|entry| number(entry.get(protocol)?)).collect();
    if stated.is_empty() { vec![usual] } else { stated }
}

/// Reads a port, as a number or as text.
fn number(value: &Value) -> Option<Port> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    Port::new(u16::try_from(number).ok()?)
}

fn code(ingress: &Ingress) -> u16 {
    let text = ingress.annotations.get(AUTO_REWRITE_CODE).unwrap_or_default();
    let stated: Value = serde_json::from_str(text).unwrap_or_default();
    let code = stated.get("defaultRewriteCode").and_then(Value::as_u64);
    code.and_then(|code| u16::try_from(code).ok()).unwrap_or(FOUND)
}

#[cfg(test)]
mod tests {
    use uturn_model::ingress::{IngressPath, IngressRule, Tls};
    use uturn_model::{Labels, NamespacedName, Origin};

    use super::*;

    fn ingress(annotations: &[(&str, &str)], paths: &[&str], has_tls: bool) -> Ingress {
        let path = |path: &&str| IngressPath {
            path: (*path).into(),
            kind: PathKind::Prefix,
            backend: Backend::Service {
                name: "web".parse().unwrap(),
                port: BackendPort::Number(Port::new(80).unwrap()),
            },
        };
        let tls = Tls { hosts: Vec::new(), secret: None };
        Ingress {
            name: NamespacedName::new("shop", "web").unwrap(),
            annotations: annotations.iter().copied().collect::<Labels>(),
            class: None,
            default_backend: None,
            tls: has_tls.then_some(tls).into_iter().collect(),
            rules: vec![IngressRule { host: None, paths: paths.iter().map(path).collect() }],
            load_balancer: Vec::new(),
            controller: None,
            possible_controllers: Vec::new(),
            is_pending: false,
            unserved: None,
            class_settings: Labels::new(),
            product: None,
            route: None,
            unjudged: Vec::new(),
            origin: Origin::file("ingress.yaml"),
        }
    }

    /// Formats each listener as `80 HTTP: /a, /b → https://host/b`.
    fn shown(ingress: &Ingress) -> Vec<String> {
        let rule = |rule: &WantedRule<'_>| {
            let path = rule.path.as_ref().map_or("", |(path, _)| path);
            match &rule.action {
                RuleAction::Serve(_) => path.to_owned(),
                RuleAction::Redirect(to) => {
                    format!("{path} → {} {}", to.code, to.location("host", path))
                }
            }
        };
        let listener = |listener: &WantedListener<'_>| {
            let rules: Vec<String> = listener.rules.iter().map(rule).collect();
            format!("{} {}: {}", listener.port, listener.protocol, rules.join(", "))
        };
        wanted(ingress).iter().map(listener).collect()
    }

    #[test]
    fn without_annotations_there_is_one() {
        assert_eq!(shown(&ingress(&[], &["/"], false)), ["80 HTTP: /"]);
        assert_eq!(shown(&ingress(&[], &["/"], true)), ["443 HTTPS: /"]);
        assert_eq!(shown(&ingress(&[], &[], true)), ["443 HTTPS: "]);
    }

    #[test]
    fn what_is_served_with_https_is_redirected_from_http() {
        let automatic =
            [(AUTO_REWRITE, "true"), (AUTO_REWRITE_CODE, r#"{"defaultRewriteCode":307}"#)];
        let all = shown(&ingress(&automatic, &["/a", "/b"], true));
        assert_eq!(
            all,
            ["80 HTTP: /a → 307 https://host/a, /b → 307 https://host/b", "443 HTTPS: /a, /b"]
        );
        // Nothing is served with HTTPS.
        assert_eq!(shown(&ingress(&automatic, &["/a"], false)), ["80 HTTP: /a"]);
        let off = [(AUTO_REWRITE, "true"), (REWRITE_SUPPORT, "false")];
        assert_eq!(shown(&ingress(&off, &["/a"], true)), ["443 HTTPS: /a"]);
    }

    #[test]
    fn mixed_rules_are_served_where_they_are_named() {
        let named = r#"[{"path":"/a","backend":{"serviceName":"web","servicePort":"80"}},
            {"path":"/b","backend":{"serviceName":"other","servicePort":"80"}},
            {"path":"/old","rewrite":{"port":"443","path":"/a"}}]"#;
        let mixed = [(MIXED, "true"), (HTTP_RULES, named), (HTTPS_RULES, "null")];
        let all = shown(&ingress(&mixed, &["/a", "/b"], true));
        assert_eq!(all, ["80 HTTP: /a", "443 HTTPS: /b"]);
        let by_hand = [(MIXED, "true"), (HTTP_RULES, named), (REWRITE_SUPPORT, "true")];
        let all = shown(&ingress(&by_hand, &["/a", "/b"], true));
        assert_eq!(all, ["80 HTTP: /a, /old → 302 https://host/a", "443 HTTPS: /b"]);
        let both = [(BOTH, "true"), (LISTEN_PORTS, r#"[{"HTTP":8080},{"HTTPS":"8443"}]"#)];
        let all = shown(&ingress(&both, &["/a"], true));
        assert_eq!(all, ["8080 HTTP: /a", "8443 HTTPS: /a"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let keys = |annotations: &[(&'static str, &str)]| -> Vec<&str> {
            unreadable(&ingress(annotations, &["/"], false))
                .into_iter()
                .map(|(key, _)| key)
                .collect()
        };
        assert_eq!(keys(&[(HTTP_RULES, "[]"), (HTTPS_RULES, "null")]), [""; 0]);
        assert_eq!(keys(&[(HTTP_RULES, r#"[{"path":"/"}]"#)]), [HTTP_RULES]);
        assert_eq!(keys(&[(HTTPS_RULES, "{")]), [HTTPS_RULES]);
        assert_eq!(keys(&[(LISTEN_PORTS, "80,443")]), [LISTEN_PORTS]);
        assert_eq!(keys(&[(LISTEN_PORTS, r#"[{"HTTP":80}]"#)]), [""; 0]);
    }
}
