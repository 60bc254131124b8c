//! The state of a walk.

use std::cell::Cell;
use std::net::IpAddr;

use uturn_model::{Assumption, Evidence, Share, Step, StepKind, Text};

use super::compile::Hook;
use super::ipvs_state::IpvsState;
use super::notes::Notes;
use super::step_log::StepLog;
use crate::capture_gaps::UNKNOWN_INTERFACE;
use crate::connection::Connection;
use crate::end::{DropReason, End, EndKind};
use crate::packet::{Entry, Packet, Transport};
use crate::packet_facts::{FactSubject, Facts, PacketFact};
use crate::question::{Assumptions, Question, QuestionSubject};

pub(super) use super::branches::OpenBranches;

/// A branch rests on at most this many answers to questions that are open.
const MAX_ANSWERS: usize = 32;

/// One branch of a walk, and how far it has come. Copied only by [`Walk::fork`].
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) share: Share,
    pub(super) packet: Packet,
    pub(super) hook: Hook,
    /// The number of hooks that it has entered.
    pub(super) entered: u32,
    /// The index of the hook's next stage.
    pub(super) stage: usize,
    /// Whether the packet was generated locally.
    pub(super) from_here: bool,
    /// Whether the packet still needs its first route (locally generated packets only).
    pub(super) unrouted: bool,
    pub(super) iif: Option<Text>,
    /// The outgoing interface that rules see; rerouting in OUTPUT does not change it.
    pub(super) oif: Option<Text>,
    pub(super) route: Option<RouteOut>,
    pub(super) tracking: Tracking,
    pub(super) ipvs: IpvsState,
    pub(super) nft: NftPosition,
    /// The packet before the hook's last translation or change of mark.
    pub(super) before: Packet,
    /// The chain stack within a table; empty between tables.
    pub(super) frames: Vec<Frame>,
    /// Whether TPROXY assigned the packet to a socket.
    pub(super) proxied: bool,
    /// Whether a random rule decided in a way that a retransmission would repeat with a new
    /// random number.
    pub(super) randomized: bool,
    pub(super) log: StepLog,
    /// The work of lookups that no rule has counted yet, as so many rules.
    pub(super) lookups: Cell<u64>,
    /// Assumptions about rules that are not modelled.
    pub(super) assumed: Assumptions,
    /// Whether to reroute even if no routing field changed.
    pub(super) reroutes: bool,
    /// The questions, answers and assumptions of the branch.
    pub(super) notes: Notes,
}

/// Returns the facts about the sender of a packet from here. No process sends a refusal, and the
/// refusal of a rule has no socket.
fn facts_of(packet: &Packet, assumed: &Assumptions) -> Facts {
    let known: &[_] = match packet.transport {
        Transport::Reset { by_rule: true, .. } => {
            &[(PacketFact::exactly(FactSubject::Socket, 1), false)]
        }
        _ if packet.is_refusal() => &[
            (PacketFact::exactly(FactSubject::Socket, 1), true),
            (PacketFact::exactly(FactSubject::User, 0), true),
            (PacketFact::exactly(FactSubject::Group, 0), true),
        ],
        _ => return assumed.facts().clone(),
    };
    let mut facts = Facts::default();
    for (fact, holds) in known {
        facts.add(*fact, *holds);
    }
    facts
}

/// The result of a route lookup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RouteOut {
    pub(super) dev: Text,
    pub(super) via: Option<IpAddr>,
    /// Whether the destination is the node itself.
    pub(super) local: bool,
}

/// A position in a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) chain: usize,
    /// The index of the next rule.
    pub(super) rule: usize,
    /// The probability that remains after random rules that did not match.
    pub(super) odds: f64,
    /// The rule that jumped here: chain and rule.
    pub(super) caller: Option<(usize, usize)>,
}

