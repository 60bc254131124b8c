//! Partitions nodes into classes for one target and picks a representative of each class.

use std::collections::BTreeMap;
use std::ops::Range;

use uturn_netfilter::hash::{FastMap, FastSet};

use super::PART;
use crate::inventory::Inventory;
use crate::inventory::classes::{HOST, NodeClass};
use crate::inventory::interval_set::IntervalSet;
use crate::partition::target_classes::{Bundle, ClientSet, Granularity, Representative, Touched};

/// A partition of nodes into classes, while it is built.
pub(crate) struct PartitionBuilder<'s, 'a> {
    pub(crate) inventory: &'s Inventory<'a>,
    /// Whether classes distinguish zones.
    pub(crate) of: usize,
    pub(crate) granularity: Granularity,
    pub(crate) first: Option<u32>,
    pub(crate) bundles: &'s [Bundle],
    pub(crate) touched: &'s FastMap<u32, Touched>,
    pub(crate) shape: Vec<u64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) representatives: Vec<Representative>,
    pub(crate) client_sets: Vec<ClientSet<'a>>,
    /// The classes for `TargetClasses::untouched` and `TargetClasses::touched`.
    pub(crate) untouched_classes: FastMap<u32, u32>,
    pub(crate) touched_classes: FastMap<u32, u32>,
}

/// Clients of one kind on equivalent nodes.
struct ClientKind {
    /// Some of the nodes they are on.
    on: Vec<u32>,
    /// The number of the nodes they are on.
    nodes: usize,
    places: IntervalSet,
}

/// Equivalent nodes and their clients.
#[derive(Default)]
struct AlikeNodes {
    size: usize,
    has_endpoints: bool,
    /// Some of the nodes; all of them if Services affect them.
    members: Vec<u32>,
    /// The clients that are not endpoints, by kind.
    kinds: BTreeMap<u32, ClientKind>,
    /// The clients that are endpoints, by kind.
    itself: BTreeMap<u32, IntervalSet>,
}

