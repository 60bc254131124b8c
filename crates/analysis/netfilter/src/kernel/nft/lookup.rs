//! Compiled sets and maps: exact elements are hashed, ranges sorted.

use uturn_model::Text;

use super::value::Verdict;
use crate::hash::FastMap;

/// The first and last number of each part.
pub(super) type Bounds = Box<[(u128, u128)]>;

/// A set or map.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    /// The name of the set; `None` for an anonymous set.
    pub(super) name: Option<Text>,
    /// Exact elements with one part.
    single: FastMap<u128, u32>,
    /// Exact elements with several parts.
    exact: FastMap<Box<[u128]>, u32>,
    /// Ranges with one part, by their start; they do not overlap.
    ranges: Vec<(u128, u128, u32)>,
    /// Ranges with several parts, by those parts that are exact in all of them.
    wide: FastMap<Box<[u128]>, Vec<(Bounds, u32)>>,
    /// The parts that are exact in all of `wide`.
    fixed: Vec<usize>,
    /// The data of the catch-all element `*`.
    default: Option<u32>,
    given: Vec<Given>,
    /// Whether rules or timeouts change it.
    pub(super) changes: bool,
    /// Whether an element is not modelled, which makes the result of every lookup unknown.
    pub(super) unmodelled: bool,
}

/// The result of a lookup.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) data: Data,
    pub(super) comment: Option<Text>,
}

/// The data of a map element.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Nothing,
    Verdict(Verdict),
    Value(Bounds),
    Unknown,
}

impl Lookup {
    pub(super) fn new(elements: Vec<(Option<Bounds>, Given)>) -> Self {
        let mut lookup = Self::default();
        let mut wide = Vec::new();
        for (bounds, given) in elements {
            let at = lookup.given.len() as u32;
            lookup.given.push(given);
            let Some(bounds) = bounds else {
                lookup.default = Some(at);
                continue;
            };
            let is_exact = bounds.iter().all(|(first, last)| first == last);
            match (&*bounds, is_exact) {
                ([(number, _)], true) => {
                    lookup.single.insert(*number, at);
                }
                ([(first, last)], false) => lookup.ranges.push((*first, *last, at)),
                (_, true) => {
                    lookup.exact.insert(bounds.iter().map(|(number, _)| *number).collect(), at);
                }
                (_, false) => wide.push((bounds, at)),
            }
        }
        lookup.ranges.sort_unstable();
        let parts = wide.first().map_or(0, |(bounds, _)| bounds.len());
        let is_fixed = |part: &usize| {
            wide.iter().all(|(bounds, _)| bounds.get(*part).is_some_and(|(a, b)| a == b))
        };
        lookup.fixed = (0..parts).filter(is_fixed).collect();
        for (bounds, at) in wide {
            let key = lookup.fixed.iter().map(|part| bounds[*part].0).collect();
            lookup.wide.entry(key).or_default().push((bounds, at));
        }
        lookup
    }

    pub(super) fn find(&self, key: &[u128]) -> Option<&Given> {
        self.at(key).or(self.default).map(|at| &self.given[at as usize])
    }

    fn at(&self, key: &[u128]) -> Option<u32> {
        if let [number] = key {
            return self.single.get(number).copied().or_else(|| {
                let after = self.ranges.partition_point(|(first, ..)| first <= number);
                let (_, last, at) = self.ranges.get(after.checked_sub(1)?)?;
                (number <= last).then_some(*at)
            });
        }
        if let Some(at) = self.exact.get(key) {
            return Some(*at);
        }
        if self.wide.is_empty() {
            return None;
        }
        let fixed: Option<Vec<u128>> =
            self.fixed.iter().map(|part| key.get(*part).copied()).collect();
        let candidates = self.wide.get(&*fixed?)?;
        let within = |bounds: &Bounds| {
            bounds.len() == key.len()
                && bounds
                    .iter()
                    .zip(key)
                    .all(|((first, last), number)| (first..=last).contains(&number))
        };
        candidates.iter().find(|(bounds, _)| within(bounds)).map(|(_, at)| *at)
    }

    /// The numbers at which the result of a lookup changes.
    pub(super) fn borders(&self) -> Vec<u128> {
        let single = self.single.keys().flat_map(|number| [*number, number.saturating_add(1)]);
        let ranges =
            self.ranges.iter().flat_map(|(first, last, _)| [*first, last.saturating_add(1)]);
        single.chain(ranges).collect()
    }

    /// The chains that its verdicts jump to.
    pub(super) fn jump_targets(&self) -> impl Iterator<Item = usize> + '_ {
        self.given.iter().filter_map(|given| match given.data {
            Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) => Some(to),
            _ => None,
        })
    }
}
