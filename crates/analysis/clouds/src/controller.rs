//! The load balancers, listeners and targets that the cloud's controllers derive from a cluster.
//!
//! Services of type LoadBalancer and the Ingresses that the cloud serves become listeners; both
//! may share an address. The [`CloudModel`] of the cluster's cloud decides which listeners, and with
//! which targets. What Facts state about a load balancer overrides what was derived.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_model::lb::{
    Layer, Listener, ListenerProtocol, LoadBalancer, LoadBalancerFact, NamedAddress, ProbeSource,
    Scope, Source, StatedProbeSource,
};
use uturn_model::service::{LbIngress, ServiceKind};
use uturn_model::{
    Cluster, Family, Ingress, Labels, NamespacedName, Node, Pod, Port, Service, Text, Unknown,
};

use crate::addresses::NodeAddresses;
pub use crate::addresses::{BalancerCall, addresses};
pub use crate::cloud::made_ingress::Unhealthy;
use crate::cloud::{
    self, CloudModel, IngressProduct, Maker, Owner, WantedListener, made, made_ingress, send_from,
};
use crate::families::{add_rules, with_targets};
pub use crate::ingress_call::IngressCall;
use crate::ingress_controller;
pub use crate::ingress_ports::IngressPorts;
use crate::stated;

/// Returns every load balancer of the cluster, by address.
pub fn load_balancers(cluster: &Cluster) -> Vec<LoadBalancer> {
    made_at(cluster, &NodeAddresses::of(cluster), None)
}

/// Returns the load balancer at an address.
pub fn load_balancer(cluster: &Cluster, vip: IpAddr) -> Option<LoadBalancer> {
    made_at(cluster, &NodeAddresses::of(cluster), Some(vip)).pop()
}

/// Returns every load balancer of the cluster without targets, by address: with those, all rules
/// of a large cluster together take gigabytes. `outline` has everything for which load balancers
/// listen, and neither nodes nor pods.
pub fn listeners(cluster: &Cluster, outline: &Cluster) -> Vec<LoadBalancer> {
    made_at(outline, &NodeAddresses::of(cluster), None)
}

/// Makes all load balancers, or only the one at an address.
fn made_at(cluster: &Cluster, of_nodes: &NodeAddresses, only: Option<IpAddr>) -> Vec<LoadBalancer> {
    let is_wanted = |vip: IpAddr| only.is_none_or(|only| only == vip);
    let addresses = |owner: Owner<'_>| {
        let mut all = of_nodes.beside(cluster, owner);
        all.retain(|at| is_wanted(at.address));
        all
    };
    let mut made: BTreeMap<IpAddr, LoadBalancer> = BTreeMap::new();
    for service in cluster.services.values().filter(|service| is_judged(service)) {
        let owner = Owner::Service(service);
        match cloud::maker_of(service, &cluster.provider) {
            Maker::Model(model) => {
                let is_private = model.request(owner).is_private;
                let groups = model.security_groups(owner);
                for at in addresses(owner) {
                    let balancer = entry(cluster, &mut made, &at, owner, is_private);
                    add_groups(cluster, balancer, groups);
                    let family = Family::of(at.address);
                    for listener in model.service_listeners(cluster, service, family) {
                        add(balancer, listener);
                    }
                }
            }
            // Nodes have the addresses of this load balancer.
            Maker::Product(product, _) if product.is_on_nodes() => {}
            Maker::Product(product, _) => {
                let is_private = product.is_private(service).unwrap_or(false);
                let groups = product.security_groups(service);
                for at in addresses(owner) {
                    let balancer = entry(cluster, &mut made, &at, owner, is_private);
                    add_groups(cluster, balancer, groups);
                    let own = own_source(
                        cluster,
                        product.sends_from_its_address(),
                        &service.load_balancer,
                        at.address,
                    );
                    let zone = at.zone.as_deref().filter(|_| product.serves_by_zone(service));
                    let listeners = |family| {
                        let at = (at.address, zone, family);
                        made::listeners(product, cluster, service, at)
                    };
                    for mut listener in with_targets(at.address, listeners) {
                        own.into_iter().for_each(|own| send_from(&mut listener.profile, own));
                        add(balancer, listener);
                    }
                }
            }
            Maker::Other(..) | Maker::Unknown => {
                for at in addresses(owner) {
                    let facts = &cluster.load_balancers;
                    let Some(fact) = stated::of_service(facts, service, at.address) else {
                        continue;
                    };
                    let balancer = entry(cluster, &mut made, &at, owner, false);
                    for listener in stated::listeners_of_service(cluster, service, fact) {
                        add(balancer, listener);
                    }
                }
            }
        }
    }
    let model = cloud::model(cluster);
    let is_served = |ingress: &&Ingress| is_served_by_cloud(cluster, ingress);
    for ingress in cluster.ingresses.values().filter(is_served) {
        let owner = Owner::Ingress(ingress);
        let product = product_of(ingress);
        let is_private = match (product, model) {
            (Some(product), _) => product.is_private(ingress),
            (None, Some(model)) => model.request(owner).is_private,
            (None, None) => false,
        };
        let groups = match (product, model) {
            (Some(product), _) => product.security_groups(ingress),
            (None, Some(model)) => model.security_groups(owner),
            (None, None) => None,
        };
        for at in addresses(owner) {
            let balancer = entry(cluster, &mut made, &at, owner, is_private);
            add_groups(cluster, balancer, groups);
            let sends = product.is_some_and(IngressProduct::sends_from_its_address);
            let own = own_source(cluster, sends, &ingress.load_balancer, at.address);
            let listeners = match (product, model) {
                (Some(product), _) => with_targets(at.address, |family| {
                    made_ingress::listeners(product, cluster, ingress, family)
                }),
                (None, Some(model)) => {
                    model.ingress_listeners(cluster, ingress, Family::of(at.address))
                }
                (None, None) => Vec::new(),
            };
            for mut listener in listeners {
                own.into_iter().for_each(|own| send_from(&mut listener.profile, own));
                add(balancer, listener);
            }
        }
    }
    for fact in cluster.load_balancers.iter().filter(|fact| is_wanted(fact.vip)) {
        for listener in stated::listeners(cluster, fact) {
            put(stated_entry(cluster, &mut made, fact), listener);
        }
        if let Some(balancer) = made.get_mut(&fact.vip) {
            apply(balancer, model, fact);
        }
    }
    made.into_values().collect()
}

