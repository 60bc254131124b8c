//! The Services whose rules packets towards a target can meet.
//!
//! All ports of a Service meet the same Services, and so do all Services of an address: what was
//! found for one target is kept for the others.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use uturn_clouds::ingress_controller::{ControllerRule, ControllerRules, RoutingResult};
use uturn_clouds::stated::called_port;
use uturn_model::controller::Takes;
use uturn_model::lb::Delivery;
use uturn_model::{Cluster, NamespacedName, ObjectRef, Pod, ProxyMode, Service};
use uturn_netfilter::hash::FastMap;

use super::{Listeners, Scope, TargetRequest};
use crate::inventory::Inventory;

/// The source ports of clients, controllers and probers. Answers go there.
const OWN_PORTS: [u16; 3] = [40_000, 41_000, 50_000];

/// The port to which controllers redirect clients that have to use TLS.
const HTTPS: u16 = 443;

/// A rule of a controller in the cluster: its Ingress and position there, the Services behind it,
/// and whether clients are redirected to TLS.
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

/// The Services whose rules packets can meet, and the ports on which nodes may listen.
#[derive(Default)]
pub(crate) struct Met<'a> {
    /// The Services, ordered by name.
    pub(crate) services: Vec<&'a Service>,
    /// Ports that may be called on nodes' own addresses, if a pod listens there on some node or a
    /// node forwards them to one.
    pub(crate) ports: BTreeSet<u16>,
    /// The rules for the request of controllers whose pods packets may reach, each with the
    /// Services behind it, and whether clients are redirected to TLS.
    pub(super) controller_rules: Vec<ReachedRule<'a>>,
    /// The ports to which controllers themselves redirect clients.
    sent_to: BTreeSet<u16>,
    /// Whether packets may reach a controller's pod.
    pub(crate) meets_controller: bool,
    /// Whether a process in a node's network is an endpoint on a port that is some Service's port
    /// on every node.
    pub(crate) is_tangled: bool,
}

/// The key of what a target's packets can meet: the address, the port if the address may be a
/// node's, the Service behind the load balancer's rule, and whether that rule is a redirect.
type MetKey<'a> = (IpAddr, Option<u16>, Option<&'a NamespacedName>, bool);

/// A cache of what packets of former targets can meet.
#[derive(Default)]
pub(crate) struct KnownMet<'a>(RefCell<FastMap<MetKey<'a>, Arc<Met<'a>>>>);

impl KnownMet<'_> {
    /// Empties the cache.
    pub(crate) fn forget(&self) {
        self.0.take();
    }
}

