//! Application Load Balancers, which AWS's own controller makes for Ingresses.

use serde_json::Value;
use uturn_model::ingress::{Backend, IngressPath, PathKind};
use uturn_model::lb::{ListenerProtocol, Profile, Redirect};
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Family, Ingress, Port, Service, Text};

use super::annotations::MANAGES_GROUPS;
use super::{CONTROLLERS, are_pods_default, internal_by_default, open_groups};
use crate::cloud::ingress_product::{IngressProduct, asking, with_stars};
use crate::cloud::product::Targets;
use crate::cloud::{
    Annotation, ByDefault, ClassParameters, HTTP, HTTPS, NoAddress, OpenEnd, RuleAction, ValueKind,
    WantedListener, WantedRule, rules, runs,
};

pub(super) const NAME: &str = "AWS ALB";

/// The prefix of the annotations.
pub(super) const PREFIX: &str = "alb.ingress.kubernetes.io/";

/// The settings of a class, which override the annotations of its Ingresses. The API version of the
/// vendor's managed service has other names for some of them.
pub(super) const CLASS_PARAMETERS: ClassParameters = ClassParameters {
    kind: "IngressClassParams",
    versions: &["elbv2.k8s.aws/v1beta1", "eks.amazonaws.com/v1"],
    fields: &[
        ("scheme", "alb.ingress.kubernetes.io/scheme"),
        ("targetType", "alb.ingress.kubernetes.io/target-type"),
        ("certificateArn", "alb.ingress.kubernetes.io/certificate-arn"),
        ("certificateARNs", "alb.ingress.kubernetes.io/certificate-arn"),
        ("sslRedirectPort", "alb.ingress.kubernetes.io/ssl-redirect"),
        ("inboundCIDRs", "alb.ingress.kubernetes.io/inbound-cidrs"),
        ("prefixListsIDs", "alb.ingress.kubernetes.io/security-group-prefix-lists"),
        ("PrefixListsIDs", "alb.ingress.kubernetes.io/security-group-prefix-lists"),
    ],
};

/// Annotations with which something other than the rules and the targets decides whether a request
/// is answered.
const DECIDES: [&str; 9] = [
    "auth-type",
    "inbound-cidrs",
    "security-group-prefix-lists",
    "mutual-authentication",
    "jwt-validation",
    "enable-frontend-nlb",
    "target-node-labels",
    "use-regex-path-match",
    "conditions.",
];

/// Application Load Balancers.
pub(super) struct Alb;

