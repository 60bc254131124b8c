//! The classes of nodes and pods that are equivalent for a target, with their sizes, and the nodes
//! that represent them.
//!
//! Nodes are equivalent if they are of one class (`inventory`) and have equivalent endpoints of
//! each Service in scope. At most three nodes represent a class:
//!
//! | node | represents | as a load balancer's target | as a home of endpoints |
//! | --- | --- | --- | --- |
//! | first | the client's own | 1 | 1 |
//! | second | another that a load balancer picks | all but the first | 1 |
//! | third | those beside both | 0 | all the rest |
//!
//! The third is needed because a node that a load balancer picked treats its own endpoints
//! differently from those of equivalent nodes. If no single node has a client of every kind, there
//! are several first nodes.
//!
//! [`TargetClasses::shape`] contains everything that a walk can depend on, except for names,
//! addresses and numbers of equal objects, which are in [`TargetClasses::sizes`]: targets of one
//! shape and the same sizes have the same verdicts.

use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use uturn_clouds::controller::PodMarks;
use uturn_model::{NamespacedName, Pod, Service, Text};
use uturn_netfilter::hash::FastMap;

use super::PART;
use crate::distinguish::discriminators::Discriminators;
use crate::inventory::interval_set::IntervalSet;
use crate::inventory::{Caller, Inventory};
use crate::numbers::Numbers;
use crate::partition::located::{Located, SliceKey, UnlikeKey, profile};
use crate::partition::node_classes::PartitionBuilder;
use crate::partition::scope::{Met, Scope};
use crate::partition::signature::SignatureNumbers;

/// A target's scope, and its classes of nodes, endpoints and clients.
pub(crate) struct TargetClasses<'a> {
    pub(crate) scope: Scope<'a>,
    pub(crate) shape: Vec<u64>,
    pub(crate) partition: Arc<Partition<'a>>,
}

/// The classes that all targets share whose packets can meet the same Services.
pub(crate) struct Partition<'a> {
    /// The partition's part of the shape; if several targets have the partition, as one number.
    shape: Vec<u64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) representatives: Vec<Representative>,
    /// The class of each node that no Service in scope affects, by its number in the inventory, and
    /// of each other node.
    pub(crate) untouched: FastMap<u32, u32>,
    pub(crate) touched: FastMap<u32, u32>,
    /// Whether classes distinguish zones.
    pub(crate) of: usize,
    /// All endpoints.
    pub(crate) bundles: Vec<Bundle>,
    /// The endpoints on no known node.
    pub(crate) loose: Vec<IpAddr>,
    pub(crate) client_sets: Vec<ClientSet<'a>>,
}

/// A node that represents others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Representative {
    pub(crate) place: u32,
    /// The number of nodes that it represents as a load balancer's target.
    pub(crate) targets: u32,
    /// The number of nodes that it represents as a home of endpoints.
    pub(crate) homes: u32,
}

/// Clients that are equivalent for a target.
#[derive(Clone, Debug)]
pub(crate) struct ClientSet<'a> {
    /// The client that is walked for all, and its place among the clients.
    pub(crate) pod: &'a Pod,
    pub(crate) at: u32,
    pub(crate) places: IntervalSet,
    /// The number of nodes they are on.
    pub(crate) nodes: usize,
    /// Whether the clients are endpoints of the target themselves.
    pub(crate) itself: bool,
}

impl<'a> ClientSet<'a> {
    /// Returns the client that is walked for all.
    pub(crate) fn walked(&self, inventory: &Inventory<'a>) -> Caller {
        Caller { place: inventory.homes[self.at as usize], at: self.at }
    }

    /// Merges parts of a class; the client of the first part represents all.
    pub(crate) fn together(inventory: &Inventory<'a>, mut parts: Vec<Self>) -> Option<Self> {
        if parts.len() == 1 {
            return parts.pop();
        }
        let ranges = parts.iter().flat_map(|part| part.places.ranges()).collect();
        let mut nodes = parts.iter().map(|part| part.nodes).sum();
        let first = parts.into_iter().next()?;
        let places = IntervalSet::new(ranges);
        // Only endpoints on the same node can be in several parts.
        if first.itself {
            let mut homes: Vec<u32> = places.iter().map(|at| inventory.homes[at]).collect();
            homes.sort_unstable();
            homes.dedup();
            nodes = homes.len();
        }
        Some(Self { places, nodes, ..first })
    }
}

/// The granularity of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Granularity {
    /// Equivalent nodes and pods are one class.
    Classes,
    /// Every node is a class of its own, and so is every endpoint as a client.
    EveryNode,
    /// Every pod is a class of its own.
    EveryPod,
}

/// The places of Services in memory, the ports, whether zones matter, and the node whose address is
/// called.
type PartitionKey = (Vec<usize>, Vec<u16>, bool, Option<u32>);

