//! What these tests configure a load balancer with: everything is on the loopback interface.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

use uturn_clouds::cloud::tke::profile::clb;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{Listener, ListenerProtocol, Rule, Scope, Source, Target, TargetKind};
use uturn_model::{LoadBalancer, NamespacedName, ObjectKind, ObjectRef, Port};

pub(crate) mod health;
pub(crate) mod tls;

/// A load balancer with one listener, which checks no target.
pub(crate) fn load_balancer(protocol: ListenerProtocol, rules: Vec<Rule>) -> LoadBalancer {
    let mut profile = clb(protocol.layer());
    profile.source = Source::Replaced("127.0.0.1/32".parse().unwrap());
    profile.avoids_client = false;
    profile.health_check = None;
    profile.passive_check = None;
    let address = unused_address();
    let port = Port::new(address.port()).unwrap();
    LoadBalancer {
        name: "lb".into(),
        vip: address.ip(),
        scope: Scope::Private,
        zone: None,
        security_groups: Vec::new(),
        listeners: vec![Listener { port, protocol, profile, rules }],
    }
}

/// Where its listener is.
pub(crate) fn address(balancer: &LoadBalancer) -> SocketAddr {
    SocketAddr::new(balancer.vip, balancer.listeners[0].port.number())
}

/// A rule for a host, or for every host.
pub(crate) fn rule(host: Option<&str>, path: &str, targets: &[SocketAddr]) -> Rule {
    let name = NamespacedName::new("shop", "front").unwrap();
    let target = |address: &SocketAddr| Target {
        address: *address,
        weight: 10,
        kind: TargetKind::NodePort("n1".parse().unwrap()),
    };
    Rule {
        host: host.map(Into::into),
        path: Some((path.into(), PathKind::Prefix)),
        service: name.clone(),
        owner: ObjectRef::namespaced(ObjectKind::Ingress, &name),
        targets: targets.iter().map(target).collect(),
        redirect: None,
    }
}

/// An address for a listener. The whole of 127.0.0.0/8 is this machine: every process has ports of
/// its own there.
pub(crate) fn unused_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let ip = IpAddr::V4(Ipv4Addr::new(127, 64 | high, middle, low));
    SocketAddr::new(ip, 20_000 + NEXT.fetch_add(1, Ordering::Relaxed))
}
