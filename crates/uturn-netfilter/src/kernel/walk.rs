//! A walk on its way.

use std::net::IpAddr;

use uturn_model::route::Leg;
use uturn_model::{By, Step, StepKind, Supposition, Text};

use super::compile::Hook;
use super::incomplete_capture::CaptureAssumptions;
use super::ipvs::IpvsState;
use super::nft::NftPosition;
use super::step_log::StepLog;
use super::unknown_condition::AnswerScope;
use crate::capture_gaps::UNKNOWN_INTERFACE;
use crate::packet::{
    Assumptions, Connection, DropReason, End, EndKind, Entry, Packet, Question, QuestionSubject,
};
use crate::packet_facts::Facts;

/// Ways that are still to be followed. Boxed, since a walk is large and goes from hand to
/// hand.
pub(super) type OpenBranches = Vec<Box<Walk>>;

/// One way of a packet, as far as it has come. Copied by [`Walk::fork`] only.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) share: f64,
    pub(super) packet: Packet,
    pub(super) hook: Hook,
    /// The next stage of the hook.
    pub(super) stage: usize,
    /// Made on the node.
    pub(super) from_here: bool,
    /// Not routed yet (made on the node only).
    pub(super) unrouted: bool,
    pub(super) iif: Option<Text>,
    /// The interface that rules see; while a packet is in OUTPUT, a new route does not
    /// change it.
    pub(super) oif: Option<Text>,
    pub(super) route: Option<RouteOut>,
    pub(super) tracking: Tracking,
    pub(super) ipvs: IpvsState,
    pub(super) nft: NftPosition,
    /// The packet as it was before the hook's last translation or change of mark.
    pub(super) before: Packet,
    /// Where in a table it is; empty between tables.
    pub(super) frames: Vec<Frame>,
    /// How many rules it has asked.
    pub(super) asked: u32,
    /// A process has it already: TPROXY gave it to its socket.
    pub(super) proxied: bool,
    /// A rule threw dice that the connection's next packet would throw anew, should this one
    /// get no further.
    pub(super) randomized: bool,
    pub(super) log: StepLog,
    pub(super) unknown: Vec<By>,
    pub(super) open_questions: Vec<(Question, bool)>,
    /// What is taken for true of rules that nobody models.
    pub(super) assumed: Assumptions,
    pub(super) supposed: Vec<Supposition>,
    /// What is known, or was taken for true, of the packet and its sender.
    pub(super) facts: Facts,
    /// What was taken for true of matches that nobody models.
    pub(super) answers: Vec<(u32, AnswerScope, bool)>,
    /// The same of nftables.
    pub(super) nft_answers: Vec<(u32, Leg, Hook, bool)>,
    /// Rules of the routing policy that were taken to apply, or not, by their places.
    pub(super) policy_answers: Vec<(usize, bool)>,
    /// It is to be routed again, whatever changed.
    pub(super) reroutes: bool,
    /// What `-m recent` put on its lists.
    pub(super) recent_entries: Vec<(Text, IpAddr)>,
    /// What was taken for true of what a capture does not say.
    pub(super) capture_assumptions: CaptureAssumptions,
}

/// Where a packet goes next.
#[derive(Clone, Debug)]
pub(super) struct RouteOut {
    pub(super) dev: Text,
    pub(super) via: Option<IpAddr>,
    /// To the node itself.
    pub(super) local: bool,
}

/// A chain on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) chain: usize,
    /// The next rule.
    pub(super) rule: usize,
    /// The odds that are left after random rules that did not match.
    pub(super) odds: f64,
    /// The rule that led here: chain and rule.
    pub(super) caller: Option<(usize, usize)>,
}

