//! Branches on numbers that change from packet to packet (`numgen`, `jhash`, `symhash`), each
//! branch with its share.

use uturn_model::{Assumption, Share, StepKind, Text};

use super::super::Kernel;
use super::super::turns::{Counter, Numbers};
use super::super::walk::{OpenBranches, Walk};
use super::super::xtables::one_in;
use super::NumberRange;
use super::value::{GeneratedNumber, Nat, NatAddress, Op, Test, Value};

/// Up to this many numbers are followed one by one; more only if ranges of them are treated
/// alike.
const MAX_NUMBERS: u64 = 256;

impl Kernel {
    /// Branches on the number: the walk takes the first range, copies take the others. Returns
    /// false if that is not possible.
    pub(super) fn branch_by_number(
        &self,
        number: GeneratedNumber,
        op: &Op,
        (at, step): ((usize, usize), usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> bool {
        let texts = &self.nft.chains[at.0].rules[at.1].texts.ranges;
        let known = texts.get().filter(|(known, _)| *known == step);
        let made;
        let ranges = match known {
            Some((_, ranges)) => ranges,
            None => {
                let Some(ranges) = self.ranges(number, op, at) else {
                    walk.note_unknown("too many numbers to follow", self.nft_by(at.0, at.1));
                    return false;
                };
                made = ranges.into_boxed_slice();
                // If a rule has several such steps, only the ranges of the first are cached.
                texts.get_or_init(|| (step, made.clone()));
                &made
            }
        };
        if number.counts && self.nft.is_met_again(at.0) {
            return self.branch_by_turn(number, ranges, (at, step), walk, open, at_limit);
        }
        if at_limit && ranges.len() > 1 {
            return false;
        }
        if number.hashed && ranges.len() > 1 {
            walk.assume(Assumption {
                subject: "the numbers that rules work out of a packet (jhash, symhash)".into(),
                assumed: "each is as likely as any other".into(),
                because: "the kernel's hash is not computed here".into(),
                settle: "a capture on the node".into(),
            });
        }
        let take = |branch: &mut Walk, range: &NumberRange| {
            branch.share *= range.share;
            branch.nft.generated = Some(range.number);
            // A hash is the same for all packets of a connection.
            branch.randomized |= !number.hashed && range.share < Share::ALL;
            if range.share < Share::ALL {
                branch.note(StepKind::Balance, range.why.clone(), self.nft_by(at.0, at.1));
            }
        };
        for range in &ranges[1..] {
            let mut other = walk.fork();
            take(&mut other, range);
            resume_at(&mut other, at.1, step);
            open.push(other);
        }
        take(walk, &ranges[0]);
        true
    }

    /// Branches in the same way for a counter that the walk may visit again.
    fn branch_by_turn(
        &self,
        number: GeneratedNumber,
        ranges: &[NumberRange],
        (at, step): ((usize, usize), usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> bool {
        let (counter, modulus) = (Counter::Nft(at.0, at.1, step), number.modulus);
        let now = walk.notes.turns.now(counter, modulus);
        let met = ranges.iter().flat_map(|range| {
            let start = (range.number - u128::from(number.offset)) as u64;
            now.within(modulus, start, start + range.count).map(move |numbers| (range, numbers))
        });
        let met: Vec<(&NumberRange, Numbers)> = met.collect();
        let Some((first, others)) = met.split_first() else { return false };
        if at_limit && !others.is_empty() {
            return false;
        }
        let take = |branch: &mut Walk, (range, numbers): &(&NumberRange, Numbers)| {
            let share = now.share_of(*numbers);
            branch.share *= share;
            branch.nft.generated = Some(range.number);
            branch.notes.turns.met(counter, modulus, *numbers);
            if share < Share::ALL {
                branch.randomized = true;
                branch.note(StepKind::Balance, self.picked(share, at), self.nft_by(at.0, at.1));
            }
        };
        for one in others {
            let mut other = walk.fork();
            take(&mut other, one);
            resume_at(&mut other, at.1, step);
            open.push(other);
        }
        take(walk, first);
        true
    }

    fn picked(&self, share: Share, at: (usize, usize)) -> Text {
        format!("{}picked one time in {}", self.comment_of(at), one_in(share.get())).into()
    }

    /// The ranges of numbers that a step treats alike, with their shares; `None` if there are too
    /// many.
    fn ranges(
        &self,
        number: GeneratedNumber,
        op: &Op,
        at: (usize, usize),
    ) -> Option<Vec<NumberRange>> {
        let (first, end) =
            (u128::from(number.offset), u128::from(number.offset) + u128::from(number.modulus));
        let is_turn = |key: &[Value]| matches!(key, [Value::GeneratedNumber(_)]);
        let borders = match op {
            Op::Vmap { key, map, .. } if is_turn(key) => Some(self.nft.lookups[*map].borders()),
            Op::Mark(Value::Map { key, map })
            | Op::CtMark(Value::Map { key, map })
            | Op::Nat(Nat { address: NatAddress::Map { key, map }, .. })
                if is_turn(key) =>
            {
                Some(self.nft.lookups[*map].borders())
            }
            Op::Test { left, test, .. } if is_turn(left) => match test {
                Test::Within { first, last, .. } => Some(vec![*first, last.saturating_add(1)]),
                Test::In { set, .. } => Some(self.nft.lookups[*set].borders()),
                Test::Bits { .. } => None,
            },
            _ => None,
        };
        let mut starts = match borders {
            Some(borders) => borders,
            None if number.modulus <= MAX_NUMBERS => (first..end).collect(),
            None => return None,
        };
        starts.push(first);
        starts.retain(|start| (first..end).contains(start));
        starts.sort_unstable();
        starts.dedup();
        let ends = starts[1..].iter().copied().chain([end]);
        let range = |(start, end): (&u128, u128)| {
            let count = (end - start) as u64;
            let share = Share::ratio(count as f64, number.modulus as f64);
            NumberRange { share, number: *start, count, why: self.picked(share, at) }
        };
        Some(starts.iter().zip(ends).map(range).collect())
    }
}

/// A branch goes on at a step of the rule that it was split at.
fn resume_at(branch: &mut Walk, rule: usize, step: usize) {
    branch.nft.at = step;
    if let Some(frame) = branch.frames.last_mut() {
        frame.rule = rule;
    }
}
