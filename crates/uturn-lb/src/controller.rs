//! What the cloud's controllers make of a cluster: load balancers, listeners, targets.
//!
//! Services of type LoadBalancer become layer-4 listeners, the Ingresses that the cloud
//! serves become layer-7 ones; both may share an address. Targets are NodePorts of the
//! nodes that are registered, or pods where `direct-access` asks for it. What Facts state
//! of a load balancer wins over what was worked out.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use uturn_model::cluster::Provider;
use uturn_model::ingress::{Backend, BackendPort, PathKind};
use uturn_model::lb::{
    Layer, Listener, ListenerConfig, ListenerProtocol, LoadBalancer, LoadBalancerFact, ProbeSource,
    Rule, Scope, Source, Target, TargetKind,
};
use uturn_model::service::{Policy, ServiceKind, ServicePort};
use uturn_model::{
    Cluster, Family, Ingress, IngressClass, Labels, Name, NamespacedName, Node, ObjectRef, Port,
    Protocol, Service, Text, Unknown,
};

use crate::listeners::{self, Action, Wanted, WantedRule};
use crate::profile;

/// Every load balancer of the cluster, by address.
pub fn load_balancers(cluster: &Cluster) -> Vec<LoadBalancer> {
    let mut made: BTreeMap<IpAddr, LoadBalancer> = BTreeMap::new();
    for service in cluster.services.values() {
        for (vip, scope) in service_vips(cluster, service) {
            let balancer = entry(&mut made, vip, scope, service.object());
            for port in &service.ports {
                for protocol in spoken(service, port) {
                    add(balancer, service_listener(cluster, service, port, protocol, vip));
                }
            }
        }
    }
    for ingress in cluster.ingresses.values().filter(|one| is_served_by_cloud(cluster, one)) {
        for (vip, scope) in ingress_vips(cluster, ingress) {
            let balancer = entry(&mut made, vip, scope, ingress.object());
            for wanted in listeners::of(ingress) {
                add(balancer, ingress_listener(cluster, ingress, &wanted, vip));
            }
        }
    }
    for fact in &cluster.load_balancers {
        if let Some(balancer) = made.get_mut(&fact.vip) {
            apply(balancer, fact);
        }
    }
    made.into_values().collect()
}

/// Whether the cloud's own Ingress controller serves it, as far as that is judged.
pub fn is_served_by_cloud(cluster: &Cluster, ingress: &Ingress) -> bool {
    !ingress.unjudged.iter().any(Unknown::is_of_balancer)
        && cluster.provider.value == Provider::Tke
        && is_of_cloud(ingress, &cluster.ingress_classes)
}

/// Whether an Ingress is of a class that the cloud's own controller serves.
///
/// TKE's serves the class `qcloud` and every class whose IngressClass names its controller.
/// An Ingress that names no class is of the cluster's default class, and is served where
/// there is none.
pub fn is_of_cloud(ingress: &Ingress, classes: &BTreeMap<Name, IngressClass>) -> bool {
    let is_own = |class: &IngressClass| {
        class.controller.contains("qcloud") || class.controller.contains("tencent")
    };
    let default = || classes.values().find(|class| class.is_default);
    match ingress.class.as_deref() {
        Some("qcloud") => true,
        Some(name) => classes.get(name).is_some_and(is_own),
        None => default().is_none_or(|class| class.name.as_str() == "qcloud" || is_own(class)),
    }
}

/// Where the cloud's controller listens for an Ingress, and what it speaks there: of
/// several listeners, the first that serves anything.
pub fn ingress_listens(ingress: &Ingress) -> (Port, ListenerProtocol) {
    let all = listeners::of(ingress);
    let serves =
        |one: &&Wanted<'_>| one.rules.iter().any(|rule| matches!(rule.action, Action::Serve(_)));
    let found = all.iter().find(serves).or(all.first());
    found.map_or((HTTP, ListenerProtocol::Http), |one| (one.port, one.protocol))
}

