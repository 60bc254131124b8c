//! Branches a walk on state that a capture lacks: whether an address is the node's own, and
//! through which interface a packet leaves. Each branch remembers its assumption.

use std::net::IpAddr;

use uturn_model::{Assumption, Evidence, Text};

use super::Kernel;
use super::interface_name::interface;
use super::walk::{OpenBranches, RouteOut, Walk};
use crate::capture_gaps::{CaptureGap, UNKNOWN_INTERFACE};
use crate::iptables::Not;
use crate::question::QuestionSubject;

/// The range of interface names that a pattern matches, encoded as numbers.
pub(super) type NameRange = (u128, u128);

/// The assumptions of a branch about state that the capture lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CaptureAssumptions {
    /// Addresses that are assumed to be the node's own, or not.
    own: Vec<(IpAddr, bool)>,
    /// Interface names that are assumed to include the outgoing interface, or not.
    out: Vec<(NameRange, bool)>,
    /// The assumed outgoing interface, if the assumption names a single one.
    name: Option<Text>,
}

impl CaptureAssumptions {
    /// Nothing is assumed.
    pub(super) const NONE: Self = Self { own: Vec::new(), out: Vec::new(), name: None };

    /// Whether an address is assumed to be the node's own; `None` if undecided.
    pub(super) fn is_own(&self, ip: IpAddr) -> Option<bool> {
        self.own.iter().find(|(known, _)| *known == ip).map(|(_, own)| *own)
    }

    /// The assumed name of the outgoing interface.
    pub(super) fn name(&self) -> Option<&Text> {
        self.name.as_ref()
    }

    fn forget_out(&mut self) {
        self.out.clear();
        self.name = None;
    }

    /// Whether the outgoing interface is in a range of names. Packets that are not for the node
    /// itself never leave through `lo`.
    fn leaves_by(&self, wanted: NameRange) -> Option<bool> {
        if wanted == interface("lo") {
            return Some(false);
        }
        let holds = |outer: NameRange, inner: NameRange| outer.0 <= inner.0 && inner.1 <= outer.1;
        self.out.iter().find_map(|(names, taken)| match taken {
            true if holds(wanted, *names) => Some(true),
            true if wanted.1 < names.0 || names.1 < wanted.0 => Some(false),
            false if holds(*names, wanted) => Some(false),
            _ => None,
        })
    }
}

impl Kernel {
    /// Whether the capture has no addresses and no routes that would imply them.
    pub(super) fn knows_no_address(&self) -> bool {
        self.state.gaps.contains(&CaptureGap::Addresses)
            && self
                .state
                .interfaces
                .iter()
                .all(|interface| interface.addresses.iter().all(|(ip, _)| ip.is_loopback()))
    }

    /// Whether the capture has neither addresses nor routes.
    pub(super) fn knows_no_route(&self) -> bool {
        [CaptureGap::Addresses, CaptureGap::Routes].iter().all(|gap| self.state.gaps.contains(gap))
    }

    /// Records the assumption for a gap, if the capture has that gap.
    #[inline(always)]
    pub(super) fn suppose_gap(&self, gap: CaptureGap, walk: &mut Walk) {
        if !self.state.gaps.is_empty() {
            self.suppose_known_gap(gap, walk);
        }
    }

    fn suppose_known_gap(&self, gap: CaptureGap, walk: &mut Walk) {
        // The walk branches on these; nothing is assumed.
        let open = matches!(gap, CaptureGap::Routes | CaptureGap::Policy) && self.knows_no_route();
        if self.state.gaps.contains(&gap) && !open {
            walk.assume(gap.assumption());
        }
    }

    /// Decides whether the packet's destination is one of the node's own addresses; branches if
    /// the capture does not say.
    #[inline(always)]
    pub(super) fn decide_own(&self, walk: &mut Walk, open: &mut OpenBranches, at_limit: bool) {
        // Most nodes have no gaps, and this is asked at each stage.
        if !self.state.gaps.is_empty() && self.state.gaps.contains(&CaptureGap::Addresses) {
            self.decide_unknown_own(walk, open, at_limit);
        }
    }

