//! The results of walking a client, in terms that hold in a later scan too.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use uturn_model::Verdict;

use crate::failover::retry_ring::{AskedTarget, RetryRing};
use crate::failover::target_list::{Round, TargetList};
use crate::failover::target_outcome::TargetOutcome;
use crate::inventory::Caller;

/// The results of walking a client.
#[derive(Clone)]
pub(crate) struct FoundForClient {
    pub(crate) verdicts: Arc<[Verdict]>,
    rounds: Vec<FoundRound>,
    /// Whether each target that was probed so far answers always or never.
    pub(crate) are_probes_certain: bool,
}

/// A client's request at a load balancer that tries one target after the other.
#[derive(Clone)]
struct FoundRound {
    are_nodes: bool,
    /// The positions of the asked targets in the list, their places in the rule, and the results.
    asked: Vec<(u32, usize, Option<TargetOutcome>)>,
    timeout: Duration,
    chance: bool,
    is_all: bool,
}

impl FoundForClient {
    /// Converts results. Returns `None` if an asked target is not in the list.
    pub(crate) fn of(
        verdicts: &Arc<[Verdict]>,
        rounds: &[Rc<Round>],
        line: Option<&TargetList>,
        are_probes_certain: bool,
    ) -> Option<Self> {
        let rounds = rounds.iter().map(|round| FoundRound::of(round, line?));
        let rounds: Option<Vec<FoundRound>> = rounds.collect();
        Some(Self { verdicts: Arc::clone(verdicts), rounds: rounds?, are_probes_certain })
    }

    /// Returns the client's rounds for the list as it is now.
    pub(crate) fn rounds(&self, line: Option<&TargetList>, walked: Caller) -> Vec<Rc<Round>> {
        let rounds = self.rounds.iter().filter_map(|round| round.in_line(line?, walked));
        rounds.map(Rc::new).collect()
    }
}

impl FoundRound {
    fn of(round: &Round, line: &TargetList) -> Option<Self> {
        let are_nodes = round.ring.are_nodes();
        let slots = line.slots_of(are_nodes);
        let place = |(slot, target, kind): &AskedTarget| {
            let at = if are_nodes {
                slot.place?
            } else {
                slots.iter().position(|known| known == slot)? as u32
            };
            Some((at, *target, kind.clone()))
        };
        let asked: Option<Vec<_>> = round.asked.iter().map(place).collect();
        Some(Self {
            are_nodes,
            asked: asked?,
            timeout: round.timeout,
            chance: round.chance,
            is_all: round.is_all.get(),
        })
    }

    fn in_line(&self, line: &TargetList, walked: Caller) -> Option<Round> {
        let slots = line.slots_of(self.are_nodes);
        let asked = self.asked.iter().map(|(at, target, kind)| {
            let slot = slots.at(*at)?;
            Some((slot, *target, kind.clone()))
        });
        let asked: Option<Vec<AskedTarget>> = asked.collect();
        let asked = asked?;
        let ring = RetryRing::new(slots, walked, &asked);
        let (timeout, chance, is_all) = (self.timeout, self.chance, Cell::new(self.is_all));
        Some(Round { ring, asked, timeout, chance, is_all })
    }
}