/// Returns whether the cloud's own Ingress controller serves an Ingress, and its load balancer is
/// judged.
pub fn is_served_by_cloud(cluster: &Cluster, ingress: &Ingress) -> bool {
    let of_model = || {
        cloud::model(cluster)
            .is_some_and(|model| model.serves_ingress(ingress, &cluster.ingress_classes))
    };
    ingress.controller.is_none()
        && !ingress.is_open()
        && !ingress.is_unserved()
        && (product_of(ingress).is_some() || of_model())
}

/// Returns the kind of load balancer that a cloud's controller makes for an Ingress, if its product
/// is described.
pub fn product_of(ingress: &Ingress) -> Option<&'static dyn IngressProduct> {
    cloud::ingress_product(ingress.product.as_deref()?)
}

/// Returns the backends of an Ingress that its controller reports as unhealthy, although they have
/// endpoints.
pub fn reported_unhealthy(cluster: &Cluster, ingress: &Ingress) -> Option<Unhealthy> {
    made_ingress::reported_unhealthy(product_of(ingress)?, cluster, ingress)
}

/// Returns the Services that an Ingress names, each once.
pub fn backends<'c>(cluster: &'c Cluster, ingress: &Ingress) -> Vec<&'c Service> {
    made_ingress::backends(cluster, ingress)
}

/// Returns whether it is known which controller serves an Ingress, the cloud's or one in the
/// cluster, and that the Ingress's address leads to it.
pub fn is_served(cluster: &Cluster, ingress: &Ingress) -> bool {
    let in_cluster = || cluster.controller_for(ingress).is_some() && !ingress.is_open();
    in_cluster() || is_served_by_cloud(cluster, ingress)
}

/// Returns whether a Service has a load balancer that is judged.
pub fn is_judged(service: &Service) -> bool {
    service.kind == ServiceKind::LoadBalancer
        && !service.unjudged.iter().any(Unknown::is_of_balancer)
}

/// Returns the labels that nodes must have to be targets of a Service's load balancer. Returns
/// `None` if the Service does not restrict its nodes by label.
pub fn target_labels(cluster: &Cluster, service: &Service) -> Option<Labels> {
    let text = cloud::model(cluster)?.target_label(service)?;
    Some(crate::targets::label_pairs(text))
}

