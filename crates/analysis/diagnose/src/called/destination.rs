//! Resolves the destination of a flow: the load balancer, the Service and its port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use uturn_clouds::controller::{self, BalancerCall};
use uturn_lb::rules;
use uturn_model::ingress::Backend;
use uturn_model::lb::{Layer, Redirect};
use uturn_model::service::ServicePort;
use uturn_model::{
    Client, Cluster, Destination, Family, Flow, NamespacedName, ObjectKind, ObjectRef, Port, Text,
};
use uturn_path::Engine;

/// The destination of a flow, resolved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aim {
    /// The load balancer's address.
    pub(crate) vip: Option<SocketAddr>,
    /// The object that owns the listener there.
    pub(crate) owner: Option<ObjectRef>,
    /// The Service behind the destination, and its port if it has the called one.
    pub(crate) service: Option<NamespacedName>,
    pub(crate) port: Option<ServicePort>,
    /// The requested host and path.
    pub(crate) host: Option<Text>,
    pub(crate) path: Option<Text>,
    /// The port that the client calls.
    pub(crate) called: Option<Port>,
    /// Whether the client is redirected to this destination.
    pub(crate) is_redirected: bool,
    /// Whether the client calls a port of a node, or an address of the Service that is meant for
    /// clients outside, and no load balancer there is known.
    pub(crate) is_external: bool,
}

/// Resolves the destination of a flow. `sent` is the address that the client's name resolves to,
/// if it is known.
pub(crate) fn aim(engine: &Engine<'_>, flow: &Flow, sent: Option<SocketAddr>) -> Aim {
    let aim = balanced(engine, flow, sent);
    if aim.service.is_some() || aim.vip.is_some() {
        return aim;
    }
    without_balancer(engine.cluster(), flow, sent, aim)
}

/// Adds the Service of a destination that is neither a cluster IP nor a load balancer's address: by
/// its name, by one of its other addresses, or by its port on nodes.
fn without_balancer(cluster: &Cluster, flow: &Flow, sent: Option<SocketAddr>, aim: Aim) -> Aim {
    let (host, port) = match &flow.to {
        Destination::Host(host, port) | Destination::Url { host, port, .. } => (&**host, *port),
        Destination::Address(address) => match Port::new(address.port()) {
            Some(port) => return by_address(cluster, address.ip(), port, flow, aim),
            None => return aim,
        },
        Destination::Ingress { name, .. } => {
            let own = cluster.ingresses.get(name);
            let vip = own.and_then(|own| own.load_balancer.iter().find_map(|address| address.ip));
            let ip = vip.or_else(|| sent.map(|sent| sent.ip()));
            return match (ip, aim.called) {
                (Some(ip), Some(port)) => by_address(cluster, ip, port, flow, aim),
                _ => aim,
            };
        }
        Destination::Service(..) | Destination::Pod(..) => return aim,
    };
    let home = match &flow.from {
        Client::Pod(name) | Client::Workload(_, name) => Some(name.namespace.as_str()),
        Client::Node(_) | Client::Outside(_) => None,
    };
    let ip = host.parse::<IpAddr>().ok();
    let ip = ip.or_else(|| (host == "localhost").then_some(Ipv4Addr::LOCALHOST.into()));
    let domain = format!(".svc.{}", cluster.dns.domain());
    let bare = host.trim_end_matches('.');
    let bare = bare.strip_suffix(&domain).or_else(|| bare.strip_suffix(".svc")).unwrap_or(bare);
    let name = match (bare.split_once('.'), home) {
        (Some((name, namespace)), _) => NamespacedName::new(namespace, name).ok(),
        (None, Some(home)) => NamespacedName::new(home, bare).ok(),
        (None, None) => None,
    };
    let service = name.filter(|_| ip.is_none()).and_then(|name| cluster.services.get(&name));
    match (service, ip.or_else(|| sent.map(|sent| sent.ip()))) {
        (Some(service), _) => {
            let mut ports = service.ports.iter();
            let own = ports.find(|own| own.port == port && own.protocol == flow.protocol);
            let service = Some(service.name.clone());
            Aim { service, port: own.cloned(), called: Some(port), ..aim }
        }
        (None, Some(ip)) => by_address(cluster, ip, port, flow, aim),
        (None, None) => aim,
    }
}

