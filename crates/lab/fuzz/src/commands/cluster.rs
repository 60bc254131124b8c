//! The values of a cluster that arguments can name.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use uturn_model::{Cluster, Pod, Service};
use uturn_snapshot::{Source, read};

use super::input::Input;

/// The values of arguments, by their kind. A list is empty if the cluster has none of the kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) clients: Vec<String>,
    pub(super) targets: Vec<String>,
    pub(super) services: Vec<String>,
    pub(super) ingresses: Vec<String>,
    pub(super) nodes: Vec<String>,
    pub(super) namespaces: Vec<String>,
}

impl Values {
    /// Collects the values of the cluster that the files of an input describe, without captures.
    pub(super) fn of(input: &Input) -> Self {
        let is_manifest = |name: &str| name.ends_with("yaml") || name.ends_with("json");
        let source = |(name, bytes): &(String, Vec<u8>)| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            is_manifest(name).then(|| Source { name: name.as_str().into(), text })
        };
        let sources = input.files.iter().filter_map(source).collect();
        let mut values = read(sources).map(|loaded| of(&loaded.cluster)).unwrap_or_default();
        values.clients.push("outside".to_owned());
        values.targets.push("http://10.0.0.100/".to_owned());
        values
    }
}

fn of(cluster: &Cluster) -> Values {
    let pods = cluster.pods.keys().map(|name| format!("pod/{name}"));
    let workloads = cluster.workloads.keys();
    let workloads = workloads.map(|(kind, name)| format!("{}/{name}", kind.short()));
    let nodes = cluster.nodes.keys().map(|name| format!("node/{name}"));
    let named = cluster.services.keys().chain(cluster.pods.keys()).chain(cluster.ingresses.keys());
    let namespaces: BTreeSet<String> = named.map(|name| name.namespace.to_string()).collect();
    Values {
        clients: pods.chain(workloads).chain(nodes).collect(),
        targets: targets(cluster),
        services: cluster.services.keys().map(ToString::to_string).collect(),
        ingresses: cluster.ingresses.keys().map(ToString::to_string).collect(),
        nodes: cluster.nodes.keys().map(ToString::to_string).collect(),
        namespaces: namespaces.into_iter().collect(),
    }
}

fn targets(cluster: &Cluster) -> Vec<String> {
    let mut targets = Vec::new();
    for service in cluster.services.values() {
        add_service(service, cluster, &mut targets);
    }
    for (name, ingress) in &cluster.ingresses {
        targets.push(format!("ingress/{name}"));
        for rule in &ingress.rules {
            for path in &rule.paths {
                let host = rule.host.as_deref().unwrap_or_default();
                targets.push(format!("ingress/{name}/{host}{}", path.path));
                if !host.is_empty() {
                    targets.push(format!("http://{host}{}", path.path));
                }
            }
        }
        let ips = ingress.load_balancer.iter().filter_map(|entry| entry.ip);
        targets.extend(ips.map(|ip| format!("http://{}/", SocketAddr::new(ip, 80))));
    }
    for (name, pod) in &cluster.pods {
        targets.extend(ports(pod).map(|port| format!("pod/{name}:{port}")));
    }
    targets
}

fn ports(pod: &Pod) -> impl Iterator<Item = u16> {
    pod.spec.containers.iter().flat_map(|own| &own.ports).map(|own| own.port.number())
}

fn add_service(service: &Service, cluster: &Cluster, targets: &mut Vec<String>) {
    let name = &service.name;
    targets.push(format!("svc/{name}"));
    let of_balancer = service.load_balancer.iter().filter_map(|entry| entry.ip);
    let of_service = service.cluster_ips.iter().chain(&service.external_ips).copied();
    let ips: Vec<IpAddr> = of_service.chain(of_balancer).collect();
    for port in &service.ports {
        let number = port.port.number();
        targets.push(format!("svc/{name}:{number}"));
        targets
            .push(format!("http://{}.{}.svc.cluster.local:{number}/", name.name, name.namespace));
        for &ip in &ips {
            targets.push(SocketAddr::new(ip, number).to_string());
            targets.push(format!("http://{}/", SocketAddr::new(ip, number)));
        }
        let on_nodes = port.node_port.into_iter().flat_map(|port| {
            let ips = cluster.nodes.values().flat_map(|node| &node.internal_ips);
            ips.map(move |ip| SocketAddr::new(*ip, port.number()).to_string())
        });
        targets.extend(on_nodes);
    }
}
