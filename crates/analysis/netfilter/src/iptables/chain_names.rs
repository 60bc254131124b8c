//! The chains of a table by name.
//!
//! A hash table written by hand: a table can have a hundred thousand chains, each named two or
//! three times, and the time to parse it is dominated by cache misses. Names are looked up in
//! batches, so that the misses of a batch overlap.

use std::hash::BuildHasher;

use uturn_model::Text;

use crate::hash::FastState;

/// Unique names, numbered in order of insertion.
#[derive(Debug, Default)]
pub(super) struct ChainNames {
    start: FastState,
    names: Vec<Text>,
    /// Open addressing; the number of slots is a power of two and larger than the number of
    /// names.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Half of the name's hash.
    hash: u32,
    at: u32,
}

const FREE: u32 = u32::MAX;
const FEWEST_SLOTS: usize = 64;
/// The batch size of lookups.
const TOGETHER: usize = 64;

impl ChainNames {
    /// Reserves room for `count` names.
    pub(super) fn with_room(count: usize) -> Self {
        let mut names = Self { names: Vec::with_capacity(count), ..Self::default() };
        if count > 0 {
            names.grow(slots_for(count));
        }
        names
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.find_hashed(name, self.hash(name))
    }

    fn find_hashed(&self, name: &str, hash: u32) -> Option<usize> {
        let mut place = self.place(hash);
        loop {
            let slot = self.slots.get(place)?;
            if slot.at == FREE {
                return None;
            }
            if slot.hash == hash && &*self.names[slot.at as usize] == name {
                return Some(slot.at as usize);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    /// Calls `take` for each name with its key, passing the existing name if there is one, and
    /// else a new one. Works in passes over the batch, so that the memory accesses of a pass
    /// overlap.
    pub(super) fn find_all<K: Copy>(&self, wanted: &[(K, &str)], mut take: impl FnMut(K, Text)) {
        for wanted in wanted.chunks(TOGETHER) {
            let mut hashes = [0; TOGETHER];
            for (hash, (_, name)) in hashes.iter_mut().zip(wanted) {
                *hash = self.hash(name);
            }
            let mut found = [None; TOGETHER];
            for ((found, hash), (_, name)) in found.iter_mut().zip(hashes).zip(wanted) {
                *found = self.find_hashed(name, hash);
            }
            for (found, (key, name)) in found.into_iter().zip(wanted) {
                take(*key, found.map_or_else(|| Text::from(*name), |at| self.names[at].clone()));
            }
        }
    }

    /// The name with that number.
    pub(super) fn name(&self, at: usize) -> Option<&Text> {
        self.names.get(at).filter(|name| !name.is_empty())
    }

    /// Inserts a new name, and returns its number.
    pub(super) fn add(&mut self, name: Text) -> usize {
        let size = slots_for(self.names.len() + 1);
        if size > self.slots.len() {
            self.grow(size);
        }
        let (hash, at) = (self.hash(&name), self.names.len());
        self.put(Slot { hash, at: at as u32 });
        self.names.push(name);
        at
    }

    /// Removes a name. Its number is not reused.
    pub(super) fn forget(&mut self, at: usize) {
        if let Some(name) = self.names.get_mut(at) {
            *name = Text::default();
        }
    }

    /// Whether the number belongs to a name that was not removed.
    pub(super) fn is_there(&self, at: usize) -> bool {
        self.name(at).is_some()
    }

    fn grow(&mut self, size: usize) {
        let before = std::mem::replace(&mut self.slots, vec![Slot { hash: 0, at: FREE }; size]);
        for slot in before {
            if self.is_taken(slot) {
                self.put(slot);
            }
        }
    }

    fn put(&mut self, slot: Slot) {
        let mut place = self.place(slot.hash);
        while self.is_taken(self.slots[place]) {
            place = (place + 1) & (self.slots.len() - 1);
        }
        self.slots[place] = slot;
    }

    /// A slot whose name was removed can be reused.
    fn is_taken(&self, slot: Slot) -> bool {
        slot.at != FREE && self.is_there(slot.at as usize)
    }

    fn hash(&self, name: &str) -> u32 {
        self.start.hash_one(name) as u32
    }

    fn place(&self, hash: u32) -> usize {
        hash as usize & self.slots.len().wrapping_sub(1)
    }
}

fn slots_for(names: usize) -> usize {
    (names * 2).next_power_of_two().max(FEWEST_SLOTS)
}

impl FromIterator<Text> for ChainNames {
    fn from_iter<I: IntoIterator<Item = Text>>(all: I) -> Self {
        let mut names = Self::default();
        for name in all {
            names.add(name);
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_taken_away_can_come_again() {
        let mut names: ChainNames = (0..100).map(|at| Text::from(at.to_string())).collect();
        names.forget(7);
        assert_eq!((names.find("7"), names.name(7), names.is_there(7)), (None, None, false));
        assert_eq!((names.find("8"), names.find("")), (Some(8), None));
        assert_eq!(names.add("7".into()), 100);
        (101..1_000).for_each(|at| {
            names.add(at.to_string().into());
        });
        assert_eq!((names.find("7"), names.find("99")), (Some(100), Some(99)));
    }

    #[test]
    fn every_name_is_found_and_no_other() {
        let mut names = ChainNames::default();
        assert_eq!(names.find("0"), None);
        for at in 0..5_000 {
            assert_eq!(names.find(&at.to_string()), None);
            assert_eq!(names.add(at.to_string().into()), at);
        }
        for at in 0..5_000 {
            assert_eq!(names.find(&at.to_string()), Some(at));
            assert_eq!(names.name(at).map(|name| name.to_string()), Some(at.to_string()));
        }
        assert_eq!(names.find("5000"), None);
        let wanted: Vec<String> = (4_000..6_000).map(|at| at.to_string()).collect();
        let wanted: Vec<(usize, &str)> = (0..).zip(wanted.iter().map(String::as_str)).collect();
        let mut found = Vec::new();
        names.find_all(&wanted, |key, name| found.push((key, name)));
        for ((key, name), (at, (wanted_key, wanted))) in found.iter().zip((4_000..).zip(wanted)) {
            assert_eq!((*key, &**name), (wanted_key, wanted));
            let is_shared = names.name(at).is_some_and(|there| Text::ptr_eq(there, name));
            assert_eq!(is_shared, at < 5_000);
        }
        assert_eq!(found.len(), 2_000);
        assert_eq!(names.name(5_000), None);
    }
}
