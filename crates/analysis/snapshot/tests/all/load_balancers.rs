//! LoadBalancer documents: read, written, read back.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use proptest::prelude::*;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{
    Delivery, HealthCheck, HealthQuestion, Listener, ListenerProtocol, PathNormalization,
    ProbeRanges, ProbeSource, Profile, Redirect, Rule, Scheduler, Scope, Source as Sees, Statuses,
    Target, TargetKind,
};
use uturn_model::{
    IpNet, Ipv4Net, Ipv6Net, LoadBalancer, Name, NamespacedName, ObjectKind, ObjectRef, Port, Text,
};
use uturn_snapshot::{Source, read_load_balancers, write_load_balancers};

fn source(text: impl Into<String>) -> Source {
    Source { name: "lb.yaml".into(), text: text.into() }
}

#[test]
fn what_people_write() {
    let text = "
apiVersion: uturn.dev/v1alpha1
kind: LoadBalancer
metadata: {name: lb-1}
spec:
  vip: 10.0.0.100
  scope: private
  listeners:
  - port: 80
    protocol: HTTP
    rules:
    - service: shop/front
      targets: [{address: '10.0.0.11:30080', nodePort: n1}]
";
    let balancers = read_load_balancers(source(text)).unwrap();
    let listener = &balancers[0].listeners[0];
    assert_eq!(listener.profile.source, Sees::Kept);
    assert!(listener.profile.next_target, "on layer 7");
    assert_eq!(listener.rules[0].owner.to_string(), "Service shop/front");
    assert_eq!(listener.rules[0].targets[0].weight, 10);
    assert_eq!(listener.rules[0].targets[0].kind, TargetKind::NodePort("n1".parse().unwrap()));
}

#[test]
fn faults_name_their_place() {
    let text = "
apiVersion: uturn.dev/v1alpha1
kind: LoadBalancer
metadata: {name: lb-1}
spec:
  vip: here
  scope: private
  listener: []
  listeners: [{port: 80, protocol: http, rules: [{targets: [{address: a, nodePort: n1, pod: a/b}]}]}]
---
apiVersion: v1
kind: Service
metadata: {name: a}
";
    let faults = read_load_balancers(source(text)).unwrap_err();
    let shown: String = faults.iter().map(|fault| format!("{fault}\n")).collect();
    assert_eq!(
        shown,
        "lb.yaml:6:8: spec.vip: expected an IP address, found \"here\"\n\
         lb.yaml:8:3: spec.listener: unknown field\n  did you mean listeners?\n\
         lb.yaml:9:36: spec.listeners[0].protocol: expected TCP, UDP, TCP_SSL, HTTP or HTTPS, \
         found \"http\"\n\
         lb.yaml:9:71: spec.listeners[0].rules[0].targets[0].address: expected ADDRESS:PORT, \
         found \"a\"\n\
         lb.yaml:9:84: spec.listeners[0].rules[0].targets[0].nodePort: a target is a nodePort or \
         a pod, not both\n\
         lb.yaml:11:1: expected uturn.dev/v1alpha1 LoadBalancer, DataPlane or SecurityGroup, found \
         v1 Service\n"
    );
}

proptest! {
    #[test]
    fn what_is_written_reads_back_equal(balancers in prop::collection::vec(balancer(), 0..3)) {
        let text = write_load_balancers(&balancers);
        prop_assert_eq!(&read_load_balancers(source(&text)).unwrap(), &balancers);
        // It is YAML too: with a comment before it, it is read as such.
        let yaml = format!("# YAML\n---\n{}", text.replacen('{', "{ apiVersion: v1, ", 1)
            .replacen("\"apiVersion\":\"v1\",", "", 1));
        prop_assert_eq!(&read_load_balancers(source(yaml)).unwrap(), &balancers);
    }
}

fn text() -> impl Strategy<Value = Text> {
    any::<String>().prop_map(Text::from)
}

fn name() -> impl Strategy<Value = Name> {
    "[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?".prop_map(|name| name.parse().unwrap())
}

fn namespaced() -> impl Strategy<Value = NamespacedName> {
    (name(), name()).prop_map(|(namespace, name)| NamespacedName { namespace, name })
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        any::<u64>().prop_map(Duration::from_secs),
        any::<u32>().prop_map(|ms| Duration::from_millis(ms.into())),
        any::<Duration>(),
    ]
}

fn net() -> impl Strategy<Value = IpNet> {
    (any::<IpAddr>(), 0..=32u8).prop_map(|(ip, length)| IpNet::new(ip, length).unwrap())
}

fn port() -> impl Strategy<Value = Port> {
    (1..=u16::MAX).prop_map(|number| Port::new(number).unwrap())
}

fn socket() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