/// The position and state of a walk within nftables rules.
#[derive(Clone, Debug, Default)]
pub(super) struct NftPosition {
    /// The step within a rule at which a branch continues.
    pub(super) at: usize,
    /// The generated number that a branch assumes.
    pub(super) generated: Option<u128>,
    /// The comment of the last element that led to a jump.
    pub(super) label: Option<Text>,
}

/// The packet's conntrack state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tracking {
    /// Not tracked yet.
    NotYet,
    /// NOTRACK.
    Untracked,
    /// INVALID.
    Invalid,
    /// The first packet of a connection: which of its ends are final, and whether it has left
    /// once already (and is looped back through `lo`).
    New { connection: Connection, src_settled: bool, dst_settled: bool, confirmed: bool },
    /// A packet of a known connection.
    Known { connection: Connection, reply: bool },
}

impl Tracking {
    pub(super) fn connection(&self) -> Option<&Connection> {
        match self {
            Self::New { connection, .. } | Self::Known { connection, .. } => Some(connection),
            Self::NotYet | Self::Untracked | Self::Invalid => None,
        }
    }

    /// Whether this packet or one before it came from the answering side.
    pub(super) fn has_seen_reply(&self) -> bool {
        matches!(self, Self::Known { connection, reply } if *reply || connection.seen_reply)
    }

    pub(super) fn connection_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Self::New { connection, .. } | Self::Known { connection, .. } => Some(connection),
            Self::NotYet | Self::Untracked | Self::Invalid => None,
        }
    }
}

impl Walk {
    pub(super) fn new(packet: &Packet, entry: &Entry, assumed: &Assumptions) -> Self {
        let (hook, iif) = match entry {
            Entry::Interface(name) => (Hook::Prerouting, Some(name.clone())),
            Entry::Local => (Hook::Output, None),
        };
        let from_here = *entry == Entry::Local;
        // A mark does not leave a node, but a local process can set one.
        let packet = Packet { mark: if from_here { packet.mark } else { 0 }, ..*packet };
        Self {
            share: Share::ALL,
            packet,
            hook,
            entered: 0,
            stage: 0,
            from_here,
            unrouted: from_here,
            iif,
            oif: None,
            route: None,
            tracking: Tracking::NotYet,
            ipvs: IpvsState::default(),
            nft: NftPosition::default(),
            before: packet,
            frames: Vec::new(),
            proxied: false,
            randomized: false,
            log: StepLog::default(),
            lookups: Cell::default(),
            assumed: assumed.clone(),
            reroutes: false,
            notes: if from_here {
                Notes::of_facts(facts_of(&packet, assumed))
            } else {
                Notes::default()
            },
        }
    }

    pub(super) fn enter(&mut self, hook: Hook) {
        (self.hook, self.stage) = (hook, 0);
        self.entered += 1;
    }

    pub(super) fn note(&mut self, kind: StepKind, why: impl Into<Text>, by: Evidence) {
        self.log.add(Step::new(kind, why, by).seeing(self.packet.leg()));
    }

    /// Copies the walk for another branch.
    pub(super) fn fork(&mut self) -> Box<Self> {
        Box::new(Self {
            log: self.log.fork(),
            // Counted with the branch.
            lookups: Cell::new(self.lookups.take()),
            iif: self.iif.clone(),
            oif: self.oif.clone(),
            route: self.route.clone(),
            tracking: self.tracking.clone(),
            ipvs: self.ipvs.clone(),
            nft: self.nft.clone(),
            frames: {
                // The copy continues at once, mostly into another chain.
                let mut frames = Vec::with_capacity(self.frames.len() + 2);
                frames.extend_from_slice(&self.frames);
                frames
            },
            assumed: self.assumed.clone(),
            notes: self.notes.fork(),
            ..*self
        })
    }

    /// Notes what a lookup took that a rule makes, such as `fib`.
    pub(super) fn note_lookup(&self, work: u64) {
        self.lookups.set(self.lookups.get() + work);
    }

