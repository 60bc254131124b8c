//! Selects the frames that belong to one connection.
//!
//! Address translation keeps TCP sequence numbers: SYNs with the same number at two places are the
//! same packet. A proxy begins a connection of its own, which belongs to the followed one too:
//! apart from health checks, which have known sources, nothing else happens meanwhile.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::drops::Drops;
use super::packet::{Body, Packet};
use super::tap::Frame;
use crate::Sighting;
use crate::linux::kernel::netlink::HOLE;

/// The longest time for a packet to pass through a place.
const SOON: Duration = Duration::from_millis(1);

/// A frame of the followed connection.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    pub(super) place: usize,
    pub(super) link: String,
    pub(super) leaves: bool,
    pub(super) at: Duration,
    pub(super) packet: Packet,
    pub(super) dropped: Option<Dropped>,
}

/// The place in the kernel where a packet was dropped, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) reason: String,
    pub(super) location: String,
}

/// Identifies the connection that is followed.
#[derive(Debug)]
pub(crate) struct ConnectionFilter<'a> {
    pub(crate) kind: ConnectionKind,
    /// The index of the client's place.
    pub(crate) client: usize,
    /// The address that is called.
    pub(crate) to: SocketAddr,
    /// The addresses that health checks come from.
    pub(crate) probers: &'a [IpAddr],
}

/// The kind of the connection that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// A client's connection, including those that a proxy begins for it.
    Call,
    /// A connection of a node itself, whose rules may change its packets before they appear on a
    /// link.
    CallOfNode,
    /// A health check from one of the probers.
    Probe,
}

/// A connection from one client or proxy, with all its address pairs between translations.
struct Leg {
    /// Whether it belongs to the followed connection.
    is_ours: bool,
    begins: FirstPacket,
    ways: HashSet<(SocketAddr, SocketAddr)>,
}

#[derive(PartialEq, Eq)]
enum FirstPacket {
    Tcp(u32),
    /// The payload, and the source port if the payload alone does not identify the datagram.
    Udp(Vec<u8>, Option<u16>),
}

impl ConnectionFilter<'_> {
    /// Selects the frames of the connection, and adds where they were dropped.
    pub(crate) fn of(&self, frames: &[Frame], drops: &Drops) -> Vec<Followed> {
        let mut legs: Vec<Leg> = Vec::new();
        let mut followed = Vec::new();
        let ends = drops.ends(frames);
        let packets = frames.iter().enumerate();
        for (at, frame, packet) in
            packets.filter_map(|(at, frame)| Some((at, frame, Packet::read(&frame.bytes)?)))
        {
            let is_first = self.is_first(&legs, frame, &packet);
            if self.belongs(&mut legs, &packet, is_first) {
                let dropped = ends.get(&at).map(|(reason, location)| Dropped {
                    reason: (*reason).to_owned(),
                    location: (*location).to_owned(),
                });
                let Frame { place, link, leaves, at, .. } = frame.clone();
                followed.push(Followed { place, link, leaves, at, packet, dropped });
            }
        }
        // The dropped packet may be another one of the same length, link and time, here or in
        // another lab.
        let goes_on: Vec<bool> = followed.iter().map(|frame| frame.goes_on(&followed)).collect();
        for (frame, goes_on) in followed.iter_mut().zip(goes_on) {
            frame.dropped.take_if(|_| goes_on);
        }
        followed
    }

    /// Returns whether this is the first packet of the connection.
    fn is_first(&self, legs: &[Leg], frame: &Frame, packet: &Packet) -> bool {
        let begun = legs.iter().any(|leg| leg.is_ours);
        let begins = packet.is_syn() || matches!(packet.body, Body::Udp(_));
        let calls = packet.dst == self.to;
        let is_it = match self.kind {
            ConnectionKind::Call => calls,
            ConnectionKind::CallOfNode => calls || !begun && begins,
            ConnectionKind::Probe => {
                calls && !begun && begins && self.probers.contains(&packet.src.ip())
            }
        };
        frame.place == self.client && frame.leaves && is_it
    }

    fn belongs(&self, legs: &mut Vec<Leg>, packet: &Packet, is_first: bool) -> bool {
        let way = (packet.src, packet.dst);
        let begins = match &packet.body {
            Body::Tcp { seq, .. } if packet.is_syn() => Some(FirstPacket::Tcp(*seq)),
            // All health checks have the same payload.
            Body::Udp(bytes) => {
                let port = (self.kind == ConnectionKind::Probe).then(|| packet.src.port());
                Some(FirstPacket::Udp(bytes.clone(), port))
            }
            _ => None,
        };
        if let Some(begins) = begins {
            if let Some(leg) = legs.iter_mut().find(|leg| leg.begins == begins) {
                leg.add(way);
                return leg.is_ours;
            }
            // Other UDP senders are not the load balancer, which handles UDP by rules.
            if is_first || packet.is_syn() {
                let begun = legs.iter().any(|leg| leg.is_ours);
                let is_probe = self.probers.contains(&packet.src.ip());
                let is_ours = is_first || begun && !is_probe && self.kind != ConnectionKind::Probe;
                let mut leg = Leg { is_ours, begins, ways: HashSet::new() };
                leg.add(way);
                legs.push(leg);
                return is_ours;
            }
        }
        match &packet.body {
            Body::Error { about, .. } => {
                legs.iter().any(|leg| leg.is_ours && leg.ways.contains(about))
            }
            Body::Tcp { ack, .. } if packet.is_syn_ack() => {
                let of = |leg: &&mut Leg| {
                    leg.ways.contains(&way) || leg.begins == FirstPacket::Tcp(ack.wrapping_sub(1))
                };
                legs.iter_mut().find(of).is_some_and(|leg| {
                    leg.add(way);
                    leg.is_ours
                })
            }
            _ => legs.iter().any(|leg| leg.is_ours && leg.ways.contains(&way)),
        }
    }
}

impl Leg {
    fn add(&mut self, (src, dst): (SocketAddr, SocketAddr)) {
        self.ways.insert((src, dst));
        self.ways.insert((dst, src));
    }
}

impl Followed {
    /// Returns whether the same packet leaves its place right afterwards, possibly with other
    /// addresses.
    fn goes_on(&self, all: &[Self]) -> bool {
        let soon = self.at..self.at + SOON;
        all.iter().any(|other| {
            let leaves = other.leaves && other.place == self.place && other.link != HOLE;
            leaves && soon.contains(&other.at) && other.packet.body == self.packet.body
        })
    }

    /// Converts the frames for the report. Retransmissions are merged.
    pub(crate) fn sightings(all: &[Self], names: &[String]) -> Vec<Sighting> {
        let mut grouped: Vec<(&Self, Sighting)> = Vec::new();
        for frame in all {
            let is_same = |(other, _): &&mut (&Self, Sighting)| {
                (other.place, &other.link, other.leaves, &other.packet, &other.dropped)
                    == (frame.place, &frame.link, frame.leaves, &frame.packet, &frame.dropped)
            };
            if let Some((_, sighting)) = grouped.iter_mut().find(is_same) {
                sighting.times += 1;
                continue;
            }
            let dropped = frame.dropped.as_ref();
            let sighting = Sighting {
                place: names[frame.place].clone(),
                link: frame.link.clone(),
                leaves: frame.leaves,
                after: frame.at.saturating_sub(all[0].at),
                packet: frame.packet.to_string(),
                times: 1,
                dropped: dropped.map(|frame| format!("{} in {}", frame.reason, frame.location)),
            };
            grouped.push((frame, sighting));
        }
        grouped.into_iter().map(|(_, sighting)| sighting).collect()
    }
}