    fn decide_unknown_own(&self, walk: &mut Walk, open: &mut OpenBranches, at_limit: bool) {
        let ip = walk.packet.dst;
        if !self.knows_no_address() {
            if !ip.is_loopback() {
                walk.assume(CaptureGap::Addresses.assumption());
            }
            return;
        }
        let known = self.fib.local(ip).is_some() || ip.is_multicast() || ip.is_unspecified();
        if known || walk.notes.capture_assumptions.is_own(ip).is_some() {
            return;
        }
        // A DNAT target is taken for an address elsewhere, unless a rule states otherwise.
        let translated =
            walk.tracking.connection().is_some_and(|connection| connection.original.dst.ip() != ip);
        if translated || at_limit {
            walk.assume(Assumption {
                subject: format!("the address {ip}").into(),
                assumed: "not one of this node".into(),
                because: "the capture has neither addr nor route".into(),
                settle: "capture ip addr as addr".into(),
            });
            walk.notes.capture_assumptions.own.push((ip, false));
            return;
        }
        let mut other = walk.fork();
        for (way, own, assumed) in [
            (&mut *walk, true, "as if it were one of this node"),
            (&mut *other, false, "as if it were another's"),
        ] {
            way.share = way.share.split(2);
            way.notes.capture_assumptions.own.push((ip, own));
            let by = Evidence::not_captured(format!("the address {ip}"));
            way.note_branch(
                QuestionSubject::Own,
                own,
                format!("nothing says whose it is: {assumed}"),
                by,
            );
        }
        open.push(other);
    }

    /// Whether this branch assumes that the destination is the node's own.
    pub(super) fn is_taken_as_own(&self, walk: &Walk) -> bool {
        walk.notes.capture_assumptions.is_own(walk.packet.dst) == Some(true)
    }

    /// Routes the packet to the node itself.
    pub(super) fn take_as_own(&self, walk: &mut Walk) {
        walk.route = Some(RouteOut { dev: "lo".into(), via: None, local: true });
        walk.oif = Some("lo".into());
        if walk.packet.src.is_unspecified() {
            walk.packet.src = walk.packet.dst;
        }
        walk.before = walk.packet;
    }

    /// Whether the destination is bound to `kube-ipvs0` while the virtual servers are unknown.
    pub(super) fn may_be_virtual(&self, walk: &Walk) -> bool {
        let serves = |device: &str| {
            let mut all =
                self.state.interfaces.iter().filter(|interface| &*interface.name == device);
            all.any(|interface| interface.addresses.iter().any(|(ip, _)| *ip == walk.packet.dst))
        };
        self.state.gaps.contains(&CaptureGap::Virtual) && serves("kube-ipvs0")
    }

    /// Records that the target of REDIRECT is one of the node's own addresses.
    pub(super) fn redirected(&self, walk: &mut Walk) {
        if self.knows_no_address() && !walk.packet.dst.is_loopback() {
            let ip = walk.packet.dst;
            walk.notes.capture_assumptions.own.retain(|(known, _)| *known != ip);
            walk.notes.capture_assumptions.own.push((ip, true));
        }
    }
}

impl Walk {
    /// Forgets the assumptions about the outgoing interface, because the packet is rerouted.
    pub(super) fn forget_out(&mut self) {
        if !self.notes.is_empty() {
            self.notes.capture_assumptions.forget_out();
        }
    }

    /// Whether the name of the outgoing interface is unknown.
    pub(super) fn out_is_unknown(&self) -> bool {
        self.oif.as_deref() == Some(UNKNOWN_INTERFACE)
    }

    /// Whether the packet leaves through an interface that a rule matches; true if undecided.
    pub(super) fn may_leave_by(&self, wanted: &Not<Text>) -> bool {
        self.notes
            .capture_assumptions
            .leaves_by(names(&wanted.value))
            .is_none_or(|leaves| leaves != wanted.not)
    }

    /// The interface names that a rule matches, if it is undecided whether the packet leaves
    /// through them.
    pub(super) fn undecided_out(&self, wanted: Option<&Not<Text>>) -> Option<NameRange> {
        let names = names(&wanted.filter(|_| self.out_is_unknown())?.value);
        self.notes.capture_assumptions.leaves_by(names).is_none().then_some(names)
    }

    /// Whether the outgoing interface is in a range of names; `None` if undecided.
    pub(super) fn leaves_by(&self, wanted: NameRange) -> Option<bool> {
        self.notes.capture_assumptions.leaves_by(wanted)
    }

    /// Branches: this walk leaves through these interfaces, the returned copy does not.
    pub(super) fn branch_by_out(&mut self, names: NameRange, interfaces: &str) -> Box<Self> {
        let mut other = self.fork();
        for (way, leaves) in [(&mut *self, true), (&mut *other, false)] {
            way.share = way.share.split(2);
            way.notes.capture_assumptions.out.push((names, leaves));
            let not = if leaves { "" } else { "not " };
            let why = format!("no route says where it leaves: as if {not}through {interfaces}");
            let by = Evidence::not_captured(format!("the interface {interfaces}"));
            way.note_branch(QuestionSubject::Out, leaves, why, by);
        }
        if names.0 == names.1 {
            self.notes.capture_assumptions.name = Some(interfaces.into());
        }
        other
    }
}

/// The names that an iptables pattern matches; a trailing `+` matches any suffix.
fn names(pattern: &str) -> NameRange {
    match pattern.strip_suffix('+') {
        Some(start) => interface(&format!("{start}*")),
        None => interface(pattern),
    }
}
