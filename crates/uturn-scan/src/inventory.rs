//! What the cluster has, counted once: nodes and pods in classes that no rule of the cluster can
//! tell apart, and what leads from an address or a port to them.
//!
//! Rules tell addresses apart by ranges (security groups, `loadBalancerSourceRanges`,
//! detectors, a node's own rules): two addresses within the same ranges are alike. A node or
//! pod that shares an address with another is like no other.

pub(crate) mod address_ranges;
pub(crate) mod interval_set;
pub(crate) mod node_key;
pub(crate) mod pod_addresses;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use uturn_kubeproxy::host_ports;
use uturn_lb::cloud::Owner;
use uturn_lb::{controller, held};
use uturn_model::network::NetworkMode;
use uturn_model::service::Service;
use uturn_model::{Cluster, Family, Ingress, Name, Node, ObjectRef, Pod};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_path::NodeRuntime;

use crate::addresses;
use crate::distinguish::discriminators::Discriminators;
use crate::inventory::address_ranges::Ranges;
use crate::inventory::interval_set::IntervalSet;
use crate::inventory::node_key::NodeKey;
use crate::inventory::pod_addresses::{PodAddresses, Resident, alive, lacks_address};
use crate::numbers::Numbers;

/// A client: its node, and where it stands among all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) place: u32,
    pub(crate) at: u32,
}

/// The nodes, pods and addresses of a cluster, counted by class.
pub(crate) struct Inventory<'a> {
    pub(crate) cluster: &'a Cluster,
    /// Nodes in order of their names.
    pub(crate) nodes: Vec<Counted<'a>>,
    node_places: FastMap<&'a Name, u32>,
    /// Classes of nodes: regardless of zones, and with regard to them.
    pub(crate) classes: [Vec<NodeClass>; 2],
    /// Every pod that runs on a known node and can call; those that are alike stand together.
    pub(crate) clients: Vec<&'a Pod>,
    /// The node that each of them is on.
    pub(crate) homes: Vec<u32>,
    /// The place among the clients of each pod outside its node's network, by its number.
    client_places: Vec<Option<u32>>,
    /// The pods outside their nodes' networks that have an address.
    residents: PodAddresses<'a>,
    nodes_at: FastMap<IpAddr, Vec<u32>>,
    ranges: Ranges,
    /// By port: each node with the pod in its network that listens there.
    pub(crate) host_ports: FastMap<u16, Vec<(u32, &'a Pod)>>,
    pub(crate) services_at: FastMap<IpAddr, Vec<&'a Service>>,
    pub(crate) services_on: FastMap<u16, Vec<&'a Service>>,
    pub(crate) ingresses_at: FastMap<IpAddr, Vec<&'a Ingress>>,
    /// The ports of endpoints at addresses of nodes, where some node is captured.
    pub(crate) host_endpoints: FastSet<u16>,
    /// By ports of nodes that lead to pods, those pods.
    pub(crate) forwarded: FastMap<u16, Vec<&'a Pod>>,
    /// The addresses that nodes are stated to hold beside their own, and those held for load balancers
    /// that packets may have for their source.
    pub(crate) held: FastSet<IpAddr>,
    /// What stands for each route of the Gateway API.
    pub(crate) routes: FastMap<&'a ObjectRef, Vec<&'a Ingress>>,
    /// Services whose address is a node's or a pod's too, or one that nodes hold.
    pub(crate) everywhere: Vec<&'a Service>,
    /// Ingresses whose load balancer decides at such an address.
    pub(crate) ingresses_everywhere: Vec<&'a Ingress>,
    /// Nodes that lack Services.
    pub(crate) behind: Vec<u32>,
    /// The kernels of captured nodes.
    pub(crate) captured: Vec<(&'a Name, Arc<NodeRuntime>)>,
}

/// A node. A capture that changes nothing is left out.
pub(crate) struct Counted<'a> {
    pub(crate) node: Cow<'a, Node>,
    /// Its class regardless of zones, and with regard to them.
    pub(crate) class: [u32; 2],
    /// Its pods: their kind, and where they stand among the clients.
    pub(crate) kinds: Vec<(u32, Range<u32>)>,
}

/// Nodes that are alike as far as no Service is concerned.
#[derive(Default)]
pub(crate) struct NodeClass {
    pub(crate) nodes: Vec<u32>,
    /// The kinds of pods on any of them, each with those nodes and where the pods stand.
    pub(crate) kinds: BTreeMap<u32, (Vec<u32>, IntervalSet)>,
}

