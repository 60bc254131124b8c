//! Which listeners an Ingress asks TKE's controller for, and which of its rules stand where.
//!
//! Mostly there is one: HTTP, or HTTPS where the Ingress has TLS. Annotations make it more:
//!
//! | annotation | what it does |
//! | --- | --- |
//! | `kubernetes.io/ingress.rule-mix: "true"` | each rule stands where `http-rules` and `https-rules` name it (host, path, Service and port), and with HTTPS where neither does |
//! | `kubernetes.io/ingress.rule-mix-both: "true"` | each rule stands at both |
//! | `ingress.cloud.tencent.com/auto-rewrite: "true"` | what stands with HTTPS is redirected there from HTTP |
//! | `ingress.cloud.tencent.com/rewrite-support: "true"` | a `rewrite` in `http-rules` or `https-rules` is a redirect |
//! | `ingress.cloud.tencent.com/listen-ports` | other ports than 80 and 443: `[{"HTTP":80},{"HTTPS":8443}]` |

use serde_json::Value;
use uturn_model::ingress::{Backend, BackendPort, PathKind};
use uturn_model::lb::{ListenerProtocol, Redirect};
use uturn_model::{Ingress, Port, Text};

const MIXED: &str = "kubernetes.io/ingress.rule-mix";
const BOTH: &str = "kubernetes.io/ingress.rule-mix-both";
const HTTP_RULES: &str = "kubernetes.io/ingress.http-rules";
const HTTPS_RULES: &str = "kubernetes.io/ingress.https-rules";
const AUTOMATIC: &str = "ingress.cloud.tencent.com/auto-rewrite";
const CODE: &str = "ingress.cloud.tencent.com/auto-rewrite-code";
const BY_HAND: &str = "ingress.cloud.tencent.com/rewrite-support";
const PORTS: &str = "ingress.cloud.tencent.com/listen-ports";

/// The status of a redirect, where nobody says another.
const FOUND: u16 = 302;

/// A listener that an Ingress asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted<'a> {
    /// The port it listens on.
    pub port: Port,
    /// What it speaks.
    pub protocol: ListenerProtocol,
    /// What it does with which requests, in order.
    pub rules: Vec<WantedRule<'a>>,
}

/// A rule of such a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedRule<'a> {
    /// The host; none means every host.
    pub host: Option<Text>,
    /// The path; none means every path.
    pub path: Option<(Text, PathKind)>,
    /// What it does.
    pub action: Action<'a>,
}

/// What a listener does with a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<'a> {
    /// Hands it to a backend.
    Serve(&'a Backend),
    /// Sends the client elsewhere.
    Redirect(Redirect),
}

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

/// The listeners of an Ingress, HTTP before HTTPS.
pub fn of(ingress: &Ingress) -> Vec<Wanted<'_>> {
    let said = |key: &str| ingress.annotations.is(key, "true");
    let all = rules(ingress);
    let (mut clear, mut under_tls) = (Vec::new(), Vec::new());
    let mut by_hand = [Vec::new(), Vec::new()];
    if said(BOTH) {
        (clear, under_tls) = (all.clone(), all);
    } else if said(MIXED) {
        let [http, https] = [HTTP_RULES, HTTPS_RULES].map(|key| entries(ingress, key));
        for rule in all {
            let names = |list: &Vec<Entry>| list.iter().any(|one| one.names(&rule));
            let (in_clear, is_sealed) = (names(&http), names(&https));
            if in_clear {
                clear.push(rule.clone());
            }
            if is_sealed || !in_clear {
                under_tls.push(rule);
            }
        }
        if said(BY_HAND) {
            by_hand =
                [http, https].map(|list| list.into_iter().filter_map(Entry::rewritten).collect());
        }
    } else if ingress.tls.is_empty() {
        clear = all;
    } else {
        under_tls = all;
    }
    let http = ports(ingress, "HTTP", 80);
    let https = ports(ingress, "HTTPS", 443);
    for (from, rules) in by_hand.into_iter().zip([&mut clear, &mut under_tls]) {
        // Whatever is redirected is not served.
        rules.retain(|one| !from.iter().any(|(host, path, _)| one.is_for(host.as_ref(), path)));
        for (host, path, to) in from {
            let port = to.port.or(https.first().copied());
            let Some(port) = port else { continue };
            let tls = !http.contains(&port);
            let redirect = Redirect { code: FOUND, tls, host: to.host, port, path: to.path };
            let path = Some((path, PathKind::ImplementationSpecific));
            rules.push(WantedRule { host, path, action: Action::Redirect(redirect) });
        }
    }
    if said(AUTOMATIC)
        && !ingress.annotations.is(BY_HAND, "false")
        && let Some(port) = https.first().copied()
    {
        let code = code(ingress);
        let away = |rule: &WantedRule<'_>| WantedRule {
            action: Action::Redirect(Redirect { code, tls: true, host: None, port, path: None }),
            ..rule.clone()
        };
        let is_served = |rule: &&WantedRule<'_>| matches!(rule.action, Action::Serve(_));
        let sent: Vec<_> = under_tls.iter().filter(is_served).map(away).collect();
        clear
            .retain(|one| !sent.iter().any(|two| (&one.host, &one.path) == (&two.host, &two.path)));
        clear.extend(sent);
    }
    let mut wanted = standing(&clear, ListenerProtocol::Http, &http);
    wanted.extend(standing(&under_tls, ListenerProtocol::Https, &https));
    if wanted.is_empty() {
        let (ports, protocol) = match ingress.tls.is_empty() {
            true => (http, ListenerProtocol::Http),
            false => (https, ListenerProtocol::Https),
        };
        let bare = |port| Wanted { port, protocol, rules: Vec::new() };
        wanted.extend(ports.into_iter().map(bare));
    }
    wanted
}

