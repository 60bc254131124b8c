//! Load balancers that no Service and no Ingress owns, as Facts state them: that of an API server,
//! or one that was made by hand in front of node ports.
//!
//! Facts state the behaviour of such a load balancer by the name of a product that a cloud's folder
//! describes, by values, or by both: then the values override the product.

use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::{
    BehaviourAssumption, Delivery, HealthQuestion, Listener, ListenerFact, ListenerProtocol,
    LoadBalancerFact, Profile, Rule, Source, StatedTargets, Target, TargetKind,
};
use uturn_model::service::{ServiceKind, ServicePort, TargetPort};
use uturn_model::{Cluster, Family, NamespacedName, Node, Port, Service};

use crate::cloud::{self, CloudModel, Product};
use crate::targets;

/// The weight that all targets have.
const WEIGHT: u32 = 1;

/// The kind that Facts may state for a load balancer.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A product that is described for Services.
    Product(&'static dyn Product),
    /// A load balancer of a cloud that has a model.
    Model(&'static dyn CloudModel),
}

impl Kind {
    /// Returns the kind with the name of a product, or with the word of a cloud that has only one.
    pub fn named(name: &str) -> Option<Self> {
        let has_name = |product: &&&dyn Product| product.name().eq_ignore_ascii_case(name);
        let mut products = cloud::ALL.into_iter().flat_map(|entry| entry.products);
        if let Some(product) = products.find(has_name) {
            return Some(Self::Product(*product));
        }
        let entry = cloud::ALL.into_iter().find(|entry| entry.cloud.word() == name)?;
        match (entry.model, entry.products) {
            (Some(model), _) => Some(Self::Model(model)),
            (None, [only]) => Some(Self::Product(*only)),
            (None, _) => None,
        }
    }

    /// Returns the names of all kinds, for messages.
    pub fn names() -> Vec<&'static str> {
        let modelled = cloud::modelled().map(|(entry, _)| entry.cloud.word());
        let products = cloud::ALL.into_iter().flat_map(|entry| entry.products);
        modelled.chain(products.map(|product| product.name())).collect()
    }

    /// Returns the behaviour of a load balancer of this kind at a listener. Returns `None` if the
    /// kind has no listeners of this protocol.
    pub fn profile(self, listener: &ListenerFact, family: Family) -> Option<Profile> {
        match self {
            Self::Model(model) => Some(model.plain_profile(protocol(listener).layer())),
            Self::Product(product) => {
                let (service, port) = as_service(listener);
                let plan = product.port(&service, &port, family)?;
                let same = plan.protocol.layer() == protocol(listener).layer();
                let mut profile = plan.profile;
                // No controller made these listeners: they are as the cloud makes them by default.
                profile.delivery = product.delivery_by_default().unwrap_or(profile.delivery);
                same.then_some(profile)
            }
        }
    }
}

/// Returns the listeners of a load balancer that no Service owns, with their targets.
pub(crate) fn listeners(cluster: &Cluster, fact: &LoadBalancerFact) -> Vec<Listener> {
    let listener = |(listener, targets): (&ListenerFact, &StatedTargets)| {
        let profile = profile(fact, listener);
        let port = target_port(&profile, listener.port, targets);
        Listener {
            port: listener.port,
            protocol: protocol(listener),
            rules: vec![Rule {
                host: None,
                path: None,
                service: LoadBalancerFact::no_service(),
                owner: fact.object(),
                targets: nodes(cluster, fact, targets, port),
                redirect: None,
            }],
            profile,
        }
    };
    fact.own_listeners().map(listener).collect()
}

/// Returns what Facts state about the load balancer of a Service at an address, if they state what it
/// does with the source at each port. The controller that made it need not be known then.
pub fn of_service<'f>(
    facts: &'f [LoadBalancerFact],
    service: &Service,
    address: IpAddr,
) -> Option<&'f LoadBalancerFact> {
    facts.iter().find(|fact| {
        fact.vip == address
            && fact.own_listeners().next().is_none()
            && service.ports.iter().all(|port| stated_at(fact, port).is_some())
    })
}

/// Returns what Facts state about the listener for a port of a Service.
fn stated_at<'f>(fact: &'f LoadBalancerFact, port: &ServicePort) -> Option<&'f ListenerFact> {
    fact.listeners.iter().find(|own| {
        own.port == port.port
            && protocol(own).transport() == port.protocol
            && (own.snat.is_some() || kind(fact).is_some())
    })
}

/// Returns the listeners of a Service whose load balancer Facts state, with the node ports of all
/// nodes as their targets.
pub(crate) fn listeners_of_service(
    cluster: &Cluster,
    service: &Service,
    fact: &LoadBalancerFact,
) -> Vec<Listener> {
    let family = Family::of(fact.vip);
    let listener = |port: &ServicePort| {
        let stated = stated_at(fact, port)?;
        let mut profile = profile(fact, stated);
        if let Some(check) = &mut profile.health_check {
            check.question = cloud::question_by_policy(service);
        }
        if profile.assumption.is_none() {
            let assumed = "its targets are the node ports of all nodes";
            let because = "those of most clouds are, and Facts state no more";
            profile.assumption = Some(BehaviourAssumption::new(assumed, because));
        }
        let called = match profile.delivery {
            Delivery::ToTarget => port.node_port,
            Delivery::KeepsAddress => Some(port.node_port.unwrap_or(port.port)),
        };
        let called = ServicePort { node_port: called, ..port.clone() };
        let nodes = cluster.nodes.values().filter(|node| cloud::made::is_target(node)).collect();
        let rule = Rule {
            host: None,
            path: None,
            service: service.name.clone(),
            owner: service.object(),
            targets: targets::node_ports(nodes, &called, family, WEIGHT),
            redirect: None,
        };
        let protocol = protocol(stated);
        Some(Listener { port: port.port, protocol, profile, rules: vec![rule] })
    };
    service.ports.iter().filter_map(listener).collect()
}

