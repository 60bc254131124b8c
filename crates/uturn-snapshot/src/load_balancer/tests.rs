//! The file of `uturn lb run`: what people write, every fault with its place, and back.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jsonschema::Validator;
use serde_json::Value as Json;

use uturn_lb::cloud::USUAL_PROBE_RANGES;
use uturn_lb::config::{
    AccessLog, CertificateFiles, Config, Forward, HttpMethod, ListenerSettings, Probe,
    ProcessSettings, ProxyVersion, RuleSettings, Stickiness,
};
use uturn_model::Origin;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{ProbeRanges, ProbeSource, Source as Sees};

use super::{read_lb_config, write_lb_config};
use crate::document::{self, Keep};
use crate::json_equivalence::as_json;
use crate::source::Source;

fn read(text: &str) -> Result<Config, String> {
    let source = Source { name: "lb.yaml".into(), text: text.to_owned() };
    read_lb_config(vec![source])
        .map_err(|faults| faults.iter().map(|fault| format!("{fault}\n")).collect())
}

/// A LoadBalancer document with these listeners.
fn balancer(listeners: &str) -> String {
    format!(
        "apiVersion: uturn.dev/v1alpha1\nkind: LoadBalancer\nmetadata: {{name: web}}\n\
         spec:\n  vip: 10.0.0.100\n  listeners:\n{listeners}"
    )
}

/// The faults of a listener, without the head that all have.
fn faults(listener: &str) -> Vec<String> {
    let text = balancer(&format!("  - {listener}\n"));
    let shown = match read(&text) {
        Ok(_) => return Vec::new(),
        Err(shown) => shown,
    };
    shown
        .lines()
        .filter(|line| !line.starts_with("  "))
        .map(|line| {
            let (_, rest) = line.split_once(": ").unwrap();
            rest.strip_prefix("spec.listeners[0].").unwrap_or(rest).to_owned()
        })
        .collect()
}

#[test]
fn the_smallest_file() {
    let text = balancer("  - {port: 80, protocol: HTTP, targets: ['10.0.0.11:30080']}\n");
    let config = read(&text).unwrap();
    assert_eq!(config.process, ProcessSettings::default());
    let [served] = &config.load_balancers[..] else { panic!("{config:?}") };
    let listener = &served.load_balancer.listeners[0];
    assert_eq!(listener.profile.source, Sees::Kept);
    assert_eq!(listener.profile.panic_threshold, Some(0));
    let check = listener.profile.health_check.as_ref().unwrap();
    assert_eq!(check.source, ProbeSource::Vip);
    assert_eq!((check.interval.as_secs(), check.timeout.as_secs()), (5, 2));
    assert_eq!((check.rise, check.fall), (3, 3));
    assert_eq!(listener.profile.passive_check.as_ref().unwrap().failures, 3);
    let [rule] = &listener.rules[..] else { panic!("{listener:?}") };
    assert_eq!((&rule.host, &rule.path), (&None, &None));
    assert_eq!(rule.service.to_string(), "default/web");
    assert_eq!(rule.owner.to_string(), "LoadBalancer web");
    assert_eq!(rule.targets[0].weight, 10);
    let settings = ListenerSettings {
        rules: vec![RuleSettings::default()],
        ..ListenerSettings::of(listener.protocol)
    };
    assert_eq!(served.listeners, [settings]);
    assert!(!served.derived);
}

/// Every field at least once.
const EVERYTHING: &str = r#"
apiVersion: uturn.dev/v1alpha1
kind: DataPlane
spec:
  workers: 2
  admin: 127.0.0.1:9900
  accessLog: logs/access.json
  drain: 1m
  connections: 1000
---
apiVersion: uturn.dev/v1alpha1
kind: SecurityGroup
metadata: {name: sg-web}
spec:
  inbound:
  - {action: drop, peer: 10.9.0.0/16}
  - {action: accept, protocol: tcp, ports: 80-443}
