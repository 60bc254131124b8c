//! The bytes that the lists of a walk's branches take. Each branch has lists of its own, and a rule that
//! is not modelled makes them longer.

use std::cell::Cell;
use std::rc::Rc;

use super::walk::Walk;

/// The bytes of the lists of one branch, as part of the sum of all branches of its walk.
#[derive(Debug, Default)]
pub(super) struct ListBytes {
    /// The sum; a branch that is the only one needs none.
    of_all: Option<Rc<Cell<usize>>>,
    own: usize,
}

impl ListBytes {
    /// The count of a new branch, whose lists are not counted yet.
    pub(super) fn fork(&mut self) -> Self {
        let of_all = self.of_all.get_or_insert_with(|| Rc::new(Cell::new(self.own)));
        Self { of_all: Some(Rc::clone(of_all)), own: 0 }
    }

    /// Returns the bytes of the lists of all branches when each was last counted.
    pub(super) fn of_all(&self) -> usize {
        self.of_all.as_ref().map_or(self.own, |of_all| of_all.get())
    }

    fn set(&mut self, bytes: usize) {
        if let Some(of_all) = &self.of_all {
            of_all.set(of_all.get() - self.own + bytes);
        }
        self.own = bytes;
    }
}

impl Drop for ListBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Walk {
    /// Counts the branch's lists as they are now.
    pub(super) fn count_lists(&mut self) {
        let bytes = self.lists_of_end()
            + of(&self.answers)
            + of(&self.nft_answers)
            + of(&self.policy_answers)
            + of(&self.recent_entries)
            + of(&self.nft.added)
            + self.facts.bytes();
        self.list_bytes.set(bytes);
    }

    /// Returns the bytes of the lists that the end of the branch keeps.
    pub(super) fn lists_of_end(&self) -> usize {
        of(&self.unknown) + of(&self.open_questions) + of(&self.supposed)
    }

    /// Returns the number of entries that are looked through to see whether something new is among
    /// them.
    pub(super) fn entries_looked_through(&self) -> usize {
        self.unknown.len() + self.answers.len() + self.recent_entries.len() + self.nft.added.len()
    }
}

fn of<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_count_their_own_lists_until_they_end() {
        let mut first = ListBytes::default();
        first.set(100);
        let mut second = first.fork();
        assert_eq!(second.of_all(), 100);
        second.set(120);
        first.set(110);
        assert_eq!(first.of_all(), 230);
        drop(second);
        assert_eq!(first.of_all(), 110);
    }
}
