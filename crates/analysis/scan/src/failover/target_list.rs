//! The targets of a load balancer in the order in which it tries them, where a reduced cluster has
//! a few that represent all.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use uturn_clouds::controller::is_target_before_ready;
use uturn_model::lb::{Target, TargetKind};
use uturn_model::{Endpoint, Family, Name, Outcome, Route, Service, Share, Verdict};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_path::{ReasonSet, Results};

use crate::failover::retry_ring::{AskedTarget, RetryRing};
use crate::failover::target_slots::{AlikeId, TargetSlot, TargetSlots};
use crate::inventory::{Caller, Inventory};
use crate::partition::target_classes::TargetClasses;

/// All targets in order, as nodes and as endpoints, with those that the reduced cluster has.
#[derive(Debug)]
pub(crate) struct TargetList {
    nodes: Rc<TargetSlots>,
    endpoints: Rc<TargetSlots>,
    nodes_here: FastMap<Name, TargetSlot>,
    endpoints_here: FastMap<IpAddr, TargetSlot>,
    /// The class of each endpoint's node and its other properties, by [`AlikeId`].
    endpoints_like: Vec<Option<Alike>>,
    /// Whether several endpoints have the same address.
    is_doubtful: bool,
    /// The client that is walked, and the client of its class that it represents.
    pub(crate) walked: Cell<Caller>,
    pub(crate) speaks_for: Cell<Caller>,
    /// The results of asking the targets for the walked client, by the addresses seen.
    pub(crate) asked: RefCell<Vec<(SocketAddr, SocketAddr, Results)>>,
    /// The rounds of attempts for the walked client.
    pub(crate) met: RefCell<Vec<Rc<Round>>>,
}

/// The kind of a target, in terms that are equal for all targets of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Alike {
    /// The class of a node.
    Node(AlikeId),
    /// The class of an endpoint's node, and the number of the endpoint's other properties.
    Endpoint(u32, u32),
}

/// A client's request at a load balancer that tries one target after the other.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) ring: RetryRing,
    /// The targets that were asked, and the results.
    pub(crate) asked: Vec<AskedTarget>,
    /// The time after which the load balancer gives up on a target.
    pub(crate) timeout: Duration,
    /// Whether a random choice was made.
    pub(crate) chance: bool,
    /// Whether every request of the client reaches the load balancer, and every answer the client.
    pub(crate) is_all: Cell<bool>,
}

impl Round {
    /// Returns the ends of a client's requests.
    pub(crate) fn ends(&self, caller: Caller) -> Vec<(Outcome, ReasonSet, Share)> {
        let odds = self.ring.odds(caller);
        let after = |timeouts: u32| self.timeout * timeouts;
        let answered = odds.answered.iter().map(|(why, timeouts, share)| {
            (Outcome::Answered { after: after(timeouts) + why.late() }, why, share)
        });
        let mut ends: Vec<(Outcome, ReasonSet, Share)> = answered.collect();
        for (code, failed) in [(504, &odds.timed_out), (502, &odds.refused)] {
            ends.extend(failed.iter().map(|(why, timeouts, share)| {
                (Outcome::Status { code, after: after(timeouts) + why.late() }, why, share)
            }));
        }
        ends
    }

    /// Returns the verdict of a client that differs from the walked one only by its place.
    pub(crate) fn verdict(&self, caller: Caller) -> Verdict {
        let ends = self.ends(caller);
        let chance = self.chance && ends.len() > 1;
        let routes = ends.into_iter().map(|(outcome, why, share)| Route {
            share,
            outcome,
            late: Duration::ZERO,
            mechanisms: why.mechanisms(),
            chance,
            has_others: false,
            failures: Vec::new(),
            hops: Vec::new(),
        });
        Verdict::of(routes.collect(), Vec::new(), Vec::new())
    }
}

