//! A packet on its way, the peers that send and receive it, and how a request ends.

mod exchange;
mod pace;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use uturn_model::route::{Direction, Leg, Place, Step, StepKind};
use uturn_model::{
    Assumption, Evidence, FailurePoint, Hop, Mechanism, Name, Node, Outcome, Pod, Protocol, Share,
};
use uturn_netfilter::{Connection, Entry, Packet};

use crate::add_missing::add_missing;

pub(crate) use exchange::ended;
pub use exchange::{Exchange, Redirected, Request, Waiting};
pub(crate) use pace::{Pace, Tries};

/// A sender or receiver of packets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer<'a> {
    /// A pod outside its node's network.
    Pod(&'a Pod),
    /// A process in a node's network; a hostNetwork pod where it is known which.
    Host(&'a Node, Option<&'a Pod>),
    /// A load balancer, by its place in the engine's list.
    Balancer(usize),
    /// A client or a server outside the cluster.
    Outside,
}

impl PartialEq for Peer<'_> {
    /// Compares networks: processes that answer at one address are one peer.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pod(a), Self::Pod(b)) => a.name == b.name,
            (Self::Host(a, _), Self::Host(b, _)) => a.name == b.name,
            (Self::Balancer(a), Self::Balancer(b)) => a == b,
            (Self::Outside, Self::Outside) => true,
            _ => false,
        }
    }
}

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A packet on its way, with what it has seen and what it left behind.
#[derive(Clone, Debug)]
pub(crate) struct PacketState {
    pub(crate) share: Share,
    pub(crate) packet: Packet,
    pub(crate) direction: Direction,
    pub(crate) hops: Vec<Hop>,
    /// Whether only the last step is kept.
    pub(crate) is_brief: bool,
    /// How many nodes this packet has passed.
    pub(crate) passed: usize,
    /// Whether a rule chose at random on the way.
    pub(crate) chance: bool,
    /// What had to be taken for true.
    pub(crate) supposed: Vec<Assumption>,
    /// Where it, or another packet of the same request, was stopped; not recorded if brief.
    pub(crate) failures: Vec<FailurePoint>,
    /// How often it was sent.
    pub(crate) tries: Tries,
    /// What each node's connection tracking remembers of this flow.
    pub(crate) nodes: Vec<(Name, Connection)>,
    /// What the fabric translated (a node's private address to its public one).
    pub(crate) fabric: Vec<Connection>,
    /// What load balancers sent out, with the sender.
    pub(crate) legs: Vec<(usize, Leg)>,
    /// The node that a load balancer hands it to, whatever its destination.
    pub(crate) handed_to: Option<Name>,
    /// The node that its sender, a load balancer, hands every packet of the connection to.
    pub(crate) first_handed_to: Option<Name>,
    /// Whether it is a first packet that was sent before.
    pub(crate) is_resent: bool,
    /// The address of the client outside the cluster that asked, wherever that lies.
    pub(crate) outside: Option<IpAddr>,
}

impl PacketState {
    pub(crate) fn new(packet: Packet) -> Self {
        Self {
            share: Share::ALL,
            packet,
            direction: Direction::Out,
            hops: Vec::new(),
            is_brief: false,
            passed: 0,
            chance: false,
            supposed: Vec::new(),
            failures: Vec::new(),
            tries: Tries::first(Pace::on(None)),
            nodes: Vec::new(),
            fabric: Vec::new(),
            legs: Vec::new(),
            handed_to: None,
            first_handed_to: None,
            is_resent: false,
            outside: None,
        }
    }

    /// One that begins nowhere: it is not known where it would go.
    pub(crate) fn nowhere(protocol: Protocol) -> Self {
        Self::new(Packet::new(protocol, NOWHERE, NOWHERE))
    }

    /// Whether no packet was sent: there is no address to show.
    pub(crate) fn is_nowhere(&self) -> bool {
        self.packet.leg() == Leg { src: NOWHERE, dst: NOWHERE }
    }

    /// The same, keeping only its last step if it is brief.
    pub(crate) fn briefly(mut self, is_brief: bool) -> Self {
        self.is_brief = is_brief;
        self
    }

    /// The same, sent again at this pace until it is answered.
    pub(crate) fn paced(mut self, pace: Pace) -> Self {
        self.tries = Tries::first(pace);
        self
    }

    /// The answer to what just arrived, about to leave.
    pub(crate) fn answer(&self) -> Self {
        Self { packet: self.packet.reply(), direction: Direction::Back, passed: 0, ..self.clone() }
    }

    /// What tells the sender that it was refused, about to leave.
    pub(crate) fn refusal(&self, packet: Packet) -> Self {
        Self { packet, ..self.answer() }
    }

