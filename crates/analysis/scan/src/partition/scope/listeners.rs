//! The listeners of the whole cluster, computed once for all targets.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use uturn_clouds::cloud::{self, Maker, Owner};
use uturn_clouds::controller;
use uturn_clouds::ingress_controller::ControllerRules;
use uturn_lb::rules::{self, Router};
use uturn_model::lb::{Layer, Listener, LoadBalancer};
use uturn_model::{Cluster, Family, NamespacedName, Node, Port, Service};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_path::HeaderServers;

use super::TargetRequest;
use crate::inventory::Inventory;

/// Load balancers without targets, and the rules of controllers: which listeners there are, and for
/// which objects.
pub(crate) struct Listeners {
    pub(super) balancers: FastMap<IpAddr, Arc<LoadBalancer>>,
    /// The rules of each controller in the cluster.
    pub(super) controller_rules: Vec<ControllerRules>,
    pub(super) headers: HeaderSenders,
    /// The Services whose load balancer has only a name, by the addresses of the name.
    pub(super) named: FastMap<IpAddr, Vec<NamespacedName>>,
    /// The Services that got a port of a load balancer for which others ask too, by the names of
    /// those that do without it.
    pub(super) first: FastMap<NamespacedName, Vec<NamespacedName>>,
    /// The ports of each Ingress that the cloud serves.
    ports: FastMap<NamespacedName, Vec<Port>>,
    /// The rules of listeners that have many, by address and place.
    routers: FastMap<(IpAddr, usize), OnceCell<Router>>,
}

/// The number of rules beyond which a listener's rules are prepared.
const FEW: usize = 64;

/// The Services whose load balancers send a PROXY header. Their endpoints expect a header from
/// every client, whatever Service it calls.
pub(super) struct HeaderSenders {
    /// The Services by endpoint.
    at: HeaderServers,
    /// The Services with endpoints in the networks of nodes, by port.
    on_nodes: FastMap<u16, BTreeSet<NamespacedName>>,
    /// The Services that ask for a header. If several have an address and a port, the first of them
    /// decides, so all of them matter.
    pub(super) asking: FastSet<NamespacedName>,
}

impl HeaderSenders {
    fn new(cluster: &Cluster, balancers: &[LoadBalancer]) -> Self {
        let at = HeaderServers::new(cluster, balancers);
        let mut on_nodes: FastMap<u16, BTreeSet<NamespacedName>> = FastMap::default();
        if at.iter().next().is_some() {
            let own = |node: &Node| [node.internal_ips.as_slice(), &node.external_ips].concat();
            let of_nodes: FastSet<IpAddr> = cluster.nodes.values().flat_map(own).collect();
            for (server, service) in at.iter().filter(|(server, _)| of_nodes.contains(&server.ip()))
            {
                on_nodes.entry(server.port()).or_default().insert(service.clone());
            }
        }
        let asking = cluster.services.values().filter(|service| asks_for_header(cluster, service));
        let asking = asking.map(|service| service.name.clone()).collect();
        Self { at, on_nodes, asking }
    }

    /// Returns whether some of these Services have endpoints in the networks of nodes on a port.
    pub(super) fn has_on_nodes(&self, port: u16) -> bool {
        self.on_nodes.contains_key(&port)
    }

    /// Returns the Services that send a header to endpoints of Services, or to nodes on one of
    /// these ports.
    pub(super) fn of<'s, 'a: 's>(
        &'s self,
        inventory: &'s Inventory<'a>,
        found: &'s BTreeMap<&NamespacedName, &'a Service>,
        ports: &'s BTreeSet<u16>,
    ) -> impl Iterator<Item = &'a Service> + 's {
        let cluster = inventory.cluster;
        let slices = found.keys().flat_map(|name| cluster.slices(name));
        let slices = slices.filter(|_| self.at.iter().next().is_some());
        let endpoints = slices.flat_map(|slice| {
            let addresses = slice.endpoints.iter().map(|endpoint| endpoint.address);
            addresses.flat_map(|ip| slice.ports.iter().map(move |port| (ip, port.port.number())))
        });
        let forwarded = ports.iter().filter_map(|port| inventory.forwarded.get(port)).flatten();
        let forwarded = forwarded.flat_map(|pod| {
            let ports = pod.spec.ports().map(|port| port.port.number());
            ports.flat_map(|port| pod.ips.iter().map(move |ip| (*ip, port)))
        });
        let senders = endpoints.chain(forwarded).filter_map(|at| self.at.service_of(at.into()));
        let on_nodes = ports.iter().filter_map(|port| self.on_nodes.get(port)).flatten();
        senders.chain(on_nodes).filter_map(|name| cluster.services.get(name))
    }
}

