//! The second judge: where packets end in the kernel that holds kube-proxy's rules, against
//! where uturn's walk over the same kernel's dump says that they end.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use uturn_model::{Family, Protocol};
use uturn_netfilter::{
    DropReason, End, EndKind, Entry, Kernel, NodeState, Packet, addr, iptables, nft, routes, rules,
    sysctl,
};

use crate::dump::Dump;
use crate::fault::{Fault, Outcome};
use crate::flows::Flow;
use crate::node::Node;
use crate::wire::{Probe, Seen};

/// A way of one in sixteen is missed by so many tries less than once in 10^16 flows.
const MOST_TRIES: u16 = 600;
/// Even where one end is predicted, so many packets must agree.
const FEWEST_TRIES: u16 = 3;

/// How a packet ended, as both sides can say it. A source port may be changed by
/// masquerade, so it does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Out { device: String, src: IpAddr, dst: SocketAddr },
    Local { src: IpAddr, dst: SocketAddr },
    Refused(String),
    Unroutable,
    Dropped,
}

/// What was tried and what differed.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) flows: usize,
    pub(crate) packets: usize,
    /// How many packets ended in which way.
    pub(crate) ways: BTreeMap<&'static str, usize>,
    pub(crate) differences: Vec<String>,
}

/// uturn's model of the node.
fn kernel(dump: &Dump) -> Outcome<Kernel> {
    let state = NodeState {
        iptables: read(
            "iptables.save",
            iptables::parse("iptables.save", &dump.iptables, Family::V4),
        )?,
        ip6tables: read(
            "ip6tables.save",
            iptables::parse("ip6tables.save", &dump.ip6tables, Family::V6),
        )?,
        interfaces: read("addr", addr::parse("addr", &dump.addresses))?,
        routes: read("route", routes::parse("route", &dump.routes))?,
        rules: read("rule", rules::parse("rule", &dump.rules))?,
        sysctls: read("sysctl", sysctl::parse("sysctl", &dump.sysctls))?,
        nft: read("nft.txt", nft::parse("nft.txt", &(dump.nft.clone() + &dump.nft6)))?,
        ..NodeState::default()
    };
    read("the dump", Kernel::new(state))
}

fn read<T, E: fmt::Display>(what: &str, result: Result<T, Vec<E>>) -> Outcome<T> {
    result.map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Fault::new(format!("uturn cannot read {what} of a node:\n{}", lines.join("\n")))
    })
}

/// Tries every flow, often enough to see all its ends.
pub(crate) fn compare(node: &mut Node, dump: &Dump, flows: &[Flow]) -> Outcome<Tried> {
    let (mut tried, kernel) = (Tried::default(), kernel(dump)?);
    let forget = dump.forget();
    let mut port = 1024;
    for flow in flows {
        let ends = kernel.walk(&packet(&flow.probe)?, &entry(&flow.probe), &[]);
        let mut predicted: BTreeMap<Place, bool> = BTreeMap::new();
        for end in &ends {
            let must = end.unknown.is_empty() && end.share > 1e-9;
            *predicted.entry(predicted_place(end, &flow.probe)).or_default() |= must;
        }
        let mut met: BTreeMap<Place, u16> = BTreeMap::new();
        for tries in 1..=MOST_TRIES {
            port = if port == u16::MAX { 1024 } else { port + 1 };
            let probe = Probe { sport: port, ..flow.probe.clone() };
            if flow.affinity {
                // What -m recent remembers is forgotten by the wire.
                node.change_nft(&forget)?;
            }
            let place = seen_place(&node.wire.send(&probe)?, &probe)?;
            let unexpected = !predicted.contains_key(&place);
            *tried.ways.entry(place.way()).or_default() += 1;
            *met.entry(place).or_default() += 1;
            tried.packets += 1;
            let all = predicted.iter().all(|(place, must)| !must || met.contains_key(place));
            if unexpected || (all && tries >= FEWEST_TRIES) {
                break;
            }
        }
        tried.flows += 1;
        let missing = predicted.iter().any(|(place, must)| *must && !met.contains_key(place));
        if missing || met.keys().any(|place| !predicted.contains_key(place)) {
            tried.differences.push(difference(&node.name, flow, &predicted, &met, &ends));
        }
    }
    Ok(tried)
}

fn difference(
    node: &str,
    flow: &Flow,
    predicted: &BTreeMap<Place, bool>,
    met: &BTreeMap<Place, u16>,
    ends: &[End],
) -> String {
    let Probe { device, proto, src, dst, dport, .. } = &flow.probe;
    let device = if device.is_empty() { "the node" } else { device };
    let mut text =
        format!("{node}: {}: {proto} {src} to {dst} port {dport}, from {device}", flow.what);
    for place in predicted.keys() {
        text += &format!("\n  - uturn says: {place}");
    }
    for (place, count) in met {
        text += &format!("\n  + the kernel: {place}, {count} times");
    }
    for step in ends.iter().take(1).flat_map(|end| &end.steps) {
        text += &format!("\n    {step:?}");
    }
    text
}

