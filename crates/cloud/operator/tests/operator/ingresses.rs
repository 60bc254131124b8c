//! Ingresses: where their rules are served, and what becomes of that when they change.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uturn_model::Cluster;
use uturn_operator::clb::Certificate;
use uturn_operator::environment::{CertificateSecret, Environment};
use uturn_operator::event::Event;

use crate::held;
use crate::rich::RICH;
use crate::stage::{Stage, cluster, environment};

/// An Ingress of the Services `web` and `api`.
struct Written {
    name: &'static str,
    annotations: Vec<(&'static str, String)>,
    spec: Value,
}

fn backend(service: &str) -> Value {
    json!({ "service": { "name": service, "port": { "number": 80 } } })
}

fn rule(host: &str, path: &str, service: &str) -> Value {
    let mut rule = json!({ "http": { "paths": [
        { "path": path, "pathType": "ImplementationSpecific", "backend": backend(service) }] } });
    if !host.is_empty() {
        rule["host"] = host.into();
    }
    rule
}

fn ingress(name: &'static str, rules: &[Value]) -> Written {
    Written { name, annotations: Vec::new(), spec: json!({ "rules": rules }) }
}

impl Written {
    fn note(mut self, key: &'static str, value: &(impl ToString + ?Sized)) -> Self {
        self.annotations.push((key, value.to_string()));
        self
    }

    fn tls(mut self, entries: &Value) -> Self {
        self.spec["tls"] = entries.clone();
        self
    }

    fn class(mut self, class: &str) -> Self {
        self.spec["ingressClassName"] = class.into();
        self
    }
}

/// The nodes and the Services `web` and `api`, with these Ingresses.
fn cluster_of(ingresses: &[Written]) -> Cluster {
    let mut text = RICH.to_owned();
    for ingress in ingresses {
        let notes: BTreeMap<_, _> = ingress.annotations.iter().cloned().collect();
        let value = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": { "name": ingress.name, "namespace": "shop", "annotations": notes },
            "spec": ingress.spec });
        text.push_str(&format!("---\n{value}\n"));
    }
    let mut cluster = cluster(&text);
    cluster.services.retain(|name, _| ["web", "api"].contains(&name.name.as_str()));
    let names: Vec<&str> = ingresses.iter().map(|ingress| ingress.name).collect();
    cluster.ingresses.retain(|name, _| names.contains(&name.name.as_str()));
    cluster
}

/// What the controllers know, with certificates in these Secrets.
fn known(cluster: &Cluster, secrets: &[(&str, &str)]) -> Environment {
    let mut environment = environment(cluster);
    for (name, id) in secrets {
        let certificate = Certificate { server: (*id).to_owned(), authority: None };
        let secret = CertificateSecret::Certificate(certificate);
        environment.secrets.insert(format!("shop/{name}").parse().unwrap(), secret);
    }
    environment
}

/// Settles twice: at rest nothing is written.
fn settle(stage: &Stage, cluster: &Cluster, environment: &Environment) -> Vec<Event> {
    let events = stage.settle(cluster, environment);
    stage.take_log();
    stage.settle(cluster, environment);
    assert_eq!(stage.take_log(), [""; 0]);
    events
}

fn balancers(stage: &Stage) -> Vec<Value> {
    let answer = stage.by_hand("DescribeLoadBalancers", json!({ "Limit": 100 }));
    answer["LoadBalancerSet"].as_array().unwrap().clone()
}

fn listeners(stage: &Stage, lb: &Value) -> Vec<Value> {
    let id = &lb["LoadBalancerId"];
    let answer = stage.by_hand("DescribeListeners", json!({ "LoadBalancerId": id }));
    let mut listeners = answer["Listeners"].as_array().unwrap().clone();
    listeners.sort_by_key(|listener| listener["Port"].as_u64());
    listeners
}

