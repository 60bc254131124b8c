//! Follows a walk whose branches are merged where they meet in the same state.
//!
//! A rule that decides at random splits a walk in two, and where chains lead to it again and again the
//! branches double each time. They have mostly nothing to tell them apart: so each pauses where others
//! may come by, the one that is furthest behind goes on first, and those at the same place in the same
//! state become one branch with the sum of their shares. It shows the steps of the first of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

use uturn_model::{Evidence, Step, StepKind};

use super::Kernel;
use super::branches::{Branches, OpenBranches};
use super::stages::{self, Followed, Stage};
use super::walk::Walk;
use crate::connection::Connection;
use crate::end::{End, EndKind};
use crate::hash::{FastMap, FastState};
use crate::iptables::TableKind;

/// The number of steps of a branch that was given up that are shown.
const SHOWN: usize = 100;

/// Follows a walk to all of its ends.
pub(super) fn follow(
    kernel: &Kernel,
    first: Box<Walk>,
    known: &[Connection],
    open: &mut OpenBranches,
) -> Vec<End> {
    let mut paused = Paused::default();
    let mut ends = Ends::default();
    paused.add(kernel, first, open);
    while let Some(branches) = paused.furthest_behind() {
        open.paused = paused.len + branches.len();
        for walk in branches {
            open.paused -= 1;
            if let Some(by) = &ends.out_of_budget {
                let by = by.clone();
                ends.give_up(walk, by);
                continue;
            }
            let at_limit = open.is_full(ends.all.len());
            match stages::follow(kernel, walk, known, open, at_limit) {
                Followed::Paused(walk) => paused.add(kernel, walk, open),
                Followed::Ended(walk, kind) => ends.add(walk, kind, open),
                Followed::LimitReached(walk, by) => {
                    // Without room for further branches, others may still end.
                    if !at_limit {
                        ends.out_of_budget = Some(by.clone());
                    }
                    ends.give_up(walk, by);
                }
            }
            while let Some(split_off) = open.pop() {
                paused.add(kernel, split_off, open);
            }
            open.paused = open.paused.max(paused.len);
        }
    }
    ends.all
}

/// Branches that wait for those behind them.
#[derive(Default)]
struct Paused {
    places: BTreeMap<Position, Meeting>,
    len: usize,
    seed: FastState,
}

/// The branches at one place. No two are in the same state.
#[derive(Default)]
struct Meeting {
    branches: Branches,
    by_state: FastMap<u64, Vec<usize>>,
}

impl Paused {
    fn add(&mut self, kernel: &Kernel, mut walk: Box<Walk>, open: &mut OpenBranches) {
        walk.notes.count(&open.lists);
        open.count_pause();
        let mut hasher = self.seed.build_hasher();
        walk.hash_state(&mut hasher);
        let meeting = self.places.entry(Position::of(kernel, &walk)).or_default();
        let alike = meeting.by_state.entry(hasher.finish()).or_default();
        let here = &mut meeting.branches;
        match alike.iter().find(|at| here[**at].is_in_state_of(&walk)) {
            Some(at) => {
                let known = &mut here[*at];
                open.count_comparisons(known.absorb(*walk));
                known.notes.count(&open.lists);
            }
            None => {
                alike.push(here.len());
                here.push(walk);
                self.len += 1;
            }
        }
    }

    /// The branches at the first place.
    fn furthest_behind(&mut self) -> Option<Branches> {
        let (_, meeting) = self.places.pop_first()?;
        self.len -= meeting.branches.len();
        Some(meeting.branches)
    }
}

/// The position of a branch. A branch that goes on only gets further.
#[derive(PartialEq, Eq)]
struct Position {
    /// The number of hooks that the branch has entered, the current hook, and the stage of that
    /// hook.
    stage: (u32, usize, usize),
    /// The rank of each chain that it is in, with the next rule.
    frames: Vec<(u32, usize)>,
    step: usize,
}