impl IngressProduct for Alb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn wanted<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>> {
        let redirect = get(ingress, "ssl-redirect").and_then(|port| port.parse().ok());
        let listener = |(protocol, port)| {
            let to_tls = redirect.filter(|_| protocol == ListenerProtocol::Http);
            let rules = match to_tls {
                // If HTTP is redirected, the listener has no other rules.
                Some(to) => vec![WantedRule {
                    host: None,
                    path: None,
                    action: RuleAction::Redirect(Redirect {
                        code: 301,
                        tls: true,
                        host: None,
                        port: to,
                        path: None,
                    }),
                }],
                None => rules(ingress)
                    .into_iter()
                    .filter_map(|rule| acting(ingress, rule, (protocol, port)))
                    .collect(),
            };
            WantedListener { port, protocol, rules }
        };
        listens(ingress).into_iter().map(listener).collect()
    }

    fn path(&self, path: &IngressPath) -> (Text, PathKind) {
        match path.kind {
            PathKind::ImplementationSpecific => with_stars(&path.path, true),
            kind => (path.path.clone(), kind),
        }
    }

    /// The name of a load balancer leads to its interfaces in the subnets, from which it sends.
    fn sends_from_its_address(&self) -> bool {
        true
    }

    fn security_groups<'i>(&self, ingress: &'i Ingress) -> Option<&'i str> {
        get(ingress, "security-groups")
    }

    fn open_end(&self, cluster: &Cluster, ingress: &Ingress) -> Option<OpenEnd> {
        let groups = get(ingress, "security-groups")?;
        let key = format!("{PREFIX}{MANAGES_GROUPS}");
        open_groups(cluster, groups, (&key, get(ingress, MANAGES_GROUPS)), Some((504, 10)))
    }

    fn private_by_default(&self, ingress: &Ingress) -> Option<ByDefault> {
        let key = format!("{PREFIX}scheme");
        get(ingress, "scheme").is_none().then(|| internal_by_default("ALB", &key))
    }

    fn profile(&self, _: &Ingress, family: Family) -> Profile {
        let mut profile = asking(NAME, family, (15, 5));
        // Without a healthy target, all targets get requests.
        profile.panic_threshold = Some(0);
        profile
    }

    fn targets(&self, cluster: &Cluster, ingress: &Ingress, service: &Service) -> Targets {
        let stated = stated_target_type(ingress, service);
        let has_node_ports = service.ports.iter().any(|port| port.node_port.is_some());
        match stated {
            Some("ip") => Targets::Pods,
            Some(_) => Targets::Nodes,
            None if is_of_auto_mode(cluster, ingress) || are_pods_default(cluster) => Targets::Pods,
            // The default type is nodes. A setting of the class can make it pods: only pods can
            // serve a Service without node ports.
            None if has_node_ports => Targets::Nodes,
            None => Targets::Pods,
        }
    }

    /// Nodes as targets need node ports.
    fn refuses(
        &self,
        cluster: &Cluster,
        ingress: &Ingress,
        service: &Service,
    ) -> Option<NoAddress> {
        let has_node_ports = service.ports.iter().any(|port| port.node_port.is_some());
        if has_node_ports || service.kind != ServiceKind::ClusterIp {
            return None;
        }
        let stated = stated_target_type(ingress, service);
        let because = |whose: &str| {
            format!(
                "{NAME}'s targets are nodes ({whose}target-type: instance), and {} of type ClusterIP \
                 has no node port: the controller makes no load balancer",
                service.object()
            )
        };
        match stated {
            Some("instance") => Some(NoAddress { because: because(""), condition: None }),
            Some(_) => None,
            // A setting of the class can make pods the default, and so can an argument.
            None if !ingress.is_pending
                || is_of_auto_mode(cluster, ingress)
                || are_pods_default(cluster) =>
            {
                None
            }
            None => {
                let is_given = runs(cluster, |program| CONTROLLERS.contains(&program));
                let condition =
                    (!is_given).then_some("the controller's default-target-type is instance");
                Some(NoAddress { because: because("the default, "), condition })
            }
        }
    }

    fn with_pods_as_targets(&self) -> Option<(String, &'static str)> {
        Some((format!("{PREFIX}target-type"), "ip"))
    }

    fn is_private(&self, ingress: &Ingress) -> bool {
        get(ingress, "scheme") != Some("internet-facing")
    }

    fn is_dual_stack(&self, ingress: &Ingress) -> bool {
        get(ingress, "ip-address-type").is_some_and(|own| own.starts_with("dualstack"))
    }

    fn reads_action(&self, ingress: &Ingress, name: &str) -> bool {
        action(ingress, name).is_some()
    }

    fn unread<'i>(&self, ingress: &'i Ingress) -> Option<&'i str> {
        let mut keys = ingress.class_settings.iter().chain(ingress.annotations.iter());
        let decides = |key: &str| {
            let own = key.strip_prefix(PREFIX);
            own.is_some_and(|own| DECIDES.iter().any(|name| own.starts_with(name)))
        };
        let off = |key: &str, value: &str| match key.strip_prefix(PREFIX) {
            Some("auth-type") => value == "none",
            Some("enable-frontend-nlb" | "use-regex-path-match") => value == "false",
            Some("inbound-cidrs") => value.split(',').any(|range| range.trim() == "0.0.0.0/0"),
            _ => false,
        };
        keys.find(|(key, value)| decides(key) && !off(key, value.trim())).map(|(key, _)| key)
    }
}

/// Returns the kind of targets that the class, the Service or the Ingress states.
fn stated_target_type<'i>(ingress: &'i Ingress, service: &'i Service) -> Option<&'i str> {
    let key = format!("{PREFIX}target-type");
    let stated = ingress.class_settings.get(&key);
    let stated = stated.or_else(|| service.annotations.get(&key));
    stated.or_else(|| ingress.annotations.get(&key)).map(str::trim)
}

/// The name of the controller of EKS Auto Mode.
pub(super) const AUTO_MODE_CONTROLLER: &str = "eks.amazonaws.com/alb";

/// Returns whether EKS Auto Mode serves an Ingress.
fn is_of_auto_mode(cluster: &Cluster, ingress: &Ingress) -> bool {
    let mut classes = cluster.ingress_classes.values();
    let class = match ingress.class.as_deref() {
        Some(name) => classes.find(|class| class.name.as_str() == name),
        None => classes.find(|class| class.is_default),
    };
    class.is_some_and(|class| *class.controller == *AUTO_MODE_CONTROLLER)
}

fn get<'i>(ingress: &'i Ingress, key: &str) -> Option<&'i str> {
    let key = format!("{PREFIX}{key}");
    let stated = ingress.class_settings.get(&key).or_else(|| ingress.annotations.get(&key));
    stated.map(str::trim)
}

/// Returns the protocols and ports of the listeners: those that are listed, otherwise HTTPS if a
/// certificate is named, or HTTP. A Secret of `spec.tls` is not used.
fn listens(ingress: &Ingress) -> Vec<(ListenerProtocol, Port)> {
    let usual = if get(ingress, "certificate-arn").is_some_and(|names| !names.is_empty()) {
        (ListenerProtocol::Https, HTTPS)
    } else {
        (ListenerProtocol::Http, HTTP)
    };
    let listed = get(ingress, "listen-ports").and_then(|text| serde_json::from_str(text).ok());
    let listed: Vec<Value> = listed.unwrap_or_default();
    let entries = listed.iter().filter_map(Value::as_object).flatten();
    let mut all: Vec<(ListenerProtocol, Port)> = entries
        .filter_map(|(protocol, port)| {
            let protocol = match protocol.as_str() {
                "HTTP" => ListenerProtocol::Http,
                "HTTPS" => ListenerProtocol::Https,
                _ => return None,
            };
            Some((protocol, Port::new(port.as_u64()?.try_into().ok()?)?))
        })
        .collect();
    all.sort();
    all.dedup();
    if all.is_empty() { vec![usual] } else { all }
}

