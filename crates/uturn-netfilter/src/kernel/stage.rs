//! The stages of a packet's way, in the kernel's order.

use super::Kernel;
use super::compile::Hook;
use super::nat::Side;
use super::tables::Passed;
use super::walk::{Tracking, Walk};
use crate::iptables::TableKind;
use crate::packet::{Connection, End, EndKind};

/// One thing that happens in a hook.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// A table's chain of this hook.
    Table(TableKind),
    /// Connection tracking takes the packet up.
    Track,
    /// Translation: the table `nat` for a first packet, what is known for all others.
    Nat(Side),
    /// A packet that came in is routed.
    RouteIn,
    /// A packet made here is routed again where its mark or source or destination changed.
    RouteAgain,
    /// The same, where its destination changed.
    RouteTranslated,
    /// On to another hook, or out of the node.
    Onward,
}

use Stage::*;

/// By priority: raw −300, tracking −200, mangle −150, destination −100, filter 0,
/// security 50, source 100.
fn stages(hook: Hook) -> &'static [Stage] {
    match hook {
        Hook::Prerouting => &[
            Table(TableKind::Raw),
            Track,
            Table(TableKind::Mangle),
            Nat(Side::Destination),
            RouteIn,
        ],
        Hook::Input => &[
            Table(TableKind::Mangle),
            Table(TableKind::Filter),
            Table(TableKind::Security),
            Nat(Side::Source),
            Onward,
        ],
        Hook::Forward => &[
            Table(TableKind::Mangle),
            Table(TableKind::Filter),
            Table(TableKind::Security),
            Onward,
        ],
        Hook::Output => &[
            Table(TableKind::Raw),
            Track,
            Table(TableKind::Mangle),
            RouteAgain,
            Nat(Side::Destination),
            RouteTranslated,
            Table(TableKind::Filter),
            Table(TableKind::Security),
            Onward,
        ],
        Hook::Postrouting => &[Table(TableKind::Mangle), Nat(Side::Source), Onward],
    }
}

/// Follows a walk to its end. Other ways it could have gone are put into `open`; when it
/// is `crowded`, none are, and the walk ends where it would need them.
pub(super) fn follow(
    kernel: &Kernel,
    mut walk: Walk,
    known: &[Connection],
    open: &mut Vec<Walk>,
    crowded: bool,
) -> End {
    if walk.unrouted {
        match kernel.route_out(walk, open) {
            Ok(routed) => walk = routed,
            Err(end) => return *end,
        }
    }
    loop {
        let stage = stages(walk.hook)[walk.stage];
        let passed = match stage {
            Table(kind) => kernel.pass(kind, &mut walk, open, crowded),
            Nat(side) => kernel.translate(side, &mut walk, open, crowded),
            Track => {
                kernel.track(&mut walk, known);
                Passed::On
            }
            RouteIn => match kernel.route_in(walk, open) {
                // The next hook begins at its first stage.
                Ok(routed) => {
                    walk = routed;
                    continue;
                }
                Err(end) => return *end,
            },
            RouteAgain | RouteTranslated => {
                let (now, before) = (&walk.packet, &walk.before);
                let moved = now.dst != before.dst;
                let again =
                    matches!(stage, RouteAgain) && (now.mark, now.src) != (before.mark, before.src);
                walk.before = walk.packet;
                if moved || again {
                    match kernel.route_again(walk, open) {
                        Ok(routed) => walk = routed,
                        Err(end) => return *end,
                    }
                }
                Passed::On
            }
            Onward => match onward(&mut walk) {
                Some(kind) => return walk.end(kind),
                None => continue,
            },
        };
        match passed {
            Passed::On => {
                walk.stage += 1;
                // Only what mangle and nat change is a reason to route again.
                if walk.hook == Hook::Output && matches!(stage, Track) {
                    walk.before = walk.packet;
                }
            }
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
            }
            walk.enter(Hook::Prerouting);
        }
        // PREROUTING ends with a route look-up, which names the next hook itself.
        Hook::Postrouting | Hook::Prerouting => return Some(EndKind::Forward),
    }
    None
}