impl Position {
    fn of(kernel: &Kernel, walk: &Walk) -> Self {
        let ranks = kernel.chain_ranks(walk);
        let rank = |chain: usize| ranks.and_then(|ranks| ranks.get(chain)).copied().unwrap_or(0);
        Self {
            stage: (walk.entered, walk.hook as usize, walk.stage),
            frames: walk.frames.iter().map(|frame| (rank(frame.chain), frame.rule)).collect(),
            step: walk.nft.at,
        }
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        // A branch in a chain that another has left comes before it; one that has not entered the
        // first chain yet, before both.
        let depth = || match (self.frames.len(), other.frames.len()) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            (own, others) => {
                let both = self.frames.iter().zip(&other.frames);
                let first = both.map(|(own, other)| own.cmp(other)).find(|order| order.is_ne());
                first.unwrap_or_else(|| others.cmp(&own))
            }
        };
        self.stage.cmp(&other.stage).then_with(depth).then_with(|| self.step.cmp(&other.step))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Kernel {
    /// The ranks of the chains that a walk is in; `None` between tables.
    fn chain_ranks(&self, walk: &Walk) -> Option<&[u32]> {
        if walk.frames.is_empty() {
            return None;
        }
        let family = walk.packet.family();
        let table = match self.plan.stages(family, walk.hook).get(walk.stage)? {
            Stage::Table(kind) => *kind,
            Stage::Nat(_) => TableKind::Nat,
            Stage::Nft(_) | Stage::NftNat(..) => return Some(self.nft.ranks()),
            _ => return None,
        };
        Some(self.rules(family).0.table(table)?.ranks())
    }
}

/// The ends of a walk. No two differ in their steps only.
#[derive(Default)]
struct Ends {
    all: Vec<End>,
    by_state: FastMap<u64, Vec<usize>>,
    seed: FastState,
    /// The position of the end that stands for all branches that were given up.
    given_up: Option<usize>,
    /// The rule at which the work of the walk reached its limit.
    out_of_budget: Option<Evidence>,
}

impl Ends {
    fn add(&mut self, walk: Box<Walk>, kind: EndKind, open: &mut OpenBranches) {
        if kind == EndKind::Unsettled {
            self.unsettled(walk);
            return;
        }
        let lists = walk.notes.bytes_of_end();
        let (mut end, log) = walk.end_and_log(kind);
        let state = (end.packet, &end.out, end.next_hop, &end.connection);
        let alike = self.by_state.entry(self.seed.hash_one(state)).or_default();
        let known = alike.iter().find(|at| is_same(&self.all[**at], &end));
        if let Some(known) = known {
            open.count_comparisons(absorb(&mut self.all[*known], end));
            return;
        }
        alike.push(self.all.len());
        if !open.count_end(log.len(), lists) {
            // No room for its steps and answers: nothing is said of how it ends.
            let by = log.latest_evidence();
            self.out_of_budget = by.clone().or_else(|| self.out_of_budget.take());
            let by = by.unwrap_or_else(|| Evidence::kernel("the steps of a walk"));
            alike.pop();
            end.kind = EndKind::Unsettled;
            end.steps = vec![Step::new(StepKind::Unknown, TOO_MUCH, by)];
            self.add_given_up(end);
            return;
        }
        end.steps = log.into_steps();
        self.all.push(end);
    }

    /// Ends a branch at the rule where the work of its walk reached a limit.
    fn give_up(&mut self, mut walk: Box<Walk>, by: Evidence) {
        walk.note_unknown(TOO_MUCH, by);
        self.unsettled(walk);
    }

    fn unsettled(&mut self, walk: Box<Walk>) {
        match self.given_up {
            Some(at) => self.all[at].share += walk.share,
            None => {
                let end = end_of_given_up(walk);
                self.add_given_up(end);
            }
        }
    }

    fn add_given_up(&mut self, end: End) {
        match self.given_up {
            Some(at) => self.all[at].share += end.share,
            None => {
                self.given_up = Some(self.all.len());
                self.all.push(end);
            }
        }
    }
}

/// The reason why a walk ends before the packet does.
pub(super) const TOO_MUCH: &str =
    "too many open questions or too many rules: not followed any further";

/// The end of a branch that was given up. Of very many steps, the first are shown, and the last.
pub(super) fn end_of_given_up(walk: Box<Walk>) -> End {
    let (mut end, log) = walk.end_and_log(EndKind::Unsettled);
    let mut steps = log.into_steps();
    let omitted = steps.len().saturating_sub(SHOWN + 1);
    if omitted > 0 {
        let last = steps.pop();
        let by = steps[SHOWN].by.clone();
        steps.truncate(SHOWN);
        steps.push(Step::new(StepKind::Unknown, format!("{omitted} steps are not shown"), by));
        steps.extend(last);
        steps.shrink_to_fit();
    }
    end.steps = steps;
    end
}

/// Whether two ends are the same, whatever their shares, their steps and what was assumed.
pub(super) fn is_same(one: &End, other: &End) -> bool {
    let End {
        share: _,
        kind,
        packet,
        is_for_node,
        out,
        next_hop,
        connection,
        redrawn_on_retry,
        steps: _,
        unknown: _,
        open_questions,
        supposed: _,
    } = one;
    (kind, packet, is_for_node, out, next_hop, connection, redrawn_on_retry, open_questions)
        == (
            &other.kind,
            &other.packet,
            &other.is_for_node,
            &other.out,
            &other.next_hop,
            &other.connection,
            &other.redrawn_on_retry,
            &other.open_questions,
        )
}

/// Becomes the end of both. Returns how many entries were compared.
fn absorb(known: &mut End, other: End) -> usize {
    known.share += other.share;
    add_missing(&mut known.unknown, other.unknown)
        + add_missing(&mut known.supposed, other.supposed)
}

/// Adds what is not there yet. Returns how many entries were compared.
pub(super) fn add_missing<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) -> usize {
    // Branches that meet have mostly come by the same rules.
    let same = all.iter().zip(&more).take_while(|(own, other)| own == other).count();
    let mut compared = same;
    for item in more.into_iter().skip(same) {
        compared += all.len();
        if !all.contains(&item) {
            all.push(item);
        }
    }
    compared
}

#[cfg(test)]
mod tests;