/// Makes classes, and caches what several targets share.
pub(crate) struct Classifier<'a> {
    pub(crate) inventory: Arc<Inventory<'a>>,
    /// The ranges and ports by which rules distinguish addresses and ports.
    pub(crate) discriminators: Discriminators,
    pub(crate) slices: Numbers<SliceKey<'a>>,
    pub(crate) unlike: Numbers<UnlikeKey<'a>>,
    pub(crate) zones: Numbers<&'a [Text]>,
    pub(crate) profiles: Numbers<Vec<u64>>,
    pub(crate) signatures: SignatureNumbers<'a>,
    /// The marks by which load balancers distinguish pods.
    pub(crate) pod_marks: PodMarks<'a>,
    bundles: Numbers<Vec<u64>>,
    /// The partitions' parts of shapes.
    shapes: Numbers<Vec<u64>>,
    /// Partitions by what decides them.
    partition: FastMap<PartitionKey, Arc<Partition<'a>>>,
    /// Partitions by the place in memory of what targets can meet, which is kept here, and by
    /// whether zones matter.
    of_met: FastMap<(usize, bool), (Arc<Met<'a>>, Arc<Partition<'a>>)>,
    pub(crate) located: FastMap<&'a NamespacedName, Rc<[Located]>>,
    /// The number of classifications that must stay distinct.
    classified: u64,
}

/// An endpoint's node and address, the number of its Service, and its position there.
type EndpointPosition = (Option<u32>, IpAddr, usize, usize);

/// An address with a number for its properties as an endpoint.
pub(crate) struct Bundle {
    pub(crate) number: u32,
    pub(crate) ip: IpAddr,
    pub(crate) client: Option<u32>,
}

/// The reasons why a node differs from those of its class that no Service in scope affects.
#[derive(Default)]
pub(crate) struct Touched {
    pub(crate) bundles: Range<usize>,
    pub(crate) more: Vec<u64>,
}

impl<'a> Classifier<'a> {
    pub(crate) fn new(inventory: Inventory<'a>, discriminators: Discriminators) -> Self {
        let signatures = SignatureNumbers::new(inventory.cluster, &discriminators.node_labels);
        let pod_marks = PodMarks::new(inventory.cluster);
        Self {
            inventory: Arc::new(inventory),
            discriminators,
            slices: Numbers::default(),
            unlike: Numbers::default(),
            zones: Numbers::default(),
            profiles: Numbers::default(),
            signatures,
            pod_marks,
            bundles: Numbers::default(),
            shapes: Numbers::default(),
            partition: FastMap::default(),
            of_met: FastMap::default(),
            located: FastMap::default(),
            classified: 0,
        }
    }

