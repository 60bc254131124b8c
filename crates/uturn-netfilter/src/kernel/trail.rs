//! The steps of a packet's ways. Ways that part keep what they had in common in one place,
//! so that to part costs little however far they have come.

use std::cell::RefCell;
use std::rc::Rc;

use uturn_model::Step;

/// The steps of one way.
#[derive(Debug)]
pub(super) struct Trail {
    /// The steps of all ways that began as one.
    all: Rc<RefCell<Vec<Print>>>,
    /// Its latest step, as a number from 1; 0 for none.
    latest: usize,
    /// How many steps it has.
    length: usize,
    /// Steps with greater numbers are its own.
    shared: usize,
}

/// Few ways have more steps.
const USUAL: usize = 12;

#[derive(Debug)]
struct Print {
    step: Step,
    /// The number of the step before it.
    before: usize,
}

impl Default for Trail {
    fn default() -> Self {
        let all = Rc::new(RefCell::new(Vec::with_capacity(USUAL)));
        Self { all, latest: 0, length: 0, shared: 0 }
    }
}

impl Trail {
    pub(super) fn add(&mut self, step: Step) {
        let mut all = self.all.borrow_mut();
        all.push(Print { step, before: self.latest });
        self.latest = all.len();
        self.length += 1;
    }

    /// The trail of a way that parts here.
    pub(super) fn fork(&mut self) -> Self {
        self.shared = self.all.borrow().len();
        Self { all: Rc::clone(&self.all), ..*self }
    }

    /// Its steps, in order.
    pub(super) fn into_steps(self) -> Vec<Step> {
        // Once no other way needs them, it can take them all.
        let shared = if Rc::strong_count(&self.all) == 1 { 0 } else { self.shared };
        let mut all = self.all.borrow_mut();
        // A way is mostly followed to its end before another goes on, so that what is its
        // own stands last.
        let (mut at, mut own) = (self.latest, all.len());
        while own > shared && at == own {
            own -= 1;
            at = all[own].before;
        }
        let mut steps = Vec::with_capacity(self.length);
        while let Some(print) = at.checked_sub(1).and_then(|at| all.get(at)) {
            at = print.before;
            steps.push(print.step.clone());
        }
        steps.reverse();
        steps.extend(all.drain(own..).map(|print| print.step));
        steps
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::{By, StepKind};

    use super::*;

    fn add(trail: &mut Trail, words: &[&str]) {
        for word in words {
            trail.add(Step::new(StepKind::Mark, *word, By::kernel("here")));
        }
    }

    fn words(trail: Trail) -> Vec<String> {
        trail.into_steps().iter().map(|step| step.why.to_string()).collect()
    }

    #[test]
    fn ways_that_part_share_only_what_came_before() {
        let mut first = Trail::default();
        add(&mut first, &["a", "b"]);
        let mut second = first.fork();
        add(&mut second, &["c"]);
        add(&mut first, &["d"]);
        let mut third = first.fork();
        add(&mut third, &["e"]);
        add(&mut first, &["f"]);
        assert_eq!(words(first), ["a", "b", "d", "f"]);
        add(&mut second, &["g"]);
        assert_eq!(words(second), ["a", "b", "c", "g"]);
        assert_eq!(words(third), ["a", "b", "d", "e"]);
        assert!(words(Trail::default()).is_empty());

        // Of ways that part before their first step, too.
        let mut first = Trail::default();
        let mut second = first.fork();
        add(&mut second, &["a", "b"]);
        add(&mut first, &["c"]);
        let third = second.fork();
        assert_eq!(words(first), ["c"]);
        assert_eq!(words(second), ["a", "b"]);
        assert_eq!(words(third), ["a", "b"]);
    }
}
