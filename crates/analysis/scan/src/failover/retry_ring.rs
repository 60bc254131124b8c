//! The targets of a load balancer in the order in which it tries them, where the results of a few
//! hold for all.
//!
//! The results of the reduced cluster's targets hold for all equal targets: for those on other
//! nodes, and separately for those on the client's node. So every target in order has a kind,
//! except the few on the client's node. Clients for which these few and their neighbours are equal
//! have equal results: the same outcomes, equally often, and for the same set of reasons. How often
//! each reason leads to each outcome is known only for the walked client.

use std::ops::Range;
use std::rc::Rc;

use uturn_model::Share;
use uturn_netfilter::hash::FastMap;

use crate::failover::failover_probability::{FailoverProbability, KindIndex, Run};
use crate::failover::target_outcome::TargetOutcome;
use crate::failover::target_slots::{AlikeId, TargetSlot, TargetSlots};
use crate::inventory::Caller;

/// A target with more runs around it than this is not equal to any other.
const MANY: usize = 64;

/// All targets in order, each with its kind for some class of clients.
#[derive(Clone, Debug)]
pub(crate) struct RetryRing {
    pub(crate) kinds: Vec<TargetOutcome>,
    /// A target of each kind, by its place in the rule.
    pub(crate) examples: Vec<usize>,
    /// For each kind, the first kind with equal ends, for any reason.
    looks: Vec<KindIndex>,
    /// The probability that asking a target of each kind fails.
    fails: Vec<Share>,
    /// Whether no target ever answers.
    never_answers: bool,
    spots: Rc<TargetSlots>,
    /// Runs of targets that may be asked.
    stretches: Vec<Stretch>,
    /// The kinds of targets on the client's own node, by [`AlikeId`].
    near: FastMap<AlikeId, Option<KindIndex>>,
    /// The client's own kind as a target.
    itself: Option<KindIndex>,
}

/// A run of adjacent targets that are equal.
#[derive(Clone, Debug)]
struct Stretch {
    /// The position of the first of them among all targets.
    first: u32,
    /// Their positions among the targets that may be asked.
    at: Range<u32>,
    /// Their kind for clients elsewhere. `None` if such clients must not ask them.
    kind: Option<KindIndex>,
}

/// The result of asking targets on other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FarOutcome {
    /// The reduced cluster has no such target.
    #[default]
    Unknown,
    /// The targets must not be asked.
    NotAsked,
    Kind(KindIndex),
}

impl FarOutcome {
    fn kind(self) -> Option<KindIndex> {
        match self {
            Self::Kind(kind) => Some(kind),
            Self::Unknown | Self::NotAsked => None,
        }
    }
}

impl From<Option<KindIndex>> for FarOutcome {
    fn from(kind: Option<KindIndex>) -> Self {
        kind.map_or(Self::NotAsked, Self::Kind)
    }
}

/// A part of what distinguishes a client from others of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Difference {
    /// The targets of a load balancer begin here.
    Round,
    /// A target of the client's own whose kind differs from the usual one.
    Target {
        /// The kind for this client.
        own: Option<KindIndex>,
        /// The kind for other clients.
        usual: Option<KindIndex>,
    },
    /// The targets before or after it begin here.
    Side,
    /// A run of targets that end like this kind.
    Row {
        /// The first kind with such ends.
        look: KindIndex,
        /// The number of targets.
        length: u32,
    },
    /// Another of the client's own targets follows.
    OtherTarget,
    /// The target is at this position, where it is not equal to any other.
    Place(u32),
}

/// A target that was asked: its slot, its place in the rule, and the results. `None` if it must not
/// be asked.
pub(crate) type AskedTarget = (TargetSlot, usize, Option<TargetOutcome>);

