//! The steps of a walk's branches. Branches share the steps before they split, so that a split is
//! cheap however long the walk is.

use std::cell::RefCell;
use std::rc::Rc;

use uturn_model::{Evidence, Step};

/// The steps of one branch.
#[derive(Debug)]
pub(super) struct StepLog {
    all: Rc<RefCell<SharedSteps>>,
    /// The number of its latest step, counted from 1; 0 for none.
    latest: usize,
    /// The number of its steps.
    length: usize,
    /// Steps with higher numbers belong to this branch alone.
    shared: usize,
}

/// The steps of all branches of a walk.
#[derive(Debug)]
struct SharedSteps {
    steps: Vec<Step>,
    /// For each step, the number of the preceding step.
    before: Vec<usize>,
}

/// Few branches have more steps.
const USUAL: usize = 12;

impl Default for StepLog {
    fn default() -> Self {
        let (steps, before) = (Vec::with_capacity(USUAL), Vec::with_capacity(USUAL));
        let all = Rc::new(RefCell::new(SharedSteps { steps, before }));
        Self { all, latest: 0, length: 0, shared: 0 }
    }
}

impl StepLog {
    pub(super) fn add(&mut self, step: Step) {
        let mut all = self.all.borrow_mut();
        all.steps.push(step);
        all.before.push(self.latest);
        self.latest = all.steps.len();
        self.length += 1;
    }

    /// The number of its steps.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The number of the steps of all branches.
    pub(super) fn steps_of_all(&self) -> usize {
        self.all.borrow().steps.len()
    }

    /// Returns the evidence of the latest step.
    pub(super) fn latest_evidence(&self) -> Option<Evidence> {
        let at = self.latest.checked_sub(1)?;
        Some(self.all.borrow().steps[at].by.clone())
    }

    /// The log of a new branch.
    pub(super) fn fork(&mut self) -> Self {
        self.shared = self.all.borrow().steps.len();
        Self { all: Rc::clone(&self.all), ..*self }
    }

    /// The steps of the branch, in order.
    pub(super) fn into_steps(self) -> Vec<Step> {
        // If no other branch shares the steps, they can be moved instead of copied.
        let shared = if Rc::strong_count(&self.all) == 1 { 0 } else { self.shared };
        let mut all = self.all.borrow_mut();
        // A branch is mostly walked to its end before another continues, so its own steps come
        // last.
        let (mut at, mut own) = (self.latest, all.steps.len());
        while own > shared && at == own {
            own -= 1;
            at = all.before[own];
        }
        all.before.truncate(own);
        if own == 0 && at == 0 {
            return std::mem::take(&mut all.steps);
        }
        let mut steps = Vec::with_capacity(self.length);
        while let Some(place) = at.checked_sub(1) {
            steps.push(all.steps[place].clone());
            at = all.before[place];
        }
        steps.reverse();
        steps.extend(all.steps.drain(own..));
        steps
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::StepKind;

    use super::*;

    fn add(log: &mut StepLog, words: &[&str]) {
        for word in words {
            log.add(Step::new(StepKind::Mark, *word, Evidence::kernel("here")));
        }
    }

    fn words(log: StepLog) -> Vec<String> {
        log.into_steps().iter().map(|step| step.why.to_string()).collect()
    }

    #[test]
    fn ways_that_part_share_only_what_came_before() {
        let mut first = StepLog::default();
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
        assert!(words(StepLog::default()).is_empty());

        // Branches that split before their first step, too.
        let mut first = StepLog::default();
        let mut second = first.fork();
        add(&mut second, &["a", "b"]);
        add(&mut first, &["c"]);
        let third = second.fork();
        assert_eq!(words(first), ["c"]);
        assert_eq!(words(second), ["a", "b"]);
        assert_eq!(words(third), ["a", "b"]);
    }

    /// Branches that fork, go on and end in any order have the steps that a copy of each would have.
    #[test]
    fn branches_have_the_steps_of_copies() {
        for seed in 0..2000 {
            let mut dice = uturn_dice::Dice::new(seed);
            let mut branches = vec![(StepLog::default(), Vec::new())];
            let mut number = 0;
            while !branches.is_empty() {
                let at = dice.below(branches.len());
                match dice.below(6) {
                    0 if number < 60 => {
                        let (log, steps) = &mut branches[at];
                        let copy = (log.fork(), steps.clone());
                        branches.push(copy);
                    }
                    1 => {
                        let (log, steps) = branches.swap_remove(at);
                        assert_eq!(words(log), steps, "seed {seed}");
                    }
                    _ => {
                        number += 1;
                        let word = number.to_string();
                        add(&mut branches[at].0, &[&word]);
                        branches[at].1.push(word);
                    }
                }
            }
        }
    }
}
