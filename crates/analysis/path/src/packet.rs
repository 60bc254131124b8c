//! A packet on its way, the peers that send and receive it, and how a request ends.

mod exchange;
mod pace;
mod peer;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use uturn_model::route::{Direction, Leg, Place, Step, StepKind};
use uturn_model::{
    Assumption, Evidence, FailurePoint, Hop, LoadBalancer, Mechanism, Name, Node, Outcome, Pod,
    Protocol, Share,
};
use uturn_netfilter::{Connection, Entry, Packet};

use crate::add_missing::add_missing;

pub(crate) use exchange::{Call, ended};
pub use exchange::{Exchange, Redirected, Request, Waiting};
pub(crate) use pace::{Pace, Tries};
pub(crate) use peer::Peer;

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A packet on its way, with the route so far and the connection state it created.
#[derive(Clone, Debug)]
pub(crate) struct PacketState {
    pub(crate) share: Share,
    pub(crate) packet: Packet,
    pub(crate) direction: Direction,
    pub(crate) hops: Vec<Hop>,
    /// Whether only the last step is kept.
    pub(crate) is_brief: bool,
    /// The number of nodes that this packet has passed.
    pub(crate) passed: usize,
    /// Whether a rule chose at random on the way.
    pub(crate) chance: bool,
    /// The assumptions that the route rests on.
    pub(crate) supposed: Vec<Assumption>,
    /// Where this packet, or another of the same request, was stopped. Not recorded if brief.
    pub(crate) failures: Vec<FailurePoint>,
    /// The transmissions of the packet so far.
    pub(crate) tries: Tries,
    /// The conntrack entries of this flow on each node.
    pub(crate) nodes: Vec<(Name, Connection)>,
    /// The translations by the fabric (of a node's private address to its public one).
    pub(crate) fabric: Vec<Connection>,
    /// The legs that load balancers sent, with the sender's address.
    pub(crate) legs: Vec<(IpAddr, Leg)>,
    /// The node to which a load balancer hands the packet, whatever its destination.
    pub(crate) handed_to: Option<Name>,
    /// The node to which the sender, a load balancer, hands every packet of the connection.
    pub(crate) first_handed_to: Option<Name>,
    /// Whether this is a retransmission of a first packet.
    pub(crate) is_resent: bool,
    /// Whether it belongs to a health check.
    pub(crate) is_probe: bool,
    /// The address of the calling client outside the cluster, wherever that client is.
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
            is_probe: false,
            outside: None,
        }
    }

    /// Makes a packet without a sender or destination: its route is not known.
    pub(crate) fn nowhere(protocol: Protocol) -> Self {
        Self::new(Packet::new(protocol, NOWHERE, NOWHERE))
    }

    /// Returns whether no packet was sent, so that there is no address to show.
    pub(crate) fn is_nowhere(&self) -> bool {
        self.packet.leg() == Leg { src: NOWHERE, dst: NOWHERE }
    }

    /// Sets whether only the last step is kept.
    pub(crate) fn briefly(mut self, is_brief: bool) -> Self {
        self.is_brief = is_brief;
        self
    }

    /// Makes the packet one of a health check.
    pub(crate) fn probing(mut self) -> Self {
        self.is_probe = true;
        self
    }

    /// Makes the packet its first transmission, resent at this pace until it is answered.
    pub(crate) fn paced(mut self, pace: Pace) -> Self {
        self.tries = Tries::first(pace);
        self
    }

    /// Returns the answer to the packet that just arrived, before it leaves.
    pub(crate) fn answer(&self) -> Self {
        Self { packet: self.packet.reply(), direction: Direction::Back, passed: 0, ..self.clone() }
    }

    /// Returns the packet that tells the sender of the refusal, before it leaves.
    pub(crate) fn refusal(&self, packet: Packet) -> Self {
        Self { packet, ..self.answer() }
    }

    /// Returns another packet of the same flow: it keeps the connection state and has no hops yet.
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

    /// Forgets the retransmissions, where the hops before this packet are recorded already.
    pub(crate) fn on_time(mut self) -> Self {
        self.tries = self.tries.forgotten();
        self
    }

    /// Remembers that a load balancer sent this leg.
    pub(crate) fn sent_by(mut self, balancer: &LoadBalancer) -> Self {
        self.legs.push((balancer.vip, self.packet.leg()));
        self
    }

    /// Adds a step at a place. Extends the last hop if its place and direction are the same.
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

    /// Adds a step that decides nothing. The step is not even made if only the last one is kept.
    pub(crate) fn note_unless_brief(
        &mut self,
        place: impl FnOnce() -> Place,
        step: impl FnOnce() -> Step,
    ) {
        if self.is_brief { self.hops.clear() } else { self.note(place(), step()) }
    }

    /// Records where the last packet was stopped, and why.
    pub(crate) fn note_failure(&mut self, why: Mechanism) {
        if !self.is_brief {
            let point = FailurePoint::last_of(&self.hops, why);
            add_missing(&mut self.failures, point);
        }
    }

    /// Marks the node's connections of which this packet is a reply as answered.
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

/// The visit of a packet to one node.
pub(crate) struct NodeVisit<'a> {
    pub(crate) node: &'a Node,
    /// Whether the packet answers a connection that this node never saw.
    pub(crate) astray: bool,
    /// Whether a process of this node sent the packet.
    pub(crate) sent_here: bool,
    /// The entry point of the packet and the addresses with which it came.
    pub(crate) came: (Entry, Leg),
}

/// The end of a packet: its state and where it stopped.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) state: PacketState,
    pub(crate) stop: Stop<'a>,
}

/// The end of a packet.
#[derive(Debug)]
pub(crate) enum Stop<'a> {
    /// A peer received the packet.
    At(Peer<'a>),
    /// The packet is lost: no answer will come.
    Lost(Mechanism),
    /// The packet was refused on the way; the sender sees this outcome if it learns of the refusal.
    Refused(Refused<'a>),
    /// The end of the packet cannot be judged.
    Unknown(Mechanism),
}

/// A packet that was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'a> {
    /// The reason for the refusal.
    pub(crate) why: Mechanism,
    /// The peer that refused the packet.
    pub(crate) by: Peer<'a>,
    /// The outcome for the sender.
    pub(crate) outcome: Outcome,
    /// The packet that tells the sender; `None` if no rule sees how the sender learns of it.
    pub(crate) notice: Option<Packet>,
}

/// Delivers a packet to a pod. The pod's kernel drops one whose source is the pod's own address.
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

/// Returns the end of a lost packet.
pub(crate) fn lost<'a>(state: PacketState, mechanism: Mechanism) -> Arrival<'a> {
    Arrival { state, stop: Stop::Lost(mechanism) }
}