/// Returns whether a node is never a target of a load balancer.
pub fn excludes_node(cluster: &Cluster, node: &Node) -> bool {
    match cloud::model(cluster) {
        Some(model) => model.excludes_node(node),
        None => !is_usual_target(node),
    }
}

/// Returns whether controllers without rules of their own make a node a target.
pub fn is_usual_target(node: &Node) -> bool {
    made::is_target(node)
}

/// The properties by which load balancers distinguish the pods of a Service.
pub struct PodMarks<'c> {
    cluster: &'c Cluster,
    model: Option<&'static dyn CloudModel>,
    /// The readiness gate of the cloud, if any pod depends on it.
    gate: Option<&'static str>,
    /// The objects that give single pods weights.
    owners: Vec<Owner<'c>>,
}

impl<'c> PodMarks<'c> {
    /// Reads the properties from a cluster.
    pub fn new(cluster: &'c Cluster) -> Self {
        let model = cloud::model(cluster);
        let services = cluster.services.values().map(Owner::Service);
        let owners = services.chain(cluster.ingresses.values().map(Owner::Ingress));
        let has_weights =
            |owner: &Owner<'_>| model.is_some_and(|model| model.pod_weights(*owner).is_some());
        let gate = model.and_then(CloudModel::readiness_gate);
        let is_used = |gate: &&str| cluster.pods.values().any(|pod| pod.is_decided_by(gate));
        Self {
            cluster,
            model,
            gate: gate.filter(is_used),
            owners: owners.filter(has_weights).collect(),
        }
    }

    /// Returns the weights of the pod with a name, and a mark if it is a target before it is ready.
    /// Returns an empty list for a pod that load balancers treat like others.
    pub fn of(&self, name: &NamespacedName) -> Vec<u64> {
        let Some(model) = self.model else { return Vec::new() };
        let is_decided = self.gate.is_some_and(|gate| {
            self.cluster.pods.get(name).is_some_and(|pod| pod.is_decided_by(gate))
        });
        let mut marks: Vec<u64> = is_decided.then_some(u64::MAX - 1).into_iter().collect();
        for owner in self.owners.iter().filter(|owner| owner.name().namespace == name.namespace) {
            marks.extend(model.weights_of_pod(*owner, name.name.as_str()));
        }
        marks
    }
}

/// Returns whether a load balancer sends to a pod before the pod is known to be ready, which only a
/// readiness gate of the cloud can cause.
pub fn is_target_before_ready(cluster: &Cluster, pod: &Pod) -> bool {
    let gate = cloud::model(cluster).and_then(CloudModel::readiness_gate);
    gate.is_some_and(|gate| pod.is_decided_by(gate) && !pod.terminating)
}

/// Returns the listeners that an Ingress asks the cloud's controller for.
pub(crate) fn wanted<'i>(cluster: &Cluster, ingress: &'i Ingress) -> Vec<WantedListener<'i>> {
    if let Some(route) = &ingress.route {
        return cloud::of_route(ingress, route);
    }
    match (product_of(ingress), cloud::model(cluster)) {
        (Some(product), _) => product.wanted(ingress),
        (None, Some(model)) => model.wanted_listeners(ingress),
        (None, None) => cloud::plain_listeners(ingress),
    }
}

/// Returns the port and the protocol of the first listener of an Ingress that serves anything.
pub fn ingress_listens(cluster: &Cluster, ingress: &Ingress) -> (Port, ListenerProtocol) {
    if let Some(controller) = cluster.controller_for(ingress) {
        let call = ingress_controller::call(cluster, controller, ingress, None, None);
        return (call.port, call.protocol);
    }
    IngressPorts::of(cluster, ingress).serving_anything()
}

/// Completes a call of a route at one of the ports of its Gateway. Returns `None` for an Ingress,
/// and for a port to which the route is not attached.
pub fn route_call(
    cluster: &Cluster,
    ingress: &Ingress,
    port: Port,
    host: Option<&Text>,
) -> Option<IngressCall> {
    let host = host.or_else(|| ingress.rules.first()?.host.as_ref());
    let call = ingress_controller::routes::call_at(ingress.route.as_ref()?, port, host, None)?;
    Some(match cluster.controller_for(ingress) {
        Some(controller) => ingress_controller::at_node(cluster, controller, ingress, call),
        None => call,
    })
}