/// Adds the Service that has an address beside its cluster IP, or a port on nodes.
fn by_address(cluster: &Cluster, ip: IpAddr, port: Port, flow: &Flow, aim: Aim) -> Aim {
    let is_node = ip.is_loopback()
        || cluster.nodes.values().any(|node| node.address(Family::of(ip)) == Some(ip));
    let found = cluster.services.values().find_map(|service| {
        let is_there = |own: &&ServicePort| {
            own.protocol == flow.protocol
                && (is_node && own.node_port == Some(port)
                    || own.port == port && service.has_address(ip))
        };
        Some((service, service.ports.iter().find(is_there)?))
    });
    let Some((service, own)) = found else { return aim };
    Aim {
        service: Some(service.name.clone()),
        port: Some(own.clone()),
        called: Some(port),
        is_external: true,
        ..aim
    }
}

fn balanced(engine: &Engine<'_>, flow: &Flow, sent: Option<SocketAddr>) -> Aim {
    let cluster = engine.cluster();
    if let Some(BalancerCall::At(address)) = BalancerCall::of(cluster, &flow.from, &flow.to) {
        return at(engine, address, None, None, flow);
    }
    match &flow.to {
        Destination::Pod(..) => Aim::default(),
        Destination::Service(name, port) => {
            let service = cluster.services.get(name);
            let wanted = |service_port: &&ServicePort| match port {
                None => true,
                Some(text) => {
                    service_port.name.as_ref() == Some(text)
                        || text.parse::<Port>() == Ok(service_port.port)
                }
            };
            let found = service.and_then(|service| service.ports.iter().find(wanted)).cloned();
            let called = found.as_ref().map(|port| port.port);
            let called = called.or_else(|| port.as_ref()?.parse().ok());
            Aim { service: Some(name.clone()), port: found, called, ..Aim::default() }
        }
        Destination::Ingress { name, host, path, port } => {
            let Some(ingress) = cluster.ingresses.get(name) else { return Aim::default() };
            let call = controller::ingress_call(cluster, ingress, host.as_ref(), path.as_ref());
            let (host, path, port) = (call.host, call.path, port.unwrap_or(call.port));
            let vip = ingress.load_balancer.iter().find_map(|address| address.ip);
            // A status with only a host name: the name's address is used.
            let vip = vip.or_else(|| sent.map(|to| to.ip()));
            match vip {
                Some(ip) => at(engine, SocketAddr::new(ip, port.number()), host, path, flow),
                None => Aim { owner: Some(ingress.object()), host, path, ..Aim::default() },
            }
        }
        Destination::Address(address) => at(engine, *address, None, None, flow),
        Destination::Host(host, port) => match sent {
            Some(to) => at(engine, to, Some(host.clone()), None, flow),
            None => by_host(engine, host, *port, None, flow),
        },
        Destination::Url { host, port, path, .. } => {
            let is_name = host.parse::<IpAddr>().is_err();
            match sent.filter(|_| is_name) {
                Some(to) => at(engine, to, Some(host.clone()), Some(path.clone()), flow),
                None => by_host(engine, host, *port, Some(path.clone()), flow),
            }
        }
    }
}

fn by_host(engine: &Engine<'_>, host: &Text, port: Port, path: Option<Text>, flow: &Flow) -> Aim {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return at(engine, SocketAddr::new(ip, port.number()), None, path, flow);
    }
    let owner = engine.balancer_behind(&flow.to, flow.protocol).map(|rule| rule.owner.clone());
    let vip =
        owner.as_ref().and_then(|owner| vip_of(engine, owner)).or_else(|| by_rule(engine, host));
    if let Some(ip) = vip {
        return at(engine, SocketAddr::new(ip, port.number()), Some(host.clone()), path, flow);
    }
    let mut parts = host.split('.');
    let named = match (parts.next(), parts.next()) {
        (Some(name), Some(namespace)) => NamespacedName::new(namespace, name).ok(),
        _ => None,
    };
    let service = named.and_then(|name| engine.cluster().services.get(&name));
    let found = service
        .and_then(|service| service.ports.iter().find(|service_port| service_port.port == port))
        .cloned();
    Aim {
        service: service.map(|service| service.name.clone()),
        port: found,
        host: Some(host.clone()),
        path,
        called: Some(port),
        ..Aim::default()
    }
}

/// Returns the address of the Ingress that has a rule for a host.
fn by_rule(engine: &Engine<'_>, host: &Text) -> Option<IpAddr> {
    let named = engine
        .cluster()
        .ingresses
        .values()
        .find(|ingress| ingress.rules.iter().any(|rule| rule.host.as_ref() == Some(host)))?;
    named.load_balancer.iter().find_map(|address| address.ip)
}

