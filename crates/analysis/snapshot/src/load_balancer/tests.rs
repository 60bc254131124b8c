//! Tests the file of `uturn lb run`: valid documents, every fault with its place, and writing.

mod faults;
mod over_http;
mod schema;

use std::path::PathBuf;
use std::time::Duration;

use uturn_clouds::cloud::USUAL_PROBE_RANGES;
use uturn_document::Source;
use uturn_lb::config::{
    AccessLog, CertificateFiles, Config, Forward, ForwardedFor, HttpMethod, ListenerSettings,
    Probe, ProcessSettings, ProxyVersion, RuleSettings, Stickiness,
};
use uturn_model::Origin;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{PathNormalization, ProbeRanges, ProbeSource, Source as Sees};

use super::{read_lb_config, write_lb_config};

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

#[test]
fn the_smallest_file() {
    let text = balancer("  - {port: 80, protocol: HTTP, targets: ['10.0.0.11:30080']}\n");
    let config = read(&text).unwrap();
    assert_eq!(config.process, ProcessSettings::default());
    let [served] = &config.load_balancers[..] else { panic!("{config:?}") };
    let listener = &served.load_balancer.listeners[0];
    assert_eq!(listener.profile.source, Sees::Kept);
    assert_eq!(listener.profile.panic_threshold, Some(0));
    assert_eq!(listener.profile.path_normalization, PathNormalization::Merge);
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

/// A configuration with each field at least once.
const EVERYTHING: &str = r#"
apiVersion: uturn.dev/v1alpha1
kind: DataPlane
spec:
  workers: 2
  admin: {address: 127.0.0.1:9900, tokenFile: admin.token, hosts: [lb.example.com], localTargets: true}
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
    pathNormalization: reject
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
      bodyBytesPerSecond: 1000
    timeouts: {header: 10s, read: 20s, idle: 30s, tunnel: 2h}
    keepalive: {connections: 0, idle: 5s}
    http2: false
    abortOnClose: true
    defaultHost: shop.example.com
    forwardedFor: replace
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
        admin_token: Some("admin.token".into()),
        admin_hosts: vec!["lb.example.com".into()],
        local_targets: true,
        access_log: AccessLog::File("logs/access.json".into()),
        drain: Duration::from_secs(60),
        connections: Some(1000),
    };
    assert_eq!(config.process, process);
    assert_eq!(config.security_groups[0].inbound.len(), 2);
    let served = &config.load_balancers[0];
    let profile = &served.load_balancer.listeners[0].profile;
    assert_eq!(&*profile.name, "own");
    assert_eq!(profile.source, Sees::Replaced("100.127.0.0/16".parse().unwrap()));
    assert_eq!((profile.avoids_client, profile.next_target), (false, false));
    assert_eq!((profile.panic_threshold, &profile.passive_check), (Some(30), &None));
    assert_eq!(profile.path_normalization, PathNormalization::Reject);
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
    assert_eq!(settings.limits.body_bytes_per_second, 1000);
    assert_eq!(settings.timeouts.tunnel, Duration::from_secs(7200));
    assert_eq!((settings.keepalive.connections, settings.http2), (0, false));
    assert!(settings.abort_on_close);
    assert_eq!(settings.forwarded_for, ForwardedFor::Replace);
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

/// Removes the places of security groups from a configuration.
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
