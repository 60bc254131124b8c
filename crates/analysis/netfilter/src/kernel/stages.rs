//! The stages that a packet traverses, in the kernel's order.

use uturn_model::{Evidence, Family};

use super::Kernel;
use super::compile::Hook;
use super::nat::Side;
use super::nft::Rules;
use super::walk::{OpenBranches, Tracking, Walk};
use super::xtables::StageResult;
use crate::capture_gaps::CaptureGap;
use crate::connection::Connection;
use crate::end::EndKind;
use crate::iptables::TableKind;
use crate::nft::{BaseHook, ChainKind};

/// One operation within a hook.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// The table's chain of this hook.
    Table(TableKind),
    /// Connection tracking.
    Track,
    /// NAT: the table `nat` for the first packet of a connection, its conntrack entry for all
    /// others.
    Nat(Side),
    /// An nftables base chain.
    Nft(usize),
    /// An nftables base chain of type nat, for first packets that are not translated yet.
    NftNat(Side, usize),
    /// Makes one end of a first packet final, whether it was translated or not.
    Settled(Side),
    /// Records the packet, so that earlier changes do not cause rerouting.
    Remember,
    /// Routes an incoming packet.
    RouteIn,
    /// Reroutes a locally generated packet if its mark, source or destination changed.
    RouteAgain,
    /// Reroutes a locally generated packet if its destination changed.
    RouteTranslated,
    /// IPVS: replies of real servers.
    IpvsAnswer,
    /// IPVS: requests to virtual servers.
    IpvsRequest,
    /// Enters the next hook or leaves the node.
    Onward,
}

use Stage::*;

/// By priority: raw −300, conntrack −200, mangle −150, dstnat −100, filter 0, security 50, srcnat
/// 100. IPVS runs right before srcnat in INPUT, at the end of FORWARD, and right after dstnat in
/// OUTPUT.
fn stages(hook: Hook) -> &'static [Stage] {
    match hook {
        Hook::Prerouting => &[
            Table(TableKind::Raw),
            Track,
            Table(TableKind::Mangle),
            Nat(Side::Destination),
            Settled(Side::Destination),
            RouteIn,
        ],
        Hook::Input => &[
            Table(TableKind::Mangle),
            Table(TableKind::Filter),
            Table(TableKind::Security),
            IpvsAnswer,
            IpvsRequest,
            Nat(Side::Source),
            Settled(Side::Source),
            Onward,
        ],
        Hook::Forward => &[
            Table(TableKind::Mangle),
            Table(TableKind::Filter),
            Table(TableKind::Security),
            IpvsAnswer,
            Onward,
        ],
        Hook::Output => &[
            Table(TableKind::Raw),
            Track,
            Remember,
            Table(TableKind::Mangle),
            RouteAgain,
            Nat(Side::Destination),
            Settled(Side::Destination),
            RouteTranslated,
            IpvsAnswer,
            IpvsRequest,
            Table(TableKind::Filter),
            Table(TableKind::Security),
            Onward,
        ],
        Hook::Postrouting => {
            &[Table(TableKind::Mangle), Nat(Side::Source), Settled(Side::Source), Onward]
        }
    }
}

/// The stages of all hooks, including nftables base chains.
#[derive(Debug, Default)]
pub(super) struct Plan {
    v4: [Vec<Stage>; 5],
    v6: [Vec<Stage>; 5],
}

impl Plan {
    pub(super) fn new(rules: &Rules) -> Self {
        let of = |family| Hook::ALL.map(|hook| merged(hook, family, rules));
        Self { v4: of(Family::V4), v6: of(Family::V6) }
    }

    pub(super) fn stages(&self, family: Family, hook: Hook) -> &[Stage] {
        let all = if family == Family::V4 { &self.v4 } else { &self.v6 };
        &all[hook as usize]
    }
}

