//! Explains why clients share a class: what all clients of a class have in common, and what
//! distinguishes them from the next class.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use uturn_clouds::controller::excludes_node;
use uturn_model::node::RpFilter;
use uturn_model::{IpNet, Labels, Name, NamespacedName, Node, Pod, Text};
use uturn_path::{Engine, WalkError};

use crate::clients::ScanResult;
use crate::distinguish::discriminators::Discriminators;
use crate::inventory::Inventory;
use crate::partition::scope::Scope;
use crate::partition::target_classes::{Classifier, Granularity};
use crate::prepared::PreparedScan;
use crate::targets::ScanTarget;

/// The classes of a target's clients.
#[derive(Clone, Debug)]
pub struct TargetExplanation {
    /// The target.
    pub target: Arc<ScanTarget>,
    /// The granularity of the target's classes of clients.
    pub closeness: Closeness,
    /// The target's classes of clients, in the order of the scan.
    pub classes: Vec<ClassExplanation>,
}

/// The granularity of a target's classes of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closeness {
    /// Equivalent nodes and pods are one class.
    Classes,
    /// Every node is a class of its own.
    EveryNode,
    /// Every pod is a class of its own.
    EveryPod,
}

/// The explanation of a class: why its clients share it.
#[derive(Clone, Debug)]
pub struct ClassExplanation {
    /// The clients, and the verdicts of their calls.
    pub result: ScanResult,
    /// The traits that all of them have in common.
    pub common: Vec<ClassTrait>,
    /// The traits that distinguish them from the next class of the target: those that only they
    /// have, and those that only that class has. Both are empty for the last class, and if the
    /// classes differ only in the order in which the load balancer tries its targets.
    pub unlike_next: [Vec<ClassTrait>; 2],
}

/// A trait that clients of a class have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassTrait {
    /// They share their node's network.
    HostNetwork,
    /// They are endpoints of these Services.
    EndpointOf(Vec<NamespacedName>),
    /// Their addresses are in these ranges that the cluster's rules name.
    AddressIn(Vec<IpNet>),
    /// This many endpoints of a Service are on their node.
    EndpointsOnNode(NamespacedName, usize),
    /// A pod in their node's network listens on this port.
    ListenerOnNode(u16),
    /// Their node lacks the rules of this Service.
    NodeLacks(NamespacedName),
    /// Their node's addresses are in these ranges that the cluster's rules name.
    NodeIn(Vec<IpNet>),
    /// Their node has these labels, which a Service asks of its nodes.
    NodeLabels(Labels),
    /// Their node is in this zone, and endpoints or targets are picked by zone.
    Zone(Text),
    /// Their node has this kernel.
    Kernel(Text),
    /// Their node validates sources in this mode.
    NodeRpFilter(RpFilter),
    /// Their node is in these security groups.
    SecurityGroups(Vec<Text>),
    /// Their node has additional rules.
    NodeFirewall,
    /// Their node does not forward.
    NodeDoesNotForward,
    /// Their node was captured, and its rules are walked as they are.
    CapturedNode(Name),
    /// Load balancers leave their node out.
    ExcludedNode,
}

/// Reads the traits of clients that matter for a target.
struct TraitReader<'r, 'a> {
    inventory: &'r Inventory<'a>,
    discriminators: &'r Discriminators,
    scope: &'r Scope<'a>,
    /// Whether zones matter: endpoints of a Service in scope have hints for zones, or the load
    /// balancer serves one zone at the address asked.
    heeds_zones: bool,
}

impl<'r, 'a> TraitReader<'r, 'a> {
    fn new(
        inventory: &'r Inventory<'a>,
        discriminators: &'r Discriminators,
        scope: &'r Scope<'a>,
    ) -> Self {
        let slices =
            scope.services.iter().flat_map(|service| inventory.cluster.slices(&service.name));
        let mut endpoints = slices.flat_map(|slice| &slice.endpoints);
        let heeds_zones =
            scope.has_zone() || endpoints.any(|endpoint| !endpoint.zone_hints.is_empty());
        Self { inventory, discriminators, scope, heeds_zones }
    }

    /// Returns the traits that all clients of a class have.
    fn common(&self, class: &ScanResult) -> Vec<ClassTrait> {
        let mut places = class.clients.pods.places();
        let mut common = places.next().map(|at| self.traits(at)).unwrap_or_default();
        for at in places {
            let own = self.traits(at);
            common.retain(|known| own.contains(known));
        }
        common
    }

    /// Returns the traits of a client, by its place.
    fn traits(&self, at: usize) -> Vec<ClassTrait> {
        let pod = self.inventory.clients[at];
        let place = self.inventory.homes[at];
        let mut traits = self.pod_traits(pod);
        self.add_neighbours(place, &mut traits);
        self.add_node_traits(&self.inventory.nodes[place as usize].node, &mut traits);
        traits
    }

    fn pod_traits(&self, pod: &Pod) -> Vec<ClassTrait> {
        if pod.spec.host_network {
            return vec![ClassTrait::HostNetwork];
        }
        let mut traits = Vec::new();
        let ranges = self.ranges(&pod.ips);
        if !ranges.is_empty() {
            traits.push(ClassTrait::AddressIn(ranges));
        }
        let serves = |address: &IpAddr| pod.ips.contains(address);
        let own = self.endpoints().filter(|(_, address)| serves(address)).map(|(name, _)| name);
        let mut own: Vec<NamespacedName> = own.cloned().collect();
        own.dedup();
        if !own.is_empty() {
            traits.push(ClassTrait::EndpointOf(own));
        }
        traits
    }