---
apiVersion: uturn.dev/v1alpha1
kind: LoadBalancer
metadata: {name: web}
spec:
  vip: 10.0.0.100
  scope: public
  securityGroups: [sg-web]
  listeners:
  - port: 443
    protocol: HTTPS
    profile: {name: own}
    source: 100.127.0.0/16
    avoidsClient: false
    connectTimeout: 500ms
    nextTarget: false
    scheduler: LEAST_CONN
    panicThreshold: 30
    healthCheck:
      source: 10.64.0.0/10
      interval: 1s
      rise: 1
      fall: 2
      probe: {http: {method: GET, path: /healthz, host: shop.example.com, codes: [2, 3xx]}}
    passiveCheck: none
    certificates:
    - {certificate: tls/shop.pem, key: /etc/tls/shop.key}
    proxyFrom: [192.168.0.0/16]
    proxyTo: v2
    limits:
      connections: 10
      connectionsPerClient: 2
      connectionsPerSecond: 3
      requestsPerSecond: 4
      headerBytes: 8Ki
      headers: 50
      bodyBytes: 10Mi
    timeouts: {header: 10s, read: 20s, idle: 30s}
    keepalive: {connections: 0, idle: 5s}
    http2: false
    defaultHost: shop.example.com
    rules:
    - host: shop.example.com
      path: /
      targets: ["10.0.0.11:30080", {address: "10.0.0.12:30080", weight: 0, nodePort: n2}]
      forward: h2c
      stickiness: {cookie: shop, maxAge: 1h}
    - host: "*.example.com"
      path: {path: /api, type: Exact}
      service: shop/api
      targets: [{address: "10.1.2.3:80", pod: shop/api-0, node: n3}]
      probe: tcp
    - path: /old
      redirect: {status: 308, tls: true, host: new.example.com, path: "/new?from=old"}
  - port: 53
    protocol: UDP
    allDeadAllAlive: false
    rules:
    - targets: ["10.0.0.11:53"]
      stickiness: {source: 5m}
      probe: {exchange: {send: {hex: "00ff"}, expect: "ok"}}
"#;

#[test]
fn every_field_is_read() {
    let config = read(EVERYTHING).unwrap();
    let process = ProcessSettings {
        workers: Some(2),
        admin: Some("127.0.0.1:9900".parse().unwrap()),
        access_log: AccessLog::File("logs/access.json".into()),
        drain: Duration::from_secs(60),
        connections: 1000,
    };
    assert_eq!(config.process, process);
    assert_eq!(config.security_groups[0].inbound.len(), 2);
    let served = &config.load_balancers[0];
    let profile = &served.load_balancer.listeners[0].profile;
    assert_eq!(&*profile.name, "own");
    assert_eq!(profile.source, Sees::Replaced("100.127.0.0/16".parse().unwrap()));
    assert_eq!((profile.avoids_client, profile.next_target), (false, false));
    assert_eq!((profile.panic_threshold, &profile.passive_check), (Some(30), &None));
    let check = profile.health_check.as_ref().unwrap();
    let v4 = "10.64.0.0/10".parse().unwrap();
    let own_range = ProbeSource::Reserved(ProbeRanges { v4, ..USUAL_PROBE_RANGES });
    assert_eq!(check.source, own_range);
    assert_eq!(check.timeout, Duration::from_millis(500), "half of the interval");
    let settings = &served.listeners[0];
    let files = CertificateFiles {
        certificate: "tls/shop.pem".into(),
        key: PathBuf::from("/etc/tls/shop.key"),
    };
    assert_eq!(settings.certificates, [files]);
    assert_eq!(settings.proxy_to, Some(ProxyVersion::V2));
    assert_eq!((settings.limits.header_bytes, settings.limits.headers), (8192, 50));
    assert_eq!(settings.limits.body_bytes, Some(10 << 20));
    assert_eq!((settings.keepalive.connections, settings.http2), (0, false));
    assert_eq!(settings.default_host.as_deref(), Some("shop.example.com"));
    let http = Probe::Http {
        method: HttpMethod::Get,
        path: "/healthz".into(),
        host: Some("shop.example.com".into()),
        classes: vec![2, 3],
    };
    let cookie =
        Stickiness::Cookie { name: "shop".into(), max_age: Some(Duration::from_secs(3600)) };
    let first =
        RuleSettings { forward: Forward::H2c, stickiness: Some(cookie), probe: Some(http.clone()) };
    let last = RuleSettings { probe: Some(http), ..RuleSettings::default() };
    assert_eq!(settings.rules, [first, RuleSettings::default(), last]);
    let rules = &served.load_balancer.listeners[0].rules;
    assert_eq!(rules[0].path, Some(("/".into(), PathKind::Prefix)));
    assert_eq!(rules[1].owner.to_string(), "Service shop/api");
    assert_eq!(rules[2].redirect.as_ref().unwrap().port.number(), 443);
    let udp = &served.load_balancer.listeners[1];
    assert_eq!(udp.profile.panic_threshold, None);
    let probe = Probe::Exchange { send: vec![0, 255], expect: b"ok".to_vec() };
    assert_eq!(served.listeners[1].rules[0].probe, Some(probe));
}

