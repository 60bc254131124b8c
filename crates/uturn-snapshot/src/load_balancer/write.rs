//! Writes LoadBalancer documents as JSON, which is YAML too.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;
use uturn_model::ingress::PathKind;
use uturn_model::{LoadBalancer, ObjectRef, lb};

/// Writes load balancers as one `List`, which [`super::read_load_balancers`] reads back equal.
pub fn write_load_balancers(balancers: &[LoadBalancer]) -> String {
    let list = List {
        api_version: "v1",
        kind: "List",
        items: balancers.iter().map(Document::from).collect(),
    };
    let mut bytes = Vec::new();
    list.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, YamlToo))
        .expect("memory takes all that is written, and all keys are text");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("it is written from texts")
}

/// Compact JSON that a YAML reader takes too: YAML allows fewer characters unescaped.
struct YamlToo;

impl Formatter for YamlToo {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let is_refused =
            |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
        for part in fragment.split_inclusive(is_refused) {
            let refused = part.chars().next_back().filter(|c| is_refused(*c));
            let plain = &part[..part.len() - refused.map_or(0, char::len_utf8)];
            writer.write_all(plain.as_bytes())?;
            if let Some(c) = refused {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
        }
        Ok(())
    }
}

/// Writes a value as the text that it displays.
fn text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Document<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    vip: String,
    #[serde(serialize_with = "text")]
    scope: lb::Scope,
    security_groups: Vec<&'a str>,
    listeners: Vec<Listener<'a>>,
}

impl<'a> From<&'a LoadBalancer> for Document<'a> {
    fn from(balancer: &'a LoadBalancer) -> Self {
        let LoadBalancer { name, vip, scope, security_groups, listeners } = balancer;
        Self {
            api_version: super::VERSION,
            kind: "LoadBalancer",
            metadata: Metadata { name },
            spec: Spec {
                vip: vip.to_string(),
                scope: *scope,
                security_groups: security_groups.iter().map(|name| &**name).collect(),
                listeners: listeners.iter().map(Listener::from).collect(),
            },
        }
    }
}

#[derive(Serialize)]
struct Listener<'a> {
    port: u16,
    #[serde(serialize_with = "text")]
    protocol: lb::ListenerProtocol,
    profile: Profile<'a>,
    rules: Vec<Rule<'a>>,
}

