//! Runs the chains of an iptables table for a packet.

mod targets;
mod turns;
mod unknown;

use uturn_model::{Evidence, StepKind};

pub(super) use self::targets::{listening, marked};
use self::turns::Turn;
use self::unknown::settle;
use super::Kernel;
use super::compile::{CompiledRule, Program};
use super::matching::{Answer, Unknown};
use super::turns::Counter;
use super::walk::{Frame, OpenBranches, Walk};
use crate::end::{DropReason, EndKind};
use crate::iptables::{Chain, Policy, Rule, Table, TableKind, Target};

/// The result of a stage.
pub(super) enum StageResult {
    /// The packet continues with the next stage.
    On,
    /// The packet continues with the stage that the walk is at: the stage before has set it.
    Moved,
    /// The branch waits within the stage, for others to meet it.
    Paused,
    /// The walk ends.
    End(EndKind),
    /// The walk needs more branches or rules than the limit, at this rule.
    LimitReached(Evidence),
}

/// The result of a rule.
enum RuleResult {
    /// Continue with the next rule.
    Next,
    /// Accepted by this table.
    Accept,
    End(EndKind),
    LimitReached(Evidence),
}

/// A table with its compiled form.
#[derive(Clone, Copy)]
struct Running<'k> {
    table: &'k Table,
    program: &'k Program,
}

impl<'k> Running<'k> {
    fn rule(&self, chain: usize, rule: usize) -> (&'k Rule, &'k CompiledRule, &'k Chain) {
        let chain_of = &self.table.chains[chain];
        (&chain_of.rules[rule], &self.program.chains[chain].rules[rule], chain_of)
    }

    /// The counter of a rule that takes turns.
    fn counter(&self, chain: usize, rule: usize) -> Counter {
        Counter::Iptables(self.table.kind, chain, rule)
    }

    /// A rule as evidence.
    fn by(&self, chain: usize, rule: usize) -> Evidence {
        let (rule, compiled, chain) = self.rule(chain, rule);
        compiled.by(rule, chain).clone()
    }
}