    /// Another packet in the same world, with the same memory and no hops yet.
    pub(crate) fn another(&self, packet: Packet, direction: Direction) -> Self {
        Self {
            packet,
            direction,
            share: Share::ALL,
            hops: Vec::new(),
            passed: 0,
            chance: false,
            first_handed_to: None,
            is_resent: false,
            ..self.clone()
        }
    }

    /// The same, where the hops before this packet are recorded already.
    pub(crate) fn on_time(mut self) -> Self {
        self.tries = self.tries.forgotten();
        self
    }

    /// Remembers that a load balancer sent this leg.
    pub(crate) fn sent_by(mut self, balancer: usize) -> Self {
        self.legs.push((balancer, self.packet.leg()));
        self
    }

    /// Adds a step at a place; goes on in the last hop where it is the same stay.
    pub(crate) fn note(&mut self, place: Place, step: Step) {
        if self.is_brief {
            self.hops.clear();
        }
        match self.hops.last_mut() {
            Some(hop) if hop.place == place && hop.direction == self.direction => {
                hop.steps.push(step);
            }
            _ => self.hops.push(Hop { place, direction: self.direction, steps: vec![step] }),
        }
    }

    /// Adds a step that decides nothing: not even made if only the last step is kept.
    pub(crate) fn note_unless_brief(
        &mut self,
        place: impl FnOnce() -> Place,
        step: impl FnOnce() -> Step,
    ) {
        match self.is_brief {
            true => self.hops.clear(),
            false => self.note(place(), step()),
        }
    }

    /// Notes where the last packet was stopped, and why.
    pub(crate) fn note_failure(&mut self, why: Mechanism) {
        if !self.is_brief {
            let point = FailurePoint::last_of(&self.hops, why);
            add_missing(&mut self.failures, point);
        }
    }

    /// A packet from the answering side is on a node: its connections there have an answer.
    pub(crate) fn note_reply_seen(&mut self, node: &Name) {
        let leg = self.packet.leg();
        for (name, connection) in &mut self.nodes {
            connection.seen_reply |= name == node && connection.reply == leg;
        }
    }

    pub(crate) fn remember(&mut self, node: &Name, connection: Connection) {
        let known = self
            .nodes
            .iter()
            .any(|(name, known)| name == node && known.original == connection.original);
        if !known {
            self.nodes.push((node.clone(), connection));
        }
    }
}

/// A packet on one node.
pub(crate) struct NodeVisit<'a> {
    pub(crate) node: &'a Node,
    /// Whether it answers something that this node never saw.
    pub(crate) astray: bool,
    /// Whether a process of this node sent it.
    pub(crate) sent_here: bool,
    /// Through what it came, and with which addresses.
    pub(crate) came: (Entry, Leg),
}

/// Where a packet ended.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) state: PacketState,
    pub(crate) stop: Stop<'a>,
}

/// How a packet ended.
#[derive(Debug)]
pub(crate) enum Stop<'a> {
    /// A peer has it.
    At(Peer<'a>),
    /// It is lost: no answer will come.
    Lost(Mechanism),
    /// It was refused on the way, and the sender sees this outcome if it learns of it.
    Refused(Refused<'a>),
    /// Where it ends cannot be judged.
    Unknown(Mechanism),
}

/// A packet that was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'a> {
    /// Why.
    pub(crate) why: Mechanism,
    /// Where.
    pub(crate) by: Peer<'a>,
    /// What its sender sees.
    pub(crate) outcome: Outcome,
    /// What is sent to the sender; `None` if the sender learns of it without a packet that rules see.
    pub(crate) notice: Option<Packet>,
}

/// A packet reaches a pod, whose own kernel takes none that claims to come from itself.
pub(crate) fn arrive<'a>(pod: &'a Pod, mut state: PacketState) -> Vec<Arrival<'a>> {
    let leg = state.packet.leg();
    if !pod.ips.contains(&leg.src.ip()) {
        return vec![Arrival { state, stop: Stop::At(Peer::Pod(pod)) }];
    }
    let why = "comes in with the pod's own address as its source: the pod's kernel drops it";
    let step = Step::new(StepKind::Drop, why, Evidence::kernel("routing: the source is local"));
    state.note(Place::Pod(pod.name.clone()), step.seeing(leg));
    vec![lost(state, Mechanism::LocalSourceDrop)]
}

/// The end of a packet that is lost.
pub(crate) fn lost<'a>(state: PacketState, mechanism: Mechanism) -> Arrival<'a> {
    Arrival { state, stop: Stop::Lost(mechanism) }
}
