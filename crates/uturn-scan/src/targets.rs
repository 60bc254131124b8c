//! What clients of a cluster call.

use uturn_lb::controller;
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Destination, ObjectRef, Protocol, Text};

/// Something that clients of the cluster call.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanTarget {
    /// The object it belongs to.
    pub object: ObjectRef,
    /// How it is called.
    pub to: Destination,
    /// By which protocol.
    pub protocol: Protocol,
    /// For a reader: `:80`, `:80 shop.example.com/`.
    pub label: String,
}

/// All that clients of a cluster can call.
pub(crate) fn of(cluster: &Cluster) -> Vec<ScanTarget> {
    let mut targets = Vec::new();
    for service in cluster.services.values() {
        let object = service.object();
        let mut push = |to: Destination, protocol, label: String| {
            targets.push(ScanTarget { object: object.clone(), to, protocol, label });
        };
        for port in &service.ports {
            if !service.cluster_ips.is_empty() {
                let to =
                    Destination::Service(service.name.clone(), Some(port.port.to_string().into()));
                push(to, port.protocol, format!(":{}", port.port));
            }
            if service.kind == ServiceKind::LoadBalancer {
                for vip in service.load_balancer.iter().filter_map(|entry| entry.ip) {
                    let to = Destination::Address((vip, port.port.number()).into());
                    push(to, port.protocol, format!("{vip}:{}", port.port));
                }
            }
            for ip in &service.external_ips {
                let to = Destination::Address((*ip, port.port.number()).into());
                push(to, port.protocol, format!("{ip}:{}", port.port));
            }
        }
    }
    for ingress in cluster.ingresses.values() {
        if !controller::is_served(cluster, ingress)
            || ingress.load_balancer.iter().all(|entry| entry.ip.is_none())
        {
            continue;
        }
        let mut push = |host: Option<Text>, path: Option<Text>| {
            let (port, _) =
                controller::ingress_serves(cluster, ingress, host.as_ref(), path.as_ref());
            let label = format!(
                ":{port} {}{}",
                host.as_deref().unwrap_or("*"),
                path.as_deref().unwrap_or("/")
            );
            targets.push(ScanTarget {
                object: ingress.object(),
                to: Destination::Ingress { name: ingress.name.clone(), host, path },
                protocol: Protocol::Tcp,
                label,
            });
        };
        for rule in &ingress.rules {
            for path in &rule.paths {
                push(rule.host.clone(), Some(path.path.clone()));
            }
        }
        if ingress.rules.is_empty() && ingress.default_backend.is_some() {
            push(None, Some("/".into()));
        }
    }
    targets
}
