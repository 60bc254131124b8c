//! Runs nftables chains for a packet.

use uturn_model::{By, Family, StepKind, Supposition, Text};

use super::super::walk::{Frame, OpenBranches, Tracking, Walk};
use super::super::xtables::{StageResult, marked};
use super::super::{Kernel, MAX_RULES};
use super::compile::ip_of;
use super::eval::{NoValue, find};
use super::lookup::Data;
use super::value::{Field, Nat, NatAddress, Op, Test, Value, Verdict};
use crate::iptables::{NatPorts, NatTo, Policy, PortRange, Target};
use crate::kernel::xtables::listening;
use crate::nft::{BaseHook, ChainKind, NatKind, RejectKind};
use crate::packet::{DropReason, EndKind, QuestionSubject, RejectWith, Transport};
use crate::packet_facts::{FactSubject, PacketFact};

/// The result of a step.
enum Done {
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
        let passed = loop {
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
        walk.asked += 1;
        if walk.asked > MAX_RULES {
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
                    match walk.leaves_by((*first, *last)) == Some(!not) {
                        true => Done::On,
                        false => Done::Next,
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
                Op::UnknownCondition(number) => {
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
                            let why = "nobody models this address: as if it stayed";
                            walk.note_unknown(why, by);
                            Done::Accept
                        }
                        _ => {
                            let by = self.nft_by(at.0, at.1);
                            let why = "nobody models this value: as if nothing were set";
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
            Op::Test { .. } | Op::UnknownCondition(_) | Op::Sender { .. } => Done::On,
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
                    RejectKind::TcpReset => matches!(walk.packet.transport, Transport::Tcp { .. }),
                    RejectKind::Icmp => family == Family::V4,
                    RejectKind::Icmpv6 => family == Family::V6,
                    RejectKind::Icmpx => true,
                };
                if !meant {
                    return Err(NoValue::Break);
                }
                let with = reject_with(*kind, code, family);
                walk.note(StepKind::Reject, self.nft_why(at, walk, "refused"), by());
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
                    .nft
                    .added
                    .iter()
                    .any(|(number, there)| number == set && **there == *key.parts())
                {
                    walk.nft.added.push((*set, key.parts().into()));
                }
                Done::On
            }
            Op::Flow(name) => {
                walk.suppose(Supposition {
                    about: format!("the flowtable {name}").into(),
                    taken: "packets of this connection take the way through all rules".into(),
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
                walk.suppose(listening(port));
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

    /// Branches on an unmodelled condition the first time it is evaluated; the copy continues
    /// after the rule. Does not branch if a later condition fails anyway.
    fn branch_on_condition(
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
            let why = format!("nobody models this match: {as_if}");
            walk.note(StepKind::Unknown, why, by.clone());
            walk.nft_answers.push((number, walk.packet.leg(), walk.hook, answer));
            Some(answer)
        });
        match answer {
            Some(true) => Done::On,
            Some(false) => Done::Next,
            None if at_limit => Done::LimitReached,
            None => {
                let mut other = walk.fork();
                let why = "nobody models this match: as if it did not match";
                note_answer(&mut other, number, false, why, (about, &by));
                let why = "nobody models this match: as if it matched";
                note_answer(walk, number, true, why, (about, &by));
                other.nft.generated = None;
                open.push(other);
                Done::On
            }
        }
    }

    /// Whether one of the next conditions fails in any case.
    fn fails_later(&self, ops: &[Op], walk: &mut Walk) -> bool {
        for op in ops {
            match op {
                Op::Test { left, test, .. } => {
                    if matches!(self.holds(left, test, walk), Ok(false) | Err(NoValue::Break)) {
                        return true;
                    }
                }
                Op::UnknownCondition(_) | Op::Sender { .. } => {}
                _ => return false,
            }
        }
        false
    }

    /// Branches on a condition about the sender the first time it is evaluated.
    fn ask_sender(
        &self,
        (fact, not): (PacketFact, bool),
        ops: &[Op],
        (at, step): ((usize, usize), usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
        at_limit: bool,
    ) -> Done {
        // A forwarded packet has no sending process, which ends the rule.
        if !walk.from_here
            || walk.facts.answer(PacketFact::exactly(FactSubject::Socket, 1)) == Some(false)
        {
            return Done::Next;
        }
        let goes_on = |holds: bool| if holds == not { Done::Next } else { Done::On };
        if let Some(holds) = walk.facts.answer(fact) {
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
            branch.share /= 2.0;
            branch.facts.add(fact, holds);
            let why = format!("which process sends it is not known: {}", fact.describe(holds));
            branch.note_branch(QuestionSubject::Sender(fact), holds, why, by.clone());
        }
        other.nft.generated = None;
        open.push(other);
        Done::On
    }

    fn answer(&self, number: u32, walk: &Walk) -> Option<bool> {
        let here = (number, walk.packet.leg(), walk.hook);
        walk.nft_answers
            .iter()
            .find(|(n, l, h, _)| (*n, *l, *h) == here)
            .map(|(.., answer)| *answer)
    }

    /// Branches on an unmodelled action: it has no effect, or it keeps the packet.
    fn branch_on_action(
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
                let why = format!("nobody models {name}: taken for one that {does}");
                walk.note(StepKind::Unknown, why, by.clone());
                match passes {
                    true => Done::On,
                    false => Done::End(EndKind::Drop(DropReason::Rule(by))),
                }
            }
            None if at_limit => Done::LimitReached,
            None => {
                let by = self.nft_by(at.0, at.1);
                let about = QuestionSubject::Pass;
                let mut other = walk.fork();
                let why = format!("nobody models {name}: as if it did nothing");
                note_answer(&mut other, number, true, &why, (about, &by));
                let why = format!("nobody models {name}: as if it kept the packet");
                note_answer(walk, number, false, &why, (about, &by));
                other.nft.generated = None;
                open.push(other);
                Done::End(EndKind::Drop(DropReason::Rule(by)))
            }
        }
    }

    /// Rewrites an address or port without connection tracking.
    fn rewrite(&self, field: Field, number: u128, at: (usize, usize), walk: &mut Walk) -> Done {
        let before = walk.packet.leg();
        let (mut after, v6) = (before, walk.packet.family() == Family::V6);
        match field {
            Field::Source { v6: wanted } if wanted == v6 => after.src.set_ip(ip_of(number, v6)),
            Field::Destination { v6: wanted } if wanted == v6 => {
                after.dst.set_ip(ip_of(number, v6));
            }
            Field::SourcePort(_) => after.src.set_port(number as u16),
            Field::DestinationPort(_) => after.dst.set_port(number as u16),
            _ => return Done::Next,
        }
        walk.packet = walk.packet.with_leg(after);
        let why = self.nft_why(at, walk, "rewritten");
        let step = uturn_model::Step::new(StepKind::Translate, why, self.nft_by(at.0, at.1));
        walk.log.add(step.changing(before, walk.packet.leg()));
        Done::On
    }

    fn translate_nft(
        &self,
        nat: &Nat,
        at: (usize, usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
    ) -> Result<Done, NoValue> {
        let v6 = walk.packet.family() == Family::V6;
        if nat.v6.is_some_and(|wanted| wanted != v6) {
            return Err(NoValue::Break);
        }
        let mut port = nat.port;
        let addresses = match &nat.address {
            NatAddress::Unknown => return Err(NoValue::Unknown),
            NatAddress::None => None,
            NatAddress::Range(first, last) => Some((*first, *last)),
            NatAddress::Map { key, map } => {
                let key = self.key(key, walk)?;
                let lookup = &self.nft.lookups[*map];
                if lookup.unmodelled {
                    return Err(NoValue::Unknown);
                }
                let given = find(lookup, *map, &key, walk).ok_or(NoValue::Break)?;
                let Data::Value(parts) = &given.data else { return Err(NoValue::Unknown) };
                if let Some((first, last)) = parts.get(1) {
                    port = Some((*first as u16, *last as u16));
                }
                parts.first().map(|(first, last)| (ip_of(*first, v6), ip_of(*last, v6)))
            }
        };
        let addresses = match addresses {
            // Only the network part is replaced; the host bits stay.
            Some((first, last)) if nat.prefix => {
                let (first, last) = (super::encode::address(first), super::encode::address(last));
                let old = match nat.kind {
                    NatKind::Snat => walk.packet.src,
                    _ => walk.packet.dst,
                };
                let ip = ip_of(first | (super::encode::address(old) & (first ^ last)), v6);
                Some((ip, ip))
            }
            other => other,
        };
        let ports = port.map(|(first, last)| PortRange { first, last });
        let to =
            NatTo { addresses, ports, random: nat.random, random_fully: false, persistent: false };
        let plain = NatPorts { ports, random: nat.random, random_fully: false };
        let target = match nat.kind {
            NatKind::Dnat => Target::Dnat(to),
            NatKind::Snat => Target::Snat(to),
            NatKind::Masquerade => Target::Masquerade(plain),
            NatKind::Redirect => Target::Redirect(plain),
        };
        let why = self.nft_why(at, walk, "translated");
        walk.nft.generated = None;
        Ok(match self.bind(&target, &why, self.nft_by(at.0, at.1), walk, open) {
            Ok(()) => Done::Accept,
            Err(reason) => Done::End(EndKind::Drop(reason)),
        })
    }

    fn at_end(&self, base: usize, walk: &mut Walk) -> StageResult {
        let (_, chain) = self.nft_chain(base);
        match &chain.base {
            Some(entered) if entered.policy == Policy::Drop => {
                let by = By::new(
                    format!("chain {} {{ … policy drop; }}", chain.name),
                    chain.origin.clone(),
                );
                let why = format!("no rule of {} lets it through", chain.name);
                walk.note(StepKind::Drop, why, by.clone());
                StageResult::End(EndKind::Drop(DropReason::Policy(by)))
            }
            _ => StageResult::On,
        }
    }
}

fn note_answer(
    walk: &mut Walk,
    number: u32,
    answer: bool,
    why: &str,
    (about, by): (QuestionSubject, &By),
) {
    walk.share /= 2.0;
    walk.nft_answers.push((number, walk.packet.leg(), walk.hook, answer));
    walk.note_branch(about, answer, why, by.clone());
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
