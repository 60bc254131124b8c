//! A packet from place to place, until a process, a load balancer or nobody gets it.

use std::net::SocketAddr;

use uturn_model::route::{Leg, Place, Step, StepKind, Way};
use uturn_model::{Evidence, Hop, Mechanism, Name, Node, Outcome, Pod, Protocol, Supposition};
use uturn_netfilter::{Connection, DropReason, End, EndKind, Entry, Packet, RejectWith};

use crate::bridge::reset_in_vain;
use crate::drop_cause::mechanism_of;
use crate::engine::{Engine, WalkError};
use crate::refusal;
use crate::retransmission::{Pace, Tries};

/// More nodes than any real way passes: a packet that goes round is lost.
const MOST_NODES: usize = 16;

/// Who sends or gets a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer<'a> {
    /// A pod with a network of its own.
    Pod(&'a Pod),
    /// A process in a node's network; a hostNetwork pod where it is known which.
    Host(&'a Node, Option<&'a Pod>),
    /// A load balancer, by its place in the engine's list.
    Balancer(usize),
    /// Somebody outside.
    Outside,
}

impl PartialEq for Peer<'_> {
    /// The same network, that is: who answers at an address is the same party.
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

/// A packet on its way, with what it has seen and what it left behind.
#[derive(Clone, Debug)]
pub(crate) struct PacketState {
    pub(crate) share: f64,
    pub(crate) packet: Packet,
    pub(crate) way: Way,
    pub(crate) hops: Vec<Hop>,
    /// Whether only the last step is kept.
    is_brief: bool,
    /// How many nodes this packet has passed.
    passed: usize,
    /// Whether a rule threw dice on the way.
    pub(crate) chance: bool,
    /// What had to be taken for true.
    pub(crate) supposed: Vec<Supposition>,
    /// How often it was sent.
    pub(crate) tries: Tries,
    /// What each node's connection tracking remembers of this flow.
    nodes: Vec<(Name, Connection)>,
    /// What the fabric translated (a node's private address to its public one).
    pub(crate) fabric: Vec<Connection>,
    /// What load balancers sent out, with the sender.
    pub(crate) legs: Vec<(usize, Leg)>,
}

impl PacketState {
    pub(crate) fn new(packet: Packet) -> Self {
        Self {
            share: 1.0,
            packet,
            way: Way::Out,
            hops: Vec::new(),
            is_brief: false,
            passed: 0,
            chance: false,
            supposed: Vec::new(),
            tries: Tries::first(Pace::on(None)),
            nodes: Vec::new(),
            fabric: Vec::new(),
            legs: Vec::new(),
        }
    }

    /// One that begins nowhere: it is not known where it would go.
    pub(crate) fn nowhere(protocol: Protocol) -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self::new(Packet::new(protocol, nowhere, nowhere))
    }

    /// The same, keeping only its last step where nobody wants to know more.
    pub(crate) fn briefly(mut self, is_brief: bool) -> Self {
        self.is_brief = is_brief;
        self
    }

    /// The same, sent again at this pace while nobody answers.
    pub(crate) fn paced(mut self, pace: Pace) -> Self {
        self.tries = Tries::first(pace);
        self
    }

    /// The answer to what just arrived, about to leave.
    pub(crate) fn answer(&self) -> Self {
        Self { packet: self.packet.reply(), way: Way::Back, passed: 0, ..self.clone() }
    }

    /// Another packet in the same world, with the same memory and no hops yet.
    pub(crate) fn another(&self, packet: Packet, way: Way) -> Self {
        Self { packet, way, share: 1.0, hops: Vec::new(), passed: 0, chance: false, ..self.clone() }
    }

    /// The same, where what came before this packet is told already.
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
            Some(hop) if hop.place == place && hop.way == self.way => hop.steps.push(step),
            _ => self.hops.push(Hop { place, way: self.way, steps: vec![step] }),
        }
    }

    /// The same of a step that decides nothing: not even made where nobody wants to know it.
    pub(crate) fn tell(&mut self, place: impl FnOnce() -> Place, step: impl FnOnce() -> Step) {
        match self.is_brief {
            true => self.hops.clear(),
            false => self.note(place(), step()),
        }
    }

    fn remember(&mut self, node: &Name, connection: Connection) {
        let known = self
            .nodes
            .iter()
            .any(|(name, one)| name == node && one.original == connection.original);
        if !known {
            self.nodes.push((node.clone(), connection));
        }
    }
}

/// A packet on one node.
pub(crate) struct Stay<'a> {
    pub(crate) node: &'a Node,
    /// Whether it answers something that this node never saw.
    astray: bool,
    /// Whether a process of this node sent it.
    pub(crate) sent_here: bool,
    /// Through what it came, and with which addresses.
    pub(crate) came: (Entry, Leg),
}

/// Where a packet ended.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) trip: PacketState,
    pub(crate) stop: Stop<'a>,
}

