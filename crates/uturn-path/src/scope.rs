//! What a packet towards a target can meet: a few Services of ten thousand.
//!
//! A rule of kube-proxy's belongs to one Service and asks for an address or a node's port of
//! it. So rules matter only of Services that have the address asked, own a node's port that
//! is asked on the way, or stand behind the load balancer's rule for the request.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

use uturn_lb::rules;
use uturn_model::lb::{Layer, Listener, LoadBalancer, Scheduler};
use uturn_model::{Cluster, Ingress, LoadBalancer as Balancer, NamespacedName, ProxyMode, Service};
use uturn_netfilter::IpProtocol;

use crate::census::Census;

/// The ports that clients and probers have: answers go there.
const OWN_PORTS: [u16; 2] = [40_000, 50_000];

/// What is asked of a target.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) to: SocketAddr,
    pub(crate) protocol: IpProtocol,
    /// Host and path.
    pub(crate) http: Option<(String, String)>,
    pub(crate) tls: Option<bool>,
}

/// What a target's packets can meet.
pub(crate) struct Scope<'a> {
    pub(crate) asked: Asked,
    /// By name.
    pub(crate) services: Vec<&'a Service>,
    /// Ports that may be asked on nodes' own addresses.
    pub(crate) ports: BTreeSet<u16>,
    /// The load balancer at the address asked.
    pub(crate) balancer: Option<&'a Balancer>,
    /// The listener that is asked, and the rule for the request.
    pub(crate) listener: Option<(&'a Listener, Option<usize>)>,
    /// The Ingresses whose listener that is, with no rule but the one for the request.
    pub(crate) ingresses: Vec<Ingress>,
    /// Whether a process in a node's network is an endpoint on a port that is some Service's
    /// port on every node.
    pub(crate) is_tangled: bool,
}

/// Load balancers without targets: who listens where, for whom.
pub(crate) struct Listeners(HashMap<IpAddr, LoadBalancer>);

impl Listeners {
    /// Of a cluster's outline with all Services and Ingresses, and no node.
    pub(crate) fn new(outline: &Cluster) -> Self {
        let all = uturn_lb::controller::load_balancers(outline);
        Self(all.into_iter().map(|one| (one.vip, one)).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &LoadBalancer> {
        self.0.values()
    }
}

impl<'a> Scope<'a> {
    pub(crate) fn new(census: &Census<'a>, listeners: &'a Listeners, asked: Asked) -> Self {
        let balancer = listeners.0.get(&asked.to.ip());
        let listener = balancer.and_then(|one| {
            one.listeners.iter().find(|one| {
                one.port.number() == asked.to.port()
                    && IpProtocol::from(one.protocol.transport()) == asked.protocol
            })
        });
        let listener = listener.map(|one| (one, rule_for(one, &asked)));
        let mut scope = Self {
            asked,
            services: Vec::new(),
            ports: BTreeSet::new(),
            balancer,
            listener,
            ingresses: Vec::new(),
            is_tangled: false,
        };
        scope.find_services(census);
        scope.find_ingresses(census.cluster);
        scope
    }

    /// Whether the load balancer picks by the client's address.
    pub(crate) fn picks_by_client(&self) -> bool {
        self.listener.is_some_and(|(one, _)| one.profile.scheduler == Scheduler::SourceHash)
    }

    fn find_services(&mut self, census: &Census<'a>) {
        let cluster = census.cluster;
        let mut found: BTreeMap<&NamespacedName, &'a Service> = BTreeMap::new();
        let to = self.asked.to;
        let at_address = census.services_at.get(&to.ip()).into_iter().flatten();
        let behind = self.listener.and_then(|(one, rule)| one.rules.get(rule?));
        let behind = behind.and_then(|rule| cluster.services.get(&rule.service));
        let mut new: Vec<&'a Service> =
            at_address.chain(&census.everywhere).copied().chain(behind).collect();
        let mut ports: BTreeSet<u16> = OWN_PORTS.into();
        if cluster.proxy.mode.value == ProxyMode::Ipvs || census.is_node(to.ip()) {
            ports.insert(to.port());
        }
        let mut host_ports = BTreeSet::new();
        loop {
            while let Some(service) = new.pop() {
                if found.insert(&service.name, service).is_some() {
                    continue;
                }
                ports.extend(service.ports.iter().filter_map(|one| Some(one.node_port?.number())));
                for slice in cluster.slices(&service.name) {
                    if slice.endpoints.iter().any(|one| census.is_node(one.address)) {
                        host_ports.extend(slice.ports.iter().map(|one| one.port.number()));
                    }
                }
            }
            let asked = ports.iter().chain(&host_ports);
            let on = asked.filter_map(|port| census.services_on.get(port)).flatten();
            new.extend(on.filter(|one| !found.contains_key(&one.name)));
            if new.is_empty() {
                break;
            }
        }
        self.is_tangled = host_ports.iter().any(|port| census.services_on.contains_key(port));
        ports.extend(host_ports);
        self.ports = ports;
        self.services = found.into_values().collect();
    }

    /// The first Ingress to listen there says how; another may own the rule.
    fn find_ingresses(&mut self, cluster: &Cluster) {
        let Some((listener, rule)) = self.listener else { return };
        if listener.protocol.layer() == Layer::L4 {
            return;
        }
        let owner = rule.and_then(|rule| listener.rules.get(rule)).map(|rule| &rule.owner);
        let mut owners: Vec<&uturn_model::ObjectRef> =
            listener.rules.first().map(|rule| &rule.owner).into_iter().chain(owner).collect();
        owners.dedup();
        for one in owners {
            let name = one.namespace.as_ref().map(|namespace| NamespacedName {
                namespace: namespace.clone(),
                name: uturn_model::Name::new(one.name.clone()).unwrap_or_else(|_| namespace.clone()),
            });
            let found = name.and_then(|name| cluster.ingresses.get(&name));
            if let Some(ingress) = found.filter(|ingress| ingress.object() == *one) {
                let rule = rule.filter(|_| owner == Some(one)).map(|rule| &listener.rules[rule]);
                self.ingresses.push(with_only(ingress, rule));
            }
        }
    }
}

/// The rule that serves the request, by its place.
fn rule_for(listener: &Listener, asked: &Asked) -> Option<usize> {
    if listener.protocol.layer() == Layer::L4 {
        return (!listener.rules.is_empty()).then_some(0);
    }
    match &asked.http {
        Some((host, path)) => rules::position(&listener.rules, host, path),
        None => rules::position(&listener.rules, &asked.to.ip().to_string(), "/"),
    }
}

/// An Ingress without any rule but one.
fn with_only(ingress: &Ingress, rule: Option<&uturn_model::lb::Rule>) -> Ingress {
    let mut ingress = ingress.clone();
    let wanted = rule.map(|rule| (&rule.host, rule.path.as_ref(), &rule.service));
    let mut met = false;
    for one in &mut ingress.rules {
        let host = one.host.clone();
        one.paths.retain(|path| {
            let uturn_model::ingress::Backend::Service { name, .. } = &path.backend else {
                return false;
            };
            let same = wanted.is_some_and(|(wanted, wanted_path, service)| {
                *wanted == host
                    && wanted_path.is_some_and(|(text, kind)| {
                        *text == path.path && *kind == path.kind
                    })
                    && service.name == *name
            });
            // The first of equals wins.
            same && !std::mem::replace(&mut met, true)
        });
    }
    ingress.rules.retain(|one| !one.paths.is_empty());
    if wanted.is_none_or(|(host, path, _)| host.is_some() || path.is_some()) {
        ingress.default_backend = None;
    }
    ingress
}