impl<'a> From<&'a lb::Listener> for Listener<'a> {
    fn from(listener: &'a lb::Listener) -> Self {
        let lb::Listener { port, protocol, profile, rules } = listener;
        Self {
            port: port.number(),
            protocol: *protocol,
            profile: Profile::from(profile),
            rules: rules.iter().map(Rule::from).collect(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    name: &'a str,
    source: String,
    avoids_client: bool,
    connect_timeout: String,
    next_target: bool,
    scheduler: &'static str,
    all_dead_all_alive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_check: Option<HealthCheck>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passive_check: Option<PassiveCheck>,
}

impl<'a> From<&'a lb::Profile> for Profile<'a> {
    fn from(profile: &'a lb::Profile) -> Self {
        let lb::Profile {
            name,
            source,
            avoids_client,
            connect_timeout,
            next_target,
            scheduler,
            all_dead_all_alive,
            health_check,
            passive_check,
        } = profile;
        Self {
            name,
            source: match source {
                lb::Source::Kept => "kept".to_owned(),
                lb::Source::Replaced(range) => range.to_string(),
            },
            avoids_client: *avoids_client,
            connect_timeout: duration(*connect_timeout),
            next_target: *next_target,
            scheduler: match scheduler {
                lb::Scheduler::WeightedRoundRobin => "WRR",
                lb::Scheduler::LeastConnections => "LEAST_CONN",
                lb::Scheduler::SourceHash => "IP_HASH",
            },
            all_dead_all_alive: *all_dead_all_alive,
            health_check: health_check.as_ref().map(HealthCheck::from),
            passive_check: passive_check.as_ref().map(PassiveCheck::from),
        }
    }
}

#[derive(Serialize)]
struct HealthCheck {
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<ProbeRanges>,
    interval: String,
    timeout: String,
    rise: u32,
    fall: u32,
}

impl From<&lb::HealthCheck> for HealthCheck {
    fn from(check: &lb::HealthCheck) -> Self {
        let lb::HealthCheck { source, interval, timeout, rise, fall } = check;
        Self {
            source: match source {
                lb::ProbeSource::Vip => "vip",
                lb::ProbeSource::Reserved(_) => "reserved",
            },
            ranges: match source {
                lb::ProbeSource::Vip => None,
                lb::ProbeSource::Reserved(lb::ProbeRanges { v4, v6 }) => {
                    Some(ProbeRanges { v4: v4.to_string(), v6: v6.to_string() })
                }
            },
            interval: duration(*interval),
            timeout: duration(*timeout),
            rise: *rise,
            fall: *fall,
        }
    }
}

#[derive(Serialize)]
struct ProbeRanges {
    v4: String,
    v6: String,
}

#[derive(Serialize)]
struct PassiveCheck {
    failures: u32,
    rest: String,
}

impl From<&lb::PassiveCheck> for PassiveCheck {
    fn from(check: &lb::PassiveCheck) -> Self {
        let lb::PassiveCheck { failures, rest } = check;
        Self { failures: *failures, rest: duration(*rest) }
    }
}

fn duration(time: Duration) -> String {
    match (time.subsec_nanos(), time.subsec_nanos() % 1_000_000) {
        (0, _) => format!("{}s", time.as_secs()),
        (_, 0) => format!("{}ms", time.as_millis()),
        _ => format!("{}ns", time.as_nanos()),
    }
}

#[derive(Serialize)]
struct Rule<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Path<'a>>,
    service: String,
    owner: Object<'a>,
    targets: Vec<Target<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<Redirect<'a>>,
}

impl<'a> From<&'a lb::Rule> for Rule<'a> {
    fn from(rule: &'a lb::Rule) -> Self {
        let lb::Rule { host, path, service, owner, targets, redirect } = rule;
        Self {
            host: host.as_deref(),
            path: path.as_ref().map(|(path, kind)| Path {
                path,
                kind: match kind {
                    PathKind::Exact => "Exact",
                    PathKind::Prefix => "Prefix",
                    PathKind::ImplementationSpecific => "ImplementationSpecific",
                },
            }),
            service: service.to_string(),
            owner: Object::from(owner),
            targets: targets.iter().map(Target::from).collect(),
            redirect: redirect.as_ref().map(Redirect::from),
        }
    }
}

#[derive(Serialize)]
struct Path<'a> {
    path: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Object<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> From<&'a ObjectRef> for Object<'a> {
    fn from(object: &'a ObjectRef) -> Self {
        let ObjectRef { kind, namespace, name } = object;
        Self {
            kind: kind.as_str(),
            namespace: namespace.as_ref().map(uturn_model::Name::as_str),
            name,
        }
    }
}

#[derive(Serialize)]
struct Redirect<'a> {
    status: u16,
    tls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

impl<'a> From<&'a lb::Redirect> for Redirect<'a> {
    fn from(redirect: &'a lb::Redirect) -> Self {
        let lb::Redirect { code, tls, host, port, path } = redirect;
        Self {
            status: *code,
            tls: *tls,
            host: host.as_deref(),
            port: port.number(),
            path: path.as_deref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    address: String,
    weight: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_port: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
}

impl<'a> From<&'a lb::Target> for Target<'a> {
    fn from(target: &'a lb::Target) -> Self {
        let lb::Target { address, weight, kind } = target;
        let (node_port, pod, node) = match kind {
            lb::TargetKind::NodePort(node) => (Some(node), None, None),
            lb::TargetKind::Pod { pod, node } => (None, pod.as_ref(), node.as_ref()),
        };
        Self {
            address: address.to_string(),
            weight: *weight,
            node_port: node_port.map(uturn_model::Name::as_str),
            pod: pod.map(ToString::to_string),
            node: node.map(uturn_model::Name::as_str),
        }
    }
}