/// What connection tracking makes of a packet.
#[derive(Clone, Debug)]
pub(super) enum Tracking {
    /// It was not there yet.
    NotYet,
    /// It is kept away.
    Untracked,
    /// It finds no sense in it.
    Invalid,
    /// The first packet of a connection, which of its ends are settled, and whether it has
    /// already left once (to come back in through the loopback interface).
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
        // A mark does not travel between nodes, but a process can set one.
        let packet = Packet { mark: if from_here { packet.mark } else { 0 }, ..*packet };
        Self {
            share: 1.0,
            packet,
            hook,
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
            asked: 0,
            proxied: false,
            randomized: false,
            log: StepLog::default(),
            unknown: Vec::new(),
            open_questions: Vec::new(),
            assumed: assumed.clone(),
            supposed: Vec::new(),
            facts: if from_here { assumed.facts().clone() } else { Facts::default() },
            answers: Vec::new(),
            policy_answers: Vec::new(),
            reroutes: false,
            nft_answers: Vec::new(),
            recent_entries: Vec::new(),
            capture_assumptions: CaptureAssumptions::default(),
        }
    }

    pub(super) fn enter(&mut self, hook: Hook) {
        (self.hook, self.stage) = (hook, 0);
    }

    pub(super) fn note(&mut self, kind: StepKind, why: impl Into<Text>, by: By) {
        self.log.add(Step::new(kind, why, by).seeing(self.packet.leg()));
    }

    /// A copy, to go another way.
    pub(super) fn fork(&mut self) -> Box<Self> {
        Box::new(Self {
            log: self.log.fork(),
            iif: self.iif.clone(),
            oif: self.oif.clone(),
            route: self.route.clone(),
            tracking: self.tracking.clone(),
            ipvs: self.ipvs.clone(),
            nft: self.nft.clone(),
            frames: {
                // It goes on at once, mostly into another chain.
                let mut frames = Vec::with_capacity(self.frames.len() + 2);
                frames.extend_from_slice(&self.frames);
                frames
            },
            unknown: self.unknown.clone(),
            open_questions: self.open_questions.clone(),
            assumed: self.assumed.clone(),
            supposed: self.supposed.clone(),
            facts: self.facts.clone(),
            answers: self.answers.clone(),
            policy_answers: self.policy_answers.clone(),
            nft_answers: self.nft_answers.clone(),
            recent_entries: self.recent_entries.clone(),
            capture_assumptions: self.capture_assumptions.clone(),
            ..*self
        })
    }

    pub(super) fn suppose(&mut self, one: Supposition) {
        if !self.supposed.contains(&one) {
            self.supposed.push(one);
        }
    }

    /// Remembers a rule that nobody models.
    pub(super) fn note_unknown(&mut self, why: impl Into<Text>, by: By) {
        self.note(StepKind::Unknown, why, by.clone());
        if !self.unknown.contains(&by) {
            self.unknown.push(by);
        }
    }

    /// The same of one that is followed both ways.
    pub(super) fn note_branch(
        &mut self,
        about: QuestionSubject,
        holds: bool,
        why: impl Into<Text>,
        by: By,
    ) {
        let answered = (Question { by: by.clone(), about }, holds);
        if !self.open_questions.contains(&answered) {
            self.open_questions.push(answered);
        }
        self.note_unknown(why, by);
    }

    /// Ends as dropped, for a reason that is not a rule's.
    pub(super) fn dropped(&mut self, reason: DropReason, why: impl Into<Text>, by: By) -> EndKind {
        self.note(StepKind::Drop, why, by);
        EndKind::Drop(reason)
    }

    pub(super) fn end(self, kind: EndKind) -> End {
        // A refusal is translated back as an answer would be, though nothing is remembered of
        // the connection afterwards.
        let is_answered = match &kind {
            EndKind::Local | EndKind::Forward | EndKind::Reject(_) => true,
            EndKind::Drop(reason) => matches!(
                reason,
                DropReason::NoRoute | DropReason::Unreachable | DropReason::Prohibited
            ),
            EndKind::Unsettled => false,
        };
        let leaves = kind == EndKind::Forward;
        // What rules put on lists and into sets stays there, and mostly it is whom they picked.
        let is_kept = !self.recent_entries.is_empty() || self.nft.has_added();
        let redrawn_on_retry = self.randomized && !is_kept && matches!(kind, EndKind::Drop(_));
        let way = self.route.filter(|_| leaves);
        let named = |dev: &Text| match &**dev == UNKNOWN_INTERFACE {
            true => self.capture_assumptions.name().cloned(),
            false => Some(dev.clone()),
        };
        let out = way.as_ref().and_then(|way| named(&way.dev));
        let connection = self.tracking.connection().or(self.ipvs.untracked.as_deref());
        End {
            share: self.share,
            kind,
            packet: self.packet,
            out,
            next_hop: way.and_then(|way| way.via),
            connection: connection.filter(|_| is_answered).cloned(),
            redrawn_on_retry,
            steps: self.log.into_steps(),
            unknown: self.unknown,
            open_questions: self.open_questions,
            supposed: self.supposed,
        }
    }
}
