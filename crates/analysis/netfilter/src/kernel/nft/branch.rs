//! Branches a walk on nftables conditions and actions whose result is unknown.

use uturn_model::{Evidence, StepKind};

use super::super::Kernel;
use super::super::walk::{OpenBranches, Walk};
use super::eval::NoValue;
use super::run::Done;
use super::value::Op;
use crate::end::{DropReason, EndKind};
use crate::packet_facts::{FactSubject, PacketFact};
use crate::question::QuestionSubject;

impl Kernel {
    /// Branches on an unmodelled condition the first time it is evaluated; the copy continues
    /// after the rule. Does not branch if a later condition fails anyway.
    pub(super) fn branch_on_condition(
        &self,
        number: u32,
        ops: &[Op],
        (at, step): ((usize, usize), usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> Done {
        if self.fails_later(&ops[step + 1..], walk) {
            return Done::Next;
        }
        let (by, about) = (self.nft_by(at.0, at.1), QuestionSubject::Match);
        let answer = self.answer(number, walk).or_else(|| {
            let answer = walk.assumed.of_rule(&by)?;
            let as_if = if answer { "taken to match" } else { "taken not to match" };
            let why = format!("this match is not modelled: {as_if}");
            walk.note(StepKind::Unknown, why, by.clone());
            walk.notes.nft_answers.push((number, walk.packet.leg(), walk.hook, answer));
            Some(answer)
        });
        match answer {
            Some(true) => Done::On,
            Some(false) => Done::Next,
            None if at_limit || walk.rests_on_many_answers() => Done::LimitReached,
            None => {
                let mut other = walk.fork();
                let why = "this match is not modelled: as if it did not match";
                note_answer(&mut other, number, false, why, (about, &by));
                let why = "this match is not modelled: as if it matched";
                note_answer(walk, number, true, why, (about, &by));
                other.nft.generated = None;
                open.push(other);
                Done::On
            }
        }
    }

    /// Whether one of the next conditions fails in any case.
    pub(super) fn fails_later(&self, ops: &[Op], walk: &mut Walk) -> bool {
        for op in ops {
            match op {
                Op::Test { left, test, .. } => {
                    if matches!(self.holds(left, test, walk), Ok(false) | Err(NoValue::Break)) {
                        return true;
                    }
                }
                op if op.is_condition() => {}
                _ => return false,
            }
        }
        false
    }

    /// Branches on a condition about the sender the first time it is evaluated.
    pub(super) fn ask_sender(
        &self,
        (fact, not): (PacketFact, bool),
        ops: &[Op],
        (at, step): ((usize, usize), usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> Done {
        // A forwarded packet and a refusal have no sending process, which ends the rule.
        if !walk.from_here
            || walk.packet.is_refusal()
            || walk.notes.facts.answer(PacketFact::exactly(FactSubject::Socket, 1)) == Some(false)
        {
            return Done::Next;
        }
        let goes_on = |holds: bool| if holds == not { Done::Next } else { Done::On };
        if let Some(holds) = walk.notes.facts.answer(fact) {
            return goes_on(holds);
        }
        if self.fails_later(&ops[step + 1..], walk) {
            return Done::Next;
        }
        if at_limit {
            return Done::LimitReached;
        }
        let by = self.nft_by(at.0, at.1);
        let mut other = walk.fork();
        for (branch, holds) in [(&mut *walk, !not), (&mut *other, not)] {
            branch.share = branch.share.split(2);
            branch.notes.facts.add(fact, holds);
            let why = format!("which process sends it is not known: {}", fact.describe(holds));
            branch.note_branch(QuestionSubject::Sender(fact), holds, why, by.clone());
        }
        other.nft.generated = None;
        open.push(other);
        Done::On
    }

    fn answer(&self, number: u32, walk: &Walk) -> Option<bool> {
        let here = (number, walk.packet.leg(), walk.hook);
        walk.notes
            .nft_answers
            .iter()
            .find(|(n, l, h, _)| (*n, *l, *h) == here)
            .map(|(.., answer)| *answer)
    }

    /// Branches on an unmodelled action: it has no effect, or it keeps the packet.
    pub(super) fn branch_on_action(
        &self,
        number: u32,
        name: &str,
        at: (usize, usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> Done {
        match self.answer(number, walk) {
            Some(_) => Done::On,
            None if let Some(passes) = walk.assumed.of_rule(&self.nft_by(at.0, at.1)) => {
                let by = self.nft_by(at.0, at.1);
                let does = if passes { "does nothing" } else { "keeps the packet" };
                let why = format!("{name} is not modelled: taken for one that {does}");
                walk.note(StepKind::Unknown, why, by.clone());
                if passes { Done::On } else { Done::End(EndKind::Drop(DropReason::Rule(by))) }
            }
            None if at_limit || walk.rests_on_many_answers() => Done::LimitReached,
            None => {
                let by = self.nft_by(at.0, at.1);
                let about = QuestionSubject::Pass;
                let mut other = walk.fork();
                let why = format!("{name} is not modelled: as if it did nothing");
                note_answer(&mut other, number, true, &why, (about, &by));
                let why = format!("{name} is not modelled: as if it kept the packet");
                note_answer(walk, number, false, &why, (about, &by));
                other.nft.generated = None;
                open.push(other);
                Done::End(EndKind::Drop(DropReason::Rule(by)))
            }
        }
    }
}

fn note_answer(
    walk: &mut Walk,
    number: u32,
    answer: bool,
    why: &str,
    (about, by): (QuestionSubject, &Evidence),
) {
    walk.share = walk.share.split(2);
    walk.notes.nft_answers.push((number, walk.packet.leg(), walk.hook, answer));
    walk.note_branch(about, answer, why, by.clone());
}
