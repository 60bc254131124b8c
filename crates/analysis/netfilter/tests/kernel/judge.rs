//! Compares the kernel with the walk: each packet, its reply and the next packet must end as
//! predicted, and each predicted end with a large enough share must occur.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use uturn_model::route::Leg;
use uturn_netfilter::{
    Assumptions, Connection, DropReason, End, EndKind, Entry, FactSubject, Packet, PacketFact,
    RejectWith, Transport,
};

use crate::around::OWN;
use crate::bytes::Mine;
use crate::case::{Case, Probe};
use crate::node::{Node, Refused, has_route};
use crate::wire::{Fate, PORTS, Seen, SendError};

/// An end with a smaller share need not occur.
const SMALLEST_SHARE: f64 = 0.04;
/// An end with that share is missed this often with a probability below 10^-12.
const MAX_TRIES: u16 = 700;

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tried {
    pub(crate) packets: usize,
    pub(crate) answers: usize,
    pub(crate) followers: usize,
    /// The number of packets for each end.
    pub(crate) ways: BTreeMap<&'static str, usize>,
    pub(crate) differences: Vec<String>,
}

pub(crate) struct Judge<'n> {
    node: &'n mut Node,
    tag: u32,
    port: u16,
    /// Whether each end must occur.
    all_ways: bool,
    source_ports: bool,
    /// Whether rules set zones, so that a reply may not find its connection.
    zones: bool,
    /// Whether there are policy rules.
    rules: bool,
    /// Whether chains of type nat decide more about the node's own errors and resets than the walk
    /// models: they translate sources at INPUT, or drop.
    nat_decides_refusals: bool,
    tried: Tried,
}

/// Tries all packets of a case.
pub(crate) fn judge(case: &Case) -> Result<Tried, Refused> {
    let mut node = Node::new(case)?;
    let mut judge = Judge {
        node: &mut node,
        tag: 0x7574_0000,
        port: 0,
        all_ways: !case.chance_is_bound(),
        source_ports: !case.chooses_source_ports(),
        zones: case.to_string().contains("--zone"),
        rules: case.to_string().contains("ip rule add"),
        nat_decides_refusals: case.nat_decides_refusals(),
        tried: Tried::default(),
    };
    for probe in case.probes() {
        judge.first(&probe)?;
    }
    Ok(judge.tried)
}

