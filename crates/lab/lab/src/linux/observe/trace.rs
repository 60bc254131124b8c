//! Finds the nf_tables rule that dropped a packet with the kernel's ruleset tracing.
//!
//! Rules of nftables mode have no counters, nor have the load balancers' on layer 4. While a
//! connection is followed, a table of the lab sets `nftrace` where such rules are, and the drop
//! verdicts of the trace are kept.

use std::collections::{BTreeMap, HashMap};
use std::io;

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_NETFILTER;

use super::packet::Packet;
use super::places::places;
use crate::LabError;
use crate::linux::build::LabCluster;
use crate::linux::generic::{Attribute, read_u16, read_u32};
use crate::linux::system::{During, output, run};

/// A table with a lower priority than all other chains, so that every rule is traced.
const TABLE: &str = "table inet uturn-trace {\n\
    chain came { type filter hook prerouting priority -500; \
    meta l4proto { tcp, udp } meta nftrace set 1; }\n\
    chain made { type filter hook output priority -500; \
    meta l4proto { tcp, udp } meta nftrace set 1; }\n\
    }\n";
const NO_TABLE: &str = "delete table inet uturn-trace\n";

/// The kernel's group for traces, and the type of its messages.
const GROUP: u32 = 9;
const MESSAGE: u16 = 10 << 8 | 17;

const NAME_OF_TABLE: u16 = 1;
const NAME_OF_CHAIN: u16 = 2;
const HANDLE: u16 = 3;
const VERDICT: u16 = 5;
const VERDICT_CODE: u16 = 1;
const ID: u16 = 6;
const NETWORK_HEADER: u16 = 8;
const TRANSPORT_HEADER: u16 = 9;

const DROP: u32 = 0;

/// The length of the netlink header and the netfilter header.
const HEADERS: usize = 16 + 4;

/// The receive buffer of a trace socket, in bytes.
const BUFFER: usize = 8 << 20;

/// Trace sockets.
pub(crate) struct Trace {
    /// The sockets by place.
    sockets: BTreeMap<usize, Socket>,
}

/// A packet that a rule dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndedPacket {
    pub(super) place: usize,
    pub(super) packet: Packet,
    pub(super) table: String,
    pub(super) chain: String,
    /// The rule as `nft` prints it, or the chain's policy.
    pub(super) rule: String,
}

impl Trace {
    /// Starts tracing at the places for which `has_rules` returns true.
    pub(crate) fn start(
        lab_cluster: &LabCluster,
        has_rules: impl Fn(&str) -> bool,
    ) -> Result<Self, LabError> {
        let mut sockets = BTreeMap::new();
        for (number, place) in places(lab_cluster).into_iter().enumerate() {
            if !has_rules(&place.what) {
                continue;
            }
            let doing = format!("trace the rules of {}", place.what);
            let listen = || {
                let mut socket = Socket::new(NETLINK_NETFILTER)?;
                socket.bind_auto()?;
                socket.set_rx_buf_sz(BUFFER)?;
                socket.add_membership(GROUP)?;
                socket.set_non_blocking(true)?;
                Ok((socket, run("nft", &["-f", "-"], TABLE)?))
            };
            let (socket, loaded) = place.space.run(listen).during(&doing)?;
            sockets.insert(number, socket);
            loaded.map_err(|reason| LabError::Program { doing, reason })?;
        }
        Ok(Self { sockets })
    }

    /// Stops tracing, and returns the packets that rules dropped meanwhile.
    pub(crate) fn take(self, lab_cluster: &LabCluster) -> Result<Vec<EndedPacket>, LabError> {
        let mut all = Vec::new();
        for (number, place) in places(lab_cluster).into_iter().enumerate() {
            let Some(socket) = self.sockets.get(&number) else { continue };
            let doing = format!("read what the kernel of {} has traced", place.what);
            let rules = |log: TraceLog| -> io::Result<Vec<EndedPacket>> {
                let rule = |verdict: Verdict| {
                    let rule = verdict.rule()?;
                    let Verdict { packet, table, chain, .. } = verdict;
                    Ok(EndedPacket { place: number, packet, table, chain, rule })
                };
                log.ended.into_iter().map(rule).collect()
            };
            let heard = TraceLog::from(socket).during(&doing)?;
            let (ended, removed) = place
                .space
                .run(|| Ok((rules(heard)?, run("nft", &["-f", "-"], NO_TABLE)?)))
                .during(&doing)?;
            removed.map_err(|reason| LabError::Program { doing, reason })?;
            all.extend(ended);
        }
        Ok(all)
    }
}

/// `ENOBUFS`.
const LOST: i32 = 105;

/// The trace messages so far.
#[derive(Debug, Default)]
struct TraceLog {
    /// The last known headers of each traced packet.
    packets: HashMap<u32, Packet>,
    ended: Vec<Verdict>,
}

