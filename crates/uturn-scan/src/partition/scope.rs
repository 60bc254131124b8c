//! What a packet towards a target can meet: a few Services of ten thousand.
//!
//! A rule of kube-proxy's belongs to one Service and asks for an address or a node's port of
//! it. So rules matter only of Services that have the address asked, own a node's port that
//! is asked on the way, or stand behind the load balancer's rule for the request.

mod kept;
mod listeners;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use uturn_lb::ingress_controller::{ControllerRule, ControllerRules, RoutingResult};
use uturn_lb::stated::called_port;
use uturn_lb::{controller, rules};
use uturn_model::controller::Takes;
use uturn_model::lb::{Delivery, Layer, Listener, LoadBalancer, LoadBalancerFact, Rule};
use uturn_model::{
    Cluster, Ingress, NamespacedName, ObjectKind, ObjectRef, Pod, ProxyMode, Service,
};
use uturn_netfilter::IpProtocol;
use uturn_path::{Request, ResolvedTarget};

use self::kept::{with_only, with_places};
pub(crate) use self::listeners::Listeners;
use crate::inventory::Inventory;

/// The ports that clients, controllers and probers have: answers go there.
const OWN_PORTS: [u16; 3] = [40_000, 41_000, 50_000];

/// Where controllers send clients that have to speak TLS.
const HTTPS: u16 = 443;

/// What is asked of a target.
#[derive(Clone, Debug)]
pub(crate) struct TargetRequest {
    pub(crate) to: SocketAddr,
    pub(crate) protocol: IpProtocol,
    pub(crate) request: Request,
}

impl TargetRequest {
    /// As a destination that is resolved already.
    pub(crate) fn target(&self) -> ResolvedTarget {
        ResolvedTarget::at(self.to, self.request.clone())
    }
}

/// A rule of a controller in the cluster: its Ingress and where it stands there, the Services behind
/// it, and whether clients are sent to TLS.
type ReachedRule<'a> = ((ObjectRef, Option<(usize, usize)>), Vec<&'a Service>, bool);

fn reached_rule<'a>(
    cluster: &'a Cluster,
    rule: &ControllerRule,
    is_redirected: bool,
) -> ReachedRule<'a> {
    let behind = rule.backends.iter().filter_map(|backend| backend.to.service());
    let behind = behind.filter_map(|name| cluster.services.get(name)).collect();
    ((rule.owner.clone(), rule.place), behind, is_redirected)
}