impl Listeners {
    /// Finds the listeners of a cluster. The outline has all its Services and Ingresses, and no
    /// node.
    pub(crate) fn new(cluster: &Cluster, outline: &Cluster) -> Self {
        let all = controller::load_balancers(outline);
        let headers = HeaderSenders::new(cluster, &all);
        let mut named: FastMap<IpAddr, Vec<NamespacedName>> = FastMap::default();
        for service in outline.services.values() {
            let hosts = service.load_balancer.iter().filter_map(|entry| entry.hostname.as_deref());
            for at in hosts.flat_map(|host| outline.dns.of_balancer(host)) {
                named.entry(at.address).or_default().push(service.name.clone());
            }
        }
        let first = first_at_ports(outline, &all);
        let served = outline.ingresses.values();
        let served = served.filter(|ingress| controller::is_served_by_cloud(outline, ingress));
        let ports = served
            .map(|ingress| (ingress.name.clone(), controller::ingress_ports(outline, ingress)));
        let routers = all.iter().flat_map(|balancer| {
            let many = balancer.listeners.iter().enumerate();
            let many = many.filter(|(_, listener)| listener.rules.len() > FEW);
            many.map(|(place, _)| ((balancer.vip, place), OnceCell::new()))
        });
        let (ports, routers) = (ports.collect(), routers.collect());
        let balancers = all.into_iter().map(|balancer| (balancer.vip, Arc::new(balancer)));
        let rules = |controller| ControllerRules::new(outline, controller);
        Self {
            balancers: balancers.collect(),
            controller_rules: outline.controllers.iter().map(rules).collect(),
            headers,
            named,
            first,
            ports,
            routers,
        }
    }

    /// Returns whether an Ingress that the cloud serves listens on a port.
    pub(super) fn listens(&self, ingress: &NamespacedName, port: u16) -> bool {
        self.ports.get(ingress).is_some_and(|all| all.iter().any(|own| own.number() == port))
    }

    /// Returns the place of the listener's rule that serves the request.
    pub(super) fn rule_for(
        &self,
        balancer: &LoadBalancer,
        place: usize,
        asked: &TargetRequest,
    ) -> Option<usize> {
        let listener = &balancer.listeners[place];
        if listener.protocol.layer() == Layer::L4 {
            return (!listener.rules.is_empty()).then_some(0);
        }
        let bare = || (asked.to.ip().to_string(), "/".to_owned());
        let (host, path) = asked.request.http.clone().unwrap_or_else(bare);
        let routed = match self.routers.get(&(balancer.vip, place)) {
            Some(router) => {
                let router = router.get_or_init(|| Router::new(&listener.rules));
                rules::routed_by(router, listener, &host, &path)
            }
            None => rules::routed(listener, &host, &path),
        };
        routed.ok()?.rule
    }
}

/// Returns for each Service those that have a port of its load balancer before it.
fn first_at_ports(
    cluster: &Cluster,
    balancers: &[LoadBalancer],
) -> FastMap<NamespacedName, Vec<NamespacedName>> {
    let at: FastMap<IpAddr, &LoadBalancer> =
        balancers.iter().map(|balancer| (balancer.vip, balancer)).collect();
    let mut all: FastMap<NamespacedName, Vec<NamespacedName>> = FastMap::default();
    for service in cluster.services.values().filter(|service| controller::is_judged(service)) {
        for address in controller::addresses(cluster, Owner::Service(service)) {
            let Some(balancer) = at.get(&address.address) else { continue };
            let asked = |listener: &&Listener| {
                service.ports.iter().any(|port| {
                    port.port == listener.port && port.protocol == listener.protocol.transport()
                })
            };
            for listener in balancer.listeners.iter().filter(asked) {
                let Some(rule) = listener.rules.first() else { continue };
                if rule.owner != service.object() {
                    all.entry(service.name.clone()).or_default().push(rule.service.clone());
                }
            }
        }
    }
    all
}

/// Returns whether a Service asks for a load balancer that sends a PROXY header.
fn asks_for_header(cluster: &Cluster, service: &Service) -> bool {
    if service.load_balancer.is_empty() {
        return false;
    }
    match cloud::maker_of(service, &cluster.provider) {
        Maker::Product(product, _) => Family::BOTH.into_iter().any(|family| {
            let plans = service.ports.iter().filter_map(|port| product.port(service, port, family));
            plans.into_iter().any(|plan| plan.profile.proxy_header.is_some())
        }),
        _ => false,
    }
}
