//! The end of a packet, in terms that apply to both the kernel and uturn's walk.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use uturn_model::Family;
use uturn_netfilter::{DropReason, End, EndKind, Entry, Kernel, Packet, RejectWith};

use crate::wire::{Probe, ProbeResult, Seen};

/// The source port of every walked packet. No rule of kube-proxy matches source ports.
pub(crate) const PORT: u16 = 40000;

/// The end of a first packet. The source port is left out, since masquerade may change it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PacketEnd {
    Out { device: String, src: IpAddr, dst: SocketAddr },
    Local { src: IpAddr, dst: SocketAddr },
    Refused(String),
    Unroutable,
    Dropped,
}

/// The end of a reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReplyEnd {
    /// The reply left through a device, or was handed to the node itself (without a device).
    /// `to_its_port` is whether it goes to the port that the first packet came from.
    Arrives { device: Option<String>, src: SocketAddr, dst: IpAddr, to_its_port: bool },
    /// The reply does not arrive anywhere.
    Lost,
}

/// The connection state that uturn's walk gets for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Whole,
    /// No state, so that the judge must find differences.
    None,
}

impl PacketEnd {
    /// Returns the predicted end of a first packet.
    pub(crate) fn predicted(end: &End, probe: &Probe) -> Self {
        let leg = end.packet.leg();
        match &end.kind {
            EndKind::Local => Self::Local { src: leg.src.ip(), dst: leg.dst },
            EndKind::Forward => {
                let device = end.out.as_deref().unwrap_or_default().to_owned();
                Self::Out { device, src: leg.src.ip(), dst: leg.dst }
            }
            EndKind::Reject(
                RejectWith::IcmpNetUnreachable
                | RejectWith::IcmpHostUnreachable
                | RejectWith::Icmp6NoRoute
                | RejectWith::Icmp6AddrUnreachable,
            )
            | EndKind::Drop(DropReason::NoRoute | DropReason::Unreachable) => Self::Unroutable,
            EndKind::Reject(with) => Self::Refused(with.as_str().to_owned()),
            // The sender gets no error, or on the node always the same one.
            EndKind::Drop(_) => Self::Dropped,
            EndKind::Unsettled => Self::Refused(format!("unsettled: {}", probe.dst)),
        }
    }

    /// Returns the observed end of a first packet. An arrival takes precedence over errors.
    pub(crate) fn seen(result: &ProbeResult, probe: &Probe) -> Self {
        for seen in &result.seen {
            match seen {
                Seen::Out { dev, ends } => {
                    let (src, dst) = (ends.src().ip(), ends.dst());
                    return Self::Out { device: dev.clone(), src, dst };
                }
                Seen::Local { ends } => {
                    return Self::Local { src: ends.src().ip(), dst: ends.dst() };
                }
                Seen::Icmp { .. } | Seen::Reset {} | Seen::Error { .. } => {}
            }
        }
        for seen in &result.seen {
            match seen {
                Seen::Icmp { kind, code } => return icmp(probe.family(), *kind, *code),
                Seen::Reset {} => return Self::Refused("tcp-reset".into()),
                _ => {}
            }
        }
        let error = result.seen.iter().find_map(|seen| match seen {
            Seen::Error { error } => Some(error.as_str()),
            _ => None,
        });
        match error {
            Some("network is unreachable" | "no route to host") => Self::Unroutable,
            // A rule dropped a packet of the node itself.
            Some("operation not permitted") | None => Self::Dropped,
            Some(other) => Self::Refused(other.to_owned()),
        }
    }

    /// Returns the class under which the end is counted.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::Out { .. } => "sent on",
            Self::Local { .. } => "handed to the node",
            Self::Refused(_) => "refused",
            Self::Unroutable => "unroutable",
            Self::Dropped => "dropped",
        }
    }
}

fn icmp(family: Family, kind: u8, code: u8) -> PacketEnd {
    let word = match (family, kind, code) {
        (Family::V4, 3, 0 | 1) | (Family::V6, 1, 0 | 3) => return PacketEnd::Unroutable,
        (Family::V4, 3, 3) => "icmp-port-unreachable",
        (Family::V6, 1, 4) => "icmp6-port-unreachable",
        (Family::V4, 3, 13) => "icmp-admin-prohibited",
        (Family::V6, 1, 1) => "icmp6-adm-prohibited",
        _ => return PacketEnd::Refused(format!("ICMP type {kind} code {code}")),
    };
    PacketEnd::Refused(word.to_owned())
}

impl ReplyEnd {
    /// Returns the predicted ends of the reply to a packet, or `None` if uturn is not sure.
    pub(crate) fn predicted(kernel: &Kernel, end: &End, memory: Memory) -> Option<Vec<Self>> {
        let entry = match (&end.kind, &end.out) {
            (EndKind::Local, _) => Entry::Local,
            (EndKind::Forward, Some(device)) => Entry::Interface(device.clone()),
            _ => return Some(Vec::new()),
        };
        let known = match memory {
            Memory::Whole => end.connection.as_slice(),
            Memory::None => &[],
        };
        let ends = kernel.walk(&end.packet.reply(), &entry, known);
        let sure = |end: &End| end.unknown.is_empty() && end.kind != EndKind::Unsettled;
        let all = sure(end) && ends.iter().all(sure);
        all.then(|| ends.iter().map(Self::of_end).collect())
    }

    fn of_end(end: &End) -> Self {
        let device = match &end.kind {
            EndKind::Local => None,
            EndKind::Forward => end.out.as_deref().map(str::to_owned),
            _ => return Self::Lost,
        };
        let leg = end.packet.leg();
        let to_its_port = leg.dst.port() == PORT;
        Self::Arrives { device, src: leg.src, dst: leg.dst.ip(), to_its_port }
    }