/// Without the places where security groups are written.
fn without_places(mut config: Config) -> Config {
    for group in &mut config.security_groups {
        group.origin = Origin::SUPPOSED;
        let rules = group.inbound.iter_mut().chain(&mut group.outbound);
        rules.for_each(|rule| rule.origin = Origin::SUPPOSED);
    }
    config
}

#[test]
fn what_is_written_reads_back_equal() {
    let config = without_places(read(EVERYTHING).unwrap());
    let written = write_lb_config(&config);
    let again = read(&written).unwrap_or_else(|faults| panic!("{faults}\n{written}"));
    assert_eq!(without_places(again), config, "{written}");
}

#[test]
fn relative_paths_begin_at_the_folder_of_the_file() {
    let text = balancer(
        "  - {port: 443, protocol: HTTPS, targets: ['10.0.0.11:80'], \
         certificates: [{certificate: a.pem, key: /b.key}]}\n",
    );
    let source = Source { name: "etc/lb.yaml".into(), text };
    let config = read_lb_config(vec![source]).unwrap();
    let files = &config.load_balancers[0].listeners[0].certificates[0];
    assert_eq!(files.certificate, PathBuf::from("etc/a.pem"));
    assert_eq!(files.key, PathBuf::from("/b.key"));
}

/// Each fault of one listener, with what would be right.
#[test]
fn faults_of_a_listener() {
    let http = "port: 80, protocol: HTTP";
    let one = "targets: ['10.0.0.11:80']";
    let rules = |rules: &str| format!("{{{http}, rules: [{rules}]}}");
    let cases: Vec<(String, bool, &[&str])> = vec![
        (format!("{{{http}}}"), false, &["rules: missing: expected rules, or targets"]),
        (format!("{{{http}, rules: []}}"), false, &["rules: expected at least one rule"]),
        (
            format!("{{{http}, {one}, rules: [{{{one}}}]}}"),
            false,
            &["targets: a listener has targets or rules, not both"],
        ),
        (
            format!("{{{http}, {one}, certificates: [{{certificate: a, key: b}}]}}"),
            false,
            &["certificates: only TCP_SSL and HTTPS listeners end TLS, and this one is HTTP"],
        ),
        (
            format!("{{port: 80, protocol: TCP, {one}, http2: true, limits: {{headers: 5}}}}"),
            false,
            &[
                "http2: only HTTP and HTTPS listeners have it, and this one is TCP",
                "limits.headers: only HTTP and HTTPS listeners have it, and this one is TCP",
            ],
        ),
        (
            format!("{{port: 80, protocol: TCP, rules: [{{host: a, {one}}}]}}"),
            false,
            &["rules[0].host: only rules of HTTP and HTTPS listeners have it, and this one is TCP"],
        ),
        (
            format!("{{port: 80, protocol: TCP, rules: [{{{one}}}, {{{one}}}]}}"),
            false,
            &["rules[1]: expected a single rule: on layer 4 nothing tells requests apart"],
        ),
        (
            format!("{{port: 80, protocol: UDP, nextTarget: true, proxyTo: v1, {one}}}"),
            false,
            &[
                "nextTarget: only TCP_SSL, HTTP and HTTPS listeners connect to targets \
                 themselves, and this one is UDP",
                "proxyTo: UDP has no connection that a PROXY header could begin, and this one is \
                 UDP",
            ],
        ),
        (
            format!("{{{http}, {one}, healthCheck: {{interval: 1s, timeout: 1s}}}}"),
            false,
            &["healthCheck.timeout: expected less than the interval, which is 1s"],
        ),
        (
            format!("{{{http}, {one}, healthCheck: {{rise: 0, interval: 5}}}}"),
            true,
            &[
                "healthCheck.rise: expected a number from 1 to 100, found the number 0",
                "healthCheck.interval: expected a time from 100ms to 5m, found the number 5",
            ],
        ),
        (
            format!("{{{http}, {one}, healthCheck: {{probe: {{http: {{path: x, codes: [6]}}}}}}}}"),
            true,
            &[
                "healthCheck.probe.http.path: expected a path that begins with /, found \"x\"",
                "healthCheck.probe.http.codes[0]: expected a class of status codes from 1 to 5, \
                 found the number 6",
            ],
        ),
        (
            format!("{{{http}, {one}, healthCheck: {{probe: udp}}}}"),
            false,
            &["healthCheck.probe: the targets of this listener speak TCP: expected tcp, \
                 {http: …} or {exchange: …}"],
        ),
        (
            format!(
                "{{port: 53, protocol: UDP, {one}, healthCheck: {{probe: {{exchange: {{send: a}}}}}}}}"
            ),
            false,
            &["healthCheck.probe.exchange.expect: missing: expected what a target answers, \
                 because UDP has no connections"],
        ),
        (
            format!("{{{http}, {one}, allDeadAllAlive: false, panicThreshold: 20}}"),
            false,
            &["panicThreshold: allDeadAllAlive is false, so no share of dead targets makes all \
                 alive"],
        ),
        (
            format!("{{{http}, {one}, panicThreshold: 100}}"),
            true,
            &["panicThreshold: expected a percentage from 0 to 99, found the number 100"],
        ),
        (
            format!("{{{http}, {one}, source: kept, profile: {{source: kept}}}}"),
            false,
            &["profile.source: source stands on the listener already"],
        ),
        (
            format!("{{{http}, {one}, limits: {{headerBytes: 0, headers: 0, connections: 0}}}}"),
            true,
            &[
                "limits.headerBytes: expected a size from 256 to 1Mi bytes, found the number 0",
                "limits.headers: expected a number from 1 to 1000, found the number 0",
                "limits.connections: expected a number from 1 to 10000000, found the number 0",
            ],
        ),
        (
            format!(
                "{{{http}, defaultHost: b.example.com, rules: [{{host: a.example.com, {one}}}]}}"
            ),
            false,
            &[
                "defaultHost: no rule is for b.example.com; expected the host of a rule: a.example.com",
            ],
        ),
        (
            format!(
                "{{{http}, targets: [{{address: '10.0.0.11:80', weight: 101}}, '10.0.0.11:80']}}"
            ),
            true,
            &[
                "targets[0].weight: expected a weight from 0 to 100, found the number 101",
                "targets[1]: 10.0.0.11:80 is there twice: first at line 7",
            ],
        ),
        (
            format!("{{{http}, targets: ['10.0.0.100:80', '[fd00::1]:80', '10.0.0.11:0']}}"),
            false,
            &[
                "targets[0]: this is the listener's own address: it would call itself",
                "targets[1]: the target is IPv6: the client's address is kept, and the VIP is IPv4",
                "targets[2]: expected a port from 1 to 65535, found 0",
            ],
        ),
        (
            format!("{{{http}, source: 'fd00:1::/64', targets: ['[fd00::1]:80']}}"),
            false,
            &["targets[0]: the target is IPv6: its health checks come from IPv4"],
        ),
        (
            rules("{host: a}"),
            false,
            &["rules[0].targets: missing: expected targets, or a redirect"],
        ),
        (
            rules(&format!("{{{one}, redirect: {{tls: true}}}}")),
            false,
            &["rules[0].redirect: a rule has targets or a redirect"],
        ),
        (
            rules("{redirect: {port: 80}}"),
            false,
            &["rules[0].redirect: clients that follow this redirect come to this rule again"],
        ),
        (
            rules("{redirect: {tls: true, status: 200}}"),
            true,
            &["rules[0].redirect.status: expected 301, 302, 307 or 308, found the number 200"],
        ),
        (
            rules(&format!(
                "{{host: A.example.com, {one}}}, {{host: a.example.com, path: /, {one}}}"
            )),
            false,
            &["rules[1]: the rule at line 7 has this host and path already"],
        ),
        (
            rules(&format!("{{host: 'a:80', path: 'a b', {one}}}")),
            true,
            &[
                "rules[0].host: expected a host such as shop.example.com or *.example.com, \
                 without a port, found \"a:80\"",
                "rules[0].path: expected a path that begins with /, found \"a b\"",
            ],
        ),
        (
            format!("{{port: 80, protocol: TCP, rules: [{{{one}, stickiness: {{cookie: a}}}}]}}"),
            false,
            &["rules[0].stickiness.cookie: only HTTP and HTTPS have cookies: expected source"],
        ),
        (
            rules(&format!("{{{one}, stickiness: {{source: 1m, maxAge: 1m}}}}")),
            true,
            &["rules[0].stickiness.maxAge: only a cookie has a maxAge; source has its time \
                 itself"],
        ),
        (
            format!("{{{http}, healthCheck: none, rules: [{{{one}, probe: tcp}}]}}"),
            false,
            &["rules[0].probe: the listener has no health checks: its healthCheck is none"],
        ),
    ];
    let (schema, mut otherwise) = (schema(), Vec::new());
    for (listener, schema_refuses, expected) in cases {
        assert_eq!(faults(&listener), expected, "{listener}");
        let violations = violations(&schema, &balancer(&format!("  - {listener}\n")));
        if violations.is_empty() == schema_refuses {
            otherwise.push(format!("{listener}: {violations:?}"));
        }
    }
    assert_eq!(otherwise, [""; 0], "the schema");
}

