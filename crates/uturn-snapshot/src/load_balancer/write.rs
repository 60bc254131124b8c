//! Writes LoadBalancer documents as JSON, which is YAML too.

use std::time::Duration;

use uturn_model::ingress::PathKind;
use uturn_model::lb::{
    HealthCheck, Listener, PassiveCheck, ProbeSource, Profile, Redirect, Rule, Scheduler, Source,
    Target, TargetKind,
};
use uturn_model::{LoadBalancer, ObjectRef};

/// Writes load balancers as one `List`, which [`super::read_load_balancers`] reads back equal.
pub fn write_load_balancers(balancers: &[LoadBalancer]) -> String {
    let list = map([
        ("apiVersion", text("v1")),
        ("kind", text("List")),
        ("items", list(balancers, balancer)),
    ]);
    let mut out = String::new();
    list.write(&mut out);
    out.push('\n');
    out
}

enum Json {
    Bool(bool),
    Number(u64),
    Text(String),
    List(Vec<Json>),
    /// What is nothing is left out.
    Map(Vec<(&'static str, Option<Json>)>),
}

impl Json {
    fn write(&self, out: &mut String) {
        match self {
            Self::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
            Self::Number(number) => out.push_str(&number.to_string()),
            Self::Text(text) => quote(text, out),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Self::Map(entries) => {
                out.push('{');
                let given = entries.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
                for (at, (key, value)) in given.enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    quote(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // YAML allows fewer characters as they are than JSON does.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn text(text: &(impl ToString + ?Sized)) -> Json {
    Json::Text(text.to_string())
}

fn map<const N: usize>(entries: [(&'static str, Json); N]) -> Json {
    Json::Map(entries.into_iter().map(|(key, value)| (key, Some(value))).collect())
}

fn list<T>(items: &[T], write: fn(&T) -> Json) -> Json {
    Json::List(items.iter().map(write).collect())
}

fn balancer(balancer: &LoadBalancer) -> Json {
    map([
        ("apiVersion", text(super::VERSION)),
        ("kind", text("LoadBalancer")),
        ("metadata", map([("name", text(&balancer.name))])),
        (
            "spec",
            map([
                ("vip", text(&balancer.vip)),
                ("scope", text(&balancer.scope)),
                ("securityGroups", list(&balancer.security_groups, text)),
                ("listeners", list(&balancer.listeners, listener)),
            ]),
        ),
    ])
}

fn listener(listener: &Listener) -> Json {
    map([
        ("port", Json::Number(listener.port.number().into())),
        ("protocol", text(&listener.protocol)),
        ("profile", profile(&listener.profile)),
        ("rules", list(&listener.rules, rule)),
    ])
}

fn profile(profile: &Profile) -> Json {
    let scheduler = match profile.scheduler {
        Scheduler::WeightedRoundRobin => "WRR",
        Scheduler::LeastConnections => "LEAST_CONN",
        Scheduler::SourceHash => "IP_HASH",
    };
    let source = match &profile.source {
        Source::Kept => text("kept"),
        Source::Replaced(range) => text(range),
    };
    Json::Map(vec![
        ("name", Some(text(&profile.name))),
        ("source", Some(source)),
        ("avoidsClient", Some(Json::Bool(profile.avoids_client))),
        ("connectTimeout", Some(time(profile.connect_timeout))),
        ("nextTarget", Some(Json::Bool(profile.next_target))),
        ("scheduler", Some(text(scheduler))),
        ("allDeadAllAlive", Some(Json::Bool(profile.all_dead_all_alive))),
        ("healthCheck", profile.health_check.as_ref().map(health_check)),
        ("passiveCheck", profile.passive_check.as_ref().map(passive_check)),
    ])
}

fn health_check(check: &HealthCheck) -> Json {
    let source = match check.source {
        ProbeSource::Vip => "vip",
        ProbeSource::Reserved => "reserved",
    };
    map([
        ("source", text(source)),
        ("interval", time(check.interval)),
        ("timeout", time(check.timeout)),
        ("rise", Json::Number(check.rise.into())),
        ("fall", Json::Number(check.fall.into())),
    ])
}

fn passive_check(check: &PassiveCheck) -> Json {
    map([("failures", Json::Number(check.failures.into())), ("rest", time(check.rest))])
}

fn time(time: Duration) -> Json {
    match (time.subsec_nanos(), time.subsec_nanos() % 1_000_000) {
        (0, _) => text(&format!("{}s", time.as_secs())),
        (_, 0) => text(&format!("{}ms", time.as_millis())),
        _ => text(&format!("{}ns", time.as_nanos())),
    }
}

fn rule(rule: &Rule) -> Json {
    let path = rule.path.as_ref().map(|(path, kind)| {
        let kind = match kind {
            PathKind::Exact => "Exact",
            PathKind::Prefix => "Prefix",
            PathKind::ImplementationSpecific => "ImplementationSpecific",
        };
        map([("path", text(path)), ("type", text(kind))])
    });
    Json::Map(vec![
        ("host", rule.host.as_ref().map(text)),
        ("path", path),
        ("service", Some(text(&rule.service))),
        ("owner", Some(object(&rule.owner))),
        ("targets", Some(list(&rule.targets, target))),
        ("redirect", rule.redirect.as_ref().map(redirect)),
    ])
}

fn redirect(redirect: &Redirect) -> Json {
    Json::Map(vec![
        ("status", Some(Json::Number(redirect.code.into()))),
        ("tls", Some(Json::Bool(redirect.tls))),
        ("host", redirect.host.as_ref().map(text)),
        ("port", Some(Json::Number(redirect.port.number().into()))),
        ("path", redirect.path.as_ref().map(text)),
    ])
}

fn object(object: &ObjectRef) -> Json {
    Json::Map(vec![
        ("kind", Some(text(&object.kind))),
        ("namespace", object.namespace.as_ref().map(text)),
        ("name", Some(text(&object.name))),
    ])
}

fn target(target: &Target) -> Json {
    let (node_port, pod, node) = match &target.kind {
        TargetKind::NodePort(node) => (Some(node), None, None),
        TargetKind::Pod { pod, node } => (None, pod.as_ref(), node.as_ref()),
    };
    Json::Map(vec![
        ("address", Some(text(&target.address))),
        ("weight", Some(Json::Number(target.weight.into()))),
        ("nodePort", node_port.map(text)),
        ("pod", pod.map(text)),
        ("node", node.map(text)),
    ])
}
