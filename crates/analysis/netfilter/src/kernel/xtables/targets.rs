//! The actions of a rule on a packet that it matches.

use uturn_model::{Assumption, Evidence, StepKind, Text};

use super::{RuleResult, Running};
use crate::end::{DropReason, EndKind};
use crate::iptables::catalogue::{self, Treatment};
use crate::iptables::{ConnmarkOp, Rule, TableKind, Target};
use crate::kernel::walk::{Frame, OpenBranches, Tracking, Walk};
use crate::kernel::{Kernel, sets, unknown_condition};
use crate::question::QuestionSubject;

impl Kernel {
    pub(super) fn carry_out(
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
                walk.assume(listening(port));
                walk.proxied = true;
                RuleResult::Accept
            }
            Target::Log(_) | Target::Trace => RuleResult::Next,
            // Only later packets are affected by the change.
            Target::Other(extension) if &*extension.name == "SET" => {
                walk.assume(sets::change(extension, walk.packet.family(), &by()));
                RuleResult::Next
            }
            Target::Other(extension) if &*extension.name == "CT" => {
                if extension.words.iter().any(|word| word.starts_with("--zone")) {
                    walk.assume(one_zone());
                }
                RuleResult::Next
            }
            Target::Other(extension)
                if catalogue::of_target(&extension.name) == Treatment::NoEffect =>
            {
                if let Some(subject) = unknown_condition::changed_by(&extension.name) {
                    walk.notes.facts.forget(subject);
                }
                RuleResult::Next
            }
            // The target may let the packet pass, change it or keep it: the walk branches as if the
            // target had no effect, and as if it kept the packet.
            Target::Other(extension) => {
                if let Some(passes) = walk.assumed.of_rule(&by()) {
                    let does = if passes { "does nothing" } else { "keeps the packet" };
                    let why = format!("{}: taken for one that {does}", extension.name);
                    walk.note(StepKind::Unknown, why, by());
                    return if passes {
                        RuleResult::Next
                    } else {
                        RuleResult::End(EndKind::Drop(DropReason::Rule(by())))
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

pub(in crate::kernel) fn listening(port: u16) -> Assumption {
    Assumption {
        subject: format!("a transparent proxy on port {port}").into(),
        assumed: "it listens".into(),
        because: "without it, the kernel drops the packet here".into(),
        settle: format!("ss -tuln 'sport = :{port}' on the node").into(),
    }
}

fn one_zone() -> Assumption {
    Assumption {
        subject: "zones of connection tracking".into(),
        assumed: "an answer is looked for in the zone of its connection".into(),
        because: "rules set zones the same way for both directions".into(),
        settle: "conntrack -L -o extended on the node".into(),
    }
}

/// The rule's own comment, else that of the rule that led to its chain.
fn why(running: Running<'_>, rule: &Rule, walk: &Walk, otherwise: &str) -> Text {
    let callers = walk.frames.iter().rev().filter_map(|frame| frame.caller);
    let comments = callers.map(|(chain, at)| running.rule(chain, at).0.comment());
    let comment = std::iter::once(rule.comment()).chain(comments).flatten().next();
    comment.map_or_else(|| otherwise.into(), Text::clone)
}

/// A reason, and the packet's new mark.
pub(in crate::kernel) fn marked(why: &str, mark: u32) -> Text {
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