/// Completes a call of an Ingress: the default host is that of the first rule, and the default path
/// is the first of the host.
pub fn ingress_call(
    cluster: &Cluster,
    ingress: &Ingress,
    host: Option<&Text>,
    path: Option<&Text>,
) -> IngressCall {
    ingress_call_at(cluster, ingress, host, path, || IngressPorts::of(cluster, ingress))
}

/// Does the same as [`ingress_call`] with given listeners, for callers that make many calls and
/// keep the listeners of each Ingress.
pub fn ingress_call_at<P: Borrow<IngressPorts>>(
    cluster: &Cluster,
    ingress: &Ingress,
    host: Option<&Text>,
    path: Option<&Text>,
    ports: impl FnOnce() -> P,
) -> IngressCall {
    if let Some(route) = ingress.route.as_ref().filter(|_| ingress.controller.is_none()) {
        let rule = ingress.rule_for(host, path);
        let host = host.or_else(|| rule?.host.as_ref());
        let path = path.or_else(|| Some(&rule?.paths.first()?.path));
        return ingress_controller::routes::call(route, host, path);
    }
    if let Some(controller) = cluster.controller_for(ingress) {
        return ingress_controller::call(cluster, controller, ingress, host, path);
    }
    let rule = ingress.rule_for(host, path);
    let host = host.or_else(|| rule?.host.as_ref());
    let path = path.or_else(|| Some(&rule?.paths.first()?.path));
    let (port, protocol) = ports().borrow().serving(host, path);
    IngressCall { host: host.cloned(), path: path.cloned(), port, protocol }
}

/// Returns the port and the protocol of the first listener that serves a host and a path. `ports`
/// returns the listeners of an Ingress that the cloud serves.
pub fn ingress_serves<P: Borrow<IngressPorts>>(
    cluster: &Cluster,
    ingress: &Ingress,
    host: Option<&Text>,
    path: Option<&Text>,
    ports: impl FnOnce() -> P,
) -> (Port, ListenerProtocol) {
    if let Some(controller) = cluster.controller_for(ingress) {
        let call = ingress_controller::call(cluster, controller, ingress, host, path);
        return (call.port, call.protocol);
    }
    ports().borrow().serving(host, path)
}

/// Returns the ports of all listeners of an Ingress.
pub fn ingress_ports(cluster: &Cluster, ingress: &Ingress) -> Vec<Port> {
    wanted(cluster, ingress).into_iter().map(|listener| listener.port).collect()
}

/// Returns the port and protocol of each listener of an Ingress, and for each of its rules whether
/// a backend serves it.
pub fn ingress_wants(
    cluster: &Cluster,
    ingress: &Ingress,
) -> Vec<(Port, ListenerProtocol, Vec<bool>)> {
    let served = |listener: &WantedListener<'_>| {
        listener.rules.iter().map(|rule| rule.action.is_served()).collect()
    };
    let all = wanted(cluster, ingress).into_iter();
    all.map(|listener| (listener.port, listener.protocol, served(&listener))).collect()
}

/// Returns the annotations of an Ingress that its controller cannot read, each with a description
/// of the expected value.
pub fn unreadable(cluster: &Cluster, ingress: &Ingress) -> Vec<(&'static str, &'static str)> {
    let model = cloud::model(cluster).filter(|_| ingress.product.is_none());
    model.map_or_else(Vec::new, |model| model.unreadable(ingress))
}

/// Returns the scope of an address: private if the owner asks for it, or if the address belongs to
/// the VPC or to a range that the internet does not route.
fn scope(cluster: &Cluster, vip: IpAddr, is_private: bool) -> Scope {
    let in_vpc = cluster.network.vpc_cidrs.value.iter().any(|net| net.contains(&vip));
    let unrouted = match vip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local(),
    };
    if is_private || in_vpc || unrouted { Scope::Private } else { Scope::Public }
}

/// Returns the address from which a load balancer sends, if it is the one at which clients call it
/// and is given: some stand in for those of load balancers of which only the name is known.
fn own_source(
    cluster: &Cluster,
    sends_from_its_address: bool,
    status: &[LbIngress],
    vip: IpAddr,
) -> Option<IpAddr> {
    let is_given = || {
        cluster.dns.outside.iter().any(|(_, address)| *address == vip)
            || status.iter().any(|entry| entry.ip == Some(vip))
            || cluster.load_balancers.iter().any(|fact| fact.vip == vip)
    };
    let is_private = || scope(cluster, vip, false) == Scope::Private;
    (sends_from_its_address && is_private() && is_given()).then_some(vip)
}

