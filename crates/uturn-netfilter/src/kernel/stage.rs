//! The stages of a packet's way, in the kernel's order.

use uturn_model::{By, DerivedFrom, Family, Origin};

use super::Kernel;
use super::compile::Hook;
use super::nat::Side;
use super::nft::Rules;
use super::tables::Passed;
use super::walk::{OpenWays, Tracking, Walk};
use crate::gaps::Gap;
use crate::iptables::TableKind;
use crate::nft::{BaseHook, ChainKind};
use crate::packet::{Connection, End, EndKind};

/// One thing that happens in a hook.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// A table's chain of this hook.
    Table(TableKind),
    /// Connection tracking takes the packet up.
    Track,
    /// Translation: the table `nat` for a first packet, what is known for all others.
    Nat(Side),
    /// A base chain of nftables.
    Nft(usize),
    /// The same, of one that translates: for a first packet that is not translated yet.
    NftNat(Side, usize),
    /// A first packet's end is settled, whether it was translated or not.
    Settled(Side),
    /// What changed before here is no reason to route again.
    Remember,
    /// A packet that came in is routed.
    RouteIn,
    /// A packet made here is routed again where its mark or source or destination changed.
    RouteAgain,
    /// The same, where its destination changed.
    RouteTranslated,
    /// IPVS: answers of real servers.
    IpvsAnswer,
    /// IPVS: requests to virtual servers.
    IpvsRequest,
    /// On to another hook, or out of the node.
    Onward,
}

use Stage::*;

/// By priority: raw −300, tracking −200, mangle −150, destination −100, filter 0,
/// security 50, source 100. IPVS stands right before the source in INPUT, at the end of
/// FORWARD, and right after the destination in OUTPUT.
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

/// The stages of all hooks, those of nftables among the others.
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

    fn stages(&self, family: Family, hook: Hook) -> &[Stage] {
        let all = if family == Family::V4 { &self.v4 } else { &self.v6 };
        &all[hook as usize]
    }
}

/// The stages of a hook with the base chains of nftables. One that translates stands with
/// the table `nat` whatever its priority, which only says before or after it. Of equals,
/// those of nftables come first.
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
            // Before the table, or before the end of all that translates.
            let settled = all.iter().position(|stage| matches!(stage, Settled(_)));
            let at = if base.priority <= wanted { at } else { settled.unwrap_or(at + 1) };
            all.insert(at, stage);
            continue;
        }
        let later = |stage: &Stage| {
            !matches!(stage, Nft(_) | NftNat(..)) && priority(*stage, hook) >= base.priority
        };
        // What follows an earlier chain belongs to it.
        let belongs = |at: usize| {
            matches!(all[at], Remember | RouteAgain) && at > 0 && matches!(all[at - 1], Nft(_))
        };
        let found = (0..all.len()).find(|at| later(&all[*at]) && !belongs(*at));
        let mut at = found.unwrap_or(all.len() - 1);
        // What translates first is a part of the table `nat`.
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

/// Follows a walk to its end. Other ways it could have gone are put into `open`; when it
/// is `crowded`, none are, and the walk ends where it would need them.
pub(super) fn follow(
    kernel: &Kernel,
    mut walk: Box<Walk>,
    known: &[Connection],
    open: &mut OpenWays,
    crowded: bool,
) -> End {
    let family = walk.packet.family();
    kernel.suppose_gap(Gap::Rules(family), &mut walk);
    kernel.settle_own(&mut walk, open, crowded);
    if walk.unrouted
        && let Err(kind) = kernel.route_out(&mut walk, open)
    {
        return walk.end(kind);
    }
    loop {
        kernel.settle_own(&mut walk, open, crowded);
        let family = walk.packet.family();
        let stage = kernel.plan.stages(family, walk.hook)[walk.stage];
        let passed = match stage {
            Table(kind) => kernel.pass(kind, &mut walk, open, crowded),
            Nat(side) => kernel.translate(side, &mut walk, open, crowded),
            Nft(chain) => kernel.pass_nft(chain, &mut walk, open, crowded),
            NftNat(side, _) if !super::nat::is_open(side, &walk) => Passed::On,
            NftNat(_, chain) => kernel.pass_nft(chain, &mut walk, open, crowded),
            Settled(side) => {
                super::nat::settle_end(side, &mut walk);
                Passed::On
            }
            Remember => {
                walk.before = walk.packet;
                Passed::On
            }
            Track => {
                kernel.track(&mut walk, known);
                Passed::On
            }
            RouteIn => match kernel.route_in(&mut walk, open) {
                // The next hook begins at its first stage.
                Ok(()) => continue,
                Err(kind) => return walk.end(kind),
            },
            RouteAgain | RouteTranslated => {
                let (now, before) = (&walk.packet, &walk.before);
                let moved = now.dst != before.dst;
                let again =
                    matches!(stage, RouteAgain) && (now.mark, now.src) != (before.mark, before.src);
                walk.before = walk.packet;
                match moved || again || std::mem::take(&mut walk.reroutes) {
                    true => match kernel.route_again(&mut walk, open) {
                        Ok(()) => Passed::On,
                        Err(kind) => Passed::End(kind),
                    },
                    false => Passed::On,
                }
            }
            IpvsRequest if kernel.may_be_virtual(&walk) => {
                let why = "IPVS serves this address, and nothing says whom it gives packets to";
                walk.meet_unknown(
                    why,
                    By::new("virtual servers", Origin::Derived(DerivedFrom::NotCaptured)),
                );
                return walk.end(EndKind::Unsettled);
            }
            // Nothing to do.
            IpvsAnswer | IpvsRequest
                if kernel.state.ipvs.0.is_empty()
                    && known.iter().all(|one| one.scheduled.is_none()) =>
            {
                Passed::On
            }
            // These say themselves where the walk goes on.
            IpvsAnswer => match kernel.answer_virtual(&mut walk, known, open) {
                Ok(()) => continue,
                Err(kind) => return walk.end(kind),
            },
            IpvsRequest => match kernel.schedule(&mut walk, known, open) {
                Ok(()) => continue,
                Err(kind) => return walk.end(kind),
            },
            Onward => match onward(&mut walk) {
                Some(kind) => return walk.end(kind),
                None => continue,
            },
        };
        match passed {
            Passed::On => walk.stage += 1,
            Passed::End(kind) => return walk.end(kind),
            Passed::Crowded(by) => {
                walk.meet_unknown(
                    "too many open questions or too many rules: not followed any further",
                    by,
                );
                return walk.end(EndKind::Unsettled);
            }
        }
    }
}

/// What comes after a hook: another hook, or the end of the way.
fn onward(walk: &mut Walk) -> Option<EndKind> {
    match walk.hook {
        Hook::Input => return Some(EndKind::Local),
        Hook::Forward | Hook::Output => {
            walk.oif = walk.way.as_ref().map(|way| way.dev.clone());
            walk.enter(Hook::Postrouting);
        }
        Hook::Postrouting if walk.way.as_ref().is_some_and(|way| way.local) => {
            // Back in through the loopback interface, as it is: tracked, routed, marked.
            walk.iif = walk.oif.take();
            if let Tracking::New { confirmed, .. } = &mut walk.tracking {
                *confirmed = true;
                walk.thrown = false;
            }
            walk.enter(Hook::Prerouting);
        }
        // PREROUTING ends with a route look-up, which names the next hook itself.
        Hook::Postrouting | Hook::Prerouting => return Some(EndKind::Forward),
    }
    None
}