/// Merges nftables base chains into the stages of a hook. Base chains of type nat run next to the
/// table `nat`; their priority only decides whether before or after it. At equal priority,
/// nftables runs first.
fn merged(hook: Hook, family: Family, rules: &Rules) -> Vec<Stage> {
    let mut all = stages(hook).to_vec();
    let named = match hook {
        Hook::Prerouting => BaseHook::Prerouting,
        Hook::Input => BaseHook::Input,
        Hook::Forward => BaseHook::Forward,
        Hook::Output => BaseHook::Output,
        Hook::Postrouting => BaseHook::Postrouting,
    };
    for base in rules.bases(family, named) {
        if base.kind == ChainKind::Nat {
            let nat = all.iter().position(|stage| matches!(stage, Nat(_)));
            let Some((at, Nat(side))) = nat.map(|at| (at, all[at])) else { continue };
            let (wanted, stage) = (priority(Nat(side), hook), NftNat(side, base.chain));
            // Before the table, or before the end of NAT.
            let settled = all.iter().position(|stage| matches!(stage, Settled(_)));
            let at = if base.priority <= wanted { at } else { settled.unwrap_or(at + 1) };
            all.insert(at, stage);
            continue;
        }
        let later = |stage: &Stage| {
            !matches!(stage, Nft(_) | NftNat(..)) && priority(*stage, hook) >= base.priority
        };
        // A stage after an earlier chain belongs to that chain.
        let belongs = |at: usize| {
            matches!(all[at], Remember | RouteAgain) && at > 0 && matches!(all[at - 1], Nft(_))
        };
        let found = (0..all.len()).find(|at| later(&all[*at]) && !belongs(*at));
        let mut at = found.unwrap_or(all.len() - 1);
        // A nat chain that comes first is part of the table `nat`.
        while at > 0 && matches!(all[at - 1], NftNat(..)) {
            at -= 1;
        }
        let routes = base.kind == ChainKind::Route;
        let after = match hook {
            Hook::Output if routes => Some(RouteAgain),
            Hook::Output => Some(Remember),
            _ => None,
        };
        all.splice(at..at, [Nft(base.chain)].into_iter().chain(after));
    }
    let outside = match hook {
        Hook::Prerouting => Some((0, BaseHook::Ingress)),
        Hook::Postrouting => Some((all.len() - 1, BaseHook::Egress)),
        _ => None,
    };
    if let Some((at, named)) = outside {
        all.splice(at..at, rules.bases(family, named).into_iter().map(|base| Nft(base.chain)));
    }
    all
}

fn priority(stage: Stage, hook: Hook) -> i32 {
    match stage {
        Table(TableKind::Raw) => -300,
        Track => -200,
        Remember | RouteAgain | Table(TableKind::Mangle) => -150,
        Nat(Side::Destination) | Settled(Side::Destination) | RouteTranslated => -100,
        IpvsAnswer | IpvsRequest if hook == Hook::Output => -99,
        Table(TableKind::Filter) | Nft(_) | NftNat(..) => 0,
        Table(TableKind::Security) => 50,
        IpvsAnswer | IpvsRequest => 98,
        Table(TableKind::Nat) | Nat(Side::Source) | Settled(Side::Source) => 100,
        RouteIn | Onward => i32::MAX,
    }
}

/// The result of following a branch.
#[derive(Debug)]
pub(super) enum Followed {
    /// To its end.
    Ended(Box<Walk>, EndKind),
    /// To a place where other branches may meet it.
    Paused(Box<Walk>),
    /// To a rule for which the walk would need more branches or work than its limits.
    LimitReached(Box<Walk>, Evidence),
}