impl Judge<'_> {
    fn first(&mut self, probe: &Probe) -> Result<(), Refused> {
        let block = probe.packet.leg().src.port() / 1000 * 1000;
        let mut missing: Vec<End> = Vec::new();
        for tries in 1..=MAX_TRIES {
            self.port = (self.port + 1) % 1000;
            let probe = probe.again(block + self.port);
            let kernel = &self.node.kernel;
            let ends = kernel.walk_assuming(&probe.packet, &probe.entry, &[], &by_root());
            let mine = Mine::new(self.tag(), &probe.packet);
            let fate = self.send(&probe, mine)?;
            let fitting: Vec<&End> =
                ends.iter().filter(|end| self.fits(end, &fate.packet, &probe)).collect();
            if fitting.is_empty() {
                self.differ("its first packet", &probe, &ends, Some(&fate.packet));
                return Ok(());
            }
            if tries == 1 {
                let must = |end: &&End| end.share.get() >= SMALLEST_SHARE && end.unknown.is_empty();
                missing = ends.iter().filter(must).filter(|_| self.all_ways).cloned().collect();
                let fitting = fitting.into_iter().cloned().collect::<Vec<_>>();
                self.answer(&probe, mine, &fate, &fitting)?;
            }
            missing.retain(|end| !self.fits(&at(end, &probe), &fate.packet, &probe));
            if missing.is_empty() {
                return Ok(());
            }
        }
        let text = format!("one of its ways, by {MAX_TRIES} packets,");
        self.differ(&text, probe, &missing, None);
        Ok(())
    }

    /// Sends a reply to the packet back, then the next packet of its connection.
    fn answer(
        &mut self,
        probe: &Probe,
        mine: Mine,
        fate: &Fate,
        ends: &[End],
    ) -> Result<(), Refused> {
        let asks = match probe.packet.transport {
            Transport::Tcp { syn, ack, .. } => syn && !ack,
            Transport::Udp { .. } | Transport::Sctp { .. } => true,
            Transport::Icmp { kind, .. } => kind == 8,
            Transport::Reset { .. } | Transport::IcmpError { .. } => false,
        };
        let (leg, entry) = match &fate.packet {
            Seen::Out { device, leg } => (*leg, Entry::Interface(interface(device).into())),
            Seen::Local { leg } => (*leg, Entry::Local),
            _ => return Ok(()),
        };
        let special =
            matches!(leg.dst.ip(), IpAddr::V4(ip) if ip.octets()[3] == 255 || ip.is_multicast());
        if !asks || special || self.zones {
            return Ok(());
        }
        let is_unseen = match probe.packet.transport {
            // A new number and a reply to an unknown association: packets do not show these.
            Transport::Icmp { .. } => !self.source_ports,
            Transport::Sctp { .. } => ends.iter().any(|end| end.connection.is_none()),
            _ => false,
        };
        if is_unseen {
            return Ok(());
        }
        let packet = probe.packet.with_leg(leg).reply();
        let reply = Probe { entry, packet };
        // Both branches on an unmodelled rule may lead to one end, with two connections.
        let mut known: Vec<Vec<Connection>> = Vec::new();
        for end in ends {
            let connection = end.connection.clone().map(|mut connection| {
                if connection.reply.dst.port() != leg.src.port() {
                    connection.reply.dst.set_port(leg.src.port());
                }
                connection
            });
            let connection: Vec<Connection> = connection.into_iter().collect();
            if !known.contains(&connection) {
                known.push(connection);
            }
        }
        let by_kernel = reply.entry == Entry::Local
            && match packet.transport {
                Transport::Tcp { .. } if !PORTS.contains(&leg.dst.port()) => return Ok(()),
                // A listener may find no route back where a forwarded packet would.
                Transport::Tcp { .. } if probe.entry == Entry::Local && self.rules => return Ok(()),
                // The kernel does not reply from an address that is local only by a policy rule.
                Transport::Icmp { .. } if !is_own(leg.dst.ip()) => return Ok(()),
                Transport::Tcp { .. } | Transport::Icmp { .. } => true,
                _ => false,
            };
        let back = if by_kernel {
            fate.answer.clone()
        } else {
            let back = Mine::answering(self.tag(), mine);
            self.send(&reply, back)?.packet
        };
        self.tried.answers += 1;
        // The kernel's own replies are sent by no user.
        let sender = if by_kernel { Assumptions::default() } else { by_root() };
        let walked = self.walk(&reply, &known, &sender);
        // Errors about the kernel's own replies are not captured.
        let unseen = |end: &End| {
            by_kernel && back == Seen::Nothing && matches!(end.kind, EndKind::Reject(_))
        };
        if !walked.iter().any(|end| self.fits(end, &back, &reply) || unseen(end)) {
            self.differ("the answer to it", &reply, &walked, Some(&back));
            return Ok(());
        }
        // Only if the reply reached its destination do both sides know the connection, and the
        // reply may have changed its connection mark.
        let after = walked.iter().filter(|end| self.fits(end, &back, &reply));
        let answered = |end: &End| {
            let connection = end.connection.clone();
            connection.map(|known| Connection { seen_reply: true, ..known }).into_iter().collect()
        };
        let known: Vec<Vec<Connection>> = after.map(answered).collect();
        let arrived = matches!(back, Seen::Out { .. } | Seen::Local { .. });
        // If the reply began a connection of its own, the next packet may clash with that one, and
        // the kernel then changes its port.
        let began =
            |known: &Vec<Connection>| known.iter().any(|known| known.original == packet.leg());
        if !arrived || known.iter().any(Vec::is_empty) || known.iter().any(began) {
            return Ok(());
        }
        let later = match probe.packet.transport {
            Transport::Tcp { src_port, dst_port, .. } => {
                Transport::Tcp { src_port, dst_port, syn: false, ack: true }
            }
            other => other,
        };
        let packet = Packet { transport: later, ..probe.packet };
        // The kernel selects a source if there is none, and would not now; and it resets a
        // connection for which it has no socket.
        let reset = probe.entry == Entry::Local && matches!(later, Transport::Tcp { .. });
        if packet.src.is_unspecified() || reset {
            return Ok(());
        }
        let next = Probe { entry: probe.entry.clone(), packet };
        let mine = Mine::following(self.tag(), mine);
        let fate = self.send(&next, mine)?;
        self.tried.followers += 1;
        let walked = self.walk(&next, &known, &by_root());
        if !walked.iter().any(|end| self.fits(end, &fate.packet, &next)) {
            self.differ("what follows it", &next, &walked, Some(&fate.packet));
        }
        Ok(())
    }

    fn walk(&self, probe: &Probe, known: &[Vec<Connection>], sender: &Assumptions) -> Vec<End> {
        let kernel = &self.node.kernel;
        let walk = |known| kernel.walk_assuming(&probe.packet, &probe.entry, known, sender);
        known.iter().flat_map(|known| walk(known)).collect()
    }

    fn send(&mut self, probe: &Probe, mine: Mine) -> Result<Fate, Refused> {
        self.node.forget()?;
        let fate = match &probe.entry {
            Entry::Local => self.node.wire.send(&probe.packet, mine)?,
            Entry::Interface(device) => self.node.wire.arrive(device, &probe.packet, mine)?,
        };
        self.tried.packets += 1;
        *self.tried.ways.entry(way(&fate.packet)).or_default() += 1;
        Ok(fate)
    }

    fn tag(&mut self) -> u32 {
        self.tag = self.tag.wrapping_add(1);
        self.tag
    }

    /// Whether a predicted end agrees with what was observed.
    fn fits(&self, end: &End, seen: &Seen, probe: &Probe) -> bool {
        let same = |leg: &Leg| {
            let own = end.packet.leg();
            let ports = self.source_ports || leg.src.port() == own.src.port();
            leg.dst == own.dst
                && leg.src.ip() == own.src.ip()
                && (!ports || leg.src.port() == own.src.port())
        };
        match (&end.kind, seen) {
            (EndKind::Local, Seen::Local { leg }) => same(leg),
            (EndKind::Forward, Seen::Out { device, leg }) => {
                end.out.as_deref() == Some(interface(device)) && same(leg)
            }
            (EndKind::Reject(RejectWith::TcpReset), Seen::Reset { leg }) => {
                let ips = |leg: Leg| (leg.src.ip(), leg.dst.ip());
                let told = self.told(RejectWith::TcpReset, end);
                // What goes back over a bridge is a frame that no rule sees and nothing translates.
                let is_frame = probe.entry == Entry::Interface("br0".into());
                is_frame && ips(*leg) == ips(end.packet.reply().leg())
                    || told.iter().any(|told| arrives(told) && ips(told.packet.leg()) == ips(*leg))
            }
            (EndKind::Reject(with), Seen::Error { kind: 3, code, src }) => {
                code_of(*with) == Some(*code)
                    && self.told(*with, end).iter().any(|told| {
                        arrives(told) && (told.packet.src == *src || self.nat_decides_refusals)
                    })
            }
            // An error without a route back is not sent, nor is one about a broadcast; and rules
            // and routes can drop it.
            (EndKind::Reject(with), seen @ (Seen::Nothing | Seen::SendError(_))) => {
                // A process of the node has an error from its call. Under policy rules for its source,
                // the kernel may send no ICMP error besides.
                let told_by_call = self.rules && probe.entry == Entry::Local;
                self.nat_decides_refusals
                    || told_by_call && *seen == Seen::SendError(SendError::NotPermitted)
                    || !can_be_observed(probe, end)
                    || !self.told(*with, end).iter().all(arrives)
            }
            (EndKind::Drop(reason), seen) => dropped(reason, seen),
            _ => false,
        }
    }

    /// The ends of what the node sends about a packet that it rejects, which is subject to its rules and
    /// routes.
    fn told(&self, with: RejectWith, end: &End) -> Vec<End> {
        let refusal = end.packet.refusal(with, end.is_for_node);
        let known: Vec<Connection> = end.connection.iter().cloned().collect();
        self.node.kernel.walk(&refusal, &Entry::Local, &known)
    }

    fn differ(&mut self, what: &str, probe: &Probe, ends: &[End], seen: Option<&Seen>) {
        let Probe { entry, packet } = probe;
        let mut text = format!(
            "{what} {:?} {} mark {}, {entry:?}",
            packet.transport,
            packet.leg(),
            packet.mark
        );
        for end in ends {
            text += &format!(
                "\n  - the walk: {:.3} {:?} {} {:?}",
                end.share,
                end.kind,
                end.packet.leg(),
                end.out
            );
            for step in &end.steps {
                text += &format!("\n      {:?} {} ({})", step.kind, step.why, step.by.rule());
            }
        }
        match seen {
            Some(seen) => text += &format!("\n  + the kernel: {seen:?}"),
            None => text += "\n  + the kernel: never",
        }
        self.tried.differences.push(text);
    }
}

