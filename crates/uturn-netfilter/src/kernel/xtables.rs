//! Runs the chains of an iptables table for a packet.

use uturn_model::{Evidence, StepKind, Supposition, Text};

use super::compile::{CompiledRule, Program};
use super::matching::{Answer, Unknown};
use super::unknown_condition::{self, UnknownCondition};
use super::walk::{Frame, OpenBranches, Tracking, Walk};
use super::{Kernel, MAX_RULES};
use crate::end::{DropReason, EndKind};
use crate::iptables::catalogue::{self, Treatment};
use crate::iptables::{Chain, ConnmarkOp, Policy, Rule, Table, TableKind, Target};
use crate::question::QuestionSubject;

/// The result of a stage.
pub(super) enum StageResult {
    /// The packet continues.
    On,
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
        let passed = loop {
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
        walk.asked += 1;
        if walk.asked > MAX_RULES {
            return RuleResult::LimitReached(running.by(chain, at));
        }
        if compiled.inert {
            return RuleResult::Next;
        }
        let Answer::Yes { odds, unknown } = self.matches(rule, walk) else {
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
            match settle(running, (chain, at), unknown, walk, open, at_limit) {
                Some(true) => {}
                Some(false) => return RuleResult::Next,
                None => return RuleResult::LimitReached(running.by(chain, at)),
            }
        }
        let Some(target) = &rule.target else { return RuleResult::Next };
        let picks = matches!(
            target,
            Target::Jump(_) | Target::Goto(_) | Target::Dnat(_) | Target::Snat(_) | Target::Accept
        );
        if odds < 1.0 {
            walk.randomized = true;
            let mut other = walk.fork();
            other.share = other.share.scaled(1.0 - odds);
            if let Some(frame) = other.frames.last_mut().filter(|_| picks) {
                frame.odds *= 1.0 - odds;
            }
            walk.share = walk.share.scaled(odds);
            open.push(other);
        }
        if picks {
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

    fn carry_out(
        &self,
        running: Running<'_>,
        (chain, at): (usize, usize),
        target: &Target,
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> RuleResult {
        let (rule, compiled, _) = running.rule(chain, at);
        let by = || running.by(chain, at);
        match target {
            Target::Accept => {
                if running.table.kind == TableKind::Filter {
                    walk.note(StepKind::Filter, why(running, rule, walk, "accepted"), by());
                }
                RuleResult::Accept
            }
            Target::Drop => {
                walk.note(StepKind::Drop, why(running, rule, walk, "dropped"), by());
                RuleResult::End(EndKind::Drop(DropReason::Rule(by())))
            }
            Target::Reject(with) => {
                walk.note(StepKind::Reject, why(running, rule, walk, "refused"), by());
                RuleResult::End(EndKind::Reject(*with))
            }
            Target::Return => {
                walk.frames.pop();
                RuleResult::Next
            }
            Target::Jump(_) | Target::Goto(_) => {
                // Compilation has checked that the chain exists.
                let Some(to) = compiled.to() else { return RuleResult::Next };
                if matches!(target, Target::Goto(_)) {
                    walk.frames.pop();
                }
                walk.frames.push(Frame {
                    chain: to,
                    rule: 0,
                    odds: 1.0,
                    caller: Some((chain, at)),
                });
                RuleResult::Next
            }
            Target::Mark { value, mask } => {
                let mark = (walk.packet.mark & !mask) ^ value;
                if mark != walk.packet.mark {
                    let why = why(running, rule, walk, "marked");
                    walk.packet.mark = mark;
                    walk.note(StepKind::Mark, marked(&why, mark), by());
                }
                RuleResult::Next
            }
            Target::Connmark(op) => {
                connmark(*op, walk, by);
                RuleResult::Next
            }
            Target::Dnat(_)
            | Target::Snat(_)
            | Target::Masquerade(_)
            | Target::Redirect(_)
            | Target::Netmap(_) => {
                let why = why(running, rule, walk, "translated");
                match self.bind(target, &why, by(), walk, open) {
                    Ok(()) => RuleResult::Accept,
                    Err(reason) => RuleResult::End(EndKind::Drop(reason)),
                }
            }
            Target::Notrack { .. } => {
                if matches!(walk.tracking, Tracking::NotYet) {
                    walk.tracking = Tracking::Untracked;
                }
                RuleResult::Next
            }
            Target::Tproxy(to) => {
                let mark = (walk.packet.mark & !to.mask) ^ to.value;
                let why = why(running, rule, walk, "given to a proxy");
                walk.packet.mark = mark;
                let port = if to.port == 0 { walk.packet.leg().dst.port() } else { to.port };
                let why = format!(
                    "{why}: for the process that listens on port {port}, with mark {mark:#x}"
                );
                walk.note(StepKind::Mark, why, by());
                walk.suppose(listening(port));
                walk.proxied = true;
                RuleResult::Accept
            }
            Target::Log(_) | Target::Trace => RuleResult::Next,
            // Only later packets are affected by the change.
            Target::Other(extension) if &*extension.name == "SET" => {
                walk.suppose(super::sets::change(extension, walk.packet.family(), &by()));
                RuleResult::Next
            }
            Target::Other(extension) if &*extension.name == "CT" => {
                if extension.words.iter().any(|word| word.starts_with("--zone")) {
                    walk.suppose(one_zone());
                }
                RuleResult::Next
            }
            Target::Other(extension)
                if catalogue::of_target(&extension.name) == Treatment::NoEffect =>
            {
                if let Some(subject) = unknown_condition::changed_by(&extension.name) {
                    walk.facts.forget(subject);
                }
                RuleResult::Next
            }
            // It may let the packet pass, change it or keep it: branches as if it had no effect,
            // and as if it kept the packet.
            Target::Other(extension) => {
                if let Some(passes) = walk.assumed.of_rule(&by()) {
                    let does = if passes { "does nothing" } else { "keeps the packet" };
                    let why = format!("{}: taken for one that {does}", extension.name);
                    walk.note(StepKind::Unknown, why, by());
                    return match passes {
                        true => RuleResult::Next,
                        false => RuleResult::End(EndKind::Drop(DropReason::Rule(by()))),
                    };
                }
                if at_limit {
                    return RuleResult::LimitReached(by());
                }
                let mut kept = walk.fork();
                walk.share = walk.share.split(2);
                kept.share = kept.share.split(2);
                let name = &extension.name;
                let reason = catalogue::of_target(name).reason().unwrap_or("not modelled");
                let why = format!("{name}: {reason}: as if it did nothing");
                walk.note_branch(QuestionSubject::Pass, true, why, by());
                let why = format!("{name}: {reason}: as if it kept the packet");
                kept.note_branch(QuestionSubject::Pass, false, why, by());
                // The copy ends at once, where this table drops the packet.
                std::mem::swap(walk, &mut kept);
                open.push(kept);
                RuleResult::End(EndKind::Drop(DropReason::Rule(by())))
            }
        }
    }
}

/// Decides whether a rule with unknown conditions matches. Branches on conditions that have no
/// answer yet. Returns `None` at the branch limit.
fn settle(
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
    let reason = |condition: &UnknownCondition| {
        unknown_condition::reason_of(&rule.matches[condition.of])
            .unwrap_or("this match is not modelled")
    };
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
            None if at_limit => return None,
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

pub(super) fn listening(port: u16) -> Supposition {
    Supposition {
        about: format!("a transparent proxy on port {port}").into(),
        taken: "it listens".into(),
        because: "without it, the kernel drops the packet here".into(),
        settle: format!("ss -tuln 'sport = :{port}' on the node").into(),
    }
}

fn one_zone() -> Supposition {
    Supposition {
        about: "zones of connection tracking".into(),
        taken: "an answer is looked for in the zone of its connection".into(),
        because: "rules set zones the same way for both directions".into(),
        settle: "conntrack -L -o extended on the node".into(),
    }
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

fn connmark(op: ConnmarkOp, walk: &mut Walk, by: impl Fn() -> Evidence) {
    let mark = walk.packet.mark;
    let Some(connection) = walk.tracking.connection_mut() else { return };
    match op {
        ConnmarkOp::Set { value, mask } => connection.mark = (connection.mark & !mask) ^ value,
        ConnmarkOp::Save { nfmask, ctmask } => {
            connection.mark = (connection.mark & !ctmask) ^ (mark & nfmask);
        }
        ConnmarkOp::Restore { nfmask, ctmask } => {
            let restored = (mark & !nfmask) ^ (connection.mark & ctmask);
            if restored != mark {
                walk.packet.mark = restored;
                let why = format!("the connection's mark is put on it: mark {restored:#x}");
                walk.note(StepKind::Mark, why, by());
            }
        }
    }
}

/// The rule's own comment, else that of the rule that led to its chain.
fn why(running: Running<'_>, rule: &Rule, walk: &Walk, otherwise: &str) -> Text {
    let callers = walk.frames.iter().rev().filter_map(|frame| frame.caller);
    let comments = callers.map(|(chain, at)| running.rule(chain, at).0.comment());
    let comment = std::iter::once(rule.comment()).chain(comments).flatten().next();
    comment.map_or_else(|| otherwise.into(), Text::clone)
}

fn commented(rule: &Rule) -> String {
    rule.comment().map_or_else(String::new, |comment| format!("{comment}: "))
}

/// A reason, and the packet's new mark.
pub(super) fn marked(why: &str, mark: u32) -> Text {
    const BEFORE: &str = ": mark 0x";
    // Equivalent to `format!` without its overhead; every branch of a walk builds it.
    let mut text = String::with_capacity(why.len() + BEFORE.len() + 8);
    text.push_str(why);
    text.push_str(BEFORE);
    let digits = (u32::BITS - mark.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        text.extend(char::from_digit(mark >> (4 * digit) & 0xf, 16));
    }
    text.into()
}

/// `4` for a quarter, `2.5` for two fifths.
pub(super) fn one_in(odds: f64) -> String {
    let text = format!("{:.2}", 1.0 / odds);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