/// How a packet ended.
#[derive(Debug)]
pub(crate) enum Stop<'a> {
    /// Somebody has it.
    At(Peer<'a>),
    /// Nobody will ever answer.
    Lost(Mechanism),
    /// Somebody on the way said no, and tells whoever sent it, who sees it as this.
    Refused(Mechanism, Peer<'a>, Outcome),
    /// What becomes of it cannot be judged.
    Unknown(Mechanism),
}

impl<'a> Engine<'a> {
    /// Sends a packet and follows it in every way it can go.
    pub(crate) fn send(
        &self,
        from: Peer<'a>,
        mut trip: PacketState,
    ) -> Result<Vec<Arrival<'a>>, WalkError> {
        let leg = trip.packet.leg();
        let way = trip.way;
        let step = || Step::new(StepKind::Send, sends(way), self.by(from)).seeing(leg);
        match from {
            // Its own address never leaves a pod.
            Peer::Pod(pod) if pod.ips.contains(&leg.dst.ip()) => {
                trip.tell(|| Place::Pod(pod.name.clone()), step);
                Ok(vec![Arrival { trip, stop: Stop::At(from) }])
            }
            Peer::Pod(pod) => {
                trip.tell(|| Place::Pod(pod.name.clone()), step);
                match pod.node.as_ref().and_then(|name| self.cluster.nodes.get(name)) {
                    Some(node) => {
                        let link = self.runtime(&node.name)?.pod_link(leg.src.ip());
                        self.at_node(node, &Entry::Interface(link), trip)
                    }
                    None => Ok(vec![lost(trip, Mechanism::NoRoute)]),
                }
            }
            Peer::Host(node, pod) => {
                let place = || match pod {
                    Some(pod) => Place::Pod(pod.name.clone()),
                    None => Place::Node(node.name.clone()),
                };
                trip.tell(place, step);
                self.at_node(node, &Entry::Local, trip)
            }
            // What a load balancer does is noted where it decides.
            Peer::Balancer(_) => self.at_fabric(None, trip),
            Peer::Outside => {
                trip.tell(|| Place::Outside, step);
                self.at_fabric(None, trip)
            }
        }
    }

    pub(crate) fn at_node(
        &self,
        node: &'a Node,
        entry: &Entry,
        mut trip: PacketState,
    ) -> Result<Vec<Arrival<'a>>, WalkError> {
        trip.passed += 1;
        if trip.passed > MOST_NODES {
            return Ok(vec![lost(trip, Mechanism::NoRoute)]);
        }
        let known: Vec<Connection> = trip
            .nodes
            .iter()
            .filter(|(name, _)| *name == node.name)
            .map(|(_, connection)| connection.clone())
            .collect();
        let leg = trip.packet.leg();
        let astray = trip.way == Way::Back
            && !known.iter().any(|one| one.original == leg || one.reply == leg);
        let runtime = self.runtime(&node.name)?;
        let kernel = match self.is_bridged(node, entry, &trip.packet)? {
            true if !runtime.bridge_shows_rules(trip.packet.family()) => {
                return Ok(self.past_rules(node, trip));
            }
            true => runtime.bridging(),
            false => &runtime.kernel,
        };
        let mut ends = kernel.walk_assuming(&trip.packet, entry, &known, &self.assumed.borrow());
        for (question, _) in ends.iter().flat_map(|end| &end.open_questions) {
            let mut open = self.open.borrow_mut();
            if !open.iter().any(|one| one.is_same(question)) {
                open.push(question.clone());
            }
        }
        self.weigh(leg, &mut ends)?;
        if trip.way == Way::Out {
            for to in
                ends.iter().map(|end| end.packet.leg().dst).filter(|to| to.ip() != leg.dst.ip())
            {
                self.mind_endpoints(to.ip())?;
            }
        }
        let stay =
            Stay { node, astray, sent_here: *entry == Entry::Local, came: (entry.clone(), leg) };
        self.after_dice(&stay, ends, &trip)
    }

    /// Where endpoints stand for many, each is picked as often as all that it stands for.
    /// Rules pick any endpoint as likely as any other.
    fn weigh(&self, before: Leg, ends: &mut [End]) -> Result<(), WalkError> {
        let Some(weights) = &self.weights else { return Ok(()) };
        let weight = |end: &End| match end.packet.leg().dst == before.dst {
            true => None,
            false => weights.endpoints.get(&end.packet.leg().dst.ip()).copied(),
        };
        let picked = || ends.iter().filter_map(|end| Some((end.share, weight(end)?)));
        let plain: f64 = picked().map(|(share, _)| share).sum();
        let weighed: f64 = picked().map(|(share, weight)| share * weight).sum();
        if picked().count() < 2 || weighed <= 0.0 {
            return Ok(());
        }
        if ends.iter().any(|end| weight(end).is_some() && !end.unknown.is_empty()) {
            return Err(WalkError::NeedsWhole);
        }
        let scale = plain / weighed;
        for end in ends.iter_mut() {
            if let Some(weight) = weight(end) {
                end.share *= weight * scale;
            }
        }
        Ok(())
    }

    /// Goes on where a node let a packet go.
    pub(crate) fn after_node(
        &self,
        stay: &Stay<'a>,
        end: End,
        mut trip: PacketState,
    ) -> Result<Vec<Arrival<'a>>, WalkError> {
        let node = stay.node;
        trip.share *= end.share;
        trip.chance |= end.share < 1.0;
        trip.packet = end.packet;
        add_new(&mut trip.supposed, end.supposed);
        add_new(&mut trip.supposed, end.unknown.iter().map(|by| both_ways(node, by)).collect());
        let untold = if trip.is_brief { end.steps.len().saturating_sub(1) } else { 0 };
        for step in end.steps.into_iter().skip(untold) {
            trip.note(Place::Node(node.name.clone()), step);
        }
        if let Some(connection) = end.connection {
            trip.remember(&node.name, connection);
        }
        let arrivals = match end.kind {
            EndKind::Local => {
                let port = trip.packet.leg().dst.port();
                self.mind_processes(node, port)?;
                let pod = self.host_pod_on(node, port);
                vec![Arrival { trip, stop: Stop::At(Peer::Host(node, pod)) }]
            }
            EndKind::Forward if self.runtime(&node.name)?.leads_to_fabric(end.out.as_deref()) => {
                self.at_fabric(Some(node), trip)?
            }
            EndKind::Forward => match self.pod_at(trip.packet.dst) {
                Some(pod) if pod.node.as_ref() == Some(&node.name) => arrive(pod, trip),
                _ => self.leave_for_pods(node, trip)?,
            },
            EndKind::Unsettled => vec![lost(trip, Mechanism::Firewall)],
            EndKind::Drop(DropReason::Rule(_) | DropReason::Policy(_)) => {
                let why = match stay.astray {
                    true => Mechanism::AsymmetricReturn,
                    false => self.why_stopped(node, &trip)?,
                };
                vec![lost(trip, why)]
            }
            EndKind::Drop(reason) => {
                let why = mechanism_of(&reason);
                let outcome = match stay.sent_here {
                    true => refusal::of_unsent(&reason),
                    false => refusal::of_drop(&reason, trip.packet.protocol()),
                };
                let stop = match outcome {
                    Some(outcome) => Stop::Refused(why, Peer::Host(node, None), outcome),
                    None => Stop::Lost(why),
                };
                vec![Arrival { trip, stop }]
            }
            EndKind::Reject(how) => {
                let why = self.why_stopped(node, &trip)?;
                if how == RejectWith::TcpReset && self.resets_in_vain(stay, trip.packet.leg())? {
                    return Ok(vec![reset_in_vain(stay, why, trip)]);
                }
                let outcome = refusal::of_reject(how, trip.packet.protocol());
                vec![Arrival { trip, stop: Stop::Refused(why, Peer::Host(node, None), outcome) }]
            }
        };
        Ok(arrivals)
    }

    /// What a party's own doing rests on.
    pub(crate) fn by(&self, party: Peer<'_>) -> Evidence {
        match party {
            Peer::Pod(pod) | Peer::Host(_, Some(pod)) => {
                Evidence::object(pod.object(), pod.origin.clone())
            }
            Peer::Host(node, None) => Evidence::object(node.object(), node.origin.clone()),
            Peer::Balancer(i) => Evidence::LoadBalancer {
                name: self.balancers()[i].name.clone(),
                origin: self.balancer_origin(i),
            },
            Peer::Outside => Evidence::Outside { what: "somebody outside".into() },
        }
    }
}