/// Walks one branch to its end, or to the next place where others may meet it if branches are merged.
/// Pushes other branches to `open`; if `at_limit`, pushes none and stops where a branch would be
/// needed.
pub(super) fn follow(
    kernel: &Kernel,
    mut walk: Box<Walk>,
    known: &[Connection],
    open: &mut OpenBranches,
    at_limit: bool,
) -> Followed {
    let family = walk.packet.family();
    kernel.suppose_gap(CaptureGap::Rules(family), &mut walk);
    kernel.decide_own(&mut walk, open, at_limit);
    if walk.unrouted
        && let Err(kind) = kernel.route_out(&mut walk, open)
    {
        return Followed::Ended(walk, kind);
    }
    loop {
        kernel.decide_own(&mut walk, open, at_limit);
        let family = walk.packet.family();
        let stage = kernel.plan.stages(family, walk.hook)[walk.stage];
        let passed = match stage {
            Table(kind) => kernel.pass(kind, &mut walk, open, at_limit),
            Nat(side) => kernel.translate(side, &mut walk, open, at_limit),
            Nft(chain) => kernel.run_nft_chain(chain, &mut walk, open, at_limit),
            NftNat(side, _) if !super::nat::is_open(side, &walk) => StageResult::On,
            NftNat(_, chain) => kernel.run_nft_chain(chain, &mut walk, open, at_limit),
            Settled(side) => {
                super::nat::settle_end(side, &mut walk);
                StageResult::On
            }
            Remember => {
                walk.before = walk.packet;
                StageResult::On
            }
            Track => {
                kernel.track(&mut walk, known);
                StageResult::On
            }
            RouteIn => match kernel.route_in(&mut walk, open) {
                Ok(()) => StageResult::Moved,
                Err(kind) => return Followed::Ended(walk, kind),
            },
            RouteAgain | RouteTranslated => {
                let (now, before) = (&walk.packet, &walk.before);
                let moved = now.dst != before.dst;
                let again =
                    matches!(stage, RouteAgain) && (now.mark, now.src) != (before.mark, before.src);
                walk.before = walk.packet;
                if moved || again || std::mem::take(&mut walk.reroutes) {
                    match kernel.route_again(&mut walk, open) {
                        Ok(()) => StageResult::On,
                        Err(kind) => StageResult::End(kind),
                    }
                } else {
                    StageResult::On
                }
            }
            IpvsRequest if kernel.may_be_virtual(&walk) => {
                let why = "IPVS serves this address, and its real servers are not known";
                walk.note_unknown(why, Evidence::not_captured("virtual servers"));
                return Followed::Ended(walk, EndKind::Unsettled);
            }
            // No effect without virtual servers.
            IpvsAnswer | IpvsRequest
                if kernel.state.ipvs.0.is_empty()
                    && known.iter().all(|connection| connection.scheduled.is_none()) =>
            {
                StageResult::On
            }
            IpvsAnswer => match kernel.answer_virtual(&mut walk, known, open) {
                Ok(()) => StageResult::Moved,
                Err(kind) => return Followed::Ended(walk, kind),
            },
            IpvsRequest => match kernel.schedule(&mut walk, known, open) {
                Ok(()) => StageResult::Moved,
                Err(kind) => return Followed::Ended(walk, kind),
            },
            Onward => match onward(&mut walk) {
                Some(kind) => return Followed::Ended(walk, kind),
                None => StageResult::Moved,
            },
        };
        match passed {
            StageResult::On => walk.stage += 1,
            StageResult::Moved => {}
            StageResult::End(kind) => return Followed::Ended(walk, kind),
            StageResult::Paused => return Followed::Paused(walk),
            StageResult::LimitReached(by) => return Followed::LimitReached(walk, by),
        }
        if open.merges {
            return Followed::Paused(walk);
        }
    }
}

/// Enters the hook after this one, or returns how the walk ends.
fn onward(walk: &mut Walk) -> Option<EndKind> {
    match walk.hook {
        Hook::Input => return Some(EndKind::Local),
        Hook::Forward | Hook::Output => {
            walk.oif = walk.route.as_ref().map(|way| way.dev.clone());
            walk.enter(Hook::Postrouting);
        }
        Hook::Postrouting if walk.route.as_ref().is_some_and(|way| way.local) => {
            // Looped back through `lo`, with its conntrack entry, route and mark.
            walk.iif = walk.oif.take();
            if let Tracking::New { confirmed, .. } = &mut walk.tracking {
                *confirmed = true;
                walk.randomized = false;
            }
            walk.enter(Hook::Prerouting);
        }
        // PREROUTING ends with a route lookup, which selects the next hook.
        Hook::Postrouting | Hook::Prerouting => return Some(EndKind::Forward),
    }
    None
}