impl TargetList {
    pub(crate) fn new(
        inventory: &Inventory<'_>,
        target_classes: &TargetClasses<'_>,
        behind: &Service,
    ) -> Self {
        let partition = &target_classes.partition;
        let classes = &inventory.classes[partition.of];
        let untouched: Vec<u32> = (0..classes.len() as u32)
            .map(|class| partition.untouched.get(&class).copied().unwrap_or_default())
            .collect();
        let mut class_of: Vec<u32> = inventory
            .nodes
            .iter()
            .map(|node| untouched[node.class[partition.of] as usize])
            .collect();
        for (place, class) in &partition.touched {
            class_of[*place as usize] = *class;
        }
        let nodes_here = partition
            .representatives
            .iter()
            .filter(|representative| representative.targets > 0)
            .map(|representative| {
                let (place, like) =
                    (Some(representative.place), class_of[representative.place as usize]);
                let name = inventory.nodes[representative.place as usize].node.name.clone();
                (name, TargetSlot { place, like: AlikeId(like), client: None })
            });
        let nodes_here = nodes_here.collect();
        let bundles: FastMap<IpAddr, (u32, Option<u32>)> = partition
            .bundles
            .iter()
            .map(|bundle| (bundle.ip, (bundle.number, bundle.client)))
            .collect();
        let family = Family::of(target_classes.scope.asked.to.ip());
        let slices =
            inventory.cluster.slices(&behind.name).iter().filter(|slice| slice.family == family);
        let mut likes: FastMap<(Option<u32>, IpAddr, u32), AlikeId> = FastMap::default();
        let mut endpoints_like = Vec::new();
        let mut endpoints: Vec<TargetSlot> = Vec::new();
        let mut endpoints_here = FastMap::default();
        let all = slices.flat_map(|slice| &slice.endpoints);
        let mut addresses = FastSet::default();
        // An endpoint that gets no calls may change another's place in the order.
        let is_doubtful = !all.clone().all(|endpoint| addresses.insert(endpoint.address));
        let unspecified = IpAddr::from([0, 0, 0, 0]);
        // Endpoints that get no calls are not in the list.
        let is_asked = |endpoint: &&Endpoint| {
            let awaits = || {
                let pod = endpoint.pod.as_ref().and_then(|name| inventory.cluster.pods.get(name));
                pod.is_some_and(|pod| is_target_before_ready(inventory.cluster, pod))
            };
            (endpoint.ready || awaits()) && !endpoint.terminating
        };
        for endpoint in all.filter(is_asked) {
            let ip = endpoint.address;
            let Some((number, client)) = bundles.get(&ip).copied() else { continue };
            let place = inventory.node_towards(ip);
            // An endpoint on no known node is not equal to any other.
            let alike = match place {
                Some(place) => (Some(class_of[place as usize]), unspecified, number),
                None => (None, ip, number),
            };
            let next = AlikeId::new(likes.len());
            let like = *likes.entry(alike).or_insert(next);
            if like == next {
                endpoints_like.push(alike.0.map(|class| Alike::Endpoint(class, number)));
            }
            let spot = TargetSlot { place, like, client };
            endpoints_here.insert(ip, spot);
            endpoints.push(spot);
        }
        Self {
            nodes: Rc::new(TargetSlots::nodes(class_of.into_iter().map(AlikeId))),
            endpoints: Rc::new(TargetSlots::endpoints(endpoints)),
            nodes_here,
            endpoints_here,
            endpoints_like,
            is_doubtful,
            walked: Cell::default(),
            speaks_for: Cell::default(),
            asked: RefCell::default(),
            met: RefCell::default(),
        }
    }

    /// Prepares the list for another client.
    pub(crate) fn begin(&self, walked: Caller) {
        self.walked.set(walked);
        self.speaks_for.set(walked);
        self.asked.borrow_mut().clear();
        self.met.borrow_mut().clear();
    }

    /// Returns all targets of the list to which these targets belong. Returns `None` if the list is
    /// not known.
    pub(crate) fn slots(&self, targets: &[Target]) -> Option<&Rc<TargetSlots>> {
        match targets.first()?.kind {
            TargetKind::NodePort(_) => Some(&self.nodes),
            TargetKind::Pod { .. } => (!self.is_doubtful).then_some(&self.endpoints),
        }
    }

    /// Returns all targets, as nodes or as endpoints.
    pub(crate) fn slots_of(&self, are_nodes: bool) -> &Rc<TargetSlots> {
        if are_nodes { &self.nodes } else { &self.endpoints }
    }

    /// Returns the nodes that represent all, each with its slot.
    pub(crate) fn nodes_here(&self) -> impl Iterator<Item = (&Name, &TargetSlot)> {
        self.nodes_here.iter()
    }

    /// Returns the slots of endpoints, by their addresses.
    pub(crate) fn endpoints_here(&self) -> &FastMap<IpAddr, TargetSlot> {
        &self.endpoints_here
    }

    /// Returns whether several endpoints have the same address.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Returns all targets, and those that represent them, in their order. Returns `None` if the
    /// list is not known.
    pub(crate) fn standing(&self, are_nodes: bool) -> Option<(&Rc<TargetSlots>, Vec<TargetSlot>)> {
        let nodes = self.nodes_here.values().copied();
        if are_nodes {
            let mut standing: Vec<TargetSlot> = nodes.collect();
            standing.sort_unstable_by_key(|target| target.place);
            return Some((&self.nodes, standing));
        }
        let places: FastSet<Option<u32>> = nodes.map(|target| target.place).collect();
        let standing =
            self.endpoints.iter().filter(|target| places.contains(&target.place)).copied();
        (!self.is_doubtful).then(|| (&self.endpoints, standing.collect()))
    }

    /// Returns the kind of a target. Returns `None` if it is not equal to any other.
    pub(crate) fn alike(&self, spot: &TargetSlot, are_nodes: bool) -> Option<Alike> {
        if are_nodes {
            Some(Alike::Node(spot.like))
        } else {
            self.endpoints_like.get(spot.like.index()).copied().flatten()
        }
    }

    /// Returns the slot of a target in the list. Returns `None` for a target that is in the reduced
    /// cluster only for its endpoints.
    pub(crate) fn slot(&self, target: &Target) -> Option<TargetSlot> {
        match &target.kind {
            TargetKind::NodePort(node) => self.nodes_here.get(node).copied(),
            TargetKind::Pod { .. } => self.endpoints_here.get(&target.address.ip()).copied(),
        }
    }
}
