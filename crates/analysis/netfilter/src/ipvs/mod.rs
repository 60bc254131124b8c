//! IPVS virtual servers.
//!
//! [`parse`] recognises and reads the output of `ipvsadm -Sn` and `ipvsadm -Ln`, and
//! `/proc/net/ip_vs`. [`VirtualServers`] prints what `ipvsadm -R` loads.

mod listing;
mod parse;
mod save;
mod scheduler;

pub use parse::parse;
pub(crate) use scheduler::Picks;

use std::fmt;
use std::net::SocketAddr;

use uturn_model::{Evidence, Family, Origin, Protocol, Text};

/// All virtual servers of a node, in the order of the text, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualServers(pub Vec<VirtualServer>);

/// A virtual server.
#[derive(Clone, Debug)]
pub struct VirtualServer {
    /// The packets that it accepts.
    pub at: VirtualAddress,
    /// The scheduler: `rr`, `wrr`, `sh`, …
    pub scheduler: Text,
    /// The persistence of the virtual server: whether a client keeps its real server.
    pub persistence: Option<Persistence>,
    /// `-o`: schedules every packet on its own.
    pub one_packet: bool,
    /// Other options, as written.
    pub options: Vec<Text>,
    /// The real servers, in the order of the text.
    pub servers: Vec<RealServer>,
    /// The place where the virtual server was written.
    pub origin: Origin,
}

/// The packets that a virtual server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VirtualAddress {
    /// Packets to an address; port 0 stands for any.
    Address {
        /// The protocol.
        protocol: Protocol,
        /// The address.
        address: SocketAddr,
    },
    /// Packets with a mark.
    Mark {
        /// The mark.
        mark: u32,
        /// Their family.
        family: Family,
    },
}

/// The time for which a client keeps its real server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// Seconds after its last connection; `None` if the text does not say.
    pub seconds: Option<u32>,
    /// Clients that share a prefix of this length are treated as one.
    pub prefix: u8,
}

/// A real server.
#[derive(Clone, Debug)]
pub struct RealServer {
    /// The address of the real server; port 0 stands for the packet's own port.
    pub address: SocketAddr,
    /// The method by which packets are forwarded to the real server.
    pub method: Forwarding,
    /// The weight of the real server; with 0, it receives no new connections.
    pub weight: u32,
    /// Other options, as written.
    pub options: Vec<Text>,
    /// The place where the real server was written.
    pub origin: Origin,
}

/// The forwarding method of a real server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Forwarding {
    /// `-m`: NAT of the destination, reversed for the reply.
    Masquerade,
    /// `-g`: direct routing. The real server itself has the virtual address.
    Direct,
    /// `-i`: in an IP-in-IP tunnel.
    Tunnel,
}

impl Forwarding {
    /// The option of `ipvsadm` for this method.
    pub fn option(self) -> &'static str {
        match self {
            Self::Masquerade => "-m",
            Self::Direct => "-g",
            Self::Tunnel => "-i",
        }
    }
}

impl VirtualAddress {
    /// The family of the packets.
    pub fn family(self) -> Family {
        match self {
            Self::Address { address, .. } => Family::of(address.ip()),
            Self::Mark { family, .. } => family,
        }
    }

    /// The port; `None` for any.
    pub(crate) fn port(self) -> Option<u16> {
        match self {
            Self::Address { address, .. } => Some(address.port()).filter(|port| *port > 0),
            Self::Mark { .. } => None,
        }
    }
}

impl VirtualServer {
    /// The virtual server as evidence.
    pub fn by(&self) -> Evidence {
        Evidence::Ipvs { server: format!("-A {self}").into(), origin: self.origin.clone() }
    }
}

impl PartialEq for VirtualServer {
    fn eq(&self, other: &Self) -> bool {
        (self.at, &self.scheduler, self.persistence)
            == (other.at, &other.scheduler, other.persistence)
            && (self.one_packet, &self.options) == (other.one_packet, &other.options)
            && self.servers == other.servers
    }
}

impl Eq for VirtualServer {}

impl PartialEq for RealServer {
    fn eq(&self, other: &Self) -> bool {
        (self.address, self.method, self.weight, &self.options)
            == (other.address, other.method, other.weight, &other.options)
    }
}

impl Eq for RealServer {}

impl fmt::Display for VirtualAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { protocol, address } => {
                f.write_str(match protocol {
                    Protocol::Tcp => "-t",
                    Protocol::Udp => "-u",
                    Protocol::Sctp => "--sctp-service",
                })?;
                write!(f, " {address}")
            }
            Self::Mark { mark, family: Family::V4 } => write!(f, "-f {mark}"),
            Self::Mark { mark, family: Family::V6 } => write!(f, "-f {mark} -6"),
        }
    }
}

impl fmt::Display for VirtualServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -s {}", self.at, self.scheduler)?;
        if let Some(persistence) = self.persistence {
            match persistence.seconds {
                Some(seconds) => write!(f, " -p {seconds}")?,
                None => f.write_str(" -p")?,
            }
            let family = self.at.family();
            match family {
                _ if persistence.prefix == family.bits() => {}
                Family::V4 => {
                    let bits = u32::MAX.checked_shl(32 - u32::from(persistence.prefix));
                    write!(f, " -M {}", std::net::Ipv4Addr::from_bits(bits.unwrap_or(0)))?;
                }
                Family::V6 => write!(f, " -M {}", persistence.prefix)?,
            }
        }
        if self.one_packet {
            f.write_str(" -o")?;
        }
        self.options.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

impl fmt::Display for RealServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "-r {} {} -w {}", self.address, self.method.option(), self.weight)?;
        self.options.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

impl fmt::Display for VirtualServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for server in &self.0 {
            writeln!(f, "-A {server}")?;
            for real in &server.servers {
                writeln!(f, "-a {} {real}", server.at)?;
            }
        }
        Ok(())
    }
}