fn standing<'a>(
    rules: &[WantedRule<'a>],
    protocol: ListenerProtocol,
    ports: &[Port],
) -> Vec<Wanted<'a>> {
    let many = if rules.is_empty() { &[] } else { ports };
    many.iter().map(|port| Wanted { port: *port, protocol, rules: rules.to_vec() }).collect()
}

/// Annotations of an Ingress that say which listeners it wants and cannot be read, each with
/// what was expected.
pub fn unread(ingress: &Ingress) -> Vec<(&'static str, &'static str)> {
    let annotations = &ingress.annotations;
    let is_list = |text: &str, is_entry: fn(&Value) -> bool| match serde_json::from_str(text) {
        Ok(Value::Null) => true,
        Ok(Value::Array(all)) => all.iter().all(is_entry),
        _ => false,
    };
    let mut unread = Vec::new();
    for key in [HTTP_RULES, HTTPS_RULES] {
        let text = annotations.get(key).filter(|text| !text.trim().is_empty());
        if text.is_some_and(|text| !is_list(text, |one| entry(one).is_some())) {
            unread.push((key, "a list of {host, path, backend} in JSON"));
        }
    }
    let is_port = |one: &Value| {
        let known = |(name, port): (&String, &Value)| {
            matches!(name.as_str(), "HTTP" | "HTTPS") && number(port).is_some()
        };
        one.as_object().is_some_and(|all| all.iter().all(known))
    };
    if annotations.get(PORTS).is_some_and(|text| !is_list(text, is_port)) {
        unread.push((PORTS, r#"a list such as [{"HTTP":80},{"HTTPS":443}]"#));
    }
    unread
}

fn rules(ingress: &Ingress) -> Vec<WantedRule<'_>> {
    let mut all = Vec::new();
    for rule in &ingress.rules {
        for path in &rule.paths {
            all.push(WantedRule {
                host: rule.host.clone(),
                path: Some((path.path.clone(), path.kind)),
                action: Action::Serve(&path.backend),
            });
        }
    }
    if let Some(backend) = &ingress.default_backend {
        all.push(WantedRule { host: None, path: None, action: Action::Serve(backend) });
    }
    all
}

impl WantedRule<'_> {
    fn is_for(&self, host: Option<&Text>, path: &Text) -> bool {
        let own = self.path.as_ref().map_or("/", |(path, _)| path);
        self.host.as_ref() == host && own == &**path
    }
}

impl Entry {
    /// Whether it names a rule: by host, path, Service and port.
    fn names(&self, rule: &WantedRule<'_>) -> bool {
        let Action::Serve(Backend::Service { name, port }) = &rule.action else { return false };
        let port = match port {
            BackendPort::Number(port) => port.to_string(),
            BackendPort::Name(name) => name.to_string(),
        };
        let same = |(own, own_port): &(Text, Text)| **own == *name.as_str() && **own_port == *port;
        rule.is_for(self.host.as_ref(), &self.path) && self.backend.as_ref().is_some_and(same)
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
        let said = value.get(key)?.as_str()?;
        (!said.is_empty()).then(|| Text::from(said))
    };
    let backend = value.get("backend").and_then(|backend| {
        let port = backend.get("servicePort")?;
        let port = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
        Some((text(backend, "serviceName")?, port.into()))
    });
    let rewrite = value.get("rewrite").filter(|one| one.is_object()).map(|one| Rewrite {
        port: one.get("port").and_then(number),
        host: text(one, "host"),
        path: text(one, "path"),
    });
    let path = text(value, "path").unwrap_or_else(|| "/".into());
    (backend.is_some() || rewrite.is_some()).then(|| Entry {
        host: text(value, "host"),
        path,
        backend,
        rewrite,
    })
}