fn packet(probe: &Probe) -> Outcome<Packet> {
    let at = |ip: &str, port| Ok(SocketAddr::new(ip_of(ip)?, port));
    let protocol = if probe.proto == "tcp" { Protocol::Tcp } else { Protocol::Udp };
    // Any source port will do, since no rule of kube-proxy asks for one.
    Ok(Packet::new(protocol, at(&probe.src, 40000)?, at(&probe.dst, probe.dport)?))
}

fn entry(probe: &Probe) -> Entry {
    match probe.device.as_str() {
        "" => Entry::Local,
        device => Entry::Interface(device.into()),
    }
}

fn ip_of(text: &str) -> Outcome<IpAddr> {
    text.parse().map_err(|_| Fault::new(format!("{text:?} is no address")))
}

fn predicted_place(end: &End, probe: &Probe) -> Place {
    let leg = end.packet.leg();
    match &end.kind {
        EndKind::Local => Place::Local { src: leg.src.ip(), dst: leg.dst },
        EndKind::Forward => {
            let device = end.out.as_deref().unwrap_or_default().to_owned();
            Place::Out { device, src: leg.src.ip(), dst: leg.dst }
        }
        EndKind::Reject(with) => match with.as_str() {
            "icmp-net-unreachable"
            | "icmp-host-unreachable"
            | "icmp6-no-route"
            | "icmp6-addr-unreachable" => Place::Unroutable,
            word => Place::Refused(word.to_owned()),
        },
        EndKind::Drop(DropReason::NoRoute | DropReason::Unreachable) => Place::Unroutable,
        // The sender is told nothing, or, on the node, nothing that differs.
        EndKind::Drop(_) => Place::Dropped,
        EndKind::Unsettled => Place::Refused(format!("unsettled: {}", probe.dst)),
    }
}

/// Where it arrived counts before what came back.
fn seen_place(seen: &[Seen], probe: &Probe) -> Outcome<Place> {
    for one in seen {
        match one {
            Seen::Out { dev, src, dst, dport } => {
                let dst = SocketAddr::new(ip_of(dst)?, *dport);
                return Ok(Place::Out { device: dev.clone(), src: ip_of(src)?, dst });
            }
            Seen::Local { src, dst, dport } => {
                return Ok(Place::Local {
                    src: ip_of(src)?,
                    dst: SocketAddr::new(ip_of(dst)?, *dport),
                });
            }
            Seen::Icmp { .. } | Seen::Reset | Seen::Error { .. } => {}
        }
    }
    for one in seen {
        match one {
            Seen::Icmp { kind, code } => return Ok(icmp(probe.dst.contains(':'), *kind, *code)),
            Seen::Reset => return Ok(Place::Refused("tcp-reset".into())),
            _ => {}
        }
    }
    let told = seen.iter().find_map(|one| match one {
        Seen::Error { error } => Some(error.as_str()),
        _ => None,
    });
    Ok(match told {
        Some("network is unreachable" | "no route to host") => Place::Unroutable,
        // A packet that a rule drops on its way out of the node.
        Some("operation not permitted") | None => Place::Dropped,
        Some(other) => Place::Refused(other.to_owned()),
    })
}

fn icmp(v6: bool, kind: u8, code: u8) -> Place {
    let word = match (v6, kind, code) {
        (false, 3, 0 | 1) | (true, 1, 0 | 3) => return Place::Unroutable,
        (false, 3, 3) => "icmp-port-unreachable",
        (true, 1, 4) => "icmp6-port-unreachable",
        (false, 3, 13) => "icmp-admin-prohibited",
        (true, 1, 1) => "icmp6-adm-prohibited",
        _ => return Place::Refused(format!("ICMP type {kind} code {code}")),
    };
    Place::Refused(word.to_owned())
}

impl Place {
    fn way(&self) -> &'static str {
        match self {
            Self::Out { .. } => "sent on",
            Self::Local { .. } => "handed to the node",
            Self::Refused(_) => "refused",
            Self::Unroutable => "unroutable",
            Self::Dropped => "dropped",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Out { device, src, dst } => write!(f, "out of {device}, {src} to {dst}"),
            Self::Local { src, dst } => write!(f, "handed to the node, {src} to {dst}"),
            Self::Refused(how) => write!(f, "refused: {how}"),
            Self::Unroutable => f.write_str("unroutable"),
            Self::Dropped => f.write_str("dropped"),
        }
    }
}
