//! A cache of the results of walks, kept from scan to scan.
//!
//! The key of a result is everything that a walk of a target depends on (`known::inputs`), in full
//! and not as a digest: the reduced cluster, the number of objects that each of its objects
//! represents, the order in which a load balancer tries targets, the request, and the clients that
//! are walked. A result is reused if its key is equal, so it equals the result of a new walk
//! whatever changed in the cluster. No entry is ever invalidated.

pub(crate) mod found;
pub(crate) mod inputs;
pub(crate) mod memory;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uturn_model::{Destination, Protocol, Verdict};
use uturn_netfilter::hash::FastMap;

use found::FoundForClient;
use inputs::{Standing, WalkInputs};

/// The cached results of walks of former scans. Several threads share it.
#[derive(Default)]
pub struct KnownWalks {
    kept: Mutex<Kept>,
    walked: AtomicUsize,
    reused: AtomicUsize,
}

#[derive(Default)]
struct Kept {
    round: u64,
    targets: HashMap<(Destination, Protocol), Vec<Arc<KnownTarget>>>,
}

/// Numbers of walked and of reused results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkCounts {
    /// The number of clients of targets that were walked.
    pub walked: usize,
    /// The number of clients for which a cached result was used.
    pub reused: usize,
    /// The number of targets that are kept, each once for every form in which it was walked.
    pub kept: usize,
}

/// The results of walking the clients of a target.
pub(crate) struct KnownTarget {
    inputs: WalkInputs,
    pub(crate) clients: Vec<FoundForClient>,
    /// The verdicts of clients of a class that try targets in another order than the walked client,
    /// by the number of the class.
    parts: Mutex<PartVerdicts>,
    /// The last round that used the results.
    round: AtomicU64,
}

/// Verdicts by the number of a class and the standing of one of its clients.
type PartVerdicts = FastMap<(usize, Standing), Arc<[Verdict]>>;

impl std::fmt::Debug for KnownWalks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownWalks").finish_non_exhaustive()
    }
}

impl KnownWalks {
    /// Ends a round of scans: drops the results that it did not use. Returns how many were walked
    /// and how many were reused.
    pub fn end_round(&self) -> WalkCounts {
        let mut kept = self.lock();
        let round = kept.round;
        kept.round += 1;
        kept.targets.retain(|_, targets| {
            targets.retain(|target| target.round.load(Ordering::Relaxed) == round);
            targets.shrink_to_fit();
            !targets.is_empty()
        });
        kept.targets.shrink_to_fit();
        WalkCounts {
            walked: self.walked.swap(0, Ordering::Relaxed),
            reused: self.reused.swap(0, Ordering::Relaxed),
            kept: kept.targets.values().map(Vec::len).sum(),
        }
    }

    /// Returns the results for a target if they are known for these inputs.
    pub(crate) fn find(
        &self,
        target: &(Destination, Protocol),
        inputs: &WalkInputs,
    ) -> Option<Arc<KnownTarget>> {
        let (round, candidates) = {
            let kept = self.lock();
            (kept.round, kept.targets.get(target)?.clone())
        };
        let found = candidates.into_iter().find(|known| known.inputs == *inputs)?;
        found.round.store(round, Ordering::Relaxed);
        Some(found)
    }

    /// Keeps the results for a target.
    pub(crate) fn keep(
        &self,
        target: (Destination, Protocol),
        inputs: WalkInputs,
        clients: Vec<FoundForClient>,
        parts: PartVerdicts,
    ) {
        let mut kept = self.lock();
        let round = AtomicU64::new(kept.round);
        let known = KnownTarget { inputs, clients, parts: Mutex::new(parts), round };
        kept.targets.entry(target).or_default().push(Arc::new(known));
    }

    pub(crate) fn count_walk(&self) {
        self.walked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_reuse(&self) {
        self.reused.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownTarget {
    /// Returns the verdicts of a part of a class of clients.
    pub(crate) fn part(&self, class: usize, standing: Standing) -> Option<Arc<[Verdict]>> {
        self.lock_parts().get(&(class, standing)).cloned()
    }

    pub(crate) fn keep_part(&self, class: usize, standing: Standing, verdicts: Arc<[Verdict]>) {
        self.lock_parts().insert((class, standing), verdicts);
    }

    fn lock_parts(&self) -> MutexGuard<'_, PartVerdicts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
