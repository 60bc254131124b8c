//! An index of the cluster that is computed once: nodes and pods in classes that no rule of the
//! cluster can distinguish, and look-ups of them by address and port.
//!
//! Rules distinguish addresses by ranges (security groups, `loadBalancerSourceRanges`,
//! detectors, a node's own rules): two addresses within the same ranges are equivalent. A
//! node or pod that shares an address with another is a class of its own.

pub(crate) mod address_owners;
pub(crate) mod address_ranges;
pub(crate) mod classes;
pub(crate) mod interval_set;
pub(crate) mod node_key;
pub(crate) mod pod_addresses;
mod services;

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use uturn_clouds::cloud::Owner;
use uturn_clouds::{controller, local_addresses};
use uturn_kubeproxy::host_ports;
use uturn_model::network::NetworkMode;
use uturn_model::service::Service;
use uturn_model::{Cluster, Ingress, Name, Node, ObjectRef, Pod};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_path::NodeRuntime;

use crate::addresses;
use crate::distinguish::discriminators::Discriminators;
use crate::inventory::address_ranges::Ranges;
use crate::inventory::classes::NodeClass;
use crate::inventory::node_key::NodeKey;
use crate::inventory::pod_addresses::{PodAddresses, alive};
use crate::numbers::Numbers;

/// A client: the index of its node, and its own index among all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) place: u32,
    pub(crate) at: u32,
}

/// The nodes, pods and addresses of a cluster, counted by class.
pub(crate) struct Inventory<'a> {
    pub(crate) cluster: &'a Cluster,
    /// Nodes, ordered by name.
    pub(crate) nodes: Vec<Counted<'a>>,
    node_places: FastMap<&'a Name, u32>,
    /// Classes of nodes: first regardless of zones, then by zone too.
    pub(crate) classes: [Vec<NodeClass>; 2],
    /// Every pod that runs on a known node and can be a client; equivalent ones are adjacent.
    pub(crate) clients: Vec<&'a Pod>,
    /// The node of each client.
    pub(crate) homes: Vec<u32>,
    /// The index among the clients of each pod that has a network of its own, by the pod's number.
    client_places: Vec<Option<u32>>,
    /// The pods with networks of their own that have an address.
    residents: PodAddresses<'a>,
    nodes_at: FastMap<IpAddr, Vec<u32>>,
    ranges: Ranges,
    /// Each node with a hostNetwork pod that listens on a port, and the pod, by port.
    pub(crate) host_ports: FastMap<u16, Vec<(u32, &'a Pod)>>,
    pub(crate) services_at: FastMap<IpAddr, Vec<&'a Service>>,
    pub(crate) services_on: FastMap<u16, Vec<&'a Service>>,
    /// The Services by endpoints at addresses of nodes; see [`Inventory::services_behind`].
    node_endpoints: OnceLock<FastMap<SocketAddr, Vec<&'a Service>>>,
    /// See [`Inventory::is_of_missing_pod`].
    of_missing_pods: OnceLock<FastSet<IpAddr>>,
    pub(crate) ingresses_at: FastMap<IpAddr, Vec<&'a Ingress>>,
    /// The ports of endpoints at addresses of nodes; empty if no node is captured.
    pub(crate) host_endpoints: FastSet<u16>,
    /// The pods to which nodes forward a port (`hostPort`), by port.
    pub(crate) forwarded: FastMap<u16, Vec<&'a Pod>>,
    /// The addresses that nodes are stated to hold beside their own, and those held for load
    /// balancers that may be the source of packets.
    pub(crate) held: FastSet<IpAddr>,
    /// The Ingresses that represent each route of the Gateway API.
    pub(crate) routes: FastMap<&'a ObjectRef, Vec<&'a Ingress>>,
    /// Services with an address that a node or a pod has too.
    pub(crate) everywhere: Vec<&'a Service>,
    /// Ingresses whose load balancer has an address that a node or a pod has too.
    pub(crate) ingresses_everywhere: Vec<&'a Ingress>,
    /// Nodes whose kube-proxy has not programmed some Service.
    pub(crate) behind: Vec<u32>,
    /// The kernels of captured nodes.
    pub(crate) captured: Vec<(&'a Name, Arc<NodeRuntime>)>,
}

/// A node with its classes. A redundant capture is ignored.
pub(crate) struct Counted<'a> {
    pub(crate) node: Cow<'a, Node>,
    /// The class: first regardless of zones, then by zone too.
    pub(crate) class: [u32; 2],
    /// The pods: each kind with the range of their indices among the clients.
    pub(crate) kinds: Vec<(u32, Range<u32>)>,
}