    pub(super) fn assume(&mut self, assumption: Assumption) {
        if !self.notes.supposed.contains(&assumption) {
            self.notes.supposed.push(assumption);
        }
    }

    /// Whether the branch rests on so many answers that it is not followed past another question. A branch
    /// for each answer carries all answers before it, so the work grows with the square of their number.
    pub(super) fn rests_on_many_answers(&self) -> bool {
        self.notes.open_questions.len() >= MAX_ANSWERS
    }

    /// Records a rule that is not modelled.
    pub(super) fn note_unknown(&mut self, why: impl Into<Text>, by: Evidence) {
        self.note(StepKind::Unknown, why, by.clone());
        if !self.notes.unknown.contains(&by) {
            self.notes.unknown.push(by);
        }
    }

    /// Records the answer that this branch gives to a question.
    pub(super) fn note_branch(
        &mut self,
        about: QuestionSubject,
        holds: bool,
        why: impl Into<Text>,
        by: Evidence,
    ) {
        let answered = (Question { by: by.clone(), about }, holds);
        if !self.notes.open_questions.contains(&answered) {
            self.notes.open_questions.push(answered);
        }
        self.note_unknown(why, by);
    }

    /// Ends the walk with a drop that no rule caused.
    pub(super) fn dropped(
        &mut self,
        reason: DropReason,
        why: impl Into<Text>,
        by: Evidence,
    ) -> EndKind {
        self.note(StepKind::Drop, why, by);
        EndKind::Drop(reason)
    }

    /// The end of the walk.
    pub(super) fn end(self: Box<Self>, kind: EndKind) -> End {
        self.end_showing(kind, StepLog::into_steps)
    }

    /// The end of the walk without its steps, and their log.
    pub(super) fn end_and_log(self: Box<Self>, kind: EndKind) -> (End, StepLog) {
        let mut kept = None;
        let end = self.end_showing(kind, |log| {
            kept = Some(log);
            Vec::new()
        });
        (end, kept.unwrap_or_default())
    }

    /// The end of the walk with the steps that are made of its log.
    #[inline]
    fn end_showing(
        self: Box<Self>,
        kind: EndKind,
        steps: impl FnOnce(StepLog) -> Vec<Step>,
    ) -> End {
        // A reject is translated back as a reply would be, though no conntrack entry remains.
        let is_answered = match &kind {
            EndKind::Local | EndKind::Forward | EndKind::Reject(_) => true,
            EndKind::Drop(reason) => matches!(
                reason,
                DropReason::NoRoute | DropReason::Unreachable | DropReason::Prohibited
            ),
            EndKind::Unsettled => false,
        };
        let leaves = kind == EndKind::Forward;
        let is_for_node =
            self.hook == Hook::Input || self.route.as_ref().is_some_and(|way| way.local);
        // Entries of recent lists and sets remain, and they usually record the random choice.
        let is_kept = !self.notes.recent_entries.is_empty() || !self.notes.added.is_empty();
        let is_lost = matches!(kind, EndKind::Drop(_) | EndKind::Reject(_));
        let redrawn_on_retry = self.randomized && !is_kept && is_lost;
        let way = self.route.filter(|_| leaves);
        let named = |dev: &Text| {
            if &**dev == UNKNOWN_INTERFACE {
                self.notes.capture_assumptions.name().cloned()
            } else {
                Some(dev.clone())
            }
        };
        let out = way.as_ref().and_then(|way| named(&way.dev));
        let connection = self.tracking.connection().or(self.ipvs.untracked.as_deref());
        let (unknown, open_questions, supposed) = self.notes.into_lists_of_end();
        End {
            share: self.share,
            kind,
            packet: self.packet,
            is_for_node,
            out,
            next_hop: way.and_then(|way| way.via),
            connection: connection.filter(|_| is_answered).cloned(),
            redrawn_on_retry,
            steps: steps(self.log),
            unknown,
            open_questions,
            supposed,
        }
    }
}