impl RetryRing {
    /// Builds the ring from the results of the reduced cluster's targets, which represent all.
    pub(crate) fn new(spots: &Rc<TargetSlots>, walked: Caller, asked: &[AskedTarget]) -> Self {
        let (mut kinds, mut examples): (Vec<TargetOutcome>, Vec<usize>) = (Vec::new(), Vec::new());
        let (mut near, mut itself) = (FastMap::default(), None);
        let mut far = vec![FarOutcome::Unknown; spots.likes];
        for (spot, target, kind) in asked {
            let number = kind.as_ref().map(|kind| {
                let known = kinds.iter().position(|known| known.is_like(kind));
                let at = known.unwrap_or_else(|| {
                    kinds.push(kind.clone());
                    examples.push(*target);
                    kinds.len() - 1
                });
                KindIndex::new(at)
            });
            if spot.is(walked) {
                itself = number;
            } else if spot.is_near(walked) {
                near.entry(spot.like).or_insert(number);
            } else if let Some(far) = far.get_mut(spot.like.index())
                && *far == FarOutcome::Unknown
            {
                *far = number.into();
            }
        }
        let mut stretches: Vec<Stretch> = Vec::with_capacity(spots.rows().len());
        let mut end = 0;
        for (range, like) in spots.rows() {
            let usual = far[like.index()];
            let is_asked =
                usual != FarOutcome::NotAsked || near.get(like).is_some_and(Option::is_some);
            if is_asked {
                let at = end..end + range.len() as u32;
                end = at.end;
                stretches.push(Stretch { first: range.start, at, kind: usual.kind() });
            }
        }
        let first_like =
            |kind: &TargetOutcome| kinds.iter().position(|known| known.ends_like(kind));
        let look = |kind| KindIndex::new(first_like(kind).unwrap_or_default());
        let looks = kinds.iter().map(look).collect();
        let never_answers = kinds.iter().all(TargetOutcome::never_answers);
        let fails = kinds.iter().map(TargetOutcome::fails).collect();
        let spots = Rc::clone(spots);
        Self { kinds, examples, looks, fails, never_answers, spots, stretches, near, itself }
    }

    /// Makes each asked target that is preferred the example of its kind.
    pub(crate) fn prefer_examples(
        &mut self,
        asked: &[AskedTarget],
        is_preferred: impl Fn(usize) -> bool,
    ) {
        for (_, target, kind) in asked.iter().filter(|(_, target, _)| is_preferred(*target)) {
            let Some(kind) = kind else { continue };
            if let Some(index) = self.kinds.iter().position(|known| known.is_like(kind)) {
                self.examples[index] = *target;
            }
        }
    }

    /// Returns whether the targets are nodes.
    pub(crate) fn are_nodes(&self) -> bool {
        self.spots.are_nodes()
    }

    /// Returns the kind of an asked target for clients elsewhere.
    fn usual(&self, at: u32) -> Option<KindIndex> {
        let stretch = self.stretches.partition_point(|stretch| stretch.at.end <= at);
        self.stretches.get(stretch)?.kind
    }

    /// Returns the position of a slot among the targets that may be asked.
    fn place(&self, spot: u32) -> Option<u32> {
        let behind = self.stretches.partition_point(|stretch| stretch.first <= spot);
        let stretch = self.stretches.get(behind.checked_sub(1)?)?;
        let at = stretch.at.start + (spot - stretch.first);
        stretch.at.contains(&at).then_some(at)
    }

    /// Returns the kind of a target on the client's own node.
    fn own(&self, spot: &TargetSlot, caller: Caller) -> Option<KindIndex> {
        if spot.is(caller) { self.itself } else { self.near.get(&spot.like).copied().flatten() }
    }

    /// Returns the kinds of all targets on the client's own node, with their positions among the
    /// targets that may be asked.
    fn owns(&self, caller: Caller) -> impl Iterator<Item = (u32, Option<KindIndex>)> {
        let own = move |at: u32| {
            let place = self.place(at)?;
            Some((place, self.own(&self.spots.at(at)?, caller)))
        };
        self.spots.on(caller.place).filter_map(own)
    }

    /// Returns the kinds of all targets in order, as a client meets them.
    pub(crate) fn line(&self, caller: Caller) -> Vec<KindIndex> {
        let each = |run: Run| std::iter::repeat_n(run.kind, run.length as usize);
        self.runs(caller).into_iter().flat_map(each).collect()
    }