impl<'a> Inventory<'a> {
    /// Makes an inventory of a cluster. `captured` are the nodes whose captures are walked as they
    /// are, `plain` those whose captures are redundant.
    pub(crate) fn new(
        cluster: &'a Cluster,
        captured: Vec<(&'a Name, Arc<NodeRuntime>)>,
        mut plain: FastMap<&'a Name, Node>,
        discriminators: &mut Discriminators,
    ) -> Self {
        let nodes: Vec<&'a Node> = cluster.nodes.values().collect();
        let node_places: FastMap<&'a Name, u32> =
            nodes.iter().enumerate().map(|(place, node)| (&node.name, place as u32)).collect();
        let pods = alive(cluster, &node_places);
        let residents = PodAddresses::new(&pods);
        let mut nodes_at: FastMap<IpAddr, Vec<u32>> = FastMap::default();
        for (place, node) in nodes.iter().enumerate() {
            for ip in node.internal_ips.iter().chain(&node.external_ips).chain(&node.tunnel_ips) {
                let there = nodes_at.entry(*ip).or_default();
                if there.last() != Some(&(place as u32)) {
                    there.push(place as u32);
                }
            }
        }
        let (services_at, services_on) = services::by_address_and_port(cluster);
        let mut ingresses_at: FastMap<IpAddr, Vec<&'a Ingress>> = FastMap::default();
        let mut routes: FastMap<&'a ObjectRef, Vec<&'a Ingress>> = FastMap::default();
        for ingress in cluster.ingresses.values() {
            for at in controller::addresses(cluster, Owner::Ingress(ingress)) {
                ingresses_at.entry(at.address).or_default().push(ingress);
            }
            if let Some(route) = &ingress.route {
                routes.entry(&route.object).or_default().push(ingress);
            }
        }
        // Only behind a bridge is all of a node's range on that node.
        let is_ranged = cluster.network.mode.value != NetworkMode::Routed;
        let (ranges, mut odd) = Ranges::new(if is_ranged { &nodes } else { &[] });
        for (ip, places) in &nodes_at {
            let shared = places.len() > 1
                || residents.has(*ip)
                || services_at.contains_key(ip)
                || ranges.holder(*ip).is_some_and(|holder| *places != [holder]);
            if shared {
                odd.extend(places);
            }
        }
        // A kube-proxy that takes another node's name for its own treats that node's endpoints as
        // local.
        for (place, node) in (0..).zip(&nodes) {
            let other = node.proxy_name.as_ref().and_then(|name| node_places.get(name));
            odd.extend(other.into_iter().flat_map(|other| [place, *other]));
        }
        // Only one node receives packets for an address that it announces.
        let announced = cluster.services.values().filter_map(|service| service.holder.as_ref());
        odd.extend(announced.filter_map(|holder| node_places.get(holder)));
        // If only one node holds a further address, packets for it are delivered there.
        let stated = local_addresses::stated(cluster);
        let mut nodes_held: FastSet<IpAddr> = stated.keys().copied().collect();
        if cluster.network.mode.value == NetworkMode::VpcCni {
            // Pods leave by an interface without addresses, so packets masqueraded there get the
            // first address of any other interface: one that the node holds on `lo`.
            nodes_held.extend(local_addresses::by_any(cluster));
        }
        for (ip, node) in stated.into_iter().filter_map(|(ip, node)| Some((ip, node?))) {
            let holder = node_places[&node.name];
            odd.insert(holder);
            nodes_at.entry(ip).or_insert_with(|| vec![holder]);
        }
        let mut there: Vec<u32> = Vec::new();
        let mut not_plain: FastSet<IpAddr> = FastSet::default();
        for (ip, pods) in residents.iter() {
            there.clear();
            there.extend(pods.iter().filter_map(|resident| resident.place));
            there.extend(nodes_at.get(&ip).into_iter().flatten());
            let holder = ranges.holder(ip);
            there.extend(holder);
            let are_several = there.iter().any(|place| *place != there[0]);
            let is_shared = pods.len() > 1 || services_at.contains_key(&ip);
            if is_shared || are_several {
                odd.extend(&there);
            }
            let is_elsewhere = holder.is_some_and(|holder| pods[0].place != Some(holder));
            if is_shared || is_elsewhere || nodes_at.contains_key(&ip) {
                not_plain.insert(ip);
            }
        }
        let is_taken = |ip: &IpAddr| {
            residents.has(*ip) || nodes_at.contains_key(ip) || nodes_held.contains(ip)
        };
        let everywhere = cluster
            .services
            .values()
            .filter(|service| addresses::of_service(service).any(|ip| is_taken(&ip)))
            .collect();
        let mut ingresses_everywhere: Vec<&'a Ingress> = Vec::new();
        for (_, all) in ingresses_at.iter().filter(|(ip, _)| is_taken(ip)) {
            let served = all.iter().find(|own| controller::is_served_by_cloud(cluster, own));
            let open = all.iter().find(|own| own.is_open());
            ingresses_everywhere.extend(served.into_iter().chain(open));
        }
        ingresses_everywhere.sort_by_key(|ingress| &ingress.name);
        ingresses_everywhere.dedup_by_key(|ingress| &ingress.name);
        let mut counted: Vec<Counted<'a>> = Vec::with_capacity(nodes.len());
        let mut numbers = [Numbers::default(), Numbers::default()];
        let separate: FastSet<&Name> = captured.iter().map(|(name, _)| *name).collect();
        for (place, node) in nodes.iter().enumerate() {
            let is_odd = odd.contains(&(place as u32));
            let node = plain.remove(&node.name).map_or(Cow::Borrowed(*node), Cow::Owned);
            let is_unique = is_odd || separate.contains(&node.name);
            let key = NodeKey::of(cluster, &node, discriminators, is_unique);
            let zoned = numbers[1].of((key.clone(), node.zone().map(str::to_owned)));
            let plain = numbers[0].of((key, None));
            counted.push(Counted { node, class: [plain, zoned], kinds: Vec::new() });
        }
        let mut inventory = Self {
            cluster,
            nodes: counted,
            node_places,
            classes: numbers.map(|numbers: Numbers<_>| {
                std::iter::repeat_with(NodeClass::default).take(numbers.len()).collect()
            }),
            clients: Vec::new(),
            homes: Vec::new(),
            client_places: Vec::new(),
            residents,
            nodes_at,
            ranges,
            host_ports: FastMap::default(),
            host_endpoints: FastSet::default(),
            forwarded: FastMap::default(),
            held: nodes_held,
            services_at,
            services_on,
            node_endpoints: OnceLock::new(),
            of_missing_pods: OnceLock::new(),
            ingresses_at,
            routes,
            everywhere,
            ingresses_everywhere,
            behind: Vec::new(),
            captured,
        };
        for (port, pod) in host_ports::all(cluster) {
            inventory.forwarded.entry(port.number()).or_default().push(pod);
        }
        if inventory.has_captures() {
            let slices = cluster.endpoints.values().flatten();
            let on_nodes = slices.filter(|slice| {
                slice.endpoints.iter().any(|endpoint| inventory.is_node(endpoint.address))
            });
            let ports = on_nodes.flat_map(|slice| &slice.ports).map(|port| port.port.number());
            inventory.host_endpoints = ports.collect();
        }
        inventory.count_pods(&pods, &not_plain, discriminators);
        inventory.fill_classes();
        inventory
    }

    /// Returns whether some node has additional rules, which may treat each Service differently.
    pub(crate) fn has_captures(&self) -> bool {
        !self.captured.is_empty()
    }

    /// Returns the index of a node.
    pub(crate) fn place_of(&self, node: &Name) -> Option<u32> {
        self.node_places.get(node).copied()
    }

    /// Returns the end of the range of a node's clients that are equivalent to the one at this
    /// index.
    pub(crate) fn run_at(&self, place: u32, at: u32) -> u32 {
        let kinds = &self.nodes[place as usize].kinds;
        kinds.iter().find(|(_, range)| range.contains(&at)).map_or(at + 1, |(_, range)| range.end)
    }
}