/// The listeners of the only load balancer: port, protocol, and for each rule its place and
/// whether it redirects.
fn shown(stage: &Stage) -> Vec<String> {
    let all = balancers(stage);
    assert_eq!(all.len(), 1, "{all:#?}");
    let vip = all[0]["LoadBalancerVips"][0].as_str().unwrap().to_owned();
    let rule = |rule: &Value| {
        let domain = rule["Domain"].as_str().unwrap().replace(&vip, "VIP");
        let to = &rule["RewriteTarget"]["TargetLocationId"];
        let away = if to.as_str().is_none_or(str::is_empty) { "" } else { " away" };
        format!("{domain}{}{away}", rule["Url"].as_str().unwrap())
    };
    let listener = |listener: &Value| {
        let rules = listener["Rules"].as_array();
        let mut rules: Vec<String> = rules.into_iter().flatten().map(rule).collect();
        rules.sort();
        let protocol = listener["Protocol"].as_str().unwrap();
        format!("{} {protocol}: {}", listener["Port"], rules.join(", "))
    };
    listeners(stage, &all[0]).iter().map(listener).collect()
}

fn codes(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.code).collect()
}

const PORTS: &str = "ingress.cloud.tencent.com/listen-ports";
const MIX: &str = "kubernetes.io/ingress.rule-mix";
const HTTP_RULES: &str = "kubernetes.io/ingress.http-rules";
const HTTPS_RULES: &str = "kubernetes.io/ingress.https-rules";
const REWRITE: &str = "ingress.cloud.tencent.com/auto-rewrite";
const SUPPORT: &str = "ingress.cloud.tencent.com/rewrite-support";

fn entry(host: &str, path: &str, service: &str) -> Value {
    json!({ "host": host, "path": path,
        "backend": { "serviceName": service, "servicePort": "80" } })
}

