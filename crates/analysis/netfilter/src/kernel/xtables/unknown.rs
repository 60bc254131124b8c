//! Whether a rule matches where some of its conditions have no answer.

use uturn_model::StepKind;

use super::Running;
use crate::kernel::Kernel;
use crate::kernel::matching::Unknown;
use crate::kernel::unknown_condition::UnknownCondition;
use crate::kernel::walk::{OpenBranches, Walk};
use crate::question::QuestionSubject;

/// Decides whether a rule with unknown conditions matches. Branches on conditions that have no
/// answer yet. Returns `None` at the branch limit.
pub(super) fn settle(
    kernel: &Kernel,
    running: Running<'_>,
    (chain, at): (usize, usize),
    unknown: Unknown,
    walk: &mut Walk,
    open: &mut OpenBranches,
    at_limit: bool,
) -> Option<bool> {
    let (rule, compiled, _) = running.rule(chain, at);
    let mut left: Vec<&UnknownCondition> = Vec::new();
    for condition in
        running.program.asked(compiled).iter().filter(|condition| unknown.has(condition.of))
    {
        match condition.known(walk) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => left.push(condition),
        }
    }
    let by = running.by(chain, at);
    let reason = |condition: &UnknownCondition| kernel.reason_of(&rule.matches[condition.of]);
    // An assumption answers for the rule as a whole, except for its sender conditions.
    let plain = |condition: &&UnknownCondition| condition.sender().is_none();
    if left.iter().any(plain)
        && let Some(taken) = walk.assumed.of_rule(&by)
    {
        let as_if = if taken { "taken to match" } else { "taken not to match" };
        let first = left
            .iter()
            .find(|condition| plain(condition))
            .map_or("", |condition| reason(condition));
        walk.note(StepKind::Unknown, format!("{first}: {as_if}"), by.clone());
        let single = left.len() == 1;
        left.retain(|condition| {
            if plain(condition) && (taken || single) {
                condition.take(taken, walk);
            }
            !plain(condition)
        });
        if !taken {
            return Some(false);
        }
    }
    for condition in left {
        // The answer to an earlier condition may imply this one.
        match condition.known(walk) {
            Some(true) => continue,
            Some(false) => return Some(false),
            None if at_limit || walk.rests_on_many_answers() => return None,
            None => {}
        }
        let mut other = walk.fork();
        for (branch, met) in [(&mut *walk, true), (&mut other, false)] {
            branch.share = branch.share.split(2);
            condition.take(met, branch);
            let holds = met != condition.not;
            let (about, holds, as_if) = match (condition.sender(), met) {
                (Some(fact), _) => (QuestionSubject::Sender(fact), holds, fact.describe(holds)),
                (None, true) => (QuestionSubject::Match, true, "as if it matched".to_owned()),
                (None, false) => {
                    (QuestionSubject::Match, false, "as if it did not match".to_owned())
                }
            };
            let why = format!("{}: {as_if}", reason(condition));
            branch.note_branch(about, holds, why, by.clone());
        }
        open.push(other);
    }
    Some(true)
}