impl Kernel {
    /// Runs the table's chain of the current hook, from the walk's current position.
    pub(super) fn pass(
        &self,
        kind: TableKind,
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> StageResult {
        let (programs, ruleset) = self.rules(walk.packet.family());
        let Some(program) = programs.table(kind) else { return StageResult::On };
        let running = Running { table: &ruleset.tables[program.table], program };
        let Some(base) = program.base(walk.hook) else { return StageResult::On };
        if walk.frames.is_empty() {
            walk.frames.push(Frame { chain: base, rule: 0, odds: 1.0, caller: None });
        }
        let mut before = NOT_YET;
        let passed = loop {
            if open.merges && is_meeting_place(walk, &mut before, open) {
                return StageResult::Paused;
            }
            let Some(frame) = walk.frames.last_mut() else {
                break at_policy(&running.table.chains[base], walk);
            };
            let chain = frame.chain;
            let Some(at) = program.chains[chain].next(frame.rule, &walk.packet) else {
                walk.frames.pop();
                continue;
            };
            frame.rule = at + 1;
            match self.evaluate_rule(running, chain, at, walk, open, at_limit) {
                RuleResult::Next => {}
                RuleResult::Accept => break StageResult::On,
                RuleResult::End(kind) => break StageResult::End(kind),
                RuleResult::LimitReached(by) => break StageResult::LimitReached(by),
            }
        };
        walk.frames.clear();
        passed
    }

    /// Evaluates one rule and carries out its target.
    fn evaluate_rule(
        &self,
        running: Running<'_>,
        chain: usize,
        at: usize,
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> RuleResult {
        let (rule, compiled, chain_of) = running.rule(chain, at);
        if !open.count_rule(walk) {
            return RuleResult::LimitReached(running.by(chain, at));
        }
        if compiled.inert {
            return RuleResult::Next;
        }
        let Answer::Yes { odds, unknown } = self.matches(rule, walk) else {
            if !walk.notes.turns.is_empty() && turns::may_count_in_vain(rule) {
                walk.notes.forget_turn(running.counter(chain, at));
            }
            return RuleResult::Next;
        };
        if let Some(wanted) = rule.out_interface.as_deref()
            && let Some(names) = walk.undecided_out(Some(wanted))
        {
            if at_limit {
                return RuleResult::LimitReached(running.by(chain, at));
            }
            // Both branches evaluate this rule again.
            if let Some(frame) = walk.frames.last_mut() {
                frame.rule = at;
            }
            let other = walk.branch_by_out(names, &wanted.value);
            open.push(other);
            return RuleResult::Next;
        }
        if !unknown.is_none() {
            walk.notes.forget_turn(running.counter(chain, at));
            match settle(self, running, (chain, at), unknown, walk, open, at_limit) {
                Some(true) => {}
                Some(false) => return RuleResult::Next,
                None => return RuleResult::LimitReached(running.by(chain, at)),
            }
        }
        let odds = if odds < 1.0 {
            match self.branch_by_chance(running, (chain, at), (odds, unknown), walk, open) {
                Some(odds) => odds,
                None => return RuleResult::Next,
            }
        } else {
            odds
        };
        let Some(target) = &rule.target else { return RuleResult::Next };
        if is_pick(target) {
            let left =
                walk.frames.last_mut().map_or(1.0, |frame| std::mem::replace(&mut frame.odds, 1.0));
            let odds = left * odds;
            if odds < 1.0 {
                let text =
                    || format!("{}picked one time in {}", commented(rule), one_in(odds)).into();
                let why = compiled.picked(rule, chain_of, odds, text);
                walk.note(StepKind::Balance, why, running.by(chain, at));
            }
        }
        self.carry_out(running, (chain, at), target, walk, open, at_limit)
    }

    /// Branches on a rule that matches with some odds: a copy goes on behind the rule. Returns the odds with
    /// which this branch matches, which are certain where the rule takes turns and its turn is known; `None`
    /// if it does not.
    fn branch_by_chance(
        &self,
        running: Running<'_>,
        (chain, at): (usize, usize),
        (mut odds, unknown): (f64, Unknown),
        walk: &mut Walk,
        open: &mut OpenBranches,
    ) -> Option<f64> {
        let (rule, compiled, _) = running.rule(chain, at);
        let mut turn = None;
        if compiled.counts && running.program.is_met_again(chain) {
            let counter = running.counter(chain, at);
            turn = Turn::of(rule, unknown, walk, counter);
            match &turn {
                Some(turn) => odds = turn.odds,
                None => walk.notes.forget_turn(counter),
            }
            if odds <= 0.0 {
                turn.into_iter().for_each(|turn| turn.passes(walk));
                return None;
            }
        }
        let target = rule.target.as_ref()?;
        if odds < 1.0 {
            walk.randomized = true;
            let mut other = walk.fork();
            other.share = other.share.scaled(1.0 - odds);
            if let Some(frame) = other.frames.last_mut().filter(|_| is_pick(target)) {
                frame.odds *= 1.0 - odds;
            }
            walk.share = walk.share.scaled(odds);
            if let Some(turn) = &turn {
                turn.passes(&mut other);
            }
            open.push(other);
        }
        if let Some(turn) = &turn {
            turn.matches(walk);
        }
        Some(odds)
    }
}

/// Whether a target decides where the packet goes, so that its odds are told.
fn is_pick(target: &Target) -> bool {
    matches!(
        target,
        Target::Jump(_) | Target::Goto(_) | Target::Dnat(_) | Target::Snat(_) | Target::Accept
    )
}

/// The number of splits and the depth in chains of a walk that has just come to a stage.
pub(super) const NOT_YET: (usize, usize) = (usize::MAX, 0);

/// Whether other branches may come by where a walk is now: it was split, or has left a chain, since it
/// had split so often and was so deep in chains.
pub(super) fn is_meeting_place(
    walk: &Walk,
    before: &mut (usize, usize),
    open: &OpenBranches,
) -> bool {
    let now = (open.splits(), walk.frames.len());
    let (splits, depth) = std::mem::replace(before, now);
    now.1 > 0 && (now.0 > splits || now.1 < depth)
}

fn at_policy(base: &Chain, walk: &mut Walk) -> StageResult {
    match base.policy {
        Some(Policy::Drop) => {
            let by =
                Evidence::IptablesPolicy { chain: base.name.clone(), origin: base.origin.clone() };
            walk.note(
                StepKind::Drop,
                format!("no rule of {} lets it through", base.name),
                by.clone(),
            );
            StageResult::End(EndKind::Drop(DropReason::Policy(by)))
        }
        Some(Policy::Accept) | None => StageResult::On,
    }
}

fn commented(rule: &Rule) -> String {
    rule.comment().map_or_else(String::new, |comment| format!("{comment}: "))
}

/// `4` for a quarter, `2.5` for two fifths.
pub(super) fn one_in(odds: f64) -> String {
    let text = format!("{:.2}", 1.0 / odds);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