/// The schema that is published; a test of whole commands holds it against the types.
fn schema() -> Validator {
    let file = root().join("docs/schema/lb.json");
    let schema: Json = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where documents do not conform to the schema.
fn violations(schema: &Validator, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    document::read(text, Keep::All, &mut |document| {
        let json = as_json(&document.unwrap());
        let errors = schema.iter_errors(&json);
        found.extend(errors.map(|error| format!("{}: {error}", error.instance_path())));
        ControlFlow::Continue(())
    });
    found
}

/// The documents of the tree are read without a fault, and conform to the schema.
#[test]
fn documents_conform_to_the_schema() {
    let schema = schema();
    let page = fs::read_to_string(root().join("docs/lb.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut texts: Vec<String> = blocks.map(str::to_owned).collect();
    assert!(texts.len() >= 4, "{}", texts.len());
    texts.push(fs::read_to_string(root().join("examples/lb/lb.yaml")).unwrap());
    texts.push(EVERYTHING.to_owned());
    for text in texts {
        let config = read(&text).unwrap_or_else(|faults| panic!("{text}\n{faults}"));
        assert_eq!(violations(&schema, &text), [""; 0], "{text}");
        let written = write_lb_config(&config);
        assert_eq!(violations(&schema, &written), [""; 0], "{written}");
    }
}

/// Each value that is wrong by itself is refused by the schema too.
#[test]
fn what_is_misspelt_is_refused_by_both() {
    let schema = schema();
    let spoils = [
        ("workers: 2", "workers: 0"),
        ("workers: 2", "worker: 2"),
        ("admin: 127.0.0.1:9900", "admin: localhost"),
        ("drain: 1m", "drain: 60"),
        ("action: drop", "action: refuse"),
        ("protocol: tcp", "protocol: icmp"),
        ("ports: 80-443", "ports: http"),
        ("name: sg-web}", "title: sg-web}"),
        ("vip: 10.0.0.100", "vip: example.com"),
        ("scope: public", "scope: open"),
        ("securityGroups: [sg-web]", "securityGroups: sg-web"),
        ("port: 443\n", "port: 70000\n"),
        ("protocol: HTTPS", "protocol: https"),
        ("source: 100.127.0.0/16", "source: any"),
        ("avoidsClient: false", "avoidsClient: 0"),
        ("scheduler: LEAST_CONN", "scheduler: LEAST"),
        ("panicThreshold: 30", "panicThreshold: 100"),
        ("interval: 1s", "interval: often"),
        ("rise: 1\n", "rise: 0\n"),
        ("method: GET", "method: POST"),
        ("path: /healthz", "path: healthz"),
        ("codes: [2, 3xx]", "codes: [200]"),
        ("passiveCheck: none", "passiveCheck: no"),
        ("key: /etc/tls/shop.key}", "keys: /etc/tls/shop.key}"),
        ("proxyFrom: [192.168.0.0/16]", "proxyFrom: [all]"),
        ("proxyTo: v2", "proxyTo: 2"),
        ("connections: 10\n", "connections: 0\n"),
        ("headerBytes: 8Ki", "headerBytes: 8KB"),
        ("headers: 50", "headers: 0"),
        ("idle: 30s", "idle: -1s"),
        ("http2: false", "http2: never"),
        ("host: shop.example.com\n", "host: shop example com\n"),
        ("weight: 0", "weight: 101"),
        ("forward: h2c", "forward: h3"),
        ("cookie: shop", "cookie: 'a b'"),
        ("type: Exact", "type: exact"),
        ("service: shop/api", "service: api"),
        ("probe: tcp", "probe: icmp"),
        ("status: 308", "status: 303"),
        ("hex: \"00ff\"", "hex: \"0ff\""),
        ("kind: DataPlane", "kind: Dataplane"),
    ];
    for (right, wrong) in spoils {
        assert!(EVERYTHING.contains(right), "{right}");
        let text = EVERYTHING.replacen(right, wrong, 1);
        assert!(read(&text).is_err(), "the reader takes {wrong}");
        assert!(!violations(&schema, &text).is_empty(), "the schema takes {wrong}");
    }
}

#[test]
fn what_only_works_together_is_accepted() {
    for listener in [
        // An IPv6 address in front of IPv4 targets, as a proxy whose source is its own.
        "{port: 80, protocol: HTTP, targets: ['10.0.0.11:80'], source: 10.1.0.0/24}",
        "{port: 80, protocol: HTTP, rules: [{targets: []}]}",
        "{port: 80, protocol: HTTP, rules: [{redirect: {tls: true}}]}",
        "{port: 80, protocol: HTTP, rules: [{path: /old, redirect: {port: 80, path: /new}}, \
         {targets: ['10.0.0.11:80']}]}",
        "{port: 53, protocol: UDP, targets: ['10.0.0.11:53'], healthCheck: {probe: udp}}",
        "{port: 53, protocol: TCP, targets: ['10.0.0.11:53'], healthCheck: none}",
    ] {
        assert_eq!(faults(listener), [""; 0], "{listener}");
    }
}

#[test]
fn faults_across_documents() {
    let listener = "  - {port: 9900, protocol: HTTP, targets: ['10.0.0.11:80']}\n";
    let process = "apiVersion: uturn.dev/v1alpha1\nkind: DataPlane\n\
                   spec: {admin: '10.0.0.100:9900', accessLog: off}\n";
    let group = "apiVersion: uturn.dev/v1alpha1\nkind: SecurityGroup\nmetadata: {name: sg-1}\n\
                 spec: {inbound: []}\n";
    let named = balancer(listener).replace("  vip:", "  securityGroups: [sg-1, sg-2]\n  vip:");
    let again = balancer(listener);
    let text = [process, process, group, group, &named, &again].join("---\n");
    assert_eq!(
        read(&text).unwrap_err(),
        "lb.yaml:5:1: a second DataPlane: the first is at lb.yaml:1:1\n\
         lb.yaml:7:15: spec.admin: 10.0.0.100:9900 is a listener's address, at lb.yaml:26:5\n\
         lb.yaml:16:18: metadata.name: security group sg-1 is there twice: first at \
         lb.yaml:11:18\n\
         lb.yaml:23:26: spec.securityGroups[1]: no SecurityGroup document defines sg-2\n\
         lb.yaml:30:18: metadata.name: load balancer web is there twice: first at \
         lb.yaml:21:18\n\
         lb.yaml:34:5: spec.listeners[0]: TCP 10.0.0.100:9900 has a listener already, at \
         lb.yaml:26:5\n"
    );
}

/// What programs write is not held against what people get wrong.
#[test]
fn a_derived_document_may_be_odd() {
    let odd = "  - {port: 80, protocol: TCP, http2: true, rules: [{}, {host: '', path: x}]}\n\
               \x20 - {port: 80, protocol: TCP, rules: []}\n";
    let text =
        balancer(odd).replace("  vip:", "  securityGroups: [unknown]\n  derived: true\n  vip:");
    let config = read(&text).unwrap();
    assert!(config.load_balancers[0].derived);
    assert!(read(&text.replace("  derived: true\n", "")).is_err());
    let wrong = text.replace("port: 80", "port: no");
    assert!(read(&wrong).unwrap_err().contains("expected a port"), "its form is checked");
}