    pub(crate) fn odds(&self, caller: Caller) -> FailoverProbability {
        FailoverProbability::new(&self.kinds, &self.runs(caller))
    }

    fn runs(&self, caller: Caller) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::with_capacity(self.stretches.len() + 2);
        let mut add = |kind: Option<KindIndex>, length: u32| {
            let Some(kind) = kind.filter(|_| length > 0) else { return };
            match runs.last_mut() {
                Some(last) if last.kind == kind => last.length += length,
                _ => runs.push(Run { kind, length }),
            }
        };
        let mut owns = self.owns(caller).peekable();
        for stretch in &self.stretches {
            let mut from = stretch.at.start;
            while let Some((at, own)) = owns.next_if(|(at, _)| *at < stretch.at.end) {
                add(stretch.kind, at - from);
                add(own, 1);
                from = at + 1;
            }
            add(stretch.kind, stretch.at.end - from);
        }
        runs
    }

    /// Returns the kind that represents this one if reasons are ignored: kinds with the same
    /// outcomes have the same representative.
    fn look(&self, kind: Option<KindIndex>) -> Option<KindIndex> {
        Some(self.looks[kind?.index()])
    }

    /// Returns whether the positions of a client's own targets and of the others make no
    /// difference.
    pub(crate) fn is_even(&self) -> bool {
        let looks = self.stretches.iter().map(|stretch| self.look(stretch.kind));
        let mut usual = looks.flatten();
        let first = usual.next();
        usual.all(|look| Some(look) == first)
            && (self.spots.is_one_a_node()
                || self
                    .near
                    .values()
                    .chain([&self.itself])
                    .all(|kind| self.look(*kind).is_some_and(|look| Some(look) == first)))
    }

    /// Adds everything that distinguishes a client from others of its class: its own targets of
    /// unusual kinds, and the targets that requests meet shortly before and after them.
    pub(crate) fn add_differences(&self, caller: Caller, differences: &mut Vec<Difference>) {
        differences.push(Difference::Round);
        let is_unusual = |(at, own): &(u32, Option<KindIndex>)| *own != self.usual(*at);
        let unusual: Vec<(u32, Option<KindIndex>)> = self.owns(caller).filter(is_unusual).collect();
        let is_seen =
            |(at, own): &&(u32, Option<KindIndex>)| self.look(*own) != self.look(self.usual(*at));
        let seen: Vec<u32> = unusual.iter().filter(is_seen).map(|(at, _)| *at).collect();
        for (at, own) in unusual {
            differences.push(Difference::Target { own, usual: self.usual(at) });
            if seen.contains(&at) {
                self.add_side(at, &seen, -1, differences);
                self.add_side(at, &seen, 1, differences);
            }
        }
    }

    fn add_side(&self, at: u32, unusual: &[u32], step: i64, differences: &mut Vec<Difference>) {
        differences.push(Difference::Side);
        let most = differences.len() + MANY;
        let count = self.stretches.last().map_or(0, |stretch| i64::from(stretch.at.end));
        let mut share = Share::ALL;
        for away in 1..count {
            let next = (i64::from(at) + step * away).rem_euclid(count) as u32;
            if unusual.contains(&next) {
                differences.push(Difference::OtherTarget);
                return;
            }
            let Some(kind) = self.look(self.usual(next)) else { continue };
            let failing = self.fails[kind.index()];
            // No request passes a target that always answers.
            if failing == Share::NONE && step < 0 {
                return;
            }
            let is_unique = differences.len() > most;
            match differences.last_mut() {
                Some(Difference::Row { look, length }) if *look == kind => *length += 1,
                _ if is_unique => {
                    differences.push(Difference::Place(at));
                    return;
                }
                _ => differences.push(Difference::Row { look: kind, length: 1 }),
            }
            share *= failing;
            // If all fail, only the last target matters: the one before the first.
            if share.is_negligible() || self.never_answers {
                return;
            }
        }
    }
}