/// A rule that nobody models: both ways were followed, half and half.
fn both_ways(node: &Node, by: &Evidence) -> Supposition {
    Supposition {
        about: format!("a rule of node {} that uturn does not model", node.name).into(),
        taken: "both ways, half and half".into(),
        because: by.to_string().into(),
        settle: "look at the rule".into(),
    }
}

/// Adds what is not there yet.
pub(crate) fn add_new(known: &mut Vec<Supposition>, more: Vec<Supposition>) {
    for one in more {
        if !known.contains(&one) {
            known.push(one);
        }
    }
}

fn sends(way: Way) -> &'static str {
    match way {
        Way::Out => "connects",
        Way::Back => "answers",
    }
}

/// A packet reaches a pod, whose own kernel takes none that claims to come from itself.
pub(crate) fn arrive<'a>(pod: &'a Pod, mut trip: PacketState) -> Vec<Arrival<'a>> {
    let leg = trip.packet.leg();
    if !pod.ips.contains(&leg.src.ip()) {
        return vec![Arrival { trip, stop: Stop::At(Peer::Pod(pod)) }];
    }
    let why = "comes in with the pod's own address as its source: the pod's kernel drops it";
    let step = Step::new(StepKind::Drop, why, Evidence::kernel("routing: the source is local"));
    trip.note(Place::Pod(pod.name.clone()), step.seeing(leg));
    vec![lost(trip, Mechanism::LocalSourceDrop)]
}

/// Nobody will ever answer this packet.
pub(crate) fn lost<'a>(trip: PacketState, mechanism: Mechanism) -> Arrival<'a> {
    Arrival { trip, stop: Stop::Lost(mechanism) }
}