/// Returns whether Facts state that a load balancer which no Service owns sends to a port of a
/// node.
pub fn is_called(cluster: &Cluster, node: &Node, port: u16) -> bool {
    let mut own = own_listeners(cluster);
    own.any(|(fact, listener, targets)| {
        fact.has_target(targets, node) && called_port(fact, listener, targets).number() == port
    })
}

/// Returns, for each listener that no Service owns, whether a node is its target.
pub fn targeted(cluster: &Cluster, node: &Node) -> Vec<bool> {
    own_listeners(cluster).map(|(fact, _, targets)| fact.has_target(targets, node)).collect()
}

/// Returns the port of the targets to which a listener sends.
pub fn called_port(
    fact: &LoadBalancerFact,
    listener: &ListenerFact,
    targets: &StatedTargets,
) -> Port {
    target_port(&profile(fact, listener), listener.port, targets)
}

/// Returns whether a node has the address of a load balancer among its own, as targets of some
/// products do.
pub(crate) fn is_held_by(fact: &LoadBalancerFact, node: &Node) -> bool {
    let Some(Kind::Product(product)) = kind(fact) else { return false };
    fact.own_listeners().any(|(listener, targets)| {
        fact.has_target(targets, node)
            && profile(fact, listener).delivery == Delivery::KeepsAddress
            && (product.is_held_by_targets() || product.is_held_by(&as_service(listener).0, node))
    })
}

/// Returns the kind of a load balancer whose product Facts state.
fn kind(fact: &LoadBalancerFact) -> Option<Kind> {
    Kind::named(fact.product.as_deref()?)
}

fn own_listeners(
    cluster: &Cluster,
) -> impl Iterator<Item = (&LoadBalancerFact, &ListenerFact, &StatedTargets)> {
    let facts = cluster.load_balancers.iter();
    facts.flat_map(|fact| {
        fact.own_listeners().map(move |(listener, targets)| (fact, listener, targets))
    })
}

/// Returns the port of the targets. A load balancer that keeps its address as the destination also
/// keeps the port.
fn target_port(profile: &Profile, called: Port, targets: &StatedTargets) -> Port {
    match profile.delivery {
        Delivery::ToTarget => targets.port,
        Delivery::KeepsAddress => called,
    }
}

fn profile(fact: &LoadBalancerFact, listener: &ListenerFact) -> Profile {
    let family = Family::of(fact.vip);
    let of_kind = kind(fact).and_then(|kind| kind.profile(listener, family));
    let mut profile = of_kind
        .unwrap_or_else(|| cloud::unnamed(&fact.called(), listener.snat != Some(true), family));
    state(&mut profile, listener);
    // There is no Service about whose endpoints a health check could ask a node's kube-proxy.
    if let Some(check) = &mut profile.health_check {
        check.question = HealthQuestion::Target;
    }
    profile
}

/// Applies what Facts state about a listener to its profile, except a replaced source.
pub(crate) fn state(profile: &mut Profile, listener: &ListenerFact) {
    if let Some(delivery) = listener.delivery {
        profile.delivery = delivery;
    }
    if listener.proxy_header.is_some() {
        profile.proxy_header = listener.proxy_header;
    }
    if listener.health_check == Some(false) {
        profile.health_check = None;
    }
    if listener.snat == Some(false) {
        profile.source = Source::Kept;
    }
}

fn protocol(listener: &ListenerFact) -> ListenerProtocol {
    listener.protocol.unwrap_or(ListenerProtocol::Tcp)
}

/// Makes a Service that asks for nothing but this listener.
fn as_service(listener: &ListenerFact) -> (Service, ServicePort) {
    let name: NamespacedName = LoadBalancerFact::no_service();
    let mut service = Service::new(name, listener.origin.clone());
    service.kind = ServiceKind::LoadBalancer;
    let port = ServicePort::new(
        protocol(listener).transport(),
        listener.port,
        TargetPort::Number(listener.port),
    );
    service.ports = vec![port.clone()];
    (service, port)
}

fn nodes(
    cluster: &Cluster,
    fact: &LoadBalancerFact,
    targets: &StatedTargets,
    port: Port,
) -> Vec<Target> {
    let family = Family::of(fact.vip);
    let all = cluster.nodes.values().filter(|node| fact.has_target(targets, node));
    let target = |node: &Node| {
        Some(Target {
            address: SocketAddr::new(node.address(family)?, port.number()),
            weight: WEIGHT,
            kind: TargetKind::NodePort(node.name.clone()),
        })
    };
    all.filter_map(target).collect()
}
