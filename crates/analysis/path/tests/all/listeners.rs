//! A load balancer may listen on one port twice: by TCP and by UDP.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::Protocol;
use uturn_path::Engine;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::facts;

/// Two Services share an address and a port, each with a different transport.
const SERVICES: &str = r#"---
apiVersion: v1
kind: Service
metadata: {name: a-tcp, namespace: shop}
spec: {type: LoadBalancer, clusterIP: 172.16.0.10, ports: [{port: 443, nodePort: 30443}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
---
apiVersion: v1
kind: Service
metadata: {name: b-udp, namespace: shop}
spec: {type: LoadBalancer, clusterIP: 172.16.0.11, ports: [{port: 443, nodePort: 30444, protocol: UDP}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
"#;

#[test]
fn a_listener_is_found_by_its_transport_too() {
    let text = facts(&["provider: tke"]) + SERVICES;
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = read(vec![source]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let to = "10.0.0.100:443".parse().unwrap();
    let behind =
        |protocol| engine.balancer_behind(&to, protocol).map(|rule| rule.service.to_string());
    assert_eq!(behind(Protocol::Tcp).as_deref(), Some("shop/a-tcp"));
    assert_eq!(behind(Protocol::Udp).as_deref(), Some("shop/b-udp"));
    assert_eq!(behind(Protocol::Sctp), None);
}
