//! Which losses of nodes are walked: for each target two nodes of each class, or one that is alone.
//!
//! A loss costs a cluster of its own, so as few nodes as possible are chosen, each for the targets for
//! which a class of theirs still lacks one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uturn_scan::AlikeNodes;

/// The number of nodes of a class that are walked.
const WANTED: u8 = 2;

/// The losses that are walked.
pub(super) struct Cover {
    /// The nodes, each with its targets.
    pub(super) chosen: BTreeMap<usize, Vec<usize>>,
    /// The classes of nodes of each target, by number.
    partition_of: Vec<usize>,
    partitions: Vec<Partition>,
}

struct Partition {
    alike: Arc<AlikeNodes>,
    targets: Vec<usize>,
    /// The chosen nodes of each class.
    chosen: Vec<Vec<usize>>,
    /// The nodes of each class.
    members: Vec<Vec<usize>>,
}

impl Cover {
    pub(super) fn of(nodes: usize, alike: &[Arc<AlikeNodes>]) -> Self {
        let mut known: HashMap<*const AlikeNodes, usize> = HashMap::new();
        let mut partitions: Vec<Partition> = Vec::new();
        let mut partition_of = Vec::with_capacity(alike.len());
        for (target, own) in alike.iter().enumerate() {
            let number = *known.entry(Arc::as_ptr(own)).or_insert_with(|| {
                partitions.push(Partition::of(own));
                partitions.len() - 1
            });
            partitions[number].targets.push(target);
            partition_of.push(number);
        }
        let mut chosen: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        // How many targets would still use the loss of each node.
        let mut uses: Vec<usize> =
            vec![partitions.iter().map(|own| own.targets.len()).sum(); nodes];
        loop {
            let best = (0..nodes).max_by_key(|place| (uses[*place], std::cmp::Reverse(*place)));
            let Some(best) = best.filter(|place| uses[*place] > 0) else { break };
            uses[best] = 0;
            let targets = chosen.entry(best).or_default();
            for partition in &mut partitions {
                if !partition.lacks(best) {
                    continue;
                }
                targets.extend(&partition.targets);
                for done in partition.choose(best) {
                    uses[done] = uses[done].saturating_sub(partition.targets.len());
                }
            }
            targets.sort_unstable();
        }
        Self { chosen, partition_of, partitions }
    }

    /// Returns the nodes that were walked for a node and a target.
    pub(super) fn representatives(
        &self,
        target: usize,
        place: usize,
    ) -> Option<(usize, Option<usize>)> {
        let partition = &self.partitions[self.partition_of[target]];
        let chosen = &partition.chosen[partition.class(place)];
        Some((*chosen.first()?, chosen.get(1).copied()))
    }
}

impl Partition {
    fn of(alike: &Arc<AlikeNodes>) -> Self {
        let mut members = vec![Vec::new(); alike.count];
        for (place, class) in alike.class_of.iter().enumerate() {
            members[*class as usize].push(place);
        }
        let (alike, chosen) = (Arc::clone(alike), vec![Vec::new(); alike.count]);
        Self { alike, targets: Vec::new(), chosen, members }
    }

    fn class(&self, place: usize) -> usize {
        self.alike.class_of[place] as usize
    }

    fn lacks(&self, place: usize) -> bool {
        let chosen = &self.chosen[self.class(place)];
        chosen.len() < WANTED.into() && !chosen.contains(&place)
    }

    /// Chooses a node. Returns the other nodes whose losses are of no more use to the targets.
    fn choose(&mut self, place: usize) -> Vec<usize> {
        let class = self.class(place);
        self.chosen[class].push(place);
        if self.chosen[class].len() < WANTED.into() {
            return Vec::new();
        }
        let chosen = &self.chosen[class];
        self.members[class].iter().copied().filter(|other| !chosen.contains(other)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(class_of: &[u32]) -> Arc<AlikeNodes> {
        let count = class_of.iter().max().map_or(0, |last| *last as usize + 1);
        Arc::new(AlikeNodes { class_of: class_of.to_vec(), count })
    }

    #[test]
    fn two_nodes_of_each_class_are_walked_and_no_more() {
        let (one, two) = (alike(&[0, 0, 0, 1, 1]), alike(&[0, 1, 1, 1, 2]));
        let cover = Cover::of(5, &[Arc::clone(&one), Arc::clone(&one), Arc::clone(&two)]);
        for (target, own) in [(0, &one), (1, &one), (2, &two)] {
            for place in 0..5 {
                let same = own.class_of.iter().filter(|class| **class == own.class_of[place]);
                let (first, second) = cover.representatives(target, place).unwrap();
                assert_eq!(second.is_some(), same.count() > 1, "{target} {place}");
                for walked in [Some(first), second].into_iter().flatten() {
                    assert_eq!(own.class_of[walked], own.class_of[place]);
                    assert!(cover.chosen[&walked].contains(&target));
                }
            }
        }
        let walked: usize = cover.chosen.values().map(Vec::len).sum();
        assert_eq!(walked, 2 * 4 + 4);
    }

    #[test]
    fn many_equal_nodes_cost_two_losses() {
        let all = alike(&[0; 5000]);
        let cover = Cover::of(5000, &vec![all; 100]);
        assert_eq!(cover.chosen.len(), 2);
    }
}
