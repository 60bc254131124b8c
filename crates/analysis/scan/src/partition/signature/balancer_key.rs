//! Load balancers as the cloud's controller makes them of the objects in scope, for a sample of
//! nodes and endpoints: the listeners with their profiles, and the nodes and endpoints that become
//! targets.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uturn_clouds::cloud::{self, Owner};
use uturn_clouds::{announcers, controller};
use uturn_model::ingress::PathKind;
use uturn_model::lb::{
    Listener, ListenerProtocol, LoadBalancer, LoadBalancerFact, Profile, Redirect, Rule,
    Scope as Reach, Target, TargetKind,
};
use uturn_model::{
    Cluster, Endpoint, EndpointPort, EndpointSlice, Family, Labels, Name, NamespacedName, Node,
    Origin, Port, Service, Text,
};
use uturn_path::outline;

use crate::partition::scope::Scope;

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The behaviour of a load balancer, without names and addresses.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct BalancerKey {
    reach: Reach,
    zone: Option<Text>,
    security_groups: Vec<Text>,
    listeners: Vec<ListenerKey>,
    /// The announcements of its address for each Service in scope.
    announced: Vec<Option<Vec<usize>>>,
    /// The weights of single pods that Services and Ingresses in scope state, by their places.
    pod_weights: Vec<(usize, Text)>,
}

#[derive(PartialEq, Eq, Hash)]
struct ListenerKey {
    port: Port,
    protocol: ListenerProtocol,
    profile: Profile,
    rules: Vec<RuleKey>,
}

#[derive(PartialEq, Eq, Hash)]
struct RuleKey {
    /// Whether the rule is for every host, and how its path is compared.
    is_for_every_host: bool,
    path: Option<PathKind>,
    /// The place in scope of the Service behind the rule.
    service: Option<usize>,
    redirect: Option<Redirect>,
    targets: Vec<TargetKey>,
}

/// A target of the sample.
#[derive(PartialEq, Eq, Hash)]
struct TargetKey {
    /// The node, by its place in the sample.
    node: Option<u32>,
    is_pod: bool,
    /// The port of the Service, by its place.
    port: Option<usize>,
    weight: u32,
}

/// A cluster with a few nodes for the cloud's controller to pick from: one with and one without
/// endpoints for each set of labels that some Service asks of its nodes, in each zone that some
/// load balancer serves alone.
pub(crate) struct SampleCluster {
    cluster: Cluster,
    /// The nodes that have an endpoint of every Service.
    homes: Vec<Name>,
    /// The function that makes load balancers of a cluster's objects.
    pub(super) make: fn(&Cluster) -> Vec<LoadBalancer>,
}

impl SampleCluster {
    /// Makes the sample of a cluster whose Services ask their nodes for these labels.
    pub(crate) fn new(whole: &Cluster, node_labels: &[Labels]) -> Self {
        let mut cluster = outline(whole);
        cluster.listener_overrides.clone_from(&whole.listener_overrides);
        let mut homes = Vec::new();
        let none = Labels::new();
        let names = (0u32..).filter_map(|number| Name::new(format!("sample-{number}")).ok());
        let of_zones = whole.dns.balancers.values().flatten().filter_map(|at| at.zone.as_deref());
        let zones: BTreeSet<Option<&str>> = of_zones.map(Some).chain([None]).collect();
        let kinds = [&none]
            .into_iter()
            .chain(node_labels)
            .flat_map(|labels| zones.iter().map(move |zone| (labels, *zone)))
            .flat_map(|kind| [(kind, true), (kind, false)]);
        for (name, ((labels, zone), is_home)) in names.zip(kinds) {
            let mut node = Node::new(name.clone(), Origin::file("sample"));
            let zone = zone.filter(|_| labels.get(ZONE_LABEL).is_none());
            node.labels = labels.iter().chain(zone.map(|zone| (ZONE_LABEL, zone))).collect();
            node.internal_ips =
                Family::BOTH.map(|family| address(family, cluster.nodes.len())).into();
            cluster.nodes.insert(name.clone(), node);
            if is_home {
                homes.push(name);
            }
        }
        Self { cluster, homes, make: controller::load_balancers }
    }

