//! Leads a packet through one table's chains.

use uturn_model::{By, StepKind};

use super::compile::{CompiledRule, Hook, Program};
use super::matching::Answer;
use super::walk::{Frame, Tracking, Walk};
use super::{Kernel, MOST_RULES};
use crate::iptables::{Chain, ConnmarkOp, Policy, Rule, Table, TableKind, Target};
use crate::packet::{DropReason, EndKind};

/// How a packet came out of a stage.
pub(super) enum Passed {
    /// It goes on.
    On,
    /// It does not.
    End(EndKind),
    /// There are too many ways, or too many rules, to go on from this rule.
    Crowded(By),
}

/// What a rule did to the packet.
enum Done {
    /// On with the next rule.
    Next,
    /// Out of this table.
    Accept,
    End(EndKind),
    Crowded(By),
}

/// A table with its program.
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
    fn by(&self, chain: usize, rule: usize) -> By {
        let (rule, compiled, chain) = self.rule(chain, rule);
        compiled.by(rule, chain).clone()
    }
}

/// Targets that change nothing that decides a packet's way.
const HARMLESS: [&str; 19] = [
    "AUDIT",
    "CHECKSUM",
    "CLASSIFY",
    "CONNSECMARK",
    "CT",
    "DSCP",
    "ECN",
    "HL",
    "HMARK",
    "IDLETIMER",
    "LED",
    "RATEEST",
    "SECMARK",
    "SET",
    "TCPMSS",
    "TEE",
    "TOS",
    "TTL",
    "TCPOPTSTRIP",
];

impl Kernel {
    /// Leads a packet through the chain of its hook, from where it stands.
    pub(super) fn pass(
        &self,
        kind: TableKind,
        walk: &mut Walk,
        open: &mut Vec<Walk>,
        crowded: bool,
    ) -> Passed {
        let (programs, ruleset) = self.rules(walk.packet.family());
        let Some(program) = programs.table(kind) else { return Passed::On };
        let running = Running { table: &ruleset.tables[program.table], program };
        let Some(base) = program.base(walk.hook) else { return Passed::On };
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
            match self.meet(running, chain, at, walk, open, crowded) {
                Done::Next => {}
                Done::Accept => break Passed::On,
                Done::End(kind) => break Passed::End(kind),
                Done::Crowded(by) => break Passed::Crowded(by),
            }
        };
        walk.frames.clear();
        passed
    }

    /// Asks one rule, and does what it says.
    fn meet(
        &self,
        running: Running<'_>,
        chain: usize,
        at: usize,
        walk: &mut Walk,
        open: &mut Vec<Walk>,
        crowded: bool,
    ) -> Done {
        let (rule, compiled, _) = running.rule(chain, at);
        walk.asked += 1;
        if walk.asked > MOST_RULES {
            return Done::Crowded(running.by(chain, at));
        }
        let Some(target) = &rule.target else { return Done::Next };
        if matches!(target, Target::Log(_) | Target::Trace) {
            return Done::Next;
        }
        let Answer::Yes { odds, unmodelled } = self.matches(rule, walk) else { return Done::Next };
        if unmodelled {
            match settle(running, (chain, at), compiled.unmodelled, walk, open, crowded) {
                Some(true) => {}
                Some(false) => return Done::Next,
                None => return Done::Crowded(running.by(chain, at)),
            }
        }
        let picks = matches!(
            target,
            Target::Jump(_) | Target::Goto(_) | Target::Dnat(_) | Target::Snat(_) | Target::Accept
        );
        if odds < 1.0 {
            let mut other = walk.clone();
            other.share *= 1.0 - odds;
            if let Some(frame) = other.frames.last_mut().filter(|_| picks) {
                frame.odds *= 1.0 - odds;
            }
            walk.share *= odds;
            open.push(other);
        }
        if picks {
            let left =
                walk.frames.last_mut().map_or(1.0, |frame| std::mem::replace(&mut frame.odds, 1.0));
            if left * odds < 1.0 {
                let why = format!("{}picked one time in {}", commented(rule), one_in(left * odds));
                walk.note(StepKind::Balance, why, running.by(chain, at));
            }
        }
        self.carry_out(running, (chain, at), target, walk, open, crowded)
    }

    fn carry_out(
        &self,
        running: Running<'_>,
        (chain, at): (usize, usize),
        target: &Target,
        walk: &mut Walk,
        open: &mut Vec<Walk>,
        crowded: bool,
    ) -> Done {
        let (rule, compiled, _) = running.rule(chain, at);
        let by = || running.by(chain, at);
        match target {
            Target::Accept => {
                if running.table.kind == TableKind::Filter {
                    walk.note(StepKind::Filter, why(running, rule, walk, "accepted"), by());
                }
                Done::Accept
            }
            Target::Drop => {
                walk.note(StepKind::Drop, why(running, rule, walk, "dropped"), by());
                Done::End(EndKind::Drop(DropReason::Rule(by())))
            }
            Target::Reject(with) => {
                walk.note(StepKind::Reject, why(running, rule, walk, "refused"), by());
                Done::End(EndKind::Reject(*with))
            }
            Target::Return => {
                walk.frames.pop();
                Done::Next
            }
            Target::Jump(_) | Target::Goto(_) => {
                // Compiling has made sure that the chain is there.
                let Some(to) = compiled.to else { return Done::Next };
                if matches!(target, Target::Goto(_)) {
                    walk.frames.pop();
                }
                walk.frames.push(Frame {
                    chain: to,
                    rule: 0,
                    odds: 1.0,
                    caller: Some((chain, at)),
                });
                Done::Next
            }
            Target::Mark { value, mask } => {
                let mark = (walk.packet.mark & !mask) ^ value;
                if mark != walk.packet.mark {
                    let why = why(running, rule, walk, "marked");
                    walk.packet.mark = mark;
                    walk.note(StepKind::Mark, format!("{why}: mark {mark:#x}"), by());
                }
                Done::Next
            }
            Target::Connmark(op) => {
                connmark(*op, walk, by);
                Done::Next
            }
            Target::Dnat(_) | Target::Snat(_) | Target::Masquerade(_) | Target::Redirect(_) => {
                let why = why(running, rule, walk, "translated");
                match self.bind(target, &why, by(), walk, open) {
                    Ok(()) => Done::Accept,
                    Err(reason) => Done::End(EndKind::Drop(reason)),
                }
            }
            Target::Notrack { .. } => {
                if matches!(walk.tracking, Tracking::NotYet) {
                    walk.tracking = Tracking::Untracked;
                }
                Done::Next
            }
            Target::Log(_) | Target::Trace => Done::Next,
            Target::Other(extension) if HARMLESS.contains(&&*extension.name) => Done::Next,
            // It may let the packet pass, change it or keep it: followed as if it did
            // nothing, and as if it kept it.
            Target::Other(extension) => {
                if crowded {
                    return Done::Crowded(by());
                }
                let mut kept = walk.clone();
                walk.share /= 2.0;
                kept.share /= 2.0;
                let name = &extension.name;
                walk.meet_unknown(format!("nobody models {name}: as if it did nothing"), by());
                kept.meet_unknown(format!("nobody models {name}: as if it kept the packet"), by());
                // The copy ends at once, where this table would drop it.
                std::mem::swap(walk, &mut kept);
                open.push(kept);
                Done::End(EndKind::Drop(DropReason::Rule(by())))
            }
        }
    }
}