impl<'a> PartitionBuilder<'_, 'a> {
    pub(crate) fn build(&mut self) {
        self.shape.push(self.of as u64);
        let mut groups: BTreeMap<(u32, Vec<u64>), Vec<u32>> = BTreeMap::new();
        let mut gone: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (place, touched) in self.touched {
            let class = self.inventory.nodes[*place as usize].class[self.of];
            let mut key: Vec<u64> = self.bundles[touched.bundles.clone()]
                .iter()
                .map(|bundle| bundle.number.into())
                .collect();
            key.sort_unstable();
            key.extend(&touched.more);
            groups.entry((class, key)).or_default().push(*place);
            gone.entry(class).or_default().push(*place);
        }
        let none = Vec::new();
        for (number, class) in self.inventory.classes[self.of].iter().enumerate() {
            let gone = gone.get(&(number as u32)).unwrap_or(&none);
            if gone.len() < class.nodes.len() {
                let alike = self.untouched(class, gone);
                self.untouched_classes.insert(number as u32, self.sizes.len() as u32);
                self.add(number as u32, &[], &alike);
            }
        }
        for ((class, key), mut members) in groups {
            members.sort_unstable();
            let here = self.sizes.len() as u32;
            self.touched_classes.extend(members.iter().map(|place| (*place, here)));
            let alike = self.touched_alike(members);
            self.add(class, &key, &alike);
        }
    }

    /// Returns the nodes of a class that no Service in scope affects.
    fn untouched(&self, class: &NodeClass, gone: &[u32]) -> AlikeNodes {
        let is_here = |place: &&u32| !self.touched.contains_key(place);
        let first = self
            .first_node()
            .filter(|place| is_here(&place) && class.nodes.binary_search(place).is_ok());
        let some = class.nodes.iter().filter(is_here).take(3 + class.kinds.len()).copied();
        let mut alike = AlikeNodes {
            size: class.nodes.len() - gone.len(),
            members: first.into_iter().chain(some).collect(),
            ..AlikeNodes::default()
        };
        for (kind, (nodes, all)) in &class.kinds {
            let mut holes = Vec::with_capacity(gone.len());
            let mut with_kind = nodes.len();
            for place in gone {
                let kinds = &self.inventory.nodes[*place as usize].kinds;
                if let Some((_, range)) = kinds.iter().find(|(known, _)| known == kind) {
                    holes.push(range.clone());
                    with_kind -= 1;
                }
            }
            if with_kind == 0 {
                continue;
            }
            let places =
                if holes.is_empty() { all.clone() } else { all.without(&IntervalSet::new(holes)) };
            let first = first.filter(|place| nodes.binary_search(place).is_ok());
            let home = first.or_else(|| nodes.iter().find(is_here).copied());
            let members = alike.members.iter().copied();
            let on = members.filter(|place| nodes.binary_search(place).is_ok()).chain(home);
            let on: Vec<u32> = on.collect();
            alike.kinds.insert(*kind, ClientKind { on, nodes: with_kind, places });
        }
        let homes: Vec<u32> =
            alike.kinds.values().flat_map(|client_kind| client_kind.on.clone()).collect();
        for home in homes {
            if !alike.members.contains(&home) {
                alike.members.push(home);
            }
        }
        dedup(&mut alike.members);
        alike
    }

    fn touched_alike(&self, members: Vec<u32>) -> AlikeNodes {
        let mut kinds: BTreeMap<u32, (Vec<u32>, Vec<Range<u32>>)> = BTreeMap::new();
        let mut itself: BTreeMap<u32, Vec<Range<u32>>> = BTreeMap::new();
        for place in &members {
            let bundles = &self.bundles[self.touched[place].bundles.clone()];
            let own: Vec<Range<u32>> = bundles
                .iter()
                .filter_map(|bundle| Some(bundle.client?..bundle.client? + 1))
                .collect();
            for (kind, range) in &self.inventory.nodes[*place as usize].kinds {
                let others = if *kind == HOST || own.is_empty() {
                    IntervalSet::new(vec![range.clone()])
                } else {
                    IntervalSet::new(vec![range.clone()]).without(&IntervalSet::new(own.clone()))
                };
                if !others.is_empty() {
                    let (on, ranges) = kinds.entry(*kind).or_default();
                    on.push(*place);
                    ranges.extend(others.ranges());
                }
            }
            for bundle in bundles {
                let Some(client) = bundle.client else { continue };
                itself.entry(bundle.number).or_default().push(client..client + 1);
            }
        }
        let first = self.first_node().filter(|place| members.binary_search(place).is_ok());
        let size = members.len();
        let mut members: Vec<u32> = first.into_iter().chain(members).collect();
        dedup(&mut members);
        let kinds = kinds.into_iter().map(|(kind, (mut on, ranges))| {
            let nodes = on.len();
            if let Some(first) = first.filter(|place| on.contains(place)) {
                on.insert(0, first);
            }
            (kind, ClientKind { on, nodes, places: IntervalSet::new(ranges) })
        });
        let itself = itself.into_iter().map(|(number, ranges)| (number, IntervalSet::new(ranges)));
        let itself: BTreeMap<u32, IntervalSet> = itself.collect();
        let first = members.first().and_then(|place| self.touched.get(place));
        let has_endpoints = first.is_some_and(|touched| !touched.bundles.is_empty());
        AlikeNodes { size, has_endpoints, members, kinds: kinds.collect(), itself }
    }

    fn first_node(&self) -> Option<u32> {
        let pod = self.inventory.clients.get(self.first? as usize)?;
        self.inventory.place_of(pod.node.as_ref()?)
    }

    /// Picks the representatives of a class, and adds its clients.
    fn add(&mut self, class: u32, key: &[u64], alike: &AlikeNodes) {
        let Some(first) = alike.members.first().copied() else { return };
        let mut homes = vec![first];
        for ClientKind { on, .. } in alike.kinds.values() {
            if !on.iter().any(|place| homes.contains(place)) {
                homes.extend(on.first());
            }
        }
        self.shape.extend([PART, u64::from(class), key.len() as u64]);
        self.shape.extend(key);
        self.sizes.push(alike.size as u64);
        let rest = alike.size - homes.len();
        let mut others = alike.members.iter().copied().filter(|place| !homes.contains(place));
        let mut representatives: Vec<Representative> = homes
            .iter()
            .map(|place| Representative { place: *place, targets: 1, homes: 1 })
            .collect();
        if alike.has_endpoints && self.inventory.has_captures() {
            // Captured rules name every endpoint, and each endpoint calls as a client of its own.
            representatives.extend(others.map(|place| Representative {
                place,
                targets: 1,
                homes: 1,
            }));
        } else if let Some(second) = others.next() {
            representatives.push(Representative { place: second, targets: rest as u32, homes: 1 });
            if let Some(third) = others.next().filter(|_| alike.has_endpoints) {
                representatives.push(Representative {
                    place: third,
                    targets: 0,
                    homes: rest as u32 - 1,
                });
            }
        }
        self.shape.extend([homes.len() as u64, representatives.len() as u64]);
        for (kind, client_kind) in &alike.kinds {
            let home =
                homes.iter().position(|home| client_kind.on.contains(home)).unwrap_or_default();
            self.shape.extend([u64::from(*kind), home as u64]);
            self.call(homes[home], *kind, &client_kind.places, Some(client_kind.nodes));
        }
        self.shape.push(PART);
        for (number, places) in &alike.itself {
            self.shape.push(u64::from(*number));
            self.call(first, *number, places, None);
        }
        self.representatives.append(&mut representatives);
    }

    /// Adds clients; the first of them on a node is walked for all. `nodes` is `None` if they are
    /// endpoints themselves.
    fn call(&mut self, home: u32, kind: u32, places: &IntervalSet, nodes: Option<usize>) {
        let itself = nodes.is_none();
        let clients = &self.inventory.clients;
        // If targets are tried in turns, the endpoints of a node differ by their position; and
        // captured rules may name some of them and not others.
        let are_distinguished =
            self.granularity == Granularity::EveryNode || self.inventory.has_captures();
        if self.granularity == Granularity::EveryPod || (are_distinguished && itself) {
            let each = places.iter().map(|at| ClientSet {
                pod: clients[at],
                at: at as u32,
                places: IntervalSet::single(at as u32),
                nodes: 1,
                itself,
            });
            self.client_sets.extend(each);
            return;
        }
        let wanted = self.first.filter(|at| places.contains(*at as usize));
        let of_kind = self.inventory.nodes[home as usize].kinds.iter();
        let here =
            of_kind.filter(|(known, _)| itself || *known == kind).flat_map(|(_, at)| at.clone());
        let at = wanted.or_else(|| here.into_iter().find(|at| places.contains(*at as usize)));
        let Some((at, pod)) = at.and_then(|at| Some((at, *clients.get(at as usize)?))) else {
            return;
        };
        let nodes = nodes.unwrap_or_else(|| {
            let mut on: Vec<u32> = places.iter().map(|at| self.inventory.homes[at]).collect();
            on.sort_unstable();
            on.dedup();
            on.len()
        });
        self.client_sets.push(ClientSet { pod, at, places: places.clone(), nodes, itself });
    }
}

fn dedup(places: &mut Vec<u32>) {
    let mut met = FastSet::default();
    places.retain(|place| met.insert(*place));
}
