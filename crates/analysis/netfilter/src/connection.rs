//! Connection tracking entries.

use std::net::SocketAddr;

use uturn_model::route::Leg;

use crate::ipvs::Forwarding;
use crate::packet::{IpProtocol, Packet};

/// A conntrack entry: the addresses of the first packet before any translation, and those that a
/// reply to it will carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// The protocol.
    pub protocol: IpProtocol,
    /// The tuple of the first packet, before any translation.
    pub original: Leg,
    /// The tuple of the reply, before any translation.
    pub reply: Leg,
    /// The connection mark.
    pub mark: u32,
    /// The IPVS scheduling decision, if IPVS handled the connection.
    pub scheduled: Option<Scheduled>,
    /// Whether a packet of the answering side was seen (SEEN_REPLY). Until then, what the first side
    /// sends is NEW.
    pub seen_reply: bool,
}

/// The record that IPVS keeps of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scheduled {
    /// The client's address, as IPVS saw it.
    pub client: SocketAddr,
    /// The virtual server's address that the client called.
    pub address: SocketAddr,
    /// The real server.
    pub real: SocketAddr,
    /// The method by which packets are forwarded to the real server.
    pub method: Forwarding,
    /// Whether conntrack also has an entry for it: `net.ipv4.vs.conntrack`.
    pub tracked: bool,
}

impl Connection {
    /// An entry for a packet that no rule translates.
    pub fn untranslated(packet: &Packet) -> Self {
        let (original, reply) = (packet.leg(), packet.reply().leg());
        Self {
            protocol: packet.connection_protocol(),
            original,
            reply,
            mark: 0,
            scheduled: None,
            seen_reply: false,
        }
    }

    /// Whether the source was translated (SNAT or MASQUERADE).
    pub fn source_translated(&self) -> bool {
        self.original.src != self.reply.dst
    }

    /// Whether a rule translated the destination (DNAT). IPVS does not count.
    pub fn destination_translated(&self) -> bool {
        let given = self.scheduled.as_ref().map_or(self.reply.src, |scheduled| scheduled.address);
        self.original.dst != given
    }

    /// Whether conntrack has an entry for it, rather than IPVS alone.
    pub(crate) fn is_tracked(&self) -> bool {
        self.scheduled.as_ref().is_none_or(|scheduled| scheduled.tracked)
    }
}
