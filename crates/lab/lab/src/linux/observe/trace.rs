//! Finds the nf_tables rule that dropped a packet with the kernel's ruleset tracing.
//!
//! Rules of nftables mode have no counters, nor have the load balancers' on layer 4. While a
//! connection is followed, a table of the lab sets `nftrace` where such rules are, and the drop
//! verdicts of the trace are kept.

use std::collections::{BTreeMap, HashMap};
use std::io;

use uturn_netns::netlink::{Message, find, read_u32};

use super::packet::Packet;
use super::places::places;
use crate::LabError;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::reports::Reports;
use crate::linux::kernel::system::{During, output, run};

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

/// The receive buffer of a trace socket, in bytes.
const BUFFER: usize = 8 << 20;

/// The traces of places.
pub(crate) struct Trace {
    /// The reports by place.
    reports: BTreeMap<usize, Reports>,
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
        let mut reports = BTreeMap::new();
        for (number, place) in places(lab_cluster).into_iter().enumerate() {
            if !has_rules(&place.what) {
                continue;
            }
            let doing = format!("trace the rules of {}", place.what);
            let listen =
                || Ok((Reports::open(GROUP, Some(BUFFER))?, run("nft", &["-f", "-"], TABLE)?));
            let (own, loaded) = place.space.run(listen).during(&doing)?;
            reports.insert(number, own);
            loaded.map_err(|reason| LabError::Program { doing, reason })?;
        }
        Ok(Self { reports })
    }

    /// Stops tracing, and returns the packets that rules dropped meanwhile.
    pub(crate) fn take(self, lab_cluster: &LabCluster) -> Result<Vec<EndedPacket>, LabError> {
        let mut all = Vec::new();
        for (number, place) in places(lab_cluster).into_iter().enumerate() {
            let Some(reports) = self.reports.get(&number) else { continue };
            let doing = format!("read what the kernel of {} has traced", place.what);
            let rules = |log: TraceLog| -> io::Result<Vec<EndedPacket>> {
                let rule = |verdict: Verdict| {
                    let rule = verdict.rule()?;
                    let Verdict { packet, table, chain, .. } = verdict;
                    Ok(EndedPacket { place: number, packet, table, chain, rule })
                };
                log.ended.into_iter().map(rule).collect()
            };
            let heard = TraceLog::from(reports).during(&doing)?;
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
    fn from(reports: &Reports) -> io::Result<Self> {
        let mut log = Self::default();
        reports.take(|bytes| log.parse(bytes))?;
        Ok(log)
    }

    fn parse(&mut self, bytes: &[u8]) {
        for message in Message::all(bytes).map_while(Result::ok) {
            if message.kind == MESSAGE {
                self.add(message.family(), message.attributes());
            }
        }
    }

    fn add(&mut self, family: u8, attributes: &[u8]) -> Option<()> {
        let of = |kind| find(attributes, kind);
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
        let verdict = find(of(VERDICT)?, VERDICT_CODE)?;
        if verdict.first_chunk().copied().map(u32::from_be_bytes) != Some(DROP) {
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
    use uturn_netns::netlink::{Attributes, request};

    use super::*;

    fn message(attributes: &Attributes) -> Vec<u8> {
        request(MESSAGE, 0, 0, [2, 0, 0, 0], attributes)
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