/// A drop verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    packet: Packet,
    family: &'static str,
    table: String,
    chain: String,
    handle: Option<u64>,
}

impl TraceLog {
    /// Reads all messages that are available.
    fn from(socket: &Socket) -> io::Result<Self> {
        let mut log = Self::default();
        loop {
            match socket.recv_from_full() {
                Ok((bytes, _)) => log.parse(&bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(log),
                // The buffer overflowed: some messages were lost, the others are valid.
                Err(error) if error.raw_os_error() == Some(LOST) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn parse(&mut self, mut bytes: &[u8]) {
        while let Some(length) = read_u32(bytes).map(|length| length as usize) {
            let Some(message) = bytes.get(..length).filter(|_| length >= HEADERS) else { return };
            bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
            if message.get(4..).and_then(read_u16) == Some(MESSAGE) {
                self.add(message[16], &message[HEADERS..]);
            }
        }
    }

    fn add(&mut self, family: u8, message: &[u8]) -> Option<()> {
        let of = |kind| {
            Attribute::all(message)
                .find(|attribute| attribute.kind == kind)
                .map(|attribute| attribute.value)
        };
        let text = |kind| {
            let bytes = of(kind)?;
            Some(String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned())
        };
        let id = read_u32(of(ID)?)?;
        if let Some((network, transport)) = of(NETWORK_HEADER).zip(of(TRANSPORT_HEADER))
            && let Some(packet) = packet(network, transport)
        {
            self.packets.insert(id, packet);
        }
        let verdict =
            Attribute::all(of(VERDICT)?).find(|attribute| attribute.kind == VERDICT_CODE)?;
        if verdict.value.first_chunk().copied().map(u32::from_be_bytes) != Some(DROP) {
            return None;
        }
        self.ended.push(Verdict {
            packet: self.packets.get(&id)?.clone(),
            family: match family {
                1 => "inet",
                2 => "ip",
                10 => "ip6",
                _ => return None,
            },
            table: text(NAME_OF_TABLE)?,
            chain: text(NAME_OF_CHAIN)?,
            handle: of(HANDLE)
                .and_then(|bytes| bytes.first_chunk().copied().map(u64::from_be_bytes)),
        });
        None
    }
}

impl Verdict {
    /// Returns the rule's text. Works only within the node's namespace.
    fn rule(&self) -> io::Result<String> {
        let Some(handle) = self.handle else { return Ok("the chain's policy".into()) };
        let text = output("nft", &["-a", "list", "chain", self.family, &self.table, &self.chain])?;
        let end = format!(" # handle {handle}");
        let rule = text.lines().find_map(|line| line.trim().strip_suffix(&end));
        Ok(rule.unwrap_or("a rule that nft does not show").to_owned())
    }
}

/// Decodes a packet from its traced headers.
fn packet(network: &[u8], transport: &[u8]) -> Option<Packet> {
    let kind: [u8; 2] = match network.first()? >> 4 {
        4 => [0x08, 0x00],
        6 => [0x86, 0xdd],
        _ => return None,
    };
    Packet::read(&[&[0; 12][..], &kind, network, transport].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::generic::Attributes;

    fn message(attributes: &Attributes) -> Vec<u8> {
        let attributes = attributes.as_bytes();
        let mut bytes = ((HEADERS + attributes.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(MESSAGE.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend([2, 0, 0, 0]);
        bytes.extend(attributes);
        bytes
    }

    #[test]
    fn what_ends_a_packet_is_kept() {
        let network = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 1, 1, 10, 172, 16, 0, 10];
        let transport = [0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0];
        let verdict = |code: u32| Attributes::default().bytes(VERDICT_CODE, &code.to_be_bytes());
        let first = Attributes::default()
            .number(ID, 5)
            .bytes(NETWORK_HEADER, &network)
            .bytes(TRANSPORT_HEADER, &transport)
            .nested(VERDICT, &verdict(u32::MAX));
        let last = Attributes::default()
            .number(ID, 5)
            .text(NAME_OF_TABLE, "kube-proxy")
            .text(NAME_OF_CHAIN, "cluster-ips-check")
            .bytes(HANDLE, &9u64.to_be_bytes())
            .nested(VERDICT, &verdict(DROP));
        let mut log = TraceLog::default();
        log.parse(&[message(&first), message(&last)].concat());
        let [ended] = &log.ended[..] else { panic!("{log:?}") };
        assert_eq!(ended.packet.to_string(), "10.1.1.10:40000 → 172.16.0.10:80 SYN");
        assert_eq!((&*ended.table, &*ended.chain), ("kube-proxy", "cluster-ips-check"));
        assert_eq!((ended.family, ended.handle), ("ip", Some(9)));
        let whole = message(&last);
        for length in 0..whole.len() {
            TraceLog::default().parse(&whole[..length]);
        }
    }
}
