//! The listeners and targets that TKE's controllers make.

use std::collections::BTreeMap;

use uturn_model::ingress::{Backend, PathKind};
use uturn_model::lb::{Layer, Listener, ListenerProtocol, Rule, Target};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{
    Cluster, Endpoint, Family, Ingress, IngressClass, Name, NamespacedName, Node, Protocol,
    Service, Text,
};

use super::pod_weights::{self, PodWeights, TargetsOf};
use super::{annotations, ingress_rules, overrides, profile};
use crate::cloud::{Owner, RuleAction, WantedListener, WantedRule};
use crate::targets;

/// The Ingress class of TKE's controller.
pub(super) const CLASS: &str = "qcloud";

/// The labels of nodes that run the control plane.
const MASTERS: [&str; 2] =
    ["node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"];

/// Returns whether TKE's controller serves an Ingress.
///
/// The controller serves the class `qcloud` and every class whose IngressClass names the
/// controller. An Ingress that names no class belongs to the cluster's default class, and is served
/// if there is none.
pub(super) fn serves(ingress: &Ingress, classes: &BTreeMap<Name, IngressClass>) -> bool {
    let is_own = |class: &IngressClass| {
        class.controller.contains("qcloud") || class.controller.contains("tencent")
    };
    let default = || classes.values().find(|class| class.is_default);
    match ingress.class.as_deref() {
        Some(CLASS) => true,
        Some(name) => classes.get(name).is_some_and(is_own),
        None => default().is_none_or(|class| class.name.as_str() == CLASS || is_own(class)),
    }
}

/// Returns the listeners of a Service, with targets of a family.
pub(super) fn of_service(cluster: &Cluster, service: &Service, family: Family) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for port in &service.ports {
        for protocol in spoken(service, port) {
            listeners.push(service_listener(cluster, service, port, protocol, family));
        }
    }
    listeners
}

/// Returns the listeners of an Ingress, with targets of a family.
pub(super) fn of_ingress(cluster: &Cluster, ingress: &Ingress, family: Family) -> Vec<Listener> {
    let wanted = ingress_rules::wanted(ingress);
    wanted.iter().map(|wanted| ingress_listener(cluster, ingress, wanted, family)).collect()
}

/// Returns the nodes whose NodePorts are targets of a Service's load balancer.
pub(super) fn target_nodes<'c>(cluster: &'c Cluster, service: &Service) -> Vec<&'c Node> {
    let wanted = service.annotations.get(annotations::BACKENDS_LABEL).map(targets::label_pairs);
    let only_with_pods = has_nodes_with_pods_only(service);
    let has_wanted_labels =
        |node: &Node| wanted.as_ref().is_none_or(|labels| node.labels.contains_all(labels));
    let nodes = cluster.nodes.values().filter(|node| !excludes(node) && has_wanted_labels(node));
    nodes
        .filter(|node| !only_with_pods || targets::has_ready_pod(cluster, service, &node.name))
        .collect()
}

/// Returns whether a node is never a target: a label excludes it, it runs the control plane, it is
/// not ready, or it is cordoned.
pub(super) fn excludes(node: &Node) -> bool {
    let is_master = MASTERS.iter().any(|key| node.labels.get(key).is_some());
    node.excluded_from_load_balancers() || is_master || !node.ready || node.unschedulable
}

fn has_nodes_with_pods_only(service: &Service) -> bool {
    service.external_policy == Policy::Local
        && service.annotations.is(annotations::ONLY_NODES_WITH_PODS, "true")
}

fn service_listener(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
    protocol: ListenerProtocol,
    family: Family,
) -> Listener {
    let mut profile = profile::clb(protocol.layer());
    let owner = Owner::Service(service);
    if let Some(listener) = overrides::listener(cluster, owner, port.port, protocol) {
        overrides::apply(&mut profile, listener);
    }
    Listener {
        port: port.port,
        protocol,
        profile,
        rules: vec![Rule {
            host: None,
            path: None,
            service: service.name.clone(),
            owner: service.object(),
            targets: targets_of(
                cluster,
                owner,
                (service, port, family),
                TargetsOf {
                    protocol: &port.protocol.to_string(),
                    port: port.port.number(),
                    host: "",
                    path: "",
                },
            ),
            redirect: None,
        }],
    }
}

/// Returns the protocols of a Service's port at the load balancer: those of the annotation
/// (`{"443":{"protocol":["TCP_SSL"]}}`), otherwise the port's own protocol.
fn spoken(service: &Service, port: &ServicePort) -> Vec<ListenerProtocol> {
    let usual = match port.protocol {
        Protocol::Udp => ListenerProtocol::Udp,
        Protocol::Tcp | Protocol::Sctp => ListenerProtocol::Tcp,
    };
    let asked = || {
        let text = service.annotations.get(annotations::SPECIFY_PROTOCOL)?;
        let asked: serde_json::Value = serde_json::from_str(text).ok()?;
        let names = asked.get(port.port.to_string())?.get("protocol")?.as_array()?;
        let known = names.iter().filter_map(|name| protocol_named(name.as_str()?));
        Some(known.collect::<Vec<_>>())
    };
    asked().filter(|known| !known.is_empty()).unwrap_or_else(|| vec![usual])
}

