//! Which of all frames belong to one connection.
//!
//! Translating changes addresses but not the numbers that TCP counts with: a SYN with the
//! same number at two places is the same one. A proxy in between begins a connection of its
//! own: that belongs to the story too, as nothing else is going on but health checks, and
//! these are known by their source.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::drops::Drops;
use super::packet::{Body, Packet};
use super::tap::Frame;
use crate::Sighting;

/// A frame of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    pub(super) place: usize,
    pub(super) link: String,
    pub(super) leaves: bool,
    pub(super) at: Duration,
    pub(super) packet: Packet,
    pub(super) dropped: Option<Dropped>,
}

/// Where a packet ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) reason: String,
    pub(super) location: String,
}

/// Who called whom, and who else is talking.
#[derive(Debug)]
pub(crate) struct Story<'a> {
    /// The client's place.
    pub(crate) client: usize,
    /// What it calls.
    pub(crate) to: SocketAddr,
    /// Addresses that health checks come from.
    pub(crate) probers: &'a [IpAddr],
}

/// A connection as somebody began it, under all the addresses it has on its way.
struct Leg {
    /// A health check's is not.
    is_ours: bool,
    begins: Begins,
    ways: HashSet<(SocketAddr, SocketAddr)>,
}

#[derive(PartialEq, Eq)]
enum Begins {
    Tcp(u32),
    Udp(Vec<u8>),
}

impl Story<'_> {
    /// The frames of the connection, with where they ended.
    pub(crate) fn of(&self, frames: &[Frame], drops: &Drops) -> Vec<Followed> {
        let mut legs: Vec<Leg> = Vec::new();
        let mut followed = Vec::new();
        let ends = drops.ends(frames);
        let packets = frames.iter().enumerate();
        for (at, frame, packet) in
            packets.filter_map(|(at, one)| Some((at, one, Packet::read(&one.bytes)?)))
        {
            let is_first = frame.place == self.client && frame.leaves && packet.dst == self.to;
            if self.belongs(&mut legs, &packet, is_first) {
                let dropped = ends.get(&at).map(|(reason, location)| Dropped {
                    reason: (*reason).to_owned(),
                    location: (*location).to_owned(),
                });
                let Frame { place, link, leaves, at, .. } = frame.clone();
                followed.push(Followed { place, link, leaves, at, packet, dropped });
            }
        }
        followed
    }

    fn belongs(&self, legs: &mut Vec<Leg>, packet: &Packet, is_first: bool) -> bool {
        let way = (packet.src, packet.dst);
        let begins = match &packet.body {
            Body::Tcp { seq, .. } if packet.is_syn() => Some(Begins::Tcp(*seq)),
            Body::Udp(bytes) => Some(Begins::Udp(bytes.clone())),
            _ => None,
        };
        if let Some(begins) = begins {
            if let Some(leg) = legs.iter_mut().find(|leg| leg.begins == begins) {
                leg.add(way);
                return leg.is_ours;
            }
            // Whoever else asks by UDP is not the load balancer, which has rules for that.
            if is_first || packet.is_syn() {
                let begun = is_first || legs.iter().any(|leg| leg.is_ours);
                let is_ours = begun && !self.probers.contains(&packet.src.ip());
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
                    leg.ways.contains(&way) || leg.begins == Begins::Tcp(ack.wrapping_sub(1))
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
    /// For people: what was sent again is told once.
    pub(crate) fn tell(all: &[Self], names: &[String]) -> Vec<Sighting> {
        let mut told: Vec<(&Self, Sighting)> = Vec::new();
        for one in all {
            let is_same = |(other, _): &&mut (&Self, Sighting)| {
                (other.place, &other.link, other.leaves, &other.packet, &other.dropped)
                    == (one.place, &one.link, one.leaves, &one.packet, &one.dropped)
            };
            if let Some((_, sighting)) = told.iter_mut().find(is_same) {
                sighting.times += 1;
                continue;
            }
            let dropped = one.dropped.as_ref();
            let sighting = Sighting {
                place: names[one.place].clone(),
                link: one.link.clone(),
                leaves: one.leaves,
                after: one.at.saturating_sub(all[0].at),
                packet: one.packet.to_string(),
                times: 1,
                dropped: dropped.map(|one| format!("{} in {}", one.reason, one.location)),
            };
            told.push((one, sighting));
        }
        told.into_iter().map(|(_, sighting)| sighting).collect()
    }
}