    /// Adds the endpoints and listeners on a node.
    fn add_neighbours(&self, place: u32, traits: &mut Vec<ClassTrait>) {
        let here =
            self.endpoints().filter(|(_, ip)| self.inventory.node_towards(*ip) == Some(place));
        let mut counts: BTreeMap<&NamespacedName, usize> = BTreeMap::new();
        for (service, _) in here {
            *counts.entry(service).or_default() += 1;
        }
        let counted = counts.into_iter();
        traits.extend(counted.map(|(name, many)| ClassTrait::EndpointsOnNode(name.clone(), many)));
        for port in &self.scope.ports {
            let listeners = self.inventory.host_ports.get(port).into_iter().flatten();
            if listeners.into_iter().any(|(home, _)| *home == place) {
                traits.push(ClassTrait::ListenerOnNode(*port));
            }
        }
    }

    fn add_node_traits(&self, node: &Node, traits: &mut Vec<ClassTrait>) {
        for service in &self.scope.services {
            if node.unprogrammed.contains(&service.name) {
                traits.push(ClassTrait::NodeLacks(service.name.clone()));
            }
        }
        let ranges = self.ranges(&node.internal_ips);
        if !ranges.is_empty() {
            traits.push(ClassTrait::NodeIn(ranges));
        }
        let wanted =
            self.discriminators.node_labels.iter().filter(|own| node.labels.contains_all(own));
        traits.extend(wanted.cloned().map(ClassTrait::NodeLabels));
        let zone = node.zone().filter(|_| self.heeds_zones);
        traits.extend(zone.map(|zone| ClassTrait::Zone(zone.into())));
        traits.extend(node.kernel.clone().map(ClassTrait::Kernel));
        traits.extend(node.rp_filter.map(ClassTrait::NodeRpFilter));
        traits.extend(node.security_groups.clone().map(ClassTrait::SecurityGroups));
        let flags = [
            (node.firewall.is_some(), ClassTrait::NodeFirewall),
            (node.forwards == Some(false), ClassTrait::NodeDoesNotForward),
            (excludes_node(self.inventory.cluster, node), ClassTrait::ExcludedNode),
        ];
        traits.extend(
            flags.into_iter().filter_map(|(is_so, class_trait)| is_so.then_some(class_trait)),
        );
        if self.inventory.captured.iter().any(|(name, _)| **name == node.name) {
            traits.push(ClassTrait::CapturedNode(node.name.clone()));
        }
    }

    /// Returns the endpoints of the Services in scope, with their addresses.
    fn endpoints(&self) -> impl Iterator<Item = (&'r NamespacedName, IpAddr)> {
        let cluster = self.inventory.cluster;
        self.scope.services.iter().flat_map(move |service| {
            let slices = cluster.slices(&service.name).iter();
            let endpoints = slices.flat_map(|slice| &slice.endpoints);
            endpoints.map(move |endpoint| (&service.name, endpoint.address))
        })
    }

    /// Returns the ranges that rules name and that contain one of the addresses.
    fn ranges(&self, addresses: &[IpAddr]) -> Vec<IpNet> {
        let all = addresses.iter().flat_map(|ip| self.discriminators.ranges_with(*ip));
        let mut ranges: Vec<IpNet> = all.collect();
        ranges.sort_unstable();
        ranges.dedup();
        ranges
    }
}

/// Explains the classes of one target.
///
/// # Errors
/// Returns an error if the target does not exist.
pub(crate) fn target<'a>(
    engine: &Engine<'a>,
    prepared: &PreparedScan<'a>,
    classes: &[ScanResult],
) -> Result<TargetExplanation, WalkError> {
    let target = Arc::clone(&classes[0].target);
    let scope = prepared.scope(engine, target.called())?;
    let closeness = match prepared.granularity(&scope) {
        Granularity::Classes => Closeness::Classes,
        Granularity::EveryNode => Closeness::EveryNode,
        Granularity::EveryPod => Closeness::EveryPod,
    };
    let Classifier { inventory, discriminators, .. } = &prepared.classifier;
    let reader = TraitReader::new(inventory, discriminators, &scope);
    let common: Vec<Vec<ClassTrait>> = classes.iter().map(|class| reader.common(class)).collect();
    let explained = classes.iter().enumerate().map(|(number, result)| ClassExplanation {
        result: result.clone(),
        common: common[number].clone(),
        unlike_next: match common.get(number + 1) {
            Some(next) => differences(&common[number], next),
            None => [Vec::new(), Vec::new()],
        },
    });
    Ok(TargetExplanation { target, closeness, classes: explained.collect() })
}

/// Returns the traits that only `own` has, and those that only `other` has.
fn differences(own: &[ClassTrait], other: &[ClassTrait]) -> [Vec<ClassTrait>; 2] {
    let only = |these: &[ClassTrait], those: &[ClassTrait]| {
        these.iter().filter(|known| !those.contains(known)).cloned().collect()
    };
    [only(own, other), only(other, own)]
}