/// The ports for a protocol, in order.
fn ports(ingress: &Ingress, protocol: &str, usual: u16) -> Vec<Port> {
    let text = ingress.annotations.get(PORTS).unwrap_or_default();
    let all: Value = serde_json::from_str(text).unwrap_or_default();
    let said = all.as_array().into_iter().flatten();
    let said: Vec<Port> = said.filter_map(|one| number(one.get(protocol)?)).collect();
    if said.is_empty() { Port::new(usual).into_iter().collect() } else { said }
}

/// A port, as a number or as text.
fn number(value: &Value) -> Option<Port> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    Port::new(u16::try_from(number).ok()?)
}

fn code(ingress: &Ingress) -> u16 {
    let text = ingress.annotations.get(CODE).unwrap_or_default();
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    let code = said.get("defaultRewriteCode").and_then(Value::as_u64);
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
            unjudged: Vec::new(),
            origin: Origin::file("ingress.yaml"),
        }
    }

    /// Each listener as `80 HTTP: /a, /b → https://host/b`.
    fn shown(ingress: &Ingress) -> Vec<String> {
        let rule = |rule: &WantedRule<'_>| {
            let path = rule.path.as_ref().map_or("", |(path, _)| path);
            match &rule.action {
                Action::Serve(_) => path.to_owned(),
                Action::Redirect(to) => {
                    format!("{path} → {} {}", to.code, to.location("host", path))
                }
            }
        };
        let listener = |one: &Wanted<'_>| {
            let rules: Vec<String> = one.rules.iter().map(rule).collect();
            format!("{} {}: {}", one.port, one.protocol, rules.join(", "))
        };
        of(ingress).iter().map(listener).collect()
    }

    #[test]
    fn without_annotations_there_is_one() {
        assert_eq!(shown(&ingress(&[], &["/"], false)), ["80 HTTP: /"]);
        assert_eq!(shown(&ingress(&[], &["/"], true)), ["443 HTTPS: /"]);
        assert_eq!(shown(&ingress(&[], &[], true)), ["443 HTTPS: "]);
    }

    #[test]
    fn what_stands_under_tls_is_redirected_from_the_clear() {
        let automatic = [(AUTOMATIC, "true"), (CODE, r#"{"defaultRewriteCode":307}"#)];
        let all = shown(&ingress(&automatic, &["/a", "/b"], true));
        assert_eq!(
            all,
            ["80 HTTP: /a → 307 https://host/a, /b → 307 https://host/b", "443 HTTPS: /a, /b"]
        );
        // Nothing stands under TLS.
        assert_eq!(shown(&ingress(&automatic, &["/a"], false)), ["80 HTTP: /a"]);
        let off = [(AUTOMATIC, "true"), (BY_HAND, "false")];
        assert_eq!(shown(&ingress(&off, &["/a"], true)), ["443 HTTPS: /a"]);
    }

    #[test]
    fn mixed_rules_stand_where_they_are_named() {
        let named = r#"[{"path":"/a","backend":{"serviceName":"web","servicePort":"80"}},
            {"path":"/b","backend":{"serviceName":"other","servicePort":"80"}},
            {"path":"/old","rewrite":{"port":"443","path":"/a"}}]"#;
        let mixed = [(MIXED, "true"), (HTTP_RULES, named), (HTTPS_RULES, "null")];
        let all = shown(&ingress(&mixed, &["/a", "/b"], true));
        assert_eq!(all, ["80 HTTP: /a", "443 HTTPS: /b"]);
        let by_hand = [(MIXED, "true"), (HTTP_RULES, named), (BY_HAND, "true")];
        let all = shown(&ingress(&by_hand, &["/a", "/b"], true));
        assert_eq!(all, ["80 HTTP: /a, /old → 302 https://host/a", "443 HTTPS: /b"]);
        let both = [(BOTH, "true"), (PORTS, r#"[{"HTTP":8080},{"HTTPS":"8443"}]"#)];
        let all = shown(&ingress(&both, &["/a"], true));
        assert_eq!(all, ["8080 HTTP: /a", "8443 HTTPS: /a"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let keys = |annotations: &[(&'static str, &str)]| -> Vec<&str> {
            unread(&ingress(annotations, &["/"], false)).into_iter().map(|one| one.0).collect()
        };
        assert_eq!(keys(&[(HTTP_RULES, "[]"), (HTTPS_RULES, "null")]), [""; 0]);
        assert_eq!(keys(&[(HTTP_RULES, r#"[{"path":"/"}]"#)]), [HTTP_RULES]);
        assert_eq!(keys(&[(HTTPS_RULES, "{")]), [HTTPS_RULES]);
        assert_eq!(keys(&[(PORTS, "80,443")]), [PORTS]);
        assert_eq!(keys(&[(PORTS, r#"[{"HTTP":80}]"#)]), [""; 0]);
    }
}