/// Whether a rule with matches that nobody models is taken as matching. The first time,
/// both: the copy goes the other way.
fn settle(
    running: Running<'_>,
    (chain, at): (usize, usize),
    unmodelled: Option<u32>,
    walk: &mut Walk,
    open: &mut Vec<Walk>,
    crowded: bool,
) -> Option<bool> {
    let number = unmodelled.unwrap_or(u32::MAX);
    let leg = walk.packet.leg();
    let same = |(n, l, h, _): &&(u32, _, Hook, bool)| (*n, *l, *h) == (number, leg, walk.hook);
    if let Some((.., taken)) = walk.taken.iter().find(same) {
        return Some(*taken);
    }
    if crowded {
        return None;
    }
    let mut other = walk.clone();
    for (one, taken) in [(&mut *walk, true), (&mut other, false)] {
        one.share /= 2.0;
        one.taken.push((number, leg, one.hook, taken));
        let why = if taken {
            "nobody models this match: as if it matched"
        } else {
            "nobody models this match: as if it did not match"
        };
        one.meet_unknown(why, running.by(chain, at));
    }
    open.push(other);
    Some(true)
}

fn at_policy(base: &Chain, walk: &mut Walk) -> Passed {
    match base.policy {
        Some(Policy::Drop) => {
            let by = By::new(format!(":{} DROP", base.name), base.origin.clone());
            walk.note(
                StepKind::Drop,
                format!("no rule of {} lets it through", base.name),
                by.clone(),
            );
            Passed::End(EndKind::Drop(DropReason::Policy(by)))
        }
        Some(Policy::Accept) | None => Passed::On,
    }
}

fn connmark(op: ConnmarkOp, walk: &mut Walk, by: impl Fn() -> By) {
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

/// A rule's own comment, else that of the rule that led to its chain.
fn why(running: Running<'_>, rule: &Rule, walk: &Walk, otherwise: &str) -> String {
    let callers = walk.frames.iter().rev().filter_map(|frame| frame.caller);
    let comments = callers.map(|(chain, at)| running.rule(chain, at).0.comment());
    let comment = std::iter::once(rule.comment()).chain(comments).flatten().next();
    comment.map_or_else(|| otherwise.to_owned(), |comment| comment.to_string())
}

fn commented(rule: &Rule) -> String {
    rule.comment().map_or_else(String::new, |comment| format!("{comment}: "))
}

/// `4` for a quarter, `2.5` for two fifths.
fn one_in(odds: f64) -> String {
    let text = format!("{:.2}", 1.0 / odds);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
