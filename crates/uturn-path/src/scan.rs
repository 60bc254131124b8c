//! Every class of client against every target.
//!
//! Pods on one node that a target cannot tell apart are one class: the same node, the same
//! kind of network, and not themselves an endpoint of the target. Each class is walked
//! once, with one of its pods.

use std::collections::BTreeMap;

use uturn_lb::controller;
use uturn_model::service::ServiceKind;
use uturn_model::{
    Client, Destination, Flow, Kind, Name, NamespacedName, ObjectRef, Pod, Protocol, Verdict,
};

use crate::engine::{Cannot, Engine};

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
    /// The Services whose endpoints answer.
    services: Vec<NamespacedName>,
}

/// Clients that a target cannot tell apart.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientClass {
    /// The pods, by name.
    pub pods: Vec<NamespacedName>,
    /// The node they are on.
    pub node: Name,
    /// Whether they share the node's network.
    pub host_network: bool,
}

/// A class of clients met a target.
#[derive(Clone, Debug)]
pub struct Met {
    /// The clients.
    pub clients: ClientClass,
    /// The target.
    pub target: ScanTarget,
    /// What became of it.
    pub verdicts: Vec<Verdict>,
}

impl<'a> Engine<'a> {
    /// Walks every class of client against every target.
    pub fn scan(&self, targets: &[ScanTarget]) -> Result<Vec<Met>, Cannot> {
        let mut met = Vec::new();
        for target in targets {
            for clients in self.classes(target) {
                let Some(first) = clients.pods.first() else { continue };
                let flow = Flow {
                    from: Client::Pod(first.clone()),
                    to: target.to.clone(),
                    protocol: target.protocol,
                };
                let verdicts = self.verdicts(&flow)?;
                met.push(Met { clients, target: target.clone(), verdicts });
            }
        }
        Ok(met)
    }

    /// All that clients of the cluster can call.
    pub fn targets(&self) -> Vec<ScanTarget> {
        let mut targets = Vec::new();
        for service in self.cluster.services.values() {
            let object = service.object();
            let mut push = |to: Destination, protocol, label: String| {
                targets.push(ScanTarget {
                    object: object.clone(),
                    to,
                    protocol,
                    label,
                    services: vec![service.name.clone()],
                });
            };
            for port in &service.ports {
                if !service.cluster_ips.is_empty() {
                    let to = Destination::Service(
                        service.name.clone(),
                        Some(port.port.to_string().into()),
                    );
                    push(to, port.protocol, format!(":{}", port.port));
                }
                if service.kind == ServiceKind::LoadBalancer {
                    for vip in service.load_balancer.iter().filter_map(|one| one.ip) {
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
        for ingress in self.cluster.ingresses.values() {
            if !controller::is_served_by_cloud(self.cluster, ingress)
                || ingress.load_balancer.iter().all(|one| one.ip.is_none())
            {
                continue;
            }
            let services = self
                .balancers
                .iter()
                .flat_map(|one| &one.listeners)
                .flat_map(|one| &one.rules)
                .filter(|rule| rule.owner == ObjectRef::namespaced(Kind::Ingress, &ingress.name))
                .map(|rule| rule.service.clone())
                .collect::<Vec<_>>();
            let (port, _) = controller::ingress_listens(ingress);
            let mut push = |host: Option<uturn_model::Text>, path: Option<uturn_model::Text>| {
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
                    services: services.clone(),
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

    /// The classes of clients of a target.
    fn classes(&self, target: &ScanTarget) -> Vec<ClientClass> {
        let mut classes: BTreeMap<(Name, bool, Option<&NamespacedName>), ClientClass> =
            BTreeMap::new();
        for pod in self.cluster.pods.values().filter(|pod| pod.is_alive()) {
            let Some(node) =
                pod.node.as_ref().filter(|name| self.cluster.nodes.contains_key(*name))
            else {
                continue;
            };
            let itself = self.is_endpoint(pod, target).then_some(&pod.name);
            classes
                .entry((node.clone(), pod.spec.host_network, itself))
                .or_insert_with(|| ClientClass {
                    pods: Vec::new(),
                    node: node.clone(),
                    host_network: pod.spec.host_network,
                })
                .pods
                .push(pod.name.clone());
        }
        classes.into_values().collect()
    }

    fn is_endpoint(&self, pod: &Pod, target: &ScanTarget) -> bool {
        target.services.iter().any(|service| {
            self.cluster
                .slices(service)
                .iter()
                .any(|slice| slice.endpoints.iter().any(|one| pod.ips.contains(&one.address)))
        })
    }
}