/// A call of an Ingress, with all that whoever makes it may leave out.
#[derive(Clone, Debug, PartialEq)]
pub struct IngressCall {
    /// The host; none where the rule that is called is for any.
    pub host: Option<Text>,
    /// The path; none where there is no rule.
    pub path: Option<Text>,
    /// The port of the listener where that rule stands.
    pub port: Port,
    /// What that listener speaks.
    pub protocol: ListenerProtocol,
}

/// What is called of an Ingress: where no host is named, that of its first rule, and where no
/// path is named, the first of the host.
pub fn ingress_call(ingress: &Ingress, host: Option<&Text>, path: Option<&Text>) -> IngressCall {
    let rule = ingress.rules.iter().find(|rule| host.is_none() || rule.host.as_ref() == host);
    let host = host.or_else(|| rule?.host.as_ref());
    let path = path.or_else(|| Some(&rule?.paths.first()?.path));
    let (port, protocol) = ingress_serves(ingress, host, path);
    IngressCall { host: host.cloned(), path: path.cloned(), port, protocol }
}

/// The same of one of its rules.
pub fn ingress_serves(
    ingress: &Ingress,
    host: Option<&Text>,
    path: Option<&Text>,
) -> (Port, ListenerProtocol) {
    let serves = |one: &&Wanted<'_>| {
        one.rules.iter().any(|rule| {
            matches!(rule.action, Action::Serve(_))
                && rule.host.as_ref() == host
                && path.is_none_or(|path| rule.path.as_ref().is_some_and(|(own, _)| own == path))
        })
    };
    let all = listeners::of(ingress);
    let found = all.iter().find(serves);
    found.map_or_else(|| ingress_listens(ingress), |one| (one.port, one.protocol))
}

/// All ports that the cloud's controller listens on for an Ingress.
pub fn ingress_ports(ingress: &Ingress) -> Vec<Port> {
    listeners::of(ingress).into_iter().map(|one| one.port).collect()
}

/// What the cloud's controller is asked to do at which ports, but for the names in it.
pub fn ingress_wants(ingress: &Ingress) -> Vec<(Port, ListenerProtocol, Vec<bool>)> {
    let is_served = |rule: &WantedRule<'_>| matches!(rule.action, Action::Serve(_));
    let all = listeners::of(ingress).into_iter();
    all.map(|one| (one.port, one.protocol, one.rules.iter().map(is_served).collect())).collect()
}

const HTTP: Port = Port::new(80).expect("80 is not zero");

/// The nodes whose NodePorts are targets of a Service's load balancer.
pub fn registered_nodes<'a>(cluster: &'a Cluster, service: &Service) -> Vec<&'a Node> {
    let wanted = service
        .annotations
        .get("service.kubernetes.io/qcloud-loadbalancer-backends-label")
        .map(label_pairs);
    let only_with_pods = service.external_policy == Policy::Local
        && service
            .annotations
            .is("service.kubernetes.io/local-svc-only-bind-node-with-pod", "true");
    cluster
        .nodes
        .values()
        .filter(|node| !node.excluded_from_load_balancers())
        .filter(|node| wanted.as_ref().is_none_or(|labels| node.labels.contains_all(labels)))
        .filter(|node| {
            !only_with_pods
                || cluster.slices(&service.name).iter().any(|slice| {
                    slice
                        .endpoints
                        .iter()
                        .any(|one| one.ready && one.node.as_ref() == Some(&node.name))
                })
        })
        .collect()
}

fn service_vips(cluster: &Cluster, service: &Service) -> Vec<(IpAddr, Scope)> {
    let is_judged = cluster.provider.value == Provider::Tke
        && !service.unjudged.iter().any(Unknown::is_of_balancer);
    if service.kind != ServiceKind::LoadBalancer || !is_judged {
        return Vec::new();
    }
    let is_private = service
        .annotations
        .get("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid")
        .is_some();
    service
        .load_balancer
        .iter()
        .filter_map(|one| one.ip)
        .map(|vip| (vip, scope(cluster, vip, is_private)))
        .collect()
}

fn ingress_vips(cluster: &Cluster, ingress: &Ingress) -> Vec<(IpAddr, Scope)> {
    let is_private = ingress.annotations.get("kubernetes.io/ingress.subnetId").is_some();
    ingress
        .load_balancer
        .iter()
        .filter_map(|one| one.ip)
        .map(|vip| (vip, scope(cluster, vip, is_private)))
        .collect()
}

