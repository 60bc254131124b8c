//! What a walk does where a capture does not say which addresses are the node's own and
//! where routes lead: it takes both ways, once, and remembers which.

use std::net::IpAddr;

use uturn_model::{By, DerivedFrom, Origin, Supposition, Text};

use super::Kernel;
use super::nft::interface;
use super::walk::{OpenWays, RouteOut, Walk};
use crate::gaps::{Gap, UNSEEN};
use crate::iptables::Not;
use crate::packet::Doubt;

/// The first and the last name of a pattern, as numbers.
pub(super) type Names = (u128, u128);

/// What one way has taken for true of what a capture does not say.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    /// Addresses that are the node's own, or are not.
    own: Vec<(IpAddr, bool)>,
    /// The interface that the packet leaves through is one of these, or is not.
    out: Vec<(Names, bool)>,
    /// The name that it has then, where it is a single one.
    name: Option<Text>,
}

impl Taken {
    /// Whether an address is the node's own, where that was decided.
    pub(super) fn is_own(&self, ip: IpAddr) -> Option<bool> {
        self.own.iter().find(|(one, _)| *one == ip).map(|(_, own)| *own)
    }

    /// The name of the interface that the packet leaves through.
    pub(super) fn name(&self) -> Option<&Text> {
        self.name.as_ref()
    }

    /// A new route: what was taken for true of the last one says nothing.
    pub(super) fn forget_out(&mut self) {
        self.out.clear();
        self.name = None;
    }

    /// Whether the interface is one of these. What is not for the node itself does not leave
    /// through the loopback.
    fn leaves_by(&self, wanted: Names) -> Option<bool> {
        if wanted == interface("lo") {
            return Some(false);
        }
        let holds = |outer: Names, inner: Names| outer.0 <= inner.0 && inner.1 <= outer.1;
        self.out.iter().find_map(|(names, taken)| match taken {
            true if holds(wanted, *names) => Some(true),
            true if wanted.1 < names.0 || names.1 < wanted.0 => Some(false),
            false if holds(*names, wanted) => Some(false),
            _ => None,
        })
    }
}

impl Kernel {
    /// Whether nothing says which addresses are the node's own.
    pub(super) fn knows_no_address(&self) -> bool {
        self.state.gaps.contains(&Gap::Addresses)
            && self
                .state
                .interfaces
                .iter()
                .all(|one| one.addresses.iter().all(|(ip, _)| ip.is_loopback()))
    }

    /// Whether nothing says where routes lead.
    pub(super) fn knows_no_route(&self) -> bool {
        [Gap::Addresses, Gap::Routes].iter().all(|gap| self.state.gaps.contains(gap))
    }

    /// Supposes what stands for a gap, where there is one.
    pub(super) fn suppose_gap(&self, gap: Gap, walk: &mut Walk) {
        // Where both ways are taken, nothing is supposed.
        let open = matches!(gap, Gap::Routes | Gap::Policy) && self.knows_no_route();
        if self.state.gaps.contains(&gap) && !open {
            walk.suppose(gap.supposition());
        }
    }

    /// Decides whether the packet's destination is an address of the node, where nothing says
    /// so: both ways.
    pub(super) fn settle_own(&self, walk: &mut Walk, open: &mut OpenWays, crowded: bool) {
        if !self.state.gaps.contains(&Gap::Addresses) {
            return;
        }
        let ip = walk.packet.dst;
        if !self.knows_no_address() {
            if !ip.is_loopback() {
                walk.suppose(Gap::Addresses.supposition());
            }
            return;
        }
        let known = self.fib.local(ip).is_some() || ip.is_multicast() || ip.is_unspecified();
        if known || walk.blind.is_own(ip).is_some() {
            return;
        }
        // Rules do not translate to an address of the node, save where they say so.
        let translated = walk.tracking.connection().is_some_and(|one| one.original.dst.ip() != ip);
        if translated || crowded {
            walk.suppose(Supposition {
                about: format!("the address {ip}").into(),
                taken: "not one of this node".into(),
                because: "the capture has neither addr nor route".into(),
                settle: "capture ip addr as addr".into(),
            });
            walk.blind.own.push((ip, false));
            return;
        }
        let mut other = walk.fork();
        for (way, own, said) in [
            (&mut *walk, true, "as if it were one of this node"),
            (&mut *other, false, "as if it were another's"),
        ] {
            way.share /= 2.0;
            way.blind.own.push((ip, own));
            let by =
                By::new(format!("the address {ip}"), Origin::Derived(DerivedFrom::NotCaptured));
            way.meet_open(Doubt::Own, own, format!("nothing says whose it is: {said}"), by);
        }
        open.push(other);
    }