    /// Classifies nodes, endpoints and clients for a target. `first` is a client that has to
    /// represent its class.
    pub(crate) fn classify(
        &mut self,
        scope: Scope<'a>,
        granularity: Granularity,
        first: Option<u32>,
    ) -> TargetClasses<'a> {
        let partition = if granularity == Granularity::Classes && first.is_none() {
            self.known_partition(&scope)
        } else {
            Arc::new(self.partition(&scope, granularity, first))
        };
        let mut shape = partition.shape.clone();
        self.signatures.add_signature(
            &self.inventory,
            &mut self.discriminators,
            &scope,
            &mut shape,
        );
        if self.inventory.has_captures() {
            // Captured rules may treat each Service differently.
            self.classified += 1;
            shape.extend([PART, self.classified]);
        }
        TargetClasses { scope, shape, partition }
    }

    /// Returns the partition of all targets whose packets can meet the same Services.
    fn known_partition(&mut self, scope: &Scope<'a>) -> Arc<Partition<'a>> {
        // What calls of a node's address can meet is not shared with other targets.
        let of_met = (Arc::as_ptr(&scope.met).addr(), scope.has_zone());
        if let Some((_, partition)) = self.of_met.get(&of_met) {
            return Arc::clone(partition);
        }
        let services = scope.services.iter().map(|service| std::ptr::from_ref(*service).addr());
        let ports = scope.ports.iter().copied().collect();
        let key = (services.collect(), ports, scope.has_zone(), self.called_node(scope));
        let partition = match self.partition.get(&key) {
            Some(partition) => Arc::clone(partition),
            None => {
                let mut partition = self.partition(scope, Granularity::Classes, None);
                partition.shape = vec![u64::from(self.shapes.of(partition.shape))];
                Arc::clone(self.partition.entry(key).or_insert(Arc::new(partition)))
            }
        };
        self.of_met.insert(of_met, (Arc::clone(&scope.met), Arc::clone(&partition)));
        partition
    }

    /// Drops the caches that targets share, except what distinguishes each target.
    pub(crate) fn forget(&mut self) {
        self.partition = FastMap::default();
        self.of_met = FastMap::default();
        self.signatures.forget();
    }

    fn partition(
        &mut self,
        scope: &Scope<'a>,
        granularity: Granularity,
        first: Option<u32>,
    ) -> Partition<'a> {
        let mut all: Vec<EndpointPosition> = Vec::new();
        let mut found: Vec<Rc<[Located]>> = Vec::with_capacity(scope.services.len());
        let mut heeds_zones = scope.has_zone();
        let mut odd: Vec<u32> = Vec::new();
        for (number, service) in scope.services.iter().enumerate() {
            let located = self.locate(service);
            for (at, endpoint) in located.iter().enumerate() {
                heeds_zones |= endpoint.has_zones;
                odd.extend(&endpoint.odd);
                all.push((endpoint.place, endpoint.ip, number, at));
            }
            found.push(located);
        }
        all.sort_unstable_by_key(|(place, ip, number, at)| {
            (place.is_none(), *place, *ip, *number, *at)
        });
        let mut bundles: Vec<Bundle> = Vec::with_capacity(all.len());
        let mut touched: FastMap<u32, Touched> = FastMap::default();
        let mut loose: Range<usize> = 0..0;
        let mut rest = all.as_slice();
        let mut look = Vec::new();
        while let [(place, ip, number, at), ..] = rest {
            let many = rest.iter().take_while(|known| known.0 == *place && known.1 == *ip).count();
            look.clear();
            for (_, _, number, at) in &rest[..many] {
                look.push(*number as u64);
                look.extend(found[*number][*at].look);
            }
            let endpoint = &found[*number][*at];
            let number = self.bundles.of_list(&look);
            bundles.push(Bundle { number, ip: *ip, client: endpoint.client });
            let range = match place {
                Some(place) => &mut touched.entry(*place).or_default().bundles,
                None => &mut loose,
            };
            if range.start == range.end {
                range.start = bundles.len() - 1;
            }
            range.end = bundles.len();
            rest = &rest[many..];
        }
        self.touch(scope, granularity, &odd, &mut touched);
        let mut builder = PartitionBuilder {
            inventory: &self.inventory,
            of: usize::from(heeds_zones),
            granularity,
            first,
            bundles: &bundles,
            touched: &touched,
            shape: Vec::new(),
            sizes: Vec::new(),
            representatives: Vec::new(),
            client_sets: Vec::new(),
            untouched_classes: FastMap::default(),
            touched_classes: FastMap::default(),
        };
        builder.build();
        let PartitionBuilder { mut shape, sizes, representatives, client_sets, of, .. } = builder;
        let (untouched, touched) = (builder.untouched_classes, builder.touched_classes);
        let alone = &bundles[loose];
        shape.push(PART);
        shape.extend(alone.iter().map(|bundle| u64::from(bundle.number)));
        let loose = alone.iter().map(|bundle| bundle.ip).collect();
        Partition {
            shape,
            sizes,
            representatives,
            untouched,
            touched,
            of,
            bundles,
            loose,
            client_sets,
        }
    }

    /// Returns the node whose address is called: to itself it is another destination than to the
    /// other nodes of its class.
    fn called_node(&self, scope: &Scope<'a>) -> Option<u32> {
        let to = scope.asked.to.ip();
        self.inventory.node_towards(to).filter(|_| self.inventory.is_node(to))
    }

    fn touch(
        &mut self,
        scope: &Scope<'a>,
        granularity: Granularity,
        odd: &[u32],
        touched: &mut FastMap<u32, Touched>,
    ) {
        let called = self.called_node(scope);
        let inventory = &self.inventory;
        for port in &scope.ports {
            for (place, pod) in inventory.host_ports.get(port).into_iter().flatten() {
                let look = self.profiles.of(profile(pod));
                let more = &mut touched.entry(*place).or_default().more;
                more.extend([PART, 1, u64::from(*port), u64::from(look)]);
            }
        }
        for place in &inventory.behind {
            let node = &inventory.nodes[*place as usize].node;
            let lacks = |service: &&Service| node.unprogrammed.contains(&service.name);
            let lacking = scope.services.iter().enumerate().filter(|(_, service)| lacks(service));
            let lacking: Vec<u64> = lacking.map(|(number, _)| number as u64).collect();
            if !lacking.is_empty() {
                let more = &mut touched.entry(*place).or_default().more;
                more.extend([PART, 2]);
                more.extend(lacking);
            }
        }
        let alone: Vec<u32> = match granularity {
            Granularity::Classes => {
                let mut odd = odd.to_vec();
                odd.extend(called);
                odd.sort_unstable();
                odd.dedup();
                odd
            }
            Granularity::EveryNode | Granularity::EveryPod => {
                (0..inventory.nodes.len() as u32).collect()
            }
        };
        for place in alone {
            touched.entry(place).or_default().more.extend([PART, 3, u64::from(place)]);
        }
    }
}