impl<'a> Scope<'a> {
    /// Returns the Services that packets can meet, and the ports on which nodes may listen.
    pub(super) fn find_met(
        &self,
        inventory: &Inventory<'a>,
        listeners: &Listeners,
        known: &KnownMet<'a>,
    ) -> Arc<Met<'a>> {
        let port = self.port_on_nodes(inventory, listeners);
        let Some(key) = self.met_key(inventory, port) else {
            return Arc::new(self.met(inventory, listeners, port));
        };
        if let Some(met) = known.0.borrow().get(&key) {
            return Arc::clone(met);
        }
        let met = Arc::new(self.met(inventory, listeners, port));
        known.0.borrow_mut().insert(key, Arc::clone(&met));
        met
    }

    /// Returns the key of what packets can meet. Returns `None` if more decides it.
    fn met_key(&self, inventory: &Inventory<'a>, port: Option<u16>) -> Option<MetKey<'a>> {
        let TargetRequest { to, request, .. } = &self.asked;
        let is_for_controllers = !inventory.cluster.controllers.is_empty()
            && (request.http.is_some() || request.asked_name().is_some());
        if is_for_controllers || inventory.is_node(to.ip()) {
            return None;
        }
        let rule = self.listener().and_then(|(_, rule)| rule);
        let behind = rule.and_then(|rule| inventory.cluster.services.get(&rule.service));
        let is_redirected = rule.is_some_and(|rule| rule.redirect.is_some());
        Some((to.ip(), port, behind.map(|service| &service.name), is_redirected))
    }

    /// Returns the called port, if nodes may have the address and a process may listen there.
    fn port_on_nodes(&self, inventory: &Inventory<'a>, listeners: &Listeners) -> Option<u16> {
        let to = self.asked.to;
        let may_be_on_nodes = inventory.cluster.proxy.mode.value == ProxyMode::Ipvs
            || inventory.is_node(to.ip())
            || self.may_be_held(inventory);
        let is_known = |port: &u16| {
            listens_on_nodes(inventory, *port)
                || inventory.services_on.contains_key(port)
                || listeners.headers.has_on_nodes(*port)
        };
        Some(to.port()).filter(|_| may_be_on_nodes).filter(is_known)
    }

    /// Returns whether some node may hold the called address among its own.
    fn may_be_held(&self, inventory: &Inventory<'_>) -> bool {
        let to = self.asked.to.ip();
        let is_kept = self
            .listener()
            .is_some_and(|(listener, _)| listener.profile.delivery == Delivery::KeepsAddress);
        is_kept || inventory.held.contains(&to)
    }

    fn met(&self, inventory: &Inventory<'a>, listeners: &Listeners, port: Option<u16>) -> Met<'a> {
        let cluster = inventory.cluster;
        let mut met = Met::default();
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
        ports.extend(port);
        // These decide what listens there on nodes, for every client.
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
                let rules = &listeners.controller_rules;
                met.find_backends(&self.asked, inventory, rules, &found, &reached);
                let senders = listeners.headers.of(inventory, &found, &reached);
                new.extend(senders.filter(|service| !found.contains_key(&service.name)));
                let backends = met.controller_rules.iter().flat_map(|(_, behind, _)| behind);
                new.extend(backends.copied().filter(|service| !found.contains_key(&service.name)));
                if met.controller_rules.iter().any(|(.., is_redirected)| *is_redirected) {
                    ports.insert(HTTPS);
                }
                ports.extend(&met.sent_to);
                ports.extend(met.dialled_on_nodes(inventory));
            }
            let asked = ports.iter().chain(&host_ports);
            let on = asked.filter_map(|port| inventory.services_on.get(port)).flatten();
            new.extend(on.filter(|service| !found.contains_key(&service.name)));
            if new.is_empty() && ports.len() == known {
                break;
            }
        }
        met.is_tangled = host_ports.iter().any(|port| inventory.services_on.contains_key(port));
        ports.extend(host_ports);
        ports.retain(|port| listens_on_nodes(inventory, *port));
        met.ports = ports;
        met.services = found.into_values().collect();
        met
    }
}

/// Returns whether a pod in a node's network listens on a port, or a node forwards it to a pod.
fn listens_on_nodes(inventory: &Inventory<'_>, port: u16) -> bool {
    inventory.host_ports.contains_key(&port) || inventory.forwarded.contains_key(&port)
}

impl<'a> Met<'a> {
    /// Returns the ports of Services that controllers may dial at an address that nodes have among
    /// their own. Without a rule for the port, the connection ends at a process of the node.
    fn dialled_on_nodes(&self, inventory: &Inventory<'_>) -> impl Iterator<Item = u16> {
        let is_bound = inventory.cluster.proxy.mode.value == ProxyMode::Ipvs;
        let behind = self.controller_rules.iter().flat_map(|(_, behind, _)| behind);
        let behind = behind.filter(move |service| {
            is_bound || service.cluster_ips.iter().any(|ip| inventory.held.contains(ip))
        });
        behind.flat_map(|service| &service.ports).map(|port| port.port.number())
    }

    /// Finds the rules for the request of all controllers whose pods are endpoints of the Services
    /// found, or in the network of a node on one of these ports.
    fn find_backends(
        &mut self,
        asked: &TargetRequest,
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
            // The protocol that a controller expects matters for any connection.
            self.meets_controller = true;
            for at in controller.listeners.iter().filter(|at| at.takes != Takes::Requests) {
                if let Some(rule) = rules.pass(at, asked.request.asked_name()) {
                    self.controller_rules.push(reached_rule(cluster, rule, false));
                }
            }
            let Some((host, path)) = &asked.request.http else { continue };
            // Clients that are redirected may come back by TLS.
            let listeners = controller.listeners.iter().flat_map(|at| match at.entry_point {
                Some(_) => vec![(at, false), (at, true)],
                None => vec![(at, at.tls)],
            });
            for (at, tls) in listeners {
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
}