fn vip_of(engine: &Engine<'_>, owner: &ObjectRef) -> Option<IpAddr> {
    let name = owner.namespaced_name()?;
    let cluster = engine.cluster();
    let list = match owner.kind {
        ObjectKind::Service => &cluster.services.get(&name)?.load_balancer,
        ObjectKind::Ingress => &cluster.ingresses.get(&name)?.load_balancer,
        _ => return None,
    };
    list.iter().find_map(|address| address.ip)
}

/// Returns the address, host and path to which a redirect leads. Returns `None` unless a listener
/// serves them without another redirect.
fn redirect_target(
    engine: &Engine<'_>,
    redirect: &Redirect,
    asked: &Aim,
) -> Option<(SocketAddr, Text, Text)> {
    let vip = asked.vip?;
    let host = asked.host.as_deref().map_or_else(|| vip.ip().to_string(), str::to_owned);
    let (host, path) = redirect.aim(&host, asked.path.as_deref().unwrap_or("/"));
    let ip = match redirect.host.as_ref() {
        Some(host) => by_rule(engine, host)?,
        None => vip.ip(),
    };
    let to = SocketAddr::new(ip, redirect.port.number());
    let balancer = engine.balancer_at(ip)?;
    let listener = balancer.listeners.iter().find(|listener| listener.port == redirect.port)?;
    let rule = rules::find(listener, host, path)?;
    rule.redirect.is_none().then(|| (to, host.into(), path.into()))
}

fn at(
    engine: &Engine<'_>,
    address: SocketAddr,
    host: Option<Text>,
    path: Option<Text>,
    flow: &Flow,
) -> Aim {
    let cluster = engine.cluster();
    let called = Port::new(address.port());
    let own = cluster.services.values().find(|service| service.cluster_ips.contains(&address.ip()));
    if let Some(service) = own {
        let port = service.ports.iter().find(|port| Some(port.port) == called).cloned();
        let service = Some(service.name.clone());
        return Aim { service, port, host, path, called, ..Aim::default() };
    }
    let Some(balancer) = engine.balancer_at(address.ip()) else {
        return Aim { host, path, called, ..Aim::default() };
    };
    let listener = balancer.listeners.iter().find(|listener| {
        listener.port.number() == address.port() && listener.protocol.transport() == flow.protocol
    });
    let mut aim = Aim { vip: Some(address), host, path, called, ..Aim::default() };
    let Some(listener) = listener else { return aim };
    let rule = match listener.protocol.layer() {
        Layer::L4 => listener.rules.first(),
        Layer::L7 => {
            let host = aim.host.as_deref().map_or_else(|| address.ip().to_string(), str::to_owned);
            rules::find(listener, &host, aim.path.as_deref().unwrap_or("/"))
        }
    };
    aim.owner = rule.or(listener.rules.first()).map(|rule| rule.owner.clone());
    let Some(rule) = rule else { return aim };
    if let Some((to, host, path)) =
        rule.redirect.as_ref().and_then(|redirect| redirect_target(engine, redirect, &aim))
    {
        return Aim { called, is_redirected: true, ..at(engine, to, Some(host), Some(path), flow) };
    }
    aim.service = Some(rule.service.clone());
    aim.port = port_of(cluster, rule, called);
    aim
}

/// Returns the port of the Service to which a rule leads.
fn port_of(
    cluster: &Cluster,
    rule: &uturn_model::lb::Rule,
    called: Option<Port>,
) -> Option<ServicePort> {
    let service = cluster.services.get(&rule.service)?;
    if rule.owner.kind == ObjectKind::Service {
        return service.ports.iter().find(|port| Some(port.port) == called).cloned();
    }
    let ingress = cluster.ingresses.get(&rule.owner.namespaced_name()?)?;
    let paths = ingress
        .rules
        .iter()
        .filter(|ingress_rule| ingress_rule.host == rule.host)
        .flat_map(|ingress_rule| &ingress_rule.paths);
    let same = |ingress_path: &&uturn_model::ingress::IngressPath| {
        rule.path.as_ref().is_some_and(|(path, _)| ingress_path.path == *path)
    };
    let backend = paths.clone().find(same).map(|ingress_path| &ingress_path.backend);
    let Backend::Service { port, .. } = backend.or(ingress.default_backend.as_ref())? else {
        return None;
    };
    service.port_named(port).cloned()
}
