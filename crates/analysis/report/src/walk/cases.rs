//! Removes questions that do not matter from the cases that lead to one end.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::Case;

/// Drops questions that do not matter: a case and the same case with one answer reversed lead to
/// the same end.
pub(super) fn reduce(cases: &mut Vec<Vec<Case>>) {
    let mut known = Known::new(std::mem::take(cases));
    let mut at = 0;
    while at < known.cases.len() {
        match known.partners(at).into_iter().min() {
            None => at += 1,
            // The case has changed, and so one before it has a partner now.
            Some((first, reversed)) if first < at => {
                known.join(first, at, reversed);
                at = first;
            }
            Some((second, reversed)) => known.join(at, second, reversed),
        }
    }
    *cases = known.into_cases();
}

/// The answer that is reversed between two cases; `None` if the cases are equal.
type Reversed = Option<usize>;

/// The answers of a case, by number.
type Answers = Vec<usize>;

/// Cases that can be looked up by their answers.
struct Known {
    /// All distinct answers of the cases.
    answers: Vec<Case>,
    /// For each answer, the reversed answers to the same question.
    reverse: Vec<Vec<usize>>,
    /// The hash of each answer. The hash of a case is the sum of its answers'.
    hashes: Vec<u64>,
    /// The cases; `None` for one that was joined with another.
    cases: Vec<Option<Answers>>,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl Known {
    fn new(cases: Vec<Vec<Case>>) -> Self {
        let mut numbers: HashMap<Case, usize> = HashMap::new();
        let mut answers: Vec<Case> = Vec::new();
        let mut numbered = Vec::with_capacity(cases.len());
        for case in cases {
            let mut own: Answers = Vec::with_capacity(case.len());
            for answer in case {
                let number = *numbers.entry(answer).or_insert_with_key(|answer| {
                    answers.push(answer.clone());
                    answers.len() - 1
                });
                own.push(number);
            }
            numbered.push(Some(own));
        }
        let mut by_question: HashMap<(&str, bool), Vec<usize>> = HashMap::new();
        for (number, answer) in answers.iter().enumerate() {
            by_question.entry((&answer.question, answer.holds)).or_default().push(number);
        }
        let reversed =
            |answer: &Case| by_question.get(&(&*answer.question, !answer.holds)).cloned();
        let reverse = answers.iter().map(|answer| reversed(answer).unwrap_or_default()).collect();
        let seed = RandomState::new();
        let hashes = (0..answers.len()).map(|number| seed.hash_one(number)).collect();
        let by_hash = HashMap::new();
        let mut known = Self { answers, reverse, hashes, cases: numbered, by_hash };
        for at in 0..known.cases.len() {
            known.list(at);
        }
        known
    }

    fn hash(&self, at: usize) -> u64 {
        let answers = self.cases[at].iter().flatten();
        answers.fold(0, |sum, answer| sum.wrapping_add(self.hashes[*answer]))
    }

    fn list(&mut self, at: usize) {
        self.by_hash.entry(self.hash(at)).or_default().push(at);
    }

    fn unlist(&mut self, at: usize) {
        let hash = self.hash(at);
        if let Some(alike) = self.by_hash.get_mut(&hash) {
            alike.retain(|other| *other != at);
        }
    }

    /// Returns the cases that are equal to this one, or differ from it in one reversed answer.
    fn partners(&self, at: usize) -> Vec<(usize, Reversed)> {
        let Some(answers) = &self.cases[at] else { return Vec::new() };
        let hash = self.hash(at);
        let mut found = Vec::new();
        let mut look = |hash: u64, changed: Option<(usize, usize)>| {
            for other in self.by_hash.get(&hash).into_iter().flatten() {
                if *other != at && self.is_with(*other, answers, changed) {
                    found.push((*other, changed.map(|(answer, _)| answer)));
                }
            }
        };
        look(hash, None);
        for answer in answers {
            let without = hash.wrapping_sub(self.hashes[*answer]);
            for reversed in &self.reverse[*answer] {
                look(without.wrapping_add(self.hashes[*reversed]), Some((*answer, *reversed)));
            }
        }
        found
    }

    /// Returns whether a case has these answers, with one changed.
    fn is_with(&self, at: usize, answers: &Answers, changed: Option<(usize, usize)>) -> bool {
        let mut own = self.cases[at].clone().unwrap_or_default();
        let mut wanted: Answers = answers
            .iter()
            .map(|answer| match changed {
                Some((before, after)) if before == *answer => after,
                _ => *answer,
            })
            .collect();
        own.sort_unstable();
        wanted.sort_unstable();
        own == wanted
    }

    /// Joins a case with a later one.
    fn join(&mut self, at: usize, other: usize, reversed: Reversed) {
        self.unlist(other);
        self.cases[other] = None;
        let Some(reversed) = reversed else { return };
        self.unlist(at);
        let answers = &self.answers;
        if let Some(own) = &mut self.cases[at] {
            own.retain(|kept| answers[*kept].question != answers[reversed].question);
        }
        self.list(at);
    }

    fn into_cases(self) -> Vec<Vec<Case>> {
        let cases = self.cases.into_iter().flatten();
        cases
            .map(|answers| answers.into_iter().map(|answer| self.answers[answer].clone()).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(answers: &[(usize, bool)]) -> Vec<Case> {
        let answer = |(number, holds): &(usize, bool)| Case {
            rule: format!("rule {number}"),
            question: format!("question {number}"),
            holds: *holds,
            words: format!("{number} is {holds}"),
        };
        answers.iter().map(answer).collect()
    }

    fn reduced(cases: &[Vec<(usize, bool)>]) -> Vec<Vec<(usize, bool)>> {
        let mut reduced: Vec<_> = cases.iter().map(|answers| case(answers)).collect();
        reduce(&mut reduced);
        let number = |case: &Case| case.rule["rule ".len()..].parse().unwrap_or_default();
        reduced
            .iter()
            .map(|case| case.iter().map(|case| (number(case), case.holds)).collect())
            .collect()
    }

    #[test]
    fn answers_that_do_not_matter_are_dropped() {
        let both = [vec![(1, true), (2, true)], vec![(2, true), (1, false)]];
        assert_eq!(reduced(&both), [vec![(2, true)]]);
        let twice = [vec![(1, true), (2, true)], vec![(2, true), (1, true)]];
        assert_eq!(reduced(&twice), [vec![(1, true), (2, true)]]);
        let apart = [vec![(1, true), (2, true)], vec![(1, false), (2, false)], vec![(3, true)]];
        assert_eq!(reduced(&apart), apart);
        // The last two become one that goes with the first.
        let chain = [vec![(1, true)], vec![(1, false), (2, true)], vec![(1, false), (2, false)]];
        assert_eq!(reduced(&chain), [Vec::new()]);
    }

    #[test]
    fn many_cases_that_each_exclude_those_before_become_one() {
        let count = 400;
        let mut cases: Vec<Vec<(usize, bool)>> = (0..count)
            .map(|last| (0..=last).map(|number| (number, number == last)).collect())
            .collect();
        cases.push((0..count).map(|number| (number, false)).collect());
        assert_eq!(reduced(&cases), [Vec::new()]);
        cases.pop();
        assert_eq!(reduced(&cases), cases, "one is missing");
    }
}