fn protocol_named(name: &str) -> Option<ListenerProtocol> {
    [
        ListenerProtocol::Tcp,
        ListenerProtocol::Udp,
        ListenerProtocol::TcpSsl,
        ListenerProtocol::Http,
        ListenerProtocol::Https,
    ]
    .into_iter()
    .find(|protocol| protocol.to_string() == name)
}

fn ingress_listener(
    cluster: &Cluster,
    ingress: &Ingress,
    wanted: &WantedListener<'_>,
    family: Family,
) -> Listener {
    let WantedListener { port, protocol, .. } = *wanted;
    let mut profile = profile::clb(Layer::L7);
    let owner = Owner::Ingress(ingress);
    if let Some(listener) = overrides::listener(cluster, owner, port, protocol) {
        overrides::apply(&mut profile, listener);
    }
    let rule = |rule: &WantedRule<'_>| {
        let (host, path) = (rule.host.as_ref(), rule.path.clone());
        match &rule.action {
            RuleAction::Serve(backend) => {
                let of = TargetsOf {
                    protocol: &protocol.to_string(),
                    port: port.number(),
                    host: host.map_or("", |host| host),
                    path: path.as_ref().map_or("/", |(path, _)| path),
                };
                let targets = backend_targets(cluster, ingress, backend, family, of);
                ingress_rule(ingress, host, path.clone(), backend, targets)
            }
            RuleAction::Redirect(redirect) => Some(Rule {
                host: host.cloned(),
                path,
                service: ingress.name.clone(),
                owner: ingress.object(),
                targets: Vec::new(),
                redirect: Some(redirect.clone()),
            }),
        }
    };
    let rules = wanted.rules.iter().filter_map(rule).collect();
    Listener { port, protocol, profile, rules }
}

fn ingress_rule(
    ingress: &Ingress,
    host: Option<&Text>,
    path: Option<(Text, PathKind)>,
    backend: &Backend,
    targets: Vec<Target>,
) -> Option<Rule> {
    let Backend::Service { name, .. } = backend else { return None };
    Some(Rule {
        host: host.cloned(),
        path,
        service: NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() },
        owner: ingress.object(),
        targets,
        redirect: None,
    })
}

/// Returns the targets of a rule of an Ingress. A rule whose Service or port is missing is kept
/// without targets: it answers 503.
fn backend_targets(
    cluster: &Cluster,
    ingress: &Ingress,
    backend: &Backend,
    family: Family,
    of: TargetsOf<'_>,
) -> Vec<Target> {
    let Backend::Service { name, port } = backend else { return Vec::new() };
    let name = NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() };
    let service = cluster.services.get(&name);
    let found = service.and_then(|service| Some((service, service.port_named(port)?, family)));
    found.map_or_else(Vec::new, |found| targets_of(cluster, Owner::Ingress(ingress), found, of))
}

/// Returns the targets of one port of a Service. `owner` asks for the load balancer: the Service
/// itself, or an Ingress.
fn targets_of(
    cluster: &Cluster,
    owner: Owner<'_>,
    (service, port, family): (&Service, &ServicePort, Family),
    of: TargetsOf<'_>,
) -> Vec<Target> {
    if is_direct(owner, service) {
        let weights = PodWeights::of(owner);
        let weight = |endpoint: &Endpoint| {
            let usual = || {
                let pod = endpoint.pod.as_ref().map(|pod| pod.name.as_str());
                weights.of_pod(of, pod)
            };
            endpoint_weight(cluster, owner, endpoint, usual)
        };
        return targets::pods(cluster, service, port, family, weight);
    }
    let mut targets =
        targets::node_ports(target_nodes(cluster, service), port, family, pod_weights::USUAL);
    if has_nodes_with_pods_only(service)
        && service.annotations.is(annotations::WEIGHT_BY_PODS, "true")
    {
        for target in &mut targets {
            let pods = targets::pods_behind(cluster, service, target);
            target.weight = pods.min(pod_weights::MAX);
        }
    }
    targets
}

/// Returns whether pods are the targets of a Service's ports.
fn is_direct(owner: Owner<'_>, service: &Service) -> bool {
    [annotations::DIRECT_ACCESS, annotations::INGRESS_DIRECT_ACCESS]
        .into_iter()
        .any(|key| owner.annotations().is(key, "true") || service.annotations.is(key, "true"))
}

/// Returns the weight of an endpoint that is a target itself. A terminating pod gets no new
/// connections and remains a target until it is gone. Returns `None` if an endpoint is not a
/// target.
fn endpoint_weight(
    cluster: &Cluster,
    owner: Owner<'_>,
    endpoint: &Endpoint,
    usual: impl Fn() -> u32,
) -> Option<u32> {
    if endpoint.terminating {
        return Some(0);
    }
    // A pod with the gate counts even if it is ready: its EndpointSlice states that later.
    let awaits = || {
        let pod = endpoint.pod.as_ref().and_then(|pod| cluster.pods.get(pod));
        pod.is_some_and(|pod| !pod.terminating && pod.is_decided_by(annotations::READINESS_GATE))
    };
    if endpoint.ready || awaits() {
        return Some(usual());
    }
    let keeps = [annotations::GRACE_SHUTDOWN, annotations::INGRESS_GRACE_SHUTDOWN];
    keeps.into_iter().any(|key| owner.annotations().is(key, "true")).then_some(0)
}
