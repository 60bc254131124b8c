//! Which listeners and targets TKE's controllers make.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uturn_model::ingress::{Backend, BackendPort, PathKind};
use uturn_model::lb::{Layer, Listener, ListenerProtocol, Rule, Target, TargetKind};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{
    Cluster, Family, Ingress, IngressClass, Labels, Name, NamespacedName, Node, Protocol, Service,
    Text,
};

use super::{annotations, ingress_rules, overrides, profile};
use crate::cloud::{Owner, RuleAction, WantedListener, WantedRule};
use crate::targets;

/// The Ingress class of TKE's controller.
pub(super) const CLASS: &str = "qcloud";

/// The weight that the controllers give a target.
const WEIGHT: u32 = 10;
/// The largest weight of a target.
const MAX_WEIGHT: u32 = 100;

/// Whether TKE's controller serves an Ingress.
///
/// It serves the class `qcloud` and every class whose IngressClass names it. An Ingress that
/// names no class is of the cluster's default class, and is served if there is none.
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

/// The listeners of a Service, with targets of a family.
pub(super) fn of_service(cluster: &Cluster, service: &Service, family: Family) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for port in &service.ports {
        for protocol in spoken(service, port) {
            listeners.push(service_listener(cluster, service, port, protocol, family));
        }
    }
    listeners
}

/// The listeners of an Ingress, with targets of a family.
pub(super) fn of_ingress(cluster: &Cluster, ingress: &Ingress, family: Family) -> Vec<Listener> {
    let wanted = ingress_rules::wanted(ingress);
    wanted.iter().map(|wanted| ingress_listener(cluster, ingress, wanted, family)).collect()
}

/// The nodes whose NodePorts are targets of a Service's load balancer.
pub(super) fn target_nodes<'c>(cluster: &'c Cluster, service: &Service) -> Vec<&'c Node> {
    let wanted = service.annotations.get(annotations::BACKENDS_LABEL).map(targets::label_pairs);
    let only_with_pods = has_nodes_with_pods_only(service);
    let has_wanted_labels =
        |node: &Node| wanted.as_ref().is_none_or(|labels| node.labels.contains_all(labels));
    let nodes = targets::nodes(cluster).filter(|node| has_wanted_labels(node));
    nodes
        .filter(|node| !only_with_pods || targets::has_ready_pod(cluster, service, &node.name))
        .collect()
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
            targets: targets_of(cluster, service, port, family, &service.annotations),
            redirect: None,
        }],
    }
}

/// What a Service's port speaks at the load balancer: what the annotation says of it
/// (`{"443":{"protocol":["TCP_SSL"]}}`), else its own protocol.
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
                ingress_rule(cluster, ingress, host, path, backend, family)
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
    cluster: &Cluster,
    ingress: &Ingress,
    host: Option<&Text>,
    path: Option<(Text, PathKind)>,
    backend: &Backend,
    family: Family,
) -> Option<Rule> {
    let Backend::Service { name, port } = backend else { return None };
    let service_name =
        NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() };
    // A rule whose Service or port is missing is kept without targets: it answers 503.
    let targets = cluster
        .services
        .get(&service_name)
        .and_then(|service| {
            let port = service.ports.iter().find(|own| match port {
                BackendPort::Number(number) => own.port == *number,
                BackendPort::Name(name) => own.name.as_ref() == Some(name),
            })?;
            Some(targets_of(cluster, service, port, family, &ingress.annotations))
        })
        .unwrap_or_default();
    Some(Rule {
        host: host.cloned(),
        path,
        service: service_name,
        owner: ingress.object(),
        targets,
        redirect: None,
    })
}

/// The targets of one port of a Service. `annotations` are those of what asks for the load
/// balancer: the Service itself, or an Ingress.
fn targets_of(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
    family: Family,
    annotations: &Labels,
) -> Vec<Target> {
    let direct = [annotations::DIRECT_ACCESS, annotations::INGRESS_DIRECT_ACCESS]
        .into_iter()
        .any(|key| annotations.is(key, "true") || service.annotations.is(key, "true"));
    if direct {
        return targets::pods(cluster, service, port, family, WEIGHT);
    }
    let mut targets = targets::node_ports(target_nodes(cluster, service), port, family, WEIGHT);
    if has_nodes_with_pods_only(service)
        && service.annotations.is(annotations::WEIGHT_BY_PODS, "true")
    {
        for target in &mut targets {
            target.weight = weight_by_pods(cluster, service, target);
        }
    }
    targets
}

/// How many pods are behind a target, within what a weight can be.
fn weight_by_pods(cluster: &Cluster, service: &Service, target: &Target) -> u32 {
    let TargetKind::NodePort(node) = &target.kind else { return target.weight };
    let addresses: BTreeSet<IpAddr> = targets::ready_endpoints(cluster, service, node).collect();
    addresses.len().try_into().unwrap_or(MAX_WEIGHT).min(MAX_WEIGHT)
}
