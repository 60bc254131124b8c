//! The targets of iptables rules.

use std::net::IpAddr;

use uturn_model::{IpNet, Text};

use super::{Extension, PortRange};
use crate::end::RejectWith;

/// `-j …` or `-g …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Accepted by this table.
    Accept,
    /// Dropped.
    Drop,
    /// Return to the calling chain.
    Return,
    /// Rejected.
    Reject(RejectWith),
    /// Continue in a chain, and return here at its end.
    Jump(Text),
    /// Continue in a chain, and at its end return to this chain's caller.
    Goto(Text),
    /// Sets the packet mark to `(mark & !mask) ^ value`.
    Mark {
        /// The bits to flip.
        value: u32,
        /// The bits to clear before.
        mask: u32,
    },
    /// Sets the connection mark, or copies marks between packet and connection.
    Connmark(ConnmarkOp),
    /// Translates the destination.
    Dnat(NatTo),
    /// Translates the source.
    Snat(NatTo),
    /// Translates the source to the address of the outgoing interface.
    Masquerade(NatPorts),
    /// Translates the destination to the node itself.
    Redirect(NatPorts),
    /// Moves the destination (before routing) or source (after routing) to another network,
    /// keeping the host bits.
    Netmap(IpNet),
    /// Assigns the packet to a local socket, without changing its addresses.
    Tproxy(Tproxy),
    /// Logs the packet.
    Log(Extension),
    /// Traces the packet through the rules.
    Trace,
    /// Disables connection tracking for the packet.
    Notrack {
        /// Whether it is written `CT --notrack` rather than `NOTRACK`.
        ct: bool,
    },
    /// A target that is not modelled.
    Other(Extension),
}

/// The operation of `-j CONNMARK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnmarkOp {
    /// Sets the connection mark to `(mark & !mask) ^ value`.
    Set {
        /// The bits to flip.
        value: u32,
        /// The bits to clear before.
        mask: u32,
    },
    /// Copies the packet mark to the connection.
    Save {
        /// The bits of the packet mark to copy.
        nfmask: u32,
        /// The bits of the connection mark to clear before.
        ctmask: u32,
    },
    /// Copies the connection mark to the packet.
    Restore {
        /// The bits of the packet mark to clear before.
        nfmask: u32,
        /// The bits of the connection mark to copy.
        ctmask: u32,
    },
}

/// `--to-destination` or `--to-source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatTo {
    /// The first and last address; `None` keeps the packet's address.
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
    /// `--on-port`; 0 keeps the packet's port.
    pub port: u16,
    /// `--on-ip`; `None` for the address of the incoming interface.
    pub address: Option<IpAddr>,
    /// `--tproxy-mark`: the bits to flip.
    pub value: u32,
    /// Bits that are cleared before.
    pub mask: u32,
}