/// Private when an annotation asks for a subnet, or when the address is one of the VPC's or
/// of a range that the internet does not route.
fn scope(cluster: &Cluster, vip: IpAddr, is_private: bool) -> Scope {
    let in_vpc = cluster.network.vpc_cidrs.value.iter().any(|net| net.contains(&vip));
    let unrouted = match vip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local(),
    };
    if is_private || in_vpc || unrouted { Scope::Private } else { Scope::Public }
}

fn entry(
    made: &mut BTreeMap<IpAddr, LoadBalancer>,
    vip: IpAddr,
    scope: Scope,
    owner: ObjectRef,
) -> &mut LoadBalancer {
    made.entry(vip).or_insert_with(|| LoadBalancer {
        name: match owner.namespace {
            Some(namespace) => format!("{namespace}-{}", owner.name).into(),
            None => owner.name,
        },
        vip,
        scope,
        security_groups: Vec::new(),
        listeners: Vec::new(),
    })
}

/// Adds a listener, or its rules to the one that is already on that port.
fn add(balancer: &mut LoadBalancer, listener: Listener) {
    let same = |one: &&mut Listener| {
        one.port == listener.port && one.protocol.transport() == listener.protocol.transport()
    };
    match balancer.listeners.iter_mut().find(same) {
        None => balancer.listeners.push(listener),
        // On layer 4 a port has one owner: whoever came first keeps it.
        Some(there) if there.protocol.layer() == Layer::L7 => there.rules.extend(listener.rules),
        Some(_) => {}
    }
}

