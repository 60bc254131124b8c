//! Numbers for values, so that equal values can be compared and stored as one word.

use std::hash::Hash;

use uturn_netfilter::hash::FastMap;

/// Assigns equal numbers to equal values.
#[derive(Debug)]
pub(crate) struct Numbers<T>(FastMap<T, u32>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(FastMap::default())
    }
}

impl<T: Hash + Eq + Clone> Numbers<Vec<T>> {
    pub(crate) fn of_list(&mut self, list: &[T]) -> u32 {
        match self.0.get(list) {
            Some(number) => *number,
            None => self.of(list.to_vec()),
        }
    }
}

impl<T: Hash + Eq> Numbers<T> {
    pub(crate) fn of(&mut self, thing: T) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(thing).or_insert(next)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