/// What a target's packets can meet.
#[derive(Clone)]
pub(crate) struct Scope<'a> {
    pub(crate) asked: TargetRequest,
    /// By name.
    pub(crate) services: Vec<&'a Service>,
    /// Ports that may be asked on nodes' own addresses.
    pub(crate) ports: BTreeSet<u16>,
    /// The load balancer at the address asked.
    pub(crate) balancer: Option<Arc<LoadBalancer>>,
    /// Where the load balancer stands among those that Facts state, if no Service owns the listener
    /// that is asked.
    pub(crate) stated: Option<usize>,
    /// The listener that is asked, and the rule for the request, by their places.
    listener: Option<(usize, Option<usize>)>,
    /// The Ingresses whose listener that is, with no rule but the one for the request.
    pub(crate) ingresses: Vec<Ingress>,
    /// The rules for the request of controllers in the cluster whose pods packets may reach, each
    /// with the Service behind it, and whether clients are sent to TLS.
    controller_rules: Vec<ReachedRule<'a>>,
    /// The ports to which controllers send clients by themselves.
    sent_to: BTreeSet<u16>,
    /// Whether packets may reach a controller's pod.
    pub(crate) meets_controller: bool,
    /// Whether a process in a node's network is an endpoint on a port that is some Service's
    /// port on every node.
    pub(crate) is_tangled: bool,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        inventory: &Inventory<'a>,
        listeners: &Listeners,
        asked: TargetRequest,
    ) -> Self {
        let balancer = listeners.balancers.get(&asked.to.ip()).cloned();
        let listener = balancer.as_ref().and_then(|balancer| {
            let place = balancer.listeners.iter().position(|listener| {
                listener.port.number() == asked.to.port()
                    && IpProtocol::from(listener.protocol.transport()) == asked.protocol
            })?;
            Some((place, rule_for(&balancer.listeners[place], &asked)))
        });
        let is_stated = |fact: &LoadBalancerFact| {
            fact.vip == asked.to.ip()
                && fact.own_listeners().any(|(own, _)| own.port.number() == asked.to.port())
        };
        let stated = inventory.cluster.load_balancers.iter().position(is_stated);
        let mut scope = Self {
            asked,
            services: Vec::new(),
            ports: BTreeSet::new(),
            balancer,
            stated,
            listener,
            ingresses: Vec::new(),
            controller_rules: Vec::new(),
            sent_to: BTreeSet::new(),
            meets_controller: false,
            is_tangled: false,
        };
        scope.find_services(inventory, listeners);
        scope.find_ingresses(inventory);
        scope
    }

    /// Whether some node may have the address asked among its own.
    fn may_be_held(&self, inventory: &Inventory<'_>) -> bool {
        let to = self.asked.to.ip();
        let is_kept = self
            .listener()
            .is_some_and(|(listener, _)| listener.profile.delivery == Delivery::KeepsAddress);
        is_kept || inventory.held.contains(&to)
    }

    /// Whether a load balancer that no Service owns asks one target after the other.
    pub(crate) fn tries_nodes_again(&self) -> bool {
        let asked = self.listener().filter(|_| self.stated.is_some());
        asked.is_some_and(|(listener, _)| listener.protocol.layer() == Layer::L7)
    }

    /// The Service behind a load balancer that asks one target after the other.
    pub(crate) fn tries_again(&self) -> Option<&'a Service> {
        let (listener, rule) = self.listener()?;
        let name = &rule?.service;
        let is_tried = listener.protocol.layer() == Layer::L7;
        self.services.iter().copied().find(|service| is_tried && service.name == *name)
    }

    /// The listener that is asked, and the rule for the request.
    fn listener(&self) -> Option<(&Listener, Option<&Rule>)> {
        let (listener, rule) = self.listener?;
        let listener = self.balancer.as_ref()?.listeners.get(listener)?;
        Some((listener, rule.and_then(|rule| listener.rules.get(rule))))
    }

    /// The rule for the request; where that is a redirect, all rules of the load balancer.
    fn rules_met(&self) -> impl Iterator<Item = &Rule> {
        let rule = self.listener().and_then(|(_, rule)| rule);
        let is_redirected = rule.is_some_and(|rule| rule.redirect.is_some());
        let balancer = self.balancer.as_ref().filter(|_| is_redirected);
        let others = balancer.into_iter().flat_map(|balancer| &balancer.listeners);
        rule.into_iter().chain(others.flat_map(|listener| &listener.rules))
    }

    fn find_services(&mut self, inventory: &Inventory<'a>, listeners: &Listeners) {
        let cluster = inventory.cluster;
        let mut found: BTreeMap<&NamespacedName, &'a Service> = BTreeMap::new();
        let to = self.asked.to;
        let at_address = inventory.services_at.get(&to.ip()).into_iter().flatten();
        let behind = self.rules_met().filter_map(|rule| cluster.services.get(&rule.service));
        let mut new: Vec<&'a Service> =
            at_address.chain(&inventory.everywhere).copied().chain(behind).collect();
        let named = listeners.named.get(&to.ip()).into_iter().flatten();
        new.extend(named.filter_map(|name| cluster.services.get(name)));
        if inventory.is_node(to.ip()) {
            new.extend(inventory.services_behind(to));
        }
        let mut ports: BTreeSet<u16> = OWN_PORTS.into();
        if cluster.proxy.mode.value == ProxyMode::Ipvs
            || inventory.is_node(to.ip())
            || self.may_be_held(inventory)
        {
            ports.insert(to.port());
        }
        // What listens there on nodes is decided by these for whoever calls.
        for fact in &cluster.load_balancers {
            let own = fact.own_listeners();
            ports.extend(own.map(|(own, targets)| called_port(fact, own, targets).number()));
        }
        let mut host_ports = BTreeSet::new();
        loop {
            while let Some(service) = new.pop() {
                if found.insert(&service.name, service).is_some() {
                    continue;
                }
                let first = listeners.first.get(&service.name).into_iter().flatten();
                new.extend(first.filter_map(|name| cluster.services.get(name)));
                if listeners.headers.asking.contains(&service.name) {
                    let own = service.load_balancer.iter().filter_map(|entry| entry.ip);
                    let others = own.filter_map(|ip| inventory.services_at.get(&ip)).flatten();
                    new.extend(others.filter(|other| !found.contains_key(&other.name)));
                }
                ports
                    .extend(service.ports.iter().filter_map(|port| Some(port.node_port?.number())));
                for slice in cluster.slices(&service.name) {
                    if slice.endpoints.iter().any(|endpoint| inventory.is_node(endpoint.address)) {
                        host_ports.extend(slice.ports.iter().map(|port| port.port.number()));
                    }
                }
            }
            let known = ports.len();
            if new.is_empty() {
                let reached = ports.iter().chain(&host_ports).copied().collect();
                self.find_backends(inventory, &listeners.controller_rules, &found, &reached);
                let senders = listeners.headers.of(inventory, &found, &reached);
                new.extend(senders.filter(|service| !found.contains_key(&service.name)));
                let backends = self.controller_rules.iter().flat_map(|(_, behind, _)| behind);
                new.extend(backends.copied().filter(|service| !found.contains_key(&service.name)));
                if self.controller_rules.iter().any(|(.., is_redirected)| *is_redirected) {
                    ports.insert(HTTPS);
                }
                ports.extend(&self.sent_to);
                ports.extend(self.dialled_on_nodes(inventory));
            }
            let asked = ports.iter().chain(&host_ports);
            let on = asked.filter_map(|port| inventory.services_on.get(port)).flatten();
            new.extend(on.filter(|service| !found.contains_key(&service.name)));
            if new.is_empty() && ports.len() == known {
                break;
            }
        }
        self.is_tangled = host_ports.iter().any(|port| inventory.services_on.contains_key(port));
        ports.extend(host_ports);
        self.ports = ports;
        self.services = found.into_values().collect();
    }

    /// The ports of Services that controllers may dial at an address which nodes have among their own:
    /// without a rule for the port, the connection ends at a process of the node.
    fn dialled_on_nodes(&self, inventory: &Inventory<'_>) -> impl Iterator<Item = u16> {
        let is_bound = inventory.cluster.proxy.mode.value == ProxyMode::Ipvs;
        let behind = self.controller_rules.iter().flat_map(|(_, behind, _)| behind);
        let behind = behind.filter(move |service| {
            is_bound || service.cluster_ips.iter().any(|ip| inventory.held.contains(ip))
        });
        behind.flat_map(|service| &service.ports).map(|port| port.port.number())
    }

    /// The rules for the request of all controllers whose pods are endpoints of Services that were
    /// found, or in the network of a node on one of these ports.
    fn find_backends(
        &mut self,
        inventory: &Inventory<'a>,
        rules: &[ControllerRules],
        found: &BTreeMap<&NamespacedName, &'a Service>,
        ports: &BTreeSet<u16>,
    ) {
        let cluster = inventory.cluster;
        if cluster.controllers.is_empty() {
            return;
        }
        self.controller_rules.clear();
        let slices = found.keys().flat_map(|name| cluster.slices(name));
        let names = slices.flat_map(|slice| &slice.endpoints).filter_map(|at| at.pod.as_ref());
        let endpoints = names.filter_map(|name| cluster.pods.get(name));
        let on_nodes = ports.iter().filter_map(|port| inventory.host_ports.get(port)).flatten();
        let forwarded = ports.iter().filter_map(|port| inventory.forwarded.get(port)).flatten();
        let on_nodes = on_nodes.map(|(_, pod)| *pod).chain(forwarded.copied());
        let pods: Vec<&Pod> = endpoints.chain(on_nodes).collect();
        for (controller, rules) in cluster.controllers.iter().zip(rules) {
            if !pods.iter().any(|pod| controller.has_pod(pod)) {
                continue;
            }
            // What it expects of the first bytes matters for any connection.
            self.meets_controller = true;
            for at in controller.listeners.iter().filter(|at| at.takes != Takes::Requests) {
                if let Some(rule) = rules.pass(at, self.asked.request.asked_name()) {
                    self.controller_rules.push(reached_rule(cluster, rule, false));
                }
            }
            let Some((host, path)) = &self.asked.request.http else { continue };
            // Clients that are sent elsewhere may come back by TLS.
            let asked = controller.listeners.iter().flat_map(|at| match at.entry_point {
                Some(_) => vec![(at, false), (at, true)],
                None => vec![(at, at.tls)],
            });
            for (at, tls) in asked {
                let (rule, is_redirected) = match rules.serve(controller, at, tls, host, path) {
                    RoutingResult::Forwarded(rule) | RoutingResult::Refused(rule, _) => {
                        (rule, false)
                    }
                    RoutingResult::Redirected(Some(rule), _) => (rule, true),
                    RoutingResult::Unknown(_, Some(rule)) => (rule, false),
                    RoutingResult::Redirected(None, redirect) => {
                        self.sent_to.insert(redirect.port.number());
                        continue;
                    }
                    RoutingResult::NoRule | RoutingResult::Unknown(_, None) => continue,
                };
                self.controller_rules.push(reached_rule(cluster, rule, is_redirected));
            }
        }
    }

    /// The first Ingress with the address decides which clients reach the load balancer, the first
    /// that listens there decides how, and another may own the rule.
    fn find_ingresses(&mut self, inventory: &Inventory<'a>) {
        let at = inventory.ingresses_at.get(&self.asked.to.ip());
        let served =
            |ingress: &&&Ingress| controller::is_served_by_cloud(inventory.cluster, ingress);
        let listens = |ingress: &&&Ingress| {
            let mut ports = controller::ingress_ports(inventory.cluster, ingress).into_iter();
            ports.any(|port| port.number() == self.asked.to.port())
        };
        let all = || at.into_iter().flatten().filter(served);
        // A load balancer that is not judged keeps all calls of the address from being judged.
        let open = at.into_iter().flatten().find(|ingress| ingress.is_open());
        let rule = self.listener().and_then(|(_, rule)| rule);
        let owns = |ingress: &Ingress| rule.is_some_and(|rule| rule.owner == ingress.object());
        let owner = all().find(|ingress| owns(ingress));
        let mut wanted: Vec<&Ingress> = Vec::new();
        let redirected = all().filter(|_| rule.is_some_and(|rule| rule.redirect.is_some()));
        let usual = all().next().into_iter().chain(all().find(listens)).chain(owner);
        // An address that nodes have may be the source of what they masquerade: answers go there.
        let taken = &inventory.ingresses_everywhere;
        for ingress in usual.chain(redirected).chain(open).chain(taken) {
            if wanted.iter().all(|known| known.name != ingress.name) {
                wanted.push(ingress);
            }
        }
        wanted.sort_by(|a, b| a.name.cmp(&b.name));
        let stripped = wanted.into_iter().map(|ingress| match rule {
            // Where a redirect leads to, any rule may be for.
            Some(rule) if rule.redirect.is_some() => ingress.clone(),
            rule => with_only(ingress, rule.filter(|_| owns(ingress))),
        });
        self.ingresses = stripped.collect();
        let mut met: BTreeMap<&ObjectRef, BTreeSet<Option<(usize, usize)>>> = BTreeMap::new();
        for ((owner, place), ..) in &self.controller_rules {
            met.entry(owner).or_default().insert(*place);
        }
        for (owner, places) in met {
            let name = owner.namespaced_name().filter(|_| owner.kind == ObjectKind::Ingress);
            if let Some(name) = name {
                let ingress = inventory.cluster.ingresses.get(&name);
                self.ingresses.extend(ingress.map(|ingress| with_places(ingress, &places)));
                continue;
            }
            // A route stands for as many Ingresses as it has Gateways, with the same rules.
            let own = inventory.routes.get(owner).into_iter().flatten();
            self.ingresses.extend(own.map(|ingress| with_places(ingress, &places)));
        }
    }
}

impl Scope<'_> {
    /// Whether the load balancer serves only targets of a zone at the address asked.
    pub(crate) fn has_zone(&self) -> bool {
        self.balancer.as_ref().is_some_and(|balancer| balancer.zone.is_some())
    }
}

/// The rule that serves the request, by its place.
fn rule_for(listener: &Listener, asked: &TargetRequest) -> Option<usize> {
    if listener.protocol.layer() == Layer::L4 {
        return (!listener.rules.is_empty()).then_some(0);
    }
    let routed = match &asked.request.http {
        Some((host, path)) => rules::routed(listener, host, path),
        None => rules::routed(listener, &asked.to.ip().to_string(), "/"),
    };
    routed.ok()?.rule
}