/// The facts about packets that a local process sends.
fn by_root() -> Assumptions {
    let is = |subject| PacketFact::exactly(subject, 0);
    let root = Assumptions::default().with_fact(is(FactSubject::User), true);
    root.with_fact(is(FactSubject::Group), true)
        .with_fact(PacketFact::exactly(FactSubject::AnyGroup, 77), false)
}

/// The end of an earlier try, with this one's ports.
fn at(end: &End, probe: &Probe) -> End {
    let port = probe.packet.leg().src.port();
    // Rules do not distinguish the ports of a block.
    let set = |address: &mut SocketAddr| {
        if address.port() / 1000 == port / 1000 {
            address.set_port(port);
        }
    };
    let mut leg = end.packet.leg();
    set(&mut leg.src);
    let connection = end.connection.clone().map(|mut connection| {
        set(&mut connection.original.src);
        set(&mut connection.reply.dst);
        connection
    });
    End { packet: end.packet.with_leg(leg), connection, ..end.clone() }
}

fn interface(device: &str) -> &str {
    if device == "p0" { "br0" } else { device }
}

fn is_own(ip: IpAddr) -> bool {
    OWN.iter().any(|own| own.parse() == Ok(ip)) || ip.is_loopback()
}

fn can_be_observed(probe: &Probe, end: &End) -> bool {
    // Nor is one sent from 127.0.0.1.
    let local = end.steps.iter().any(|step| step.why.contains("is an address of this node"));
    if local && end.packet.dst.is_loopback() {
        return false;
    }
    // To its source after translation.
    let SocketAddr::V4(src) = end.packet.leg().src else { return true };
    let dst = probe.packet.dst;
    let is_broadcast = matches!(dst, IpAddr::V4(ip) if ip.octets()[3] == 255 || ip.is_multicast());
    !is_broadcast && (src.ip().is_unspecified() || has_route(&src.ip().to_string()))
}