    /// Returns the load balancers of a scope's objects, the one at the called address first.
    pub(crate) fn balancers(
        &mut self,
        scope: &Scope<'_>,
        facts: &[LoadBalancerFact],
    ) -> Vec<(IpAddr, BalancerKey)> {
        let services = &scope.services;
        if scope.ingresses.is_empty()
            && services.iter().all(|service| service.load_balancer.is_empty())
        {
            return Vec::new();
        }
        let asked = scope.asked.to.ip();
        for service in services {
            self.cluster.services.insert(service.name.clone(), (*service).clone());
            let slices = Family::BOTH.map(|family| self.slice(service, family));
            self.cluster.endpoints.insert(service.name.clone(), slices.into());
        }
        for ingress in &scope.ingresses {
            self.cluster.ingresses.insert(ingress.name.clone(), ingress.clone());
        }
        let stated = facts.iter().filter(|fact| fact.vip == asked);
        self.cluster.load_balancers.extend(stated.cloned());
        let mut made = (self.make)(&self.cluster);
        self.cluster.services.clear();
        self.cluster.endpoints.clear();
        self.cluster.ingresses.clear();
        self.cluster.load_balancers.clear();
        let owner = |balancer: &LoadBalancer| {
            let rule = balancer.listeners.iter().flat_map(|listener| &listener.rules).next()?;
            place(services, &rule.service)
        };
        made.sort_by_key(|balancer| (Reverse(balancer.vip == asked), owner(balancer)));
        let pod_weights = self.pod_weights(scope);
        made.iter()
            .map(|balancer| (balancer.vip, self.key(balancer, services, &pod_weights)))
            .collect()
    }

    /// Returns a slice with an endpoint of a Service on each of its homes. The number of each of
    /// the Service's ports is its place.
    fn slice(&self, service: &Service, family: Family) -> EndpointSlice {
        let numbered = (1u16..).filter_map(Port::new).zip(&service.ports);
        let ports = numbered.map(|(number, port)| EndpointPort {
            name: port.name.clone(),
            protocol: port.protocol,
            port: number,
        });
        let behind = self.cluster.nodes.len();
        let endpoints = self.homes.iter().enumerate().map(|(number, home)| Endpoint {
            node: Some(home.clone()),
            ..Endpoint::new(address(family, behind + number))
        });
        EndpointSlice {
            name: service.name.clone(),
            service: service.name.clone(),
            family,
            ports: ports.collect(),
            endpoints: endpoints.collect(),
            derived: true,
            origin: Origin::file("sample"),
        }
    }

    fn pod_weights(&self, scope: &Scope<'_>) -> Vec<(usize, Text)> {
        let Some(model) = cloud::model(&self.cluster) else { return Vec::new() };
        let services = scope.services.iter().map(|service| Owner::Service(service));
        let owners = services.chain(scope.ingresses.iter().map(Owner::Ingress));
        let weights = |(place, owner)| Some((place, model.pod_weights(owner)?.into()));
        owners.enumerate().filter_map(weights).collect()
    }

    fn key(
        &self,
        balancer: &LoadBalancer,
        services: &[&Service],
        pod_weights: &[(usize, Text)],
    ) -> BalancerKey {
        let LoadBalancer { name: _, vip, scope, zone, security_groups, listeners } = balancer;
        let listener = |listener: &Listener| {
            let Listener { port, protocol, profile, rules } = listener;
            ListenerKey {
                port: *port,
                protocol: *protocol,
                profile: profile.clone(),
                rules: rules.iter().map(|rule| self.rule_key(rule, services)).collect(),
            }
        };
        let announced = |service: &Service| announcers::places_of(&self.cluster, service, *vip);
        BalancerKey {
            reach: *scope,
            zone: zone.clone(),
            security_groups: security_groups.clone(),
            listeners: listeners.iter().map(listener).collect(),
            announced: services.iter().map(|service| announced(service)).collect(),
            pod_weights: pod_weights.to_vec(),
        }
    }

    fn rule_key(&self, rule: &Rule, services: &[&Service]) -> RuleKey {
        let Rule { host, path, service, owner: _, targets, redirect } = rule;
        let place = place(services, service);
        let ports = place.map_or(&[][..], |place| &services[place].ports);
        let target = |target: &Target| {
            let Target { address, weight, kind } = target;
            let (is_pod, port) = match kind {
                TargetKind::NodePort(_) => {
                    let is_it = |port: Port| port.number() == address.port();
                    (false, ports.iter().position(|port| port.node_port.is_some_and(is_it)))
                }
                TargetKind::Pod { .. } => (true, usize::from(address.port()).checked_sub(1)),
            };
            let node = kind
                .node()
                .and_then(|name| self.cluster.nodes.keys().position(|known| known == name));
            TargetKey { node: node.map(|place| place as u32), is_pod, port, weight: *weight }
        };
        RuleKey {
            is_for_every_host: host.is_none(),
            path: path.as_ref().map(|(_, kind)| *kind),
            service: place,
            redirect: redirect.clone(),
            targets: targets.iter().map(target).collect(),
        }
    }
}

/// Returns an address for each number: the numbers of nodes come first, those of endpoints after.
fn address(family: Family, number: usize) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from_bits(0xc000_0200 + number as u32).into(),
        Family::V6 => Ipv6Addr::from_bits(0x2001_0db8 << 96 | number as u128).into(),
    }
}

fn place(services: &[&Service], name: &NamespacedName) -> Option<usize> {
    services.iter().position(|service| service.name == *name)
}
