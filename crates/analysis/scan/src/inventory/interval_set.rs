//! A large set of pods, as ranges of indices in one list.
//!
//! In the list (`inventory`), equivalent pods are adjacent, so that all of them except those on
//! three nodes are four ranges, however many pods there are.

use std::ops::Range;
use std::sync::Arc;

/// Indices in a list: ranges in order, none empty, none adjacent to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IntervalSet(Arc<[Range<u32>]>);

impl IntervalSet {
    /// Makes a set of ranges in any order, which may overlap.
    pub(crate) fn new(mut ranges: Vec<Range<u32>>) -> Self {
        ranges.retain(|range| range.start < range.end);
        ranges.sort_unstable_by_key(|range| range.start);
        let mut kept: Vec<Range<u32>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match kept.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => kept.push(range),
            }
        }
        Self(kept.into())
    }

    /// Makes a set of a single index.
    pub(crate) fn single(place: u32) -> Self {
        Self(std::iter::once(place..place + 1).collect())
    }

    /// Returns the set without the indices in `those`.
    pub(crate) fn without(&self, those: &Self) -> Self {
        let mut kept = Vec::with_capacity(self.0.len() + those.0.len());
        let mut holes = those.0.iter().peekable();
        for range in self.0.iter() {
            let mut start = range.start;
            while let Some(hole) = holes.peek() {
                if hole.end <= start {
                    holes.next();
                    continue;
                }
                if hole.start >= range.end {
                    break;
                }
                if hole.start > start {
                    kept.push(start..hole.start);
                }
                start = hole.end;
                if start >= range.end {
                    break;
                }
            }
            if start < range.end {
                kept.push(start..range.end);
            }
        }
        Self(kept.into())
    }

    /// Returns the union of both sets.
    #[must_use]
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&*other.0).cloned().collect())
    }

    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.0.iter().cloned()
    }

    /// Returns the number of indices.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|range| range.len()).sum()
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each index, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().cloned().flatten().map(|place| place as usize)
    }

    /// Returns whether an index is in the set.
    pub(crate) fn contains(&self, place: usize) -> bool {
        let at = self.0.partition_point(|range| (range.end as usize) <= place);
        self.0.get(at).is_some_and(|range| range.start as usize <= place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Vec<Range<u32>>> {
        prop::collection::vec((0u32..40, 0u32..8).prop_map(|(at, many)| at..at + many), 0..8)
    }

    fn set(ranges: &[Range<u32>]) -> BTreeSet<usize> {
        ranges.iter().cloned().flatten().map(|place| place as usize).collect()
    }

    proptest! {
        #[test]
        fn an_interval_set_is_a_set(first in ranges(), other in ranges()) {
            let (a, b) = (IntervalSet::new(first.clone()), IntervalSet::new(other.clone()));
            let (x, y) = (set(&first), set(&other));
            prop_assert_eq!(&a.iter().collect::<BTreeSet<_>>(), &x);
            prop_assert_eq!(a.len(), x.len());
            prop_assert_eq!(a.is_empty(), x.is_empty());
            prop_assert!((0..60).all(|place| a.contains(place) == x.contains(&place)));
            prop_assert_eq!(a.and(&b).iter().collect::<BTreeSet<_>>(), &x | &y);
            prop_assert_eq!(a.without(&b).iter().collect::<BTreeSet<_>>(), &x - &y);
        }
    }
}