fn service_listener(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
    protocol: ListenerProtocol,
    vip: IpAddr,
) -> Listener {
    let mut profile = profile::tke_clb(protocol.layer());
    let settings = config_of(
        cluster,
        &service.name,
        &service.annotations,
        "service.cloud.tencent.com/tke-service-config",
        "auto-service-config",
    );
    let same = |one: &&ListenerConfig| {
        one.port == port.port && one.protocol.transport() == protocol.transport()
    };
    if let Some(config) = settings.iter().find(same) {
        configure(&mut profile, config);
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
            targets: targets(cluster, service, port, vip, &service.annotations),
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
        let text = service.annotations.get("service.cloud.tencent.com/specify-protocol")?;
        let said: serde_json::Value = serde_json::from_str(text).ok()?;
        let names = said.get(port.port.to_string())?.get("protocol")?.as_array()?;
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
    .find(|one| one.to_string() == name)
}

fn ingress_listener(
    cluster: &Cluster,
    ingress: &Ingress,
    wanted: &Wanted<'_>,
    vip: IpAddr,
) -> Listener {
    let Wanted { port, protocol, .. } = *wanted;
    let mut profile = profile::tke_clb(Layer::L7);
    let settings = config_of(
        cluster,
        &ingress.name,
        &ingress.annotations,
        "ingress.cloud.tencent.com/tke-service-config",
        "auto-ingress-config",
    );
    if let Some(config) = settings.iter().find(|one| one.port == port) {
        configure(&mut profile, config);
    }
    let rule = |rule: &WantedRule<'_>| {
        let (host, path) = (rule.host.as_ref(), rule.path.clone());
        match &rule.action {
            Action::Serve(backend) => ingress_rule(cluster, ingress, host, path, backend, vip),
            Action::Redirect(redirect) => Some(Rule {
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
    vip: IpAddr,
) -> Option<Rule> {
    let Backend::Service { name, port } = backend else { return None };
    let service_name =
        NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() };
    // A rule whose Service or port is missing is kept without targets: it answers 503.
    let targets = cluster
        .services
        .get(&service_name)
        .and_then(|service| {
            let port = service.ports.iter().find(|one| match port {
                BackendPort::Number(number) => one.port == *number,
                BackendPort::Name(name) => one.name.as_ref() == Some(name),
            })?;
            Some(targets(cluster, service, port, vip, &ingress.annotations))
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

/// Targets of one port of a Service. `annotations` are those of what asks for the load
/// balancer: the Service itself, or an Ingress.
fn targets(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
    vip: IpAddr,
    annotations: &Labels,
) -> Vec<Target> {
    let family = Family::of(vip);
    let direct =
        ["service.cloud.tencent.com/direct-access", "ingress.cloud.tencent.com/direct-access"]
            .into_iter()
            .any(|key| annotations.is(key, "true") || service.annotations.is(key, "true"));
    if direct {
        return pod_targets(cluster, service, port, family);
    }
    let Some(node_port) = port.node_port else { return Vec::new() };
    registered_nodes(cluster, service)
        .into_iter()
        .filter_map(|node| {
            Some(Target {
                address: SocketAddr::new(node.address(family)?, node_port.number()),
                weight: DEFAULT_WEIGHT,
                kind: TargetKind::NodePort(node.name.clone()),
            })
        })
        .collect()
}

/// The weight that the cloud's controller gives a target.
const DEFAULT_WEIGHT: u32 = 10;

fn pod_targets(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
    family: Family,
) -> Vec<Target> {
    let mut targets = Vec::new();
    for slice in cluster.slices(&service.name).iter().filter(|slice| slice.family == family) {
        let same = |one: &&uturn_model::EndpointPort| {
            one.protocol == port.protocol && one.name == port.name
        };
        let Some(slice_port) = slice.ports.iter().find(same) else { continue };
        for endpoint in slice.endpoints.iter().filter(|one| one.ready) {
            let target = Target {
                address: SocketAddr::new(endpoint.address, slice_port.port.number()),
                weight: DEFAULT_WEIGHT,
                kind: TargetKind::Pod { pod: endpoint.pod.clone(), node: endpoint.node.clone() },
            };
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    targets
}

/// The TkeServiceConfig that belongs to an object: the named one, or the automatic one.
fn config_of<'a>(
    cluster: &'a Cluster,
    owner: &NamespacedName,
    annotations: &Labels,
    key: &str,
    automatic_suffix: &str,
) -> &'a [ListenerConfig] {
    let name = if annotations.is(&format!("{key}-auto"), "true") {
        format!("{}-{automatic_suffix}", owner.name)
    } else if let Some(name) = annotations.get(key) {
        name.to_owned()
    } else {
        return &[];
    };
    NamespacedName::new(owner.namespace.as_str(), &name)
        .ok()
        .and_then(|name| cluster.tke_service_configs.get(&name))
        .map_or(&[], |config| &config.listeners)
}

fn configure(profile: &mut uturn_model::lb::Profile, config: &ListenerConfig) {
    if config.keepalive == Some(true) && config.protocol.layer() == Layer::L7 {
        profile.source = profile::tke_snat();
    }
    if let Some(scheduler) = config.scheduler {
        profile.scheduler = scheduler;
    }
    if config.health_check == Some(false) {
        profile.health_check = None;
    }
    set_probe_source(profile, config.probe_source);
}

fn apply(balancer: &mut LoadBalancer, fact: &LoadBalancerFact) {
    if let Some(name) = &fact.name {
        balancer.name = name.clone();
    }
    if let Some(scope) = fact.scope {
        balancer.scope = scope;
    }
    if let Some(groups) = &fact.security_groups {
        balancer.security_groups.clone_from(groups);
    }
    for listener in &mut balancer.listeners {
        set_probe_source(&mut listener.profile, fact.probe_source);
        for said in fact.listeners.iter().filter(|one| one.port == listener.port) {
            if let Some(protocol) = said.protocol {
                listener.protocol = protocol;
            }
            match said.snat {
                Some(true) => listener.profile.source = profile::tke_snat(),
                Some(false) => listener.profile.source = Source::Kept,
                None => {}
            }
            if let Some(scheduler) = said.scheduler {
                listener.profile.scheduler = scheduler;
            }
        }
    }
}

fn set_probe_source(profile: &mut uturn_model::lb::Profile, source: Option<ProbeSource>) {
    if let (Some(check), Some(source)) = (&mut profile.health_check, source) {
        check.source = source;
    }
}

/// `k=v`, or several with commas between: how an annotation says which nodes take part.
pub fn label_pairs(text: &str) -> Labels {
    text.split(',').filter_map(|pair| pair.trim().split_once('=')).collect()
}