    /// Returns the observed end of a reply.
    pub(crate) fn seen(result: &ProbeResult) -> Self {
        for answer in &result.back {
            let (device, ends) = match answer {
                Seen::Out { dev, ends } => (Some(dev.clone()), ends),
                Seen::Local { ends } => (None, ends),
                Seen::Icmp { .. } | Seen::Reset {} | Seen::Error { .. } => continue,
            };
            let to_its_port = ends.dst().port() == result.port;
            return Self::Arrives { device, src: ends.src(), dst: ends.dst().ip(), to_its_port };
        }
        Self::Lost
    }

    /// Returns the class under which the end is counted: whether the client accepts the packet as
    /// the reply to its own.
    pub(crate) fn class(&self, probe: &Probe) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Arrives { device, src, dst, to_its_port } => {
                let called = SocketAddr::new(probe.dst, probe.dport);
                let whole = device.as_deref().unwrap_or_default() == probe.device
                    && *src == called
                    && (*dst == probe.src || probe.src.is_unspecified())
                    && *to_its_port;
                if whole { "as the client expects" } else { "to or from elsewhere" }
            }
        }
    }
}

/// Returns the packet of a probe, for the walk.
pub(crate) fn packet(probe: &Probe) -> Packet {
    let (src, dst) = (SocketAddr::new(probe.src, PORT), SocketAddr::new(probe.dst, probe.dport));
    Packet::new(probe.proto, src, dst)
}

/// Returns where the packet of a probe enters the kernel.
pub(crate) fn entry(probe: &Probe) -> Entry {
    match probe.device.as_str() {
        "" => Entry::Local,
        device => Entry::Interface(device.into()),
    }
}

impl fmt::Display for PacketEnd {
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

impl fmt::Display for ReplyEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Arrives { device, src, dst, to_its_port } = self else {
            return f.write_str("its answer is lost");
        };
        match device {
            Some(device) => write!(f, "its answer goes out of {device}")?,
            None => f.write_str("its answer is handed to the node")?,
        }
        let port = if *to_its_port { "its own port" } else { "another port" };
        write!(f, ", {src} to {port} of {dst}")
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::Protocol;
    use uturn_netfilter::{NodeState, iptables, routes};

    use super::*;
    use crate::wire::Ends;

    const RULES: &str = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
        -A PREROUTING -p udp -m udp --dport 80 -j DNAT --to-destination 10.1.0.9:8080\nCOMMIT\n";

    fn kernel() -> Kernel {
        let text = "10.1.0.0/24 dev cbr0\ndefault via 10.0.0.1 dev eth0\n";
        let mut state = NodeState {
            iptables: iptables::parse("rules", RULES, Family::V4).unwrap(),
            routes: routes::parse("routes", text).unwrap(),
            ..NodeState::default()
        };
        state.sysctls.set("net.ipv4.ip_forward", "1");
        Kernel::new(state).unwrap()
    }

    fn probe() -> Probe {
        Probe {
            device: "eth0".to_owned(),
            proto: Protocol::Udp,
            src: "192.0.2.1".parse().unwrap(),
            sport: 1024,
            dst: "203.0.113.1".parse().unwrap(),
            dport: 80,
        }
    }

    fn ends(src: (&str, u16), dst: (&str, u16)) -> Ends {
        let text = format!(
            r#"{{"src":"{}","sport":{},"dst":"{}","dport":{}}}"#,
            src.0, src.1, dst.0, dst.1
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn what_the_walk_says_is_what_a_kernel_would_show() {
        let (kernel, probe) = (kernel(), probe());
        let walked = kernel.walk(&packet(&probe), &entry(&probe), &[]);
        let arrived = ends(("192.0.2.1", 1024), ("10.1.0.9", 8080));
        let back = ends(("203.0.113.1", 80), ("192.0.2.1", 1024));
        let result = ProbeResult {
            port: 1024,
            seen: vec![Seen::Out { dev: "cbr0".to_owned(), ends: arrived }],
            back: vec![Seen::Out { dev: "eth0".to_owned(), ends: back }],
        };
        assert_eq!(PacketEnd::predicted(&walked[0], &probe), PacketEnd::seen(&result, &probe));
        let expected = ReplyEnd::predicted(&kernel, &walked[0], Memory::Whole).unwrap();
        assert_eq!(expected, [ReplyEnd::seen(&result)]);
        assert_eq!(expected[0].class(&probe), "as the client expects");
        let forgetful = ReplyEnd::predicted(&kernel, &walked[0], Memory::None).unwrap();
        assert_eq!(forgetful[0].class(&probe), "to or from elsewhere");
    }

    #[test]
    fn an_answer_that_no_tap_saw_is_lost() {
        let result = ProbeResult { port: 1024, seen: Vec::new(), back: Vec::new() };
        assert_eq!(ReplyEnd::seen(&result), ReplyEnd::Lost);
        assert_eq!(PacketEnd::seen(&result, &probe()), PacketEnd::Dropped);
    }

    #[test]
    fn errors_are_distinguished() {
        assert_eq!(icmp(Family::V4, 3, 1), PacketEnd::Unroutable);
        assert_eq!(icmp(Family::V4, 3, 3), PacketEnd::Refused("icmp-port-unreachable".into()));
        assert_eq!(icmp(Family::V6, 1, 4), PacketEnd::Refused("icmp6-port-unreachable".into()));
        assert_ne!(icmp(Family::V6, 1, 3), icmp(Family::V4, 3, 3));
    }
}
