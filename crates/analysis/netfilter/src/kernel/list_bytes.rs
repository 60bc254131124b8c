//! The bytes that the lists of a walk's branches take.

use std::cell::Cell;
use std::rc::Rc;

/// The bytes of the lists of one branch, as part of the sum of all branches of its walk.
#[derive(Debug, Default)]
pub(super) struct ListBytes {
    /// The sum; `None` until the lists of this branch are counted.
    of_all: Option<Rc<Cell<usize>>>,
    own: usize,
}

impl ListBytes {
    /// Counts the lists of the branch as they are now.
    pub(super) fn set(&mut self, bytes: usize, of_all: &Rc<Cell<usize>>) {
        self.of_all.get_or_insert_with(|| Rc::clone(of_all));
        of_all.set(of_all.get() - self.own + bytes);
        self.own = bytes;
    }
}

impl Drop for ListBytes {
    fn drop(&mut self) {
        if let Some(of_all) = &self.of_all {
            of_all.set(of_all.get() - self.own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_count_their_own_lists_until_they_end() {
        let of_all = Rc::new(Cell::new(0));
        let mut first = ListBytes::default();
        first.set(100, &of_all);
        let mut second = ListBytes::default();
        assert_eq!(of_all.get(), 100);
        second.set(120, &of_all);
        first.set(110, &of_all);
        assert_eq!(of_all.get(), 230);
        drop(second);
        assert_eq!(of_all.get(), 110);
    }
}
