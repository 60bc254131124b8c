//! Reuses the results of a load balancer's targets for another list of targets.
//!
//! Lists of one shape differ in the order and in the number of their targets. If every target of a
//! kind has a single outcome, that outcome does not depend on their number; neither do probes that
//! are all good or all bad. Then no target has to be asked again.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use uturn_netfilter::hash::FastMap;

use crate::failover::retry_ring::{AskedTarget, RetryRing};
use crate::failover::target_list::{Alike, Round, TargetList};
use crate::failover::target_outcome::TargetOutcome;
use crate::inventory::Caller;

/// The results of asking for a client, by the kind of a target and its distance; `None` for a
/// target that must not be asked.
#[derive(Debug)]
pub(crate) struct ReusableOutcome {
    kinds: FastMap<(Alike, Distance), Option<TargetOutcome>>,
    /// Whether the targets are nodes.
    are_nodes: bool,
    timeout: Duration,
    chance: bool,
}

/// The distance of a target from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Distance {
    Itself,
    SameNode,
    Elsewhere,
}

impl Distance {
    fn of(asked: &AskedTarget, caller: Caller) -> Self {
        match &asked.0 {
            spot if spot.is(caller) => Self::Itself,
            spot if spot.is_near(caller) => Self::SameNode,
            _ => Self::Elsewhere,
        }
    }
}

impl ReusableOutcome {
    /// Converts a client's rounds, if they do not depend on the number of equal objects.
    pub(crate) fn of(
        are_probes_certain: bool,
        line: &TargetList,
        rounds: &[Rc<Round>],
    ) -> Option<Self> {
        let [round] = rounds else { return None };
        if !round.is_all.get() || !are_probes_certain {
            return None;
        }
        let are_nodes = round.ring.are_nodes();
        let mut kinds: FastMap<_, Option<TargetOutcome>> = FastMap::default();
        for target in &round.asked {
            let kind = &target.2;
            if kind.as_ref().is_some_and(|kind| kind.answers.len() + kind.failures.len() != 1) {
                return None;
            }
            let key = (line.alike(&target.0, are_nodes)?, Distance::of(target, line.walked.get()));
            let known = kinds.entry(key).or_insert_with(|| kind.clone());
            let is_same = match (&*known, kind) {
                (Some(known), Some(kind)) => known.is_like(kind),
                (known, kind) => known.is_none() && kind.is_none(),
            };
            if !is_same {
                return None;
            }
        }
        Some(Self { kinds, are_nodes, timeout: round.timeout, chance: round.chance })
    }

    /// Returns the round of a client of the same class for another list. Returns `None` if the
    /// results are not known.
    pub(crate) fn round(&self, line: &TargetList, walked: Caller) -> Option<Round> {
        let (spots, standing) = line.standing(self.are_nodes)?;
        let mut asked: Vec<AskedTarget> = Vec::with_capacity(standing.len());
        for spot in standing {
            let mut target = (spot, 0, None);
            let key = (line.alike(&spot, self.are_nodes)?, Distance::of(&target, walked));
            if let Some(kind) = self.kinds.get(&key) {
                target.2.clone_from(kind);
                asked.push(target);
            }
        }
        let ring = RetryRing::new(spots, walked, &asked);
        let (timeout, chance) = (self.timeout, self.chance);
        Some(Round { ring, asked, timeout, chance, is_all: Cell::new(true) })
    }
}
