//! The readings of what is not known in two clusters, and which of them belong together.

use uturn_model::{Cluster, Text};
use uturn_path::what_if::{self, Configurations};

/// A reading of the cluster before, and the reading of the cluster after that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) before: usize,
    pub(super) after: usize,
}

/// The readings of both clusters. The assumed readings are the first pair.
pub(super) struct Readings {
    pub(super) pairs: Vec<Pair>,
    old: Vec<Cluster>,
    new: Vec<Cluster>,
}

impl Readings {
    pub(super) fn of(before: &Cluster, after: &Cluster) -> Self {
        let (old, new) = (what_if::others(before), what_if::others(after));
        let (olds, news) = (old.len() + 1, new.len() + 1);
        // A side with one reading has it in each pair. What both leave open is open in the same order.
        let count = olds.max(news);
        let of = |at: usize, all: usize| if at < all { at } else { 0 };
        let pairs = (0..count).map(|at| Pair { before: of(at, olds), after: of(at, news) });
        Self { pairs: pairs.collect(), old, new }
    }

    pub(super) fn before<'c>(&'c self, assumed: &'c Cluster) -> Vec<&'c Cluster> {
        std::iter::once(assumed).chain(&self.old).collect()
    }

    pub(super) fn after<'c>(&'c self, assumed: &'c Cluster) -> Vec<&'c Cluster> {
        std::iter::once(assumed).chain(&self.new).collect()
    }
}

/// Returns the conditions under which a result holds that the pairs at these places share.
pub(super) fn conditions(
    before: &Cluster,
    after: &Cluster,
    pairs: &[Pair],
    places: &[usize],
) -> Vec<Text> {
    if places.len() == pairs.len() {
        return Vec::new();
    }
    let is_of_before =
        pairs.iter().map(|pair| pair.before).max() > pairs.iter().map(|pair| pair.after).max();
    let cluster = if is_of_before { before } else { after };
    let mut readings: Vec<usize> = places
        .iter()
        .map(|at| if is_of_before { pairs[*at].before } else { pairs[*at].after })
        .collect();
    readings.sort_unstable();
    readings.dedup();
    Configurations::of(cluster).conditions(&readings)
}