/// Replaces the backend of a rule by the redirect of its action, if it has one. Returns `None` for
/// a redirect to the listener itself: the rule is left out.
fn acting<'i>(
    ingress: &Ingress,
    rule: WantedRule<'i>,
    (protocol, port): (ListenerProtocol, Port),
) -> Option<WantedRule<'i>> {
    let RuleAction::Serve(backend @ Backend::Service { name, .. }) = &rule.action else {
        return Some(rule);
    };
    let found = backend.is_action().then(|| action(ingress, name.as_str())).flatten();
    let Some(sent) = found else { return Some(rule) };
    let tls = sent.tls.unwrap_or(protocol.ends_tls());
    let to = sent.port.unwrap_or(port);
    let is_same = tls == protocol.ends_tls() && to == port;
    if is_same && sent.host.is_none() && sent.path.is_none() {
        return None;
    }
    let redirect = Redirect { code: sent.code, tls, host: sent.host, port: to, path: sent.path };
    Some(WantedRule { action: RuleAction::Redirect(redirect), ..rule })
}

/// A redirect as an action states it. Values that the action omits are taken from the request.
struct Sent {
    code: u16,
    tls: Option<bool>,
    host: Option<Text>,
    port: Option<Port>,
    path: Option<Text>,
}

/// Returns the redirect that an action asks for. Returns `None` for actions of other kinds.
fn action(ingress: &Ingress, name: &str) -> Option<Sent> {
    let action: Value = serde_json::from_str(get(ingress, &format!("actions.{name}"))?).ok()?;
    if field(&action, "type")? != "redirect" {
        return None;
    }
    let config = action.as_object()?.iter().find(|(key, _)| is_key(key, "redirectConfig"))?.1;
    // A placeholder for a part of the request changes that part only if it has more text around it.
    let own = |key: &str, same: &str| field(config, key).filter(|value| *value != same);
    let (host, path) = (own("host", "#{host}"), own("path", "/#{path}"));
    if host.into_iter().chain(path).any(|text| text.contains("#{")) {
        return None;
    }
    let port = match own("port", "#{port}") {
        Some(text) => Some(text.parse().ok()?),
        None => None,
    };
    Some(Sent {
        code: if field(config, "statusCode") == Some("HTTP_302") { 302 } else { 301 },
        tls: own("protocol", "#{protocol}").map(|protocol| protocol == "HTTPS"),
        host: host.map(Text::from),
        port,
        path: path.map(Text::from),
    })
}

/// Returns a field. Its name may be in any case, as the controller accepts each.
fn field<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.as_object()?.iter().find(|(own, _)| is_key(own, key))?.1.as_str()
}

fn is_key(own: &str, key: &str) -> bool {
    own.eq_ignore_ascii_case(key)
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    of("actions.*", ACTION),
    of("auth-type", ValueKind::Words(&["none", "oidc", "cognito"])),
    of("certificate-arn", ValueKind::Names),
    of("conditions.*", ValueKind::Names),
    of("enable-frontend-nlb", ValueKind::Switch),
    of("inbound-cidrs", ValueKind::Names),
    of(
        "ip-address-type",
        ValueKind::Words(&["ipv4", "dualstack", "dualstack-without-public-ipv4"]),
    ),
    of("jwt-validation", ValueKind::Names),
    of("listen-ports", ValueKind::Document { fields: &["HTTP", "HTTPS"], words: &[] }),
    of(MANAGES_GROUPS, ValueKind::Switch),
    of("mutual-authentication", ValueKind::Names),
    of("scheme", ValueKind::Words(&["internal", "internet-facing"])),
    of("security-group-prefix-lists", ValueKind::Names),
    of("security-groups", ValueKind::Names),
    of("ssl-redirect", ValueKind::Names),
    of("target-node-labels", ValueKind::Names),
    of("target-type", ValueKind::Words(&["instance", "ip"])),
    of("use-regex-path-match", ValueKind::Switch),
];

/// The value of an action. In its strings, `#{host}` is the host of the request.
const ACTION: ValueKind = ValueKind::Document {
    fields: &["type", "redirectConfig", "host", "path", "port", "protocol", "query", "statusCode"],
    words: &[
        "redirect",
        "forward",
        "fixed-response",
        "HTTP",
        "HTTPS",
        "HTTP_301",
        "HTTP_302",
        "host",
        "path",
        "port",
        "protocol",
        "query",
    ],
};

const fn of(name: &'static str, holds: ValueKind) -> Annotation {
    Annotation::below(PREFIX, name, holds)
}