fn health_check() -> impl Strategy<Value = HealthCheck> {
    let ranges = (any::<Ipv4Addr>(), 0..=32u8, any::<Ipv6Addr>(), 0..=128u8);
    let ranges = ranges.prop_map(|(v4, short, v6, long)| ProbeRanges {
        v4: Ipv4Net::new(v4, short).unwrap(),
        v6: Ipv6Net::new(v6, long).unwrap(),
    });
    let source = prop_oneof![Just(ProbeSource::Vip), ranges.prop_map(ProbeSource::Reserved)];
    (source, time(), time(), any::<u32>(), any::<u32>()).prop_map(
        |(source, interval, timeout, rise, fall)| HealthCheck {
            source,
            interval,
            timeout,
            rise,
            fall,
            keeps_address: false,
            question: HealthQuestion::Target,
        },
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    let source = prop_oneof![Just(Sees::Kept), net().prop_map(Sees::Replaced)];
    let scheduler = prop_oneof![
        Just(Scheduler::WeightedRoundRobin),
        Just(Scheduler::LeastConnections),
        Just(Scheduler::SourceHash)
    ];
    let path_normalization = prop_oneof![
        Just(PathNormalization::Off),
        Just(PathNormalization::Merge),
        Just(PathNormalization::Reject)
    ];
    let flags = any::<(bool, bool, Option<u8>, bool)>();
    let passive_check = (any::<u32>(), time())
        .prop_map(|(failures, rest)| uturn_model::lb::PassiveCheck { failures, rest });
    let checks = (prop::option::of(health_check()), prop::option::of(passive_check));
    let words = (scheduler, path_normalization);
    (text(), source, time(), words, flags, checks).prop_map(
        |(name, source, connect_timeout, words, flags, (health_check, passive_check))| {
            let (scheduler, path_normalization) = words;
            Profile {
                name,
                delivery: Delivery::ToTarget,
                source,
                proxy_header: None,
                avoids_client: flags.0,
                ends_connections: flags.3,
                connect_timeout,
                next_target: flags.1,
                scheduler,
                panic_threshold: flags.2,
                health_check,
                passive_check,
                hairpin_source: None,
                source_of_other_family: None,
                target_tls: None,
                allowed_sources: None,
                path_normalization,
                statuses: Statuses::USUAL,
                assumption: None,
            }
        },
    )
}

fn target() -> impl Strategy<Value = Target> {
    let pod = (prop::option::of(namespaced()), prop::option::of(name()));
    let kind = prop_oneof![
        name().prop_map(TargetKind::NodePort),
        pod.prop_map(|(pod, node)| TargetKind::Pod { pod, node })
    ];
    (socket(), any::<u32>(), kind).prop_map(|(address, weight, kind)| Target {
        address,
        weight,
        kind,
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let kind = prop_oneof![
        Just(PathKind::Exact),
        Just(PathKind::Prefix),
        Just(PathKind::ImplementationSpecific)
    ];
    let owner = prop_oneof![
        namespaced().prop_map(|name| ObjectRef::namespaced(ObjectKind::Ingress, &name)),
        text().prop_map(|name| ObjectRef::global(ObjectKind::Facts, name)),
    ];
    let path = prop::option::of((text(), kind));
    let targets = prop::collection::vec(target(), 0..3);
    let redirect = (300u16..309, any::<bool>(), prop::option::of(text()), port());
    let redirect = (redirect, prop::option::of(text()));
    let redirect = redirect.prop_map(|((code, tls, host, port), path)| Redirect {
        code,
        tls,
        host,
        port,
        path,
    });
    let head = (prop::option::of(text()), path, namespaced());
    (head, owner, targets, prop::option::of(redirect)).prop_map(
        |((host, path, service), owner, targets, redirect)| Rule {
            host,
            path,
            service,
            owner,
            targets,
            redirect,
        },
    )
}

fn listener() -> impl Strategy<Value = Listener> {
    let protocol = prop_oneof![
        Just(ListenerProtocol::Tcp),
        Just(ListenerProtocol::Udp),
        Just(ListenerProtocol::TcpSsl),
        Just(ListenerProtocol::Http),
        Just(ListenerProtocol::Https)
    ];
    let rules = prop::collection::vec(rule(), 0..3);
    (port(), protocol, profile(), rules).prop_map(|(port, protocol, profile, rules)| Listener {
        port,
        protocol,
        profile,
        rules,
    })
}

fn balancer() -> impl Strategy<Value = LoadBalancer> {
    let scope = prop_oneof![Just(Scope::Private), Just(Scope::Public)];
    let groups = prop::collection::vec(text(), 0..3);
    let listeners = prop::collection::vec(listener(), 0..3);
    (text(), any::<IpAddr>(), scope, groups, listeners).prop_map(
        |(name, vip, scope, security_groups, listeners)| LoadBalancer {
            name,
            vip,
            scope,
            zone: None,
            security_groups,
            listeners,
        },
    )
}