fn dropped(reason: &DropReason, seen: &Seen) -> bool {
    use DropReason as R;
    let unroutable = matches!(
        reason,
        R::NoRoute
            | R::Unreachable
            | R::Prohibited
            | R::Blackhole
            | R::MartianSource
            | R::MartianDestination
            | R::Invalid
    );
    match seen {
        Seen::Nothing | Seen::SendError(SendError::NotPermitted) => true,
        Seen::SendError(SendError::Unroutable) => unroutable,
        Seen::Error { kind: 3, code: 0 | 1, .. } => matches!(reason, R::NoRoute | R::Unreachable),
        Seen::Error { kind: 3, code: 13, .. } => matches!(reason, R::Prohibited),
        _ => false,
    }
}

fn arrives(end: &End) -> bool {
    matches!(end.kind, EndKind::Local | EndKind::Forward)
}

fn code_of(with: RejectWith) -> Option<u8> {
    with.icmp().map(|(_, code)| code)
}

fn way(seen: &Seen) -> &'static str {
    match seen {
        Seen::Out { .. } => "sent on",
        Seen::Local { .. } => "handed over",
        Seen::Reset { .. } | Seen::Error { .. } => "refused",
        Seen::SendError(_) => "the sender got an error",
        Seen::Nothing => "dropped",
    }
}
