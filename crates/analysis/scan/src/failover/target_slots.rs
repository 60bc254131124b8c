//! The targets of a load balancer in order, without the results of asking them.

use std::ops::Range;

use uturn_netfilter::hash::FastMap;

use crate::inventory::Caller;

/// A target in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetSlot {
    /// The node of the target, if it is known.
    pub(crate) place: Option<u32>,
    /// The class: equal targets have the same.
    pub(crate) like: AlikeId,
    /// The place of the target among the clients, if it can be one.
    pub(crate) client: Option<u32>,
}

impl TargetSlot {
    pub(crate) fn is_near(&self, caller: Caller) -> bool {
        self.place == Some(caller.place)
    }

    pub(crate) fn is(&self, caller: Caller) -> bool {
        self.client == Some(caller.at)
    }
}

/// The number of a class of equal targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AlikeId(pub(crate) u32);

impl AlikeId {
    pub(crate) fn new(number: usize) -> Self {
        Self(number as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All targets of a list, in order.
#[derive(Debug)]
pub(crate) struct TargetSlots {
    all: Vec<TargetSlot>,
    /// The number of classes: one more than the largest [`AlikeId`].
    pub(super) likes: usize,
    /// Runs of adjacent equal targets, with their class.
    rows: Vec<(Range<u32>, AlikeId)>,
    /// The targets on each node; `None` if the targets are the nodes themselves, in their order.
    on_node: Option<FastMap<u32, Vec<u32>>>,
}

impl TargetSlots {
    /// Makes a list of nodes in their order, by the class of each.
    pub(crate) fn nodes(likes: impl IntoIterator<Item = AlikeId>) -> Self {
        let spot = |(place, like)| TargetSlot { place: Some(place), like, client: None };
        let all: Vec<TargetSlot> = (0..).zip(likes).map(spot).collect();
        Self { likes: likes_of(&all), rows: rows_of(&all), all, on_node: None }
    }

    pub(crate) fn endpoints(all: Vec<TargetSlot>) -> Self {
        let mut on_node: FastMap<u32, Vec<u32>> = FastMap::default();
        for (at, spot) in all.iter().enumerate() {
            if let Some(place) = spot.place {
                on_node.entry(place).or_default().push(at as u32);
            }
        }
        Self { likes: likes_of(&all), rows: rows_of(&all), all, on_node: Some(on_node) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TargetSlot> {
        self.all.iter()
    }

    /// Returns whether the targets are the nodes themselves, in their order.
    pub(super) fn are_nodes(&self) -> bool {
        self.on_node.is_none()
    }

    /// Returns the runs of adjacent equal targets, with their class.
    pub(crate) fn rows(&self) -> &[(Range<u32>, AlikeId)] {
        &self.rows
    }

    pub(crate) fn at(&self, at: u32) -> Option<TargetSlot> {
        self.all.get(at as usize).copied()
    }

    /// Returns the positions of the targets on a node.
    pub(super) fn on(&self, place: u32) -> impl Iterator<Item = u32> {
        let (itself, several) = match &self.on_node {
            None => (Some(place), None),
            Some(on_node) => (None, on_node.get(&place)),
        };
        itself.into_iter().chain(several.into_iter().flatten().copied())
    }

    pub(super) fn is_one_a_node(&self) -> bool {
        let on_node = self.on_node.iter().flat_map(FastMap::values);
        on_node.into_iter().all(|spots| spots.len() == 1)
    }
}

fn likes_of(all: &[TargetSlot]) -> usize {
    all.iter().map(|target| target.like.index() + 1).max().unwrap_or(0)
}

fn rows_of(all: &[TargetSlot]) -> Vec<(Range<u32>, AlikeId)> {
    let mut rows: Vec<(Range<u32>, AlikeId)> = Vec::new();
    for (at, spot) in (0..).zip(all) {
        match rows.last_mut() {
            Some((range, like)) if *like == spot.like => range.end = at + 1,
            _ => rows.push((at..at + 1, spot.like)),
        }
    }
    rows
}