/// What has an address.
pub(crate) struct AddressOwners<'a> {
    /// The node that packets to it are delivered to.
    pub(crate) towards: Option<u32>,
    /// The pod outside its node's network that has it: the last one, if several do.
    pub(crate) pod: Option<&'a Pod>,
    /// Where it stands among the clients.
    pub(crate) client: Option<u32>,
    /// Whether it is a node's own.
    pub(crate) is_node: bool,
    /// Whether nothing else has it and it is in no other node's range.
    pub(crate) is_plain: bool,
}

/// What rules see of a pod's address: its family, its discriminators, itself if something else has
/// it too, and whether it is in a node's range.
type Look = (Family, u32, Option<IpAddr>, bool);

/// The kind of every pod in its node's network: it sends with the node's address.
pub(crate) const HOST: u32 = 0;

impl<'a> Inventory<'a> {
    /// Of a cluster with these captured nodes, and with these as if they were not.
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
        let (services_at, services_on) = services(cluster);
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
        // Only behind a bridge all of a node's range is on that node.
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
        // A kube-proxy that takes itself for another node's has that one's endpoints for local.
        for (place, node) in (0..).zip(&nodes) {
            let other = node.proxy_name.as_ref().and_then(|name| node_places.get(name));
            odd.extend(other.into_iter().flat_map(|other| [place, *other]));
        }
        // Where only one node holds a further address, packets to it are delivered there.
        let mut holders: FastMap<IpAddr, Option<u32>> = FastMap::default();
        for (place, node) in (0..).zip(&nodes) {
            for ip in &node.local_addresses {
                holders.entry(*ip).and_modify(|one| *one = None).or_insert(Some(place));
            }
        }
        let mut nodes_held: FastSet<IpAddr> = holders.keys().copied().collect();
        if cluster.network.mode.value == NetworkMode::VpcCni {
            // Pods leave by an interface without addresses, so what is masqueraded there gets the
            // first address of any other: one that the node holds on `lo`.
            nodes_held.extend(held::by_any(cluster));
        }
        for (ip, holder) in holders.into_iter().filter_map(|(ip, one)| Some((ip, one?))) {
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

    /// Whether some node has additional rules, which may treat each Service differently.
    pub(crate) fn has_captures(&self) -> bool {
        !self.captured.is_empty()
    }

    /// Where a node stands.
    pub(crate) fn place_of(&self, node: &Name) -> Option<u32> {
        self.node_places.get(node).copied()
    }

    /// The end of the run of a node's clients that are like the one at this place.
    pub(crate) fn run_at(&self, place: u32, at: u32) -> u32 {
        let kinds = &self.nodes[place as usize].kinds;
        kinds.iter().find(|(_, range)| range.contains(&at)).map_or(at + 1, |(_, range)| range.end)
    }

    /// The node that packets to an address are delivered to.
    pub(crate) fn node_towards(&self, ip: IpAddr) -> Option<u32> {
        if let Some(nodes) = self.nodes_at.get(&ip) {
            return nodes.first().copied();
        }
        if let Some(last) = self.pods_at(ip).last() {
            return last.place;
        }
        self.ranges.holder(ip)
    }

    /// The pods outside their nodes' networks that have an address.
    pub(crate) fn pods_at(&self, ip: IpAddr) -> &[Resident<'a>] {
        self.residents.at(ip)
    }

    /// Whether it is a node's own address.
    pub(crate) fn is_node(&self, ip: IpAddr) -> bool {
        self.nodes_at.contains_key(&ip)
    }

    /// What has an address.
    pub(crate) fn holders(&self, ip: IpAddr) -> AddressOwners<'a> {
        let nodes = self.nodes_at.get(&ip).map_or(&[][..], Vec::as_slice);
        let pods = self.pods_at(ip);
        let range = self.ranges.holder(ip);
        let towards = match (nodes, pods) {
            ([first, ..], _) => Some(*first),
            ([], [.., last]) => last.place,
            ([], []) => range,
        };
        let is_plain = pods.len() + nodes.len() <= 1
            && !self.services_at.contains_key(&ip)
            && range.is_none_or(|range| towards == Some(range));
        let clients = pods.iter().filter_map(|pod| self.client_places[pod.number as usize]);
        let (pod, client) = (pods.last().map(|resident| resident.pod), clients.max());
        AddressOwners { towards, pod, client, is_node: !nodes.is_empty(), is_plain }
    }

