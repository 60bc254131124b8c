//! Chains of a table by their names. A table can have a hundred thousand, each named two or
//! three times: so finding one touches as little memory as can be.

use std::hash::BuildHasher;

use uturn_model::Text;

use crate::hash::Start;

/// Names, numbered in the order in which they came; no two are the same.
#[derive(Debug, Default)]
pub(super) struct Names {
    start: Start,
    names: Vec<Text>,
    /// A power of two of them, more than there are names: each is found at its hash or
    /// behind.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The upper half of the name's hash; the lower one is where it stands.
    hash: u32,
    at: u32,
}

const FREE: u32 = u32::MAX;
const FEWEST_SLOTS: usize = 64;

impl Names {
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let hash = self.start.hash_one(name);
        let mut place = self.place(hash);
        loop {
            let slot = self.slots.get(place)?;
            if slot.at == FREE {
                return None;
            }
            if slot.hash == upper(hash) && &*self.names[slot.at as usize] == name {
                return Some(slot.at as usize);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    /// The name with that number.
    pub(super) fn name(&self, at: usize) -> Option<&Text> {
        self.names.get(at).filter(|name| !name.is_empty())
    }

    /// A name that is not there yet, and its number.
    pub(super) fn add(&mut self, name: Text) -> usize {
        if (self.names.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let (hash, at) = (self.start.hash_one(&*name), self.names.len());
        self.put(hash, at);
        self.names.push(name);
        at
    }

    /// Takes a name away. Its number is nobody's from then on.
    pub(super) fn forget(&mut self, at: usize) {
        if let Some(name) = self.names.get_mut(at) {
            *name = Text::default();
        }
    }

    /// Whether the number is a name's that was not taken away.
    pub(super) fn is_there(&self, at: usize) -> bool {
        self.name(at).is_some()
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 4).max(FEWEST_SLOTS);
        self.slots.clear();
        self.slots.resize(size, Slot { hash: 0, at: FREE });
        for at in 0..self.names.len() {
            if self.is_there(at) {
                self.put(self.start.hash_one(&*self.names[at]), at);
            }
        }
    }

    fn put(&mut self, hash: u64, at: usize) {
        let mut place = self.place(hash);
        while self.is_taken(self.slots[place]) {
            place = (place + 1) & (self.slots.len() - 1);
        }
        self.slots[place] = Slot { hash: upper(hash), at: at as u32 };
    }

    /// A slot whose name was taken away can have another: no one looks for what it had.
    fn is_taken(&self, slot: Slot) -> bool {
        slot.at != FREE && self.is_there(slot.at as usize)
    }

    fn place(&self, hash: u64) -> usize {
        hash as usize & self.slots.len().wrapping_sub(1)
    }
}

impl FromIterator<Text> for Names {
    fn from_iter<I: IntoIterator<Item = Text>>(all: I) -> Self {
        let mut names = Self::default();
        for name in all {
            names.add(name);
        }
        names
    }
}

fn upper(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_taken_away_can_come_again() {
        let mut names: Names = (0..100).map(|at| Text::from(at.to_string())).collect();
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
        let mut names = Names::default();
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
        assert_eq!(names.name(5_000), None);
    }
}
