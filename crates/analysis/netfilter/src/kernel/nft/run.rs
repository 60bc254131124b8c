//! Runs nftables chains for a packet.

use uturn_model::{Assumption, Evidence, Family, StepKind, Text};

use super::super::Kernel;
use super::super::partial_matches::no_limit_reached;
use super::super::walk::{Frame, OpenBranches, Tracking, Walk};
use super::super::xtables::{NOT_YET, StageResult, is_meeting_place, marked};
use super::eval::{NoValue, find};
use super::lookup::Data;
use super::value::{Field, Op, Test, Value, Verdict};
use crate::end::{DropReason, EndKind, RejectWith};
use crate::iptables::Policy;
use crate::kernel::compile::Hook;
use crate::kernel::xtables::listening;
use crate::nft::{BaseHook, ChainKind, RejectKind};
use crate::packet::{IpProtocol, Transport};

/// The result of a step.
pub(super) enum Done {
    /// Continue within the rule.
    On,
    /// Continue with the next rule to evaluate, in whichever chain.
    Next,
    /// Accepted by this base chain.
    Accept,
    End(EndKind),
    LimitReached,
}

impl Kernel {
    /// Runs a base chain, from the walk's current position.
    pub(in crate::kernel) fn run_nft_chain(
        &self,
        base: usize,
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> StageResult {
        if !self.is_for_device(base, walk) {
            return StageResult::On;
        }
        if walk.frames.is_empty() {
            walk.nft.label = None;
            walk.frames.push(Frame { chain: base, rule: 0, odds: 1.0, caller: None });
        }
        let mut before = NOT_YET;
        let passed = loop {
            if open.merges && is_meeting_place(walk, &mut before, open) {
                return StageResult::Paused;
            }
            let Some(frame) = walk.frames.last_mut() else { break self.at_end(base, walk) };
            let chain = frame.chain;
            // Continue within the rule even if its index key no longer fits the changed packet.
            let next = match walk.nft.at {
                0 => self.nft.chains[chain].next(frame.rule, &walk.packet),
                _ => Some(frame.rule),
            };
            let Some(at) = next else {
                walk.frames.pop();
                continue;
            };
            frame.rule = at + 1;
            match self.evaluate_nft_rule(base, (chain, at), walk, open, at_limit) {
                Done::On | Done::Next => {}
                Done::Accept => break StageResult::On,
                Done::End(kind) => break StageResult::End(kind),
                Done::LimitReached => break StageResult::LimitReached(self.nft_by(chain, at)),
            }
        };
        walk.frames.clear();
        passed
    }

    fn is_for_device(&self, base: usize, walk: &Walk) -> bool {
        let Some(entered) = &self.nft_chain(base).1.base else { return true };
        let device = match entered.hook {
            BaseHook::Ingress => walk.iif.as_deref(),
            BaseHook::Egress => walk.route.as_ref().map(|branch| &*branch.dev),
            _ => return true,
        };
        device.is_some_and(|device| entered.devices.iter().any(|name| &**name == device))
    }

    /// Evaluates one rule.
    fn evaluate_nft_rule(
        &self,
        base: usize,
        at: (usize, usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> Done {
        if !open.count_rule(walk) {
            return Done::LimitReached;
        }
        let ops = &self.nft.chains[at.0].rules[at.1].ops;
        let mut step = std::mem::take(&mut walk.nft.at);
        while let Some(op) = ops.get(step) {
            if let Some((names, interface_name)) = self.asks_out(op, walk) {
                if self.fails_later(&ops[step + 1..], walk) {
                    return Done::Next;
                }
                if at_limit {
                    return Done::LimitReached;
                }
                let mut other = walk.branch_by_out(names, &interface_name);
                other.nft.at = step;
                if let Some(frame) = other.frames.last_mut() {
                    frame.rule = at.1;
                }
                open.push(other);
            }
            let done = match op {
                Op::Test { left, test: Test::Within { not, first, last }, .. }
                    if walk.out_is_unknown()
                        && matches!(left.as_slice(), [Value::Field(Field::OutInterface)])
                        && walk.leaves_by((*first, *last)).is_some() =>
                {
                    if walk.leaves_by((*first, *last)) == Some(!not) {
                        Done::On
                    } else {
                        Done::Next
                    }
                }
                Op::Test { left, test, number } => match self.holds(left, test, walk) {
                    Ok(true) => Done::On,
                    Ok(false) | Err(NoValue::Break) => Done::Next,
                    Err(NoValue::Unknown) => {
                        self.branch_on_condition(*number, ops, (at, step), walk, open, at_limit)
                    }
                    Err(NoValue::GeneratedNumber(turn)) => {
                        if !self.branch_by_number(turn, op, (at, step), walk, open, at_limit) {
                            return Done::LimitReached;
                        }
                        continue;
                    }
                },
                Op::Limit { over, .. } if walk.assumed.is_ordinary() => {
                    walk.assume(no_limit_reached());
                    if *over { Done::Next } else { Done::On }
                }
                Op::UnknownCondition(number) | Op::Limit { number, .. } => {
                    self.branch_on_condition(*number, ops, (at, step), walk, open, at_limit)
                }
                Op::Sender { fact, not } => {
                    self.ask_sender((*fact, *not), ops, (at, step), walk, open, at_limit)
                }
                _ => match self.act(base, op, at, walk, open, at_limit) {
                    Ok(done) => done,
                    Err(NoValue::Break) => Done::Next,
                    Err(NoValue::Unknown) => match op {
                        Op::Vmap { number, .. } => {
                            self.branch_on_action(*number, "this map", at, walk, open, at_limit)
                        }
                        Op::Nat(_) => {
                            let by = self.nft_by(at.0, at.1);
                            let why = "this address is not modelled: as if it stayed";
                            walk.note_unknown(why, by);
                            Done::Accept
                        }
                        _ => {
                            let by = self.nft_by(at.0, at.1);
                            let why = "this value is not modelled: as if nothing were set";
                            walk.note_unknown(why, by);
                            Done::On
                        }
                    },
                    Err(NoValue::GeneratedNumber(turn)) => {
                        if !self.branch_by_number(turn, op, (at, step), walk, open, at_limit) {
                            return Done::LimitReached;
                        }
                        continue;
                    }
                },
            };
            walk.nft.generated = None;
            match done {
                Done::On => step += 1,
                // By name and not as `other`: copying the rare result costs time on every rule.
                Done::Next => return Done::Next,
                Done::Accept => return Done::Accept,
                other @ (Done::End(_) | Done::LimitReached) => return other,
            }
        }
        walk.nft.generated = None;
        Done::Next
    }

    /// The outgoing interfaces that a condition requires, if that is undecided, with their name
    /// for people.
    fn asks_out(&self, op: &Op, walk: &Walk) -> Option<((u128, u128), String)> {
        let Op::Test { left, test: Test::Within { first, last, .. }, .. } = op else { return None };
        let [Value::Field(Field::OutInterface)] = left.as_slice() else { return None };
        let names = (*first, *last);
        if !walk.out_is_unknown() || walk.leaves_by(names).is_some() {
            return None;
        }
        let bytes = first.to_be_bytes();
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let mut interface_name = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if first != last {
            interface_name.push('*');
        }
        Some((names, interface_name))
    }

    /// Carries out an action.
    fn act(
        &self,
        base: usize,
        op: &Op,
        at: (usize, usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> Result<Done, NoValue> {
        let by = || self.nft_by(at.0, at.1);
        Ok(match op {
            Op::Test { .. } | Op::UnknownCondition(_) | Op::Limit { .. } | Op::Sender { .. } => {
                Done::On
            }
            Op::Verdict(verdict) => self.decide(base, *verdict, at, None, walk),
            Op::Vmap { key, map, .. } => {
                let key = self.key(key, walk)?;
                let lookup = &self.nft.lookups[*map];
                if lookup.unmodelled {
                    return Err(NoValue::Unknown);
                }
                let given = find(lookup, *map, &key, walk).ok_or(NoValue::Break)?;
                let Data::Verdict(verdict) = given.data else { return Err(NoValue::Unknown) };
                self.decide(base, verdict, at, given.comment.as_ref(), walk)
            }
            Op::Mark(value) => {
                let mark = self.value(value, walk)? as u32;
                if mark != walk.packet.mark {
                    let why = self.nft_why(at, walk, "marked");
                    walk.packet.mark = mark;
                    walk.note(StepKind::Mark, marked(&why, mark), by());
                }
                Done::On
            }
            Op::CtMark(value) => {
                let mark = self.value(value, walk)? as u32;
                if let Some(connection) = walk.tracking.connection_mut() {
                    connection.mark = mark;
                }
                Done::On
            }
            Op::Header { field, value } => {
                let number = self.value(value, walk)?;
                self.rewrite(*field, number, at, walk)
            }
            Op::Nat(nat) => self.translate_nft(nat, at, walk, open)?,
            Op::Reject(kind, code) => {
                let family = walk.packet.family();
                // nft lists such a rule without its condition on the protocol.
                let meant = match kind {
                    RejectKind::TcpReset => walk.packet.protocol() == IpProtocol::TCP,
                    RejectKind::Icmp => family == Family::V4,
                    RejectKind::Icmpv6 => family == Family::V6,
                    RejectKind::Icmpx => true,
                };
                if !meant {
                    return Err(NoValue::Break);
                }
                let with = reject_with(*kind, code, family);
                walk.note(StepKind::Reject, self.nft_why(at, walk, "refused"), by());
                if walk.hook == Hook::Prerouting {
                    self.route_refusal(walk);
                }
                Done::End(EndKind::Reject(with.ok_or(NoValue::Unknown)?))
            }
            Op::Notrack => {
                // After conntrack, invalid packets are not tracked.
                if matches!(walk.tracking, Tracking::NotYet | Tracking::Invalid) {
                    walk.tracking = Tracking::Untracked;
                }
                Done::On
            }
            Op::Add { set, key } => {
                let key = self.key(key, walk)?;
                if !walk
                    .notes
                    .added
                    .iter()
                    .any(|(number, there)| number == set && **there == *key.parts())
                {
                    walk.notes.added.push((*set, key.parts().into()));
                }
                Done::On
            }
            Op::Flow(name) => {
                walk.assume(Assumption {
                    subject: format!("the flowtable {name}").into(),
                    assumed: "packets of this connection take the way through all rules".into(),
                    because: "a connection is put into a flowtable by its later packets".into(),
                    settle: "conntrack -L on the node, which marks such connections OFFLOAD".into(),
                });
                Done::On
            }
            Op::Proxy { v6, port } => {
                let v6 = v6.unwrap_or(walk.packet.dst.is_ipv6()) == walk.packet.dst.is_ipv6();
                let transport = walk.packet.transport;
                if !v6 || !matches!(transport, Transport::Tcp { .. } | Transport::Udp { .. }) {
                    return Err(NoValue::Break);
                }
                let port = port.unwrap_or(transport.ports().1);
                let why = self.nft_why(at, walk, "given to a proxy");
                let why = format!("{why}: for the process that listens on port {port}");
                walk.note(StepKind::Mark, why, by());
                walk.assume(listening(port));
                walk.proxied = true;
                Done::On
            }
            Op::UnknownAction(number, name) => {
                self.branch_on_action(*number, name, at, walk, open, at_limit)
            }
        })
    }

    fn decide(
        &self,
        base: usize,
        verdict: Verdict,
        at: (usize, usize),
        label: Option<&Text>,
        walk: &mut Walk,
    ) -> Done {
        if label.is_some() {
            walk.nft.label = label.cloned();
        }
        let by = || self.nft_by(at.0, at.1);
        match verdict {
            Verdict::Continue => Done::On,
            Verdict::Accept => {
                let entered = self.nft.chains[base].base.as_ref();
                if entered.is_none_or(|entered| entered.kind == ChainKind::Filter) {
                    walk.note(StepKind::Filter, self.nft_why(at, walk, "accepted"), by());
                }
                Done::Accept
            }
            Verdict::Drop => {
                walk.note(StepKind::Drop, self.nft_why(at, walk, "dropped"), by());
                Done::End(EndKind::Drop(DropReason::Rule(by())))
            }
            Verdict::Return => {
                walk.frames.pop();
                Done::Next
            }
            Verdict::Jump(chain) | Verdict::Goto(chain) => {
                if matches!(verdict, Verdict::Goto(_)) {
                    walk.frames.pop();
                }
                walk.frames.push(Frame { chain, rule: 0, odds: 1.0, caller: Some(at) });
                Done::Next
            }
        }
    }

    fn at_end(&self, base: usize, walk: &mut Walk) -> StageResult {
        let (_, chain) = self.nft_chain(base);
        match &chain.base {
            Some(entered) if entered.policy == Policy::Drop => {
                let by = Evidence::Nftables {
                    rule: format!("chain {} {{ … policy drop; }}", chain.name).into(),
                    origin: chain.origin.clone(),
                };
                let why = format!("no rule of {} lets it through", chain.name);
                walk.note(StepKind::Drop, why, by.clone());
                StageResult::End(EndKind::Drop(DropReason::Policy(by)))
            }
            _ => StageResult::On,
        }
    }
}

fn reject_with(kind: RejectKind, code: &str, family: Family) -> Option<RejectWith> {
    use RejectWith::*;
    let v4 = || {
        Some(match code {
            "net-unreachable" => IcmpNetUnreachable,
            "host-unreachable" => IcmpHostUnreachable,
            "prot-unreachable" => IcmpProtoUnreachable,
            "port-unreachable" => IcmpPortUnreachable,
            "net-prohibited" => IcmpNetProhibited,
            "host-prohibited" => IcmpHostProhibited,
            "admin-prohibited" => IcmpAdminProhibited,
            _ => return None,
        })
    };
    let v6 = || {
        Some(match code {
            "no-route" => Icmp6NoRoute,
            "admin-prohibited" => Icmp6AdmProhibited,
            "addr-unreachable" => Icmp6AddrUnreachable,
            "port-unreachable" => Icmp6PortUnreachable,
            "policy-fail" => Icmp6PolicyFail,
            "reject-route" => Icmp6RejectRoute,
            _ => return None,
        })
    };
    match (kind, family, code) {
        (RejectKind::TcpReset, ..) => Some(TcpReset),
        (RejectKind::Icmp, ..) => v4(),
        (RejectKind::Icmpv6, ..) => v6(),
        (RejectKind::Icmpx, Family::V4, "no-route") => Some(IcmpNetUnreachable),
        (RejectKind::Icmpx, Family::V6, "host-unreachable") => Some(Icmp6AddrUnreachable),
        (RejectKind::Icmpx, Family::V4, _) => v4(),
        (RejectKind::Icmpx, Family::V6, _) => v6(),
    }
}