    /// Whether this way has taken the destination for an address of the node.
    pub(super) fn is_taken_as_own(&self, walk: &Walk) -> bool {
        walk.blind.is_own(walk.packet.dst) == Some(true)
    }

    /// Gives a walk the way to the node itself.
    pub(super) fn take_as_own(&self, walk: &mut Walk) {
        walk.way = Some(RouteOut { dev: "lo".into(), via: None, local: true });
        walk.oif = Some("lo".into());
        if walk.packet.src.is_unspecified() {
            walk.packet.src = walk.packet.dst;
        }
        walk.before = walk.packet;
    }

    /// Whether a packet is for an address that IPVS serves, and no virtual server is known.
    pub(super) fn may_be_virtual(&self, walk: &Walk) -> bool {
        let serves = |device: &str| {
            let mut all = self.state.interfaces.iter().filter(|one| &*one.name == device);
            all.any(|one| one.addresses.iter().any(|(ip, _)| *ip == walk.packet.dst))
        };
        self.state.gaps.contains(&Gap::Virtual) && serves("kube-ipvs0")
    }

    /// REDIRECT leads to an address of the node, whichever that is.
    pub(super) fn redirected(&self, walk: &mut Walk) {
        if self.knows_no_address() && !walk.packet.dst.is_loopback() {
            let ip = walk.packet.dst;
            walk.blind.own.retain(|(one, _)| *one != ip);
            walk.blind.own.push((ip, true));
        }
    }
}

impl Walk {
    /// Whether the name of the interface that it leaves through is not known.
    pub(super) fn leaves_unseen(&self) -> bool {
        self.oif.as_deref() == Some(UNSEEN)
    }

    /// Whether it leaves through what a rule wants; where that is open, as if it did.
    pub(super) fn may_leave_by(&self, wanted: &Not<Text>) -> bool {
        self.blind.leaves_by(names(&wanted.value)).is_none_or(|leaves| leaves != wanted.not)
    }

    /// What a rule wants of the interface, where that is open.
    pub(super) fn open_out(&self, wanted: Option<&Not<Text>>) -> Option<Names> {
        let names = names(&wanted.filter(|_| self.leaves_unseen())?.value);
        self.blind.leaves_by(names).is_none().then_some(names)
    }

    /// Whether it leaves through one of these.
    pub(super) fn leaves_by(&self, wanted: Names) -> Option<bool> {
        self.blind.leaves_by(wanted)
    }

    /// Takes both ways: here as if it left through these, in the copy as if not.
    pub(super) fn part_by_out(&mut self, names: Names, said: &str) -> Box<Self> {
        let mut other = self.fork();
        for (way, leaves) in [(&mut *self, true), (&mut *other, false)] {
            way.share /= 2.0;
            way.blind.out.push((names, leaves));
            let not = if leaves { "" } else { "not " };
            let why = format!("no route says where it leaves: as if {not}through {said}");
            let by =
                By::new(format!("the interface {said}"), Origin::Derived(DerivedFrom::NotCaptured));
            way.meet_open(Doubt::Out, leaves, why, by);
        }
        if names.0 == names.1 {
            self.blind.name = Some(said.into());
        }
        other
    }
}

/// A pattern of iptables, with a `+` at its end for any rest.
fn names(pattern: &str) -> Names {
    match pattern.strip_suffix('+') {
        Some(start) => interface(&format!("{start}*")),
        None => interface(pattern),
    }
}