fn entry<'m>(
    cluster: &Cluster,
    made: &'m mut BTreeMap<IpAddr, LoadBalancer>,
    at: &NamedAddress,
    owner: Owner<'_>,
    is_private: bool,
) -> &'m mut LoadBalancer {
    let vip = at.address;
    made.entry(vip).or_insert_with(|| LoadBalancer {
        name: format!("{}-{}", owner.name().namespace, owner.name().name).into(),
        vip,
        scope: scope(cluster, vip, is_private),
        zone: at.zone.clone(),
        security_groups: Vec::new(),
        listeners: Vec::new(),
    })
}

/// Adds the security groups that an object names, if Facts state the rules of any of them: those of
/// which nothing is stated change nothing.
fn add_groups(cluster: &Cluster, balancer: &mut LoadBalancer, list: Option<&str>) {
    let named = list.into_iter().flat_map(|list| list.split(',')).map(str::trim);
    let named: Vec<Text> = named.filter(|name| !name.is_empty()).map(Text::from).collect();
    if named.iter().any(|name| cluster.security_groups.contains_key(name)) {
        for name in named {
            if !balancer.security_groups.contains(&name) {
                balancer.security_groups.push(name);
            }
        }
    }
}

/// Adds a listener, or adds its rules to the listener that already has the port.
fn add(balancer: &mut LoadBalancer, listener: Listener) {
    let is_same = |own: &&mut Listener| {
        own.port == listener.port && own.protocol.transport() == listener.protocol.transport()
    };
    match balancer.listeners.iter_mut().find(is_same) {
        None => balancer.listeners.push(listener),
        // On layer 4 a port has one owner: the first listener keeps it.
        Some(there) if there.protocol.layer() == Layer::L7 => add_rules(there, listener),
        Some(_) => {}
    }
}

/// Returns the load balancer that Facts state for an address; adds it if the address has none.
fn stated_entry<'m>(
    cluster: &Cluster,
    made: &'m mut BTreeMap<IpAddr, LoadBalancer>,
    fact: &LoadBalancerFact,
) -> &'m mut LoadBalancer {
    made.entry(fact.vip).or_insert_with(|| LoadBalancer {
        name: fact.called(),
        vip: fact.vip,
        scope: scope(cluster, fact.vip, false),
        zone: fact.zone.clone(),
        security_groups: Vec::new(),
        listeners: Vec::new(),
    })
}

/// Adds a listener in place of one that was derived for the same port.
fn put(balancer: &mut LoadBalancer, listener: Listener) {
    let is_other = |own: &Listener| {
        own.port != listener.port || own.protocol.transport() != listener.protocol.transport()
    };
    balancer.listeners.retain(is_other);
    balancer.listeners.push(listener);
}

/// Applies what Facts state about a load balancer.
fn apply(balancer: &mut LoadBalancer, model: Option<&dyn CloudModel>, fact: &LoadBalancerFact) {
    let family = Family::of(balancer.vip);
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
        if fact.measured {
            listener.profile.assumption = None;
        }
        if let (Some(check), Some(source)) = (&mut listener.profile.health_check, fact.probe_source)
        {
            check.source = match (source, model) {
                (StatedProbeSource::Vip, _) => ProbeSource::Vip,
                (StatedProbeSource::Reserved, Some(model)) => {
                    ProbeSource::Reserved(model.probe_ranges())
                }
                // Without a model, the product's own range is kept.
                (StatedProbeSource::Reserved, None) => check.source,
            };
        }
        for own in fact.listeners.iter().filter(|own| own.port == listener.port) {
            if let Some(protocol) = own.protocol {
                listener.protocol = protocol;
            }
            stated::state(&mut listener.profile, own);
            if own.snat == Some(true) {
                listener.profile.source = match model {
                    Some(model) => Source::Replaced(model.replaced_source()),
                    None => cloud::replaced(family),
                };
            }
            if let Some(scheduler) = own.scheduler {
                listener.profile.scheduler = scheduler;
            }
        }
    }
}
