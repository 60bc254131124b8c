//! Diagnoses a failed connection from the kernel's counters, for packets that arrive at a place and
//! do not leave it, and for which the kernel gives no drop reason.

use std::net::SocketAddr;

use uturn_model::{Mechanism, Outcome};

use super::counters::Counted;
use super::diagnosis::{Diagnosis, Observations};
use super::follow::Followed;
use super::packet::Body;

/// Drop reasons that explain nothing.
const NO_REASON: [&str; 2] = ["NOT_SPECIFIED", "no reason given"];

/// The loopback device.
const LOOPBACK: &str = "lo";

impl Observations<'_> {
    /// Diagnoses a packet that arrives at a place that has its source address: route lookup drops
    /// it.
    pub(super) fn own_source(&self) -> Option<Diagnosis> {
        // The kernel counted no martian sources.
        if self.growth.martians == Some(0) {
            return None;
        }
        let arrived = self.frames.iter().find(|frame| {
            let is_own = self.kernel_states[frame.place].own.contains(&frame.packet.src.ip());
            let has_reason = frame.reason().is_some_and(|reason| !NO_REASON.contains(&reason));
            let comes = !frame.leaves && frame.link != LOOPBACK && frame.begins();
            comes && is_own && !has_reason && !self.passes(frame) && !self.is_refused(frame)
        })?;
        let filtered = |what: &Counted| matches!(what, Counted::Rule(_) | Counted::ReversePath);
        if self
            .growth
            .grown
            .iter()
            .any(|other| other.place == arrived.place && filtered(&other.what))
        {
            return None;
        }
        let (packet, place) = (&arrived.packet, &self.places[arrived.place]);
        let source = packet.src.ip();
        let evidence = match self.growth.martians {
            Some(count) => format!(
                "the kernel has counted {count} packets with an impossible source \
                 (in_martian_src), and no other rule or filter there has dropped any"
            ),
            None => "no rule and no filter there has dropped it".to_owned(),
        };
        let because = format!(
            "{packet} comes to {place}, whose kernel has the address {source} itself, and ends \
             there: {evidence}"
        );
        Some((Mechanism::LocalSourceDrop, because))
    }

    /// Diagnoses a packet that ends at a place where a rule or a filter has counted it.
    pub(super) fn by_counter(&self) -> Option<Diagnosis> {
        let is_end = |frame: &&Followed| {
            let answers = frame.packet.is_syn_ack()
                && (!self.is_balancers(frame.place) || self.has_passed_on_syn_of(frame));
            !frame.leaves && (frame.begins() || answers) && !self.passes(frame)
        };
        let mut ends: Vec<usize> =
            self.frames.iter().filter(is_end).map(|frame| frame.place).collect();
        // If no frame was seen, the packet ended in the client's namespace.
        if self.frames.is_empty() {
            ends.push(self.client);
        }
        ends.into_iter().find_map(|place| {
            let mut grown = self.growth.grown.iter().filter(|counter| counter.place == place);
            if let Some(filtered) =
                grown.clone().find(|counter| counter.what == Counted::ReversePath)
            {
                let because = format!(
                    "the reverse-path filter of {} has dropped {} packets",
                    self.places[place], filtered.by
                );
                return Some((Mechanism::ReversePathFilter, because));
            }
            let at = &self.places[place];
            let has_grown = grown.clone().any(|counter| counter.rule().is_some());
            let rule = self.rule(place).filter(|_| has_grown);
            if let Some((mechanism, why)) = rule {
                return Some((mechanism, format!("at {at}: {why}")));
            }
            let lost = grown.find(|counter| counter.what == Counted::NoWay)?;
            let to = self.at(place).find(|frame| is_end(frame))?.packet.dst.ip();
            let because = format!("{at} has counted {} packets without a route ({to})", lost.by);
            Some((self.kind_of_unroutable(to), because))
        })
    }

    /// Returns whether the SYN that a packet answers arrived at its place by a link, so that the
    /// place forwards the connection.
    fn has_passed_on_syn_of(&self, frame: &Followed) -> bool {
        let Body::Tcp { ack, .. } = frame.packet.body else { return false };
        let is_it = |other: &Followed| match other.packet.body {
            Body::Tcp { seq, .. } => other.packet.is_syn() && seq.wrapping_add(1) == ack,
            _ => false,
        };
        self.at(frame.place).any(|other| !other.leaves && is_it(other))
    }

    /// Diagnoses a packet that reaches a place without a socket for it.
    pub(super) fn no_process_listens(&self) -> Option<Diagnosis> {
        let refused = self.frames.iter().find(|frame| {
            let by = match frame.packet.body {
                Body::Udp(_) => Counted::NoPorts,
                _ => Counted::Resets,
            };
            let has_grown = || {
                let mut grown = self.growth.grown.iter();
                grown.any(|other| other.place == frame.place && other.what == by)
            };
            let comes = !frame.leaves && frame.begins() && !self.is_balancers(frame.place);
            comes && self.is_refused(frame) && has_grown()
        })?;
        let (packet, place) = (&refused.packet, &self.places[refused.place]);
        let reaction = match packet.body {
            Body::Udp(_) => "says that the port is unreachable",
            _ => "resets it",
        };
        let because =
            |what: &str| format!("{place} gets {packet} and {reaction} by itself: {what}");
        Some(if self.is_node_port(packet.dst) {
            (Mechanism::RuleMissing, because("a node port that no rule takes"))
        } else {
            (Mechanism::WrongPort, because("no process listens there"))
        })
    }

    /// Diagnoses a packet for an IPVS virtual server without a real server.
    pub(super) fn without_server(&self) -> Option<Diagnosis> {
        if self.outcome != Outcome::Refused {
            return None;
        }
        let lacks_server =
            |place: usize, to: SocketAddr| self.kernel_states[place].without_server.contains(&to);
        let explain = |place: usize, to: SocketAddr| {
            let place = &self.places[place];
            let because = format!("the virtual server {to} of {place} has no real server");
            (Mechanism::NoEndpoint, because)
        };
        let comes = |frame: &&Followed| {
            !frame.leaves && frame.begins() && lacks_server(frame.place, frame.packet.dst)
        };
        let seen =
            self.frames.iter().find(comes).map(|frame| explain(frame.place, frame.packet.dst));
        // A node's own connection to its virtual server appears on no link.
        seen.or_else(|| lacks_server(self.client, self.to).then(|| explain(self.client, self.to)))
    }

    /// Returns whether a packet leaves its place again, possibly with other addresses, or is
    /// answered.
    fn passes(&self, frame: &Followed) -> bool {
        let passes = |other: &Followed| match (&frame.packet.body, &other.packet.body) {
            (Body::Tcp { seq, .. }, Body::Tcp { ack, .. }) if other.packet.is_syn_ack() => {
                frame.packet.is_syn() && *ack == seq.wrapping_add(1)
            }
            (Body::Udp(_), Body::Udp(_)) => {
                other.packet.body == frame.packet.body || other.answers(frame)
            }
            (own, others) => own == others,
        };
        self.at(frame.place).any(|other| other.leaves && other.at >= frame.at && passes(other))
    }

    /// Returns whether the packet's place answers it with a reset or an ICMP error.
    fn is_refused(&self, frame: &Followed) -> bool {
        let refuses = |other: &Followed| match (&frame.packet.body, &other.packet.body) {
            (Body::Tcp { seq, .. }, Body::Tcp { ack, .. }) => {
                other.packet.is_rst() && *ack == seq.wrapping_add(1)
            }
            (_, Body::Error { .. }) => other.answers(frame),
            _ => false,
        };
        self.at(frame.place).any(|other| other.leaves && other.answers(frame) && refuses(other))
    }
}

impl Followed {
    /// Returns whether the frame is a SYN or a datagram.
    pub(super) fn begins(&self) -> bool {
        self.packet.is_syn() || matches!(self.packet.body, Body::Udp(_))
    }

    /// Returns whether the frame goes in the opposite direction, or is an error about `question`.
    fn answers(&self, question: &Self) -> bool {
        match &self.packet.body {
            Body::Error { about, .. } => *about == (question.packet.src, question.packet.dst),
            _ => (self.packet.src, self.packet.dst) == (question.packet.dst, question.packet.src),
        }
    }
}