#[test]
fn rules_are_served_where_annotations_say() {
    let stage = Stage::new();
    let id = stage.certificate();
    let secrets = [("cert", id.as_str())];
    let rules = [rule("m.example.com", "/", "web"), rule("m.example.com", "/api", "api")];
    let made = || ingress("mixed", &rules);
    let tls = json!([{ "secretName": "cert" }]);
    let http = json!([entry("m.example.com", "/", "web")]);
    let https = json!([entry("m.example.com", "/api", "api")]);
    let both = "m.example.com/, m.example.com/api";
    let away = "m.example.com/ away, m.example.com/api away";
    let on = "true";
    let cases: Vec<(Written, Vec<String>)> = vec![
        (made(), vec![format!("80 HTTP: {both}")]),
        (made().tls(&tls), vec![format!("443 HTTPS: {both}")]),
        (
            made().tls(&tls).note(MIX, on).note(HTTP_RULES, &http).note(HTTPS_RULES, &https),
            vec!["80 HTTP: m.example.com/".into(), "443 HTTPS: m.example.com/api".into()],
        ),
        // A rule that neither names is served with HTTPS.
        (
            made().tls(&tls).note(MIX, on).note(HTTP_RULES, "null").note(HTTPS_RULES, "null"),
            vec![format!("443 HTTPS: {both}")],
        ),
        (
            made().tls(&tls).note("kubernetes.io/ingress.rule-mix-both", on),
            vec![format!("80 HTTP: {both}"), format!("443 HTTPS: {both}")],
        ),
        (
            made().tls(&tls).note(REWRITE, on),
            vec![format!("80 HTTP: {away}"), format!("443 HTTPS: {both}")],
        ),
        (
            made().tls(&tls).note(REWRITE, on).note(PORTS, r#"[{"HTTP":8080},{"HTTPS":8443}]"#),
            vec![format!("8080 HTTP: {away}"), format!("8443 HTTPS: {both}")],
        ),
        (
            made().tls(&tls).note(REWRITE, on).note(SUPPORT, "false"),
            vec![format!("443 HTTPS: {both}")],
        ),
        (
            made().tls(&tls).note(MIX, on).note(SUPPORT, on).note(HTTPS_RULES, &https).note(
                HTTP_RULES,
                &json!([{ "host": "m.example.com", "path": "/old", "rewrite": {
                    "port": 443, "host": "m.example.com", "path": "/api" } }]),
            ),
            vec!["80 HTTP: m.example.com/old away".into(), format!("443 HTTPS: {both}")],
        ),
    ];
    // Each is what the one before becomes, and what a new one is.
    for (written, expected) in cases {
        let cluster = cluster_of(&[written]);
        let environment = known(&cluster, &secrets);
        assert_eq!(settle(&stage, &cluster, &environment), []);
        assert_eq!(shown(&stage), expected);
    }
}

/// The certificates by domain, as a listener has them.
fn certificates(stage: &Stage) -> BTreeMap<String, String> {
    let lb = &balancers(stage)[0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = BTreeMap::new();
    for listener in listeners(stage, lb).iter().filter(|listener| listener["Port"] == 443) {
        if listener["SniSwitch"] == 0 {
            all.insert("all".to_owned(), text(&listener["Certificate"]["CertId"]));
        }
        for rule in listener["Rules"].as_array().into_iter().flatten() {
            if listener["SniSwitch"] == 1 {
                all.insert(text(&rule["Domain"]), text(&rule["Certificate"]["CertId"]));
            }
        }
    }
    all
}

#[test]
fn hosts_have_the_certificates_of_their_secrets() {
    let stage = Stage::new();
    let [a, wild, default, new] = [(); 4].map(|()| stage.certificate());
    let rules =
        ["a.example.com", "b.example.com", "c.other.com"].map(|host| rule(host, "/", "web"));
    let made = || {
        ingress("tls", &rules).tls(&json!([
            { "hosts": ["a.example.com"], "secretName": "a" },
            { "hosts": ["*.example.com"], "secretName": "wild" },
            { "secretName": "default" },
        ]))
    };
    let cluster = cluster_of(&[made()]);
    let ids = |a: &str| {
        let pairs = [("a.example.com", a), ("b.example.com", &wild), ("c.other.com", &default)];
        pairs.map(|(host, id)| (host.to_owned(), id.to_owned())).into_iter().collect()
    };
    let secrets = [("a", a.as_str()), ("wild", &wild), ("default", &default)];
    assert_eq!(settle(&stage, &cluster, &known(&cluster, &secrets)), []);
    assert_eq!(certificates(&stage), ids(&a));

    // A Secret names another certificate: only its host changes, and the old one stays, which is
    // the user's.
    let secrets = [("a", new.as_str()), ("wild", &wild), ("default", &default)];
    stage.take_log();
    let events = stage.settle(&cluster, &known(&cluster, &secrets));
    let calls = stage.take_log();
    assert_eq!((events, calls.len()), (Vec::new(), 1), "{calls:#?}");
    assert!(calls[0].starts_with("ModifyDomainAttributes "), "{calls:#?}");
    assert_eq!(certificates(&stage), ids(&new));
    settle(&stage, &cluster, &known(&cluster, &secrets));

    // A Secret goes: what is served is not taken away, and users are told.
    let before = held::served(&stage.accounts());
    let secrets = [("wild", wild.as_str()), ("default", &default)];
    let events = settle(&stage, &cluster, &known(&cluster, &secrets));
    assert_eq!(codes(&events), ["E4010"]);
    assert_eq!(held::served(&stage.accounts()).len(), before.len());
}

#[test]
fn a_listener_without_sni_changes_its_certificate() {
    let stage = Stage::new();
    let [old, new] = [(); 2].map(|()| stage.certificate());
    let made = ingress("tls", &[rule("a.example.com", "/", "web")]);
    let cluster = cluster_of(&[made.tls(&json!([{ "secretName": "cert" }]))]);
    for id in [&old, &new, &old] {
        assert_eq!(settle(&stage, &cluster, &known(&cluster, &[("cert", id)])), []);
        let expected = BTreeMap::from([("all".to_owned(), id.clone())]);
        assert_eq!(certificates(&stage), expected);
    }
}

#[test]
fn an_ingress_that_changes_its_class_loses_its_load_balancer() {
    let stage = Stage::new();
    let made = || ingress("front", &[rule("", "/", "web")]);
    let own = cluster_of(&[made().class("qcloud")]);
    let environment = known(&own, &[]);
    settle(&stage, &own, &environment);
    assert_eq!(shown(&stage), ["80 HTTP: VIP/"]);
    let foreign = cluster_of(&[made().class("nginx")]);
    settle(&stage, &foreign, &environment);
    assert_eq!(balancers(&stage), Vec::<Value>::new());
    settle(&stage, &own, &environment);
    assert_eq!(shown(&stage), ["80 HTTP: VIP/"]);
}

#[test]
fn of_two_ingresses_with_one_listener_the_first_has_it() {
    let stage = Stage::new();
    let answer = stage.by_hand("CreateLoadBalancer", json!({ "LoadBalancerType": "OPEN" }));
    let id = answer["LoadBalancerIds"][0].as_str().unwrap().to_owned();
    const EXISTING: &str = "kubernetes.io/ingress.existLbId";
    const GROUP: &str = "ingress.cloud.tencent.com/enable-group";
    let first = || ingress("first", &[rule("a.example.com", "/", "web")]).note(EXISTING, &id);
    let second = || ingress("second", &[rule("b.example.com", "/", "api")]).note(EXISTING, &id);
    let cluster = cluster_of(&[first(), second()]);
    let events = settle(&stage, &cluster, &known(&cluster, &[]));
    let told: Vec<String> = events.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("E4101 Ingress shop/second"), "{told:?}");
    assert_eq!(shown(&stage), ["80 HTTP: a.example.com/"]);
    // In a group they share it.
    let grouped = [first().note(GROUP, "true"), second().note(GROUP, "true")];
    let cluster = cluster_of(&grouped);
    assert_eq!(settle(&stage, &cluster, &known(&cluster, &[])), []);
    assert_eq!(shown(&stage), ["80 HTTP: a.example.com/, b.example.com/"]);
    // The first goes: its rule goes, and the load balancer stays.
    let cluster = cluster_of(&[second().note(GROUP, "true")]);
    assert_eq!(settle(&stage, &cluster, &known(&cluster, &[])), []);
    assert_eq!(shown(&stage), ["80 HTTP: b.example.com/"]);
}

#[test]
fn the_default_domain_is_that_of_the_configuration_or_of_rules_without_a_host() {
    let stage = Stage::new();
    let defaults = |stage: &Stage| -> Vec<String> {
        let lb = &balancers(stage)[0];
        let vip = lb["LoadBalancerVips"][0].as_str().unwrap();
        let listener = &listeners(stage, lb)[0];
        let rules = listener["Rules"].as_array().unwrap().iter();
        let defaults = rules.filter(|rule| rule["DefaultServer"] == true);
        let names = defaults.map(|rule| rule["Domain"].as_str().unwrap().replace(vip, "VIP"));
        names.collect()
    };
    let made = |key: &str| {
        let rules = [rule("", "/", "web"), rule("a.example.com", "/", "api")];
        let written =
            ingress("front", &rules).note("ingress.cloud.tencent.com/tke-service-config-auto", key);
        let mut cluster = cluster_of(&[written]);
        let config = "apiVersion: cloud.tencent.com/v1alpha1
kind: TkeServiceConfig
metadata: {name: front-auto-ingress-config, namespace: shop}
spec: {loadBalancer: {l7Listeners: [{protocol: HTTP, port: 80, defaultServer: a.example.com}]}}
";
        let with_config = crate::stage::cluster(&format!("{RICH}---\n{config}"));
        cluster.listener_overrides = with_config.listener_overrides;
        cluster
    };
    let plain = made("false");
    assert_eq!(settle(&stage, &plain, &known(&plain, &[])), []);
    assert_eq!(defaults(&stage), ["VIP"]);
    let configured = made("true");
    assert_eq!(settle(&stage, &configured, &known(&configured, &[])), []);
    assert_eq!(defaults(&stage), ["a.example.com"]);
}

#[test]
fn values_that_mean_nothing_are_refused() {
    for (key, value, code) in [
        ("ingress.cloud.tencent.com/direct-access", "yes", "E4037"),
        ("kubernetes.io/ingress.existLbId", "my-lb", "E4098"),
        ("ingress.cloud.tencent.com/direct-access", "true", "E4082"),
        (HTTP_RULES, "{", "E4022"),
        (HTTPS_RULES, "{", "E4023"),
        (PORTS, "80", "E4044"),
    ] {
        let stage = Stage::new();
        let made = ingress("front", &[rule("", "/", "web")]);
        let cluster = cluster_of(&[made.note(key, value)]);
        let events = settle(&stage, &cluster, &known(&cluster, &[]));
        assert_eq!(codes(&events), [code], "{key}: {value}");
        // Without pods there are no targets, and the rest is made.
        assert_eq!(balancers(&stage).len(), usize::from(code == "E4082"));
    }
}
