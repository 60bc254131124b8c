//! What a rule does with a packet.

use std::net::IpAddr;

use uturn_model::{IpNet, Text};

use super::{Extension, PortRange};
use crate::packet::RejectWith;

/// `-j …` or `-g …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// It passes this table.
    Accept,
    /// It is thrown away.
    Drop,
    /// Back to the chain that jumped here.
    Return,
    /// It is refused.
    Reject(RejectWith),
    /// On in a chain, and back here at its end.
    Jump(Text),
    /// On in a chain, and at its end back to where this one would return to.
    Goto(Text),
    /// The packet's mark becomes `(mark & !mask) ^ value`.
    Mark {
        /// Bits that flip.
        value: u32,
        /// Bits that are cleared before.
        mask: u32,
    },
    /// Between the packet's mark and its connection's.
    Connmark(ConnmarkOp),
    /// Another destination.
    Dnat(NatTo),
    /// Another source.
    Snat(NatTo),
    /// The address of the interface it leaves through as the source.
    Masquerade(NatPorts),
    /// The node itself as the destination.
    Redirect(NatPorts),
    /// The destination (before routing) or source (after it) in another network, the
    /// rest of the address kept.
    Netmap(IpNet),
    /// Given to a socket of the node, without a change to its addresses.
    Tproxy(Tproxy),
    /// Writes to the log.
    Log(Extension),
    /// Follows the packet through the rules.
    Trace,
    /// Keeps connection tracking away.
    Notrack {
        /// Whether it is written `CT --notrack` instead of `NOTRACK`.
        ct: bool,
    },
    /// One that nobody models.
    Other(Extension),
}

/// What `-j CONNMARK` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnmarkOp {
    /// The connection's mark becomes `(mark & !mask) ^ value`.
    Set {
        /// Bits that flip.
        value: u32,
        /// Bits that are cleared before.
        mask: u32,
    },
    /// The packet's mark is kept with the connection.
    Save {
        /// Bits taken from the packet.
        nfmask: u32,
        /// Bits of the connection that are cleared before.
        ctmask: u32,
    },
    /// The connection's mark is put on the packet.
    Restore {
        /// Bits of the packet that are cleared before.
        nfmask: u32,
        /// Bits taken from the connection.
        ctmask: u32,
    },
}

/// `--to-destination` or `--to-source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatTo {
    /// The first and last address; none leaves the address.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// The ports.
    pub ports: Option<PortRange>,
    /// `--random`
    pub random: bool,
    /// `--random-fully`
    pub random_fully: bool,
    /// `--persistent`
    pub persistent: bool,
}

/// The options of `MASQUERADE` and `REDIRECT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NatPorts {
    /// `--to-ports`
    pub ports: Option<PortRange>,
    /// `--random`
    pub random: bool,
    /// `--random-fully`
    pub random_fully: bool,
}

/// `-j TPROXY`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tproxy {
    /// `--on-port`; 0 keeps the packet's.
    pub port: u16,
    /// `--on-ip`; none is the address of the interface it came through.
    pub address: Option<IpAddr>,
    /// `--tproxy-mark`: bits that flip.
    pub value: u32,
    /// Bits that are cleared before.
    pub mask: u32,
}