    /// Every node that has something to do with an address.
    pub(crate) fn related(&self, ip: IpAddr) -> Vec<u32> {
        let of_pods = self.pods_at(ip).iter().filter_map(|resident| resident.place);
        let own = self.nodes_at.get(&ip).into_iter().flatten().copied();
        own.chain(of_pods).chain(self.ranges.holder(ip)).collect()
    }

    fn count_pods(
        &mut self,
        pods: &[Resident<'a>],
        not_plain: &FastSet<IpAddr>,
        discriminators: &mut Discriminators,
    ) {
        let mut kinds: Numbers<Vec<Look>> = Numbers::default();
        // For a pod in its node's network: no address, and in no node's range.
        let host = kinds.of(vec![(Family::V4, u32::MAX, None, false)]);
        debug_assert_eq!(host, HOST, "the first number");
        let mut clients: Vec<([u32; 4], u32, &'a Pod)> = Vec::with_capacity(pods.len());
        let mut listens: FastSet<(u16, u32)> = FastSet::default();
        let mut looks = Vec::new();
        for Resident { pod, number, place } in pods.iter().copied() {
            let Some(place) = place.filter(|_| !lacks_address(pod)) else { continue };
            let mut kind = HOST;
            if pod.spec.host_network {
                for port in pod.spec.ports() {
                    let port = port.port.number();
                    if listens.insert((port, place)) {
                        self.host_ports.entry(port).or_default().push((place, pod));
                    }
                }
            } else {
                looks.clear();
                for ip in &pod.ips {
                    let odd = not_plain.contains(ip).then_some(*ip);
                    let in_range = self.ranges.holder(*ip).is_some();
                    looks.push((Family::of(*ip), discriminators.of(*ip), odd, in_range));
                }
                kind = kinds.of_list(&looks);
            }
            let class = self.nodes[place as usize].class;
            clients.push(([class[0], class[1], kind, place], number, pod));
        }
        self.client_places = vec![None; pods.len()];
        // Of pods that are alike, the order of names stays.
        clients.sort_unstable_by_key(|(key, number, _)| (*key, *number));
        for (at, ([_, _, kind, place], number, pod)) in clients.iter().enumerate() {
            let at = at as u32;
            let kinds = &mut self.nodes[*place as usize].kinds;
            match kinds.last_mut() {
                Some((last, range)) if last == kind => range.end = at + 1,
                _ => kinds.push((*kind, at..at + 1)),
            }
            if !pod.spec.host_network {
                self.client_places[*number as usize] = Some(at);
            }
        }
        self.homes = clients.iter().map(|([_, _, _, place], ..)| *place).collect();
        self.clients = clients.into_iter().map(|(.., pod)| pod).collect();
    }

    fn fill_classes(&mut self) {
        let mut ranges: FastMap<(usize, u32, u32), Vec<Range<u32>>> = FastMap::default();
        for (place, node) in self.nodes.iter().enumerate() {
            if !node.node.unprogrammed.is_empty() {
                self.behind.push(place as u32);
            }
            for (of, classes) in self.classes.iter_mut().enumerate() {
                let class = &mut classes[node.class[of] as usize];
                class.nodes.push(place as u32);
                for (kind, range) in &node.kinds {
                    class.kinds.entry(*kind).or_default().0.push(place as u32);
                    ranges.entry((of, node.class[of], *kind)).or_default().push(range.clone());
                }
            }
        }
        for ((of, class, kind), ranges) in ranges {
            if let Some((_, places)) = self.classes[of][class as usize].kinds.get_mut(&kind) {
                *places = IntervalSet::new(ranges);
            }
        }
    }
}

type ByAddress<'a> = FastMap<IpAddr, Vec<&'a Service>>;
type ByPort<'a> = FastMap<u16, Vec<&'a Service>>;

fn services(cluster: &Cluster) -> (ByAddress<'_>, ByPort<'_>) {
    let mut at: ByAddress<'_> = FastMap::default();
    let mut on: ByPort<'_> = FastMap::default();
    let same = |known: Option<&&Service>, other: &Service| {
        known.is_some_and(|known| known.name == other.name)
    };
    for service in cluster.services.values() {
        for ip in addresses::of_service(service) {
            let there = at.entry(ip).or_default();
            if !same(there.last(), service) {
                there.push(service);
            }
        }
        for port in service.ports.iter().filter_map(|port| port.node_port) {
            let there = on.entry(port.number()).or_default();
            if !same(there.last(), service) {
                there.push(service);
            }
        }
    }
    (at, on)
}
