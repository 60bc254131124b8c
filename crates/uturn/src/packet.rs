//! A packet in the notation of the command line.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use uturn_model::{Family, Protocol};
use uturn_netfilter::{Packet, Transport};

/// An address with a port, `10.0.0.1:80`, or an address alone for a packet without ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) ip: IpAddr,
    port: Option<u16>,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(both) = text.parse::<SocketAddr>() {
            return Ok(Self { ip: both.ip(), port: Some(both.port()) });
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let ip = bare.parse().map_err(|_| {
            "expected an address and a port, such as 10.0.0.1:80 or [fd00::1]:80 (for icmp an \
             address alone)"
        })?;
        Ok(Self { ip, port: None })
    }
}

/// The content of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carried {
    Protocol(Protocol),
    /// An echo request; `v6` if `icmpv6` was given.
    Ping {
        v6: Option<bool>,
    },
}

impl FromStr for Carried {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match &*text.to_ascii_lowercase() {
            "icmp" => Ok(Self::Ping { v6: None }),
            "icmpv6" | "icmp6" | "ipv6-icmp" => Ok(Self::Ping { v6: Some(true) }),
            other => other
                .parse()
                .map(Self::Protocol)
                .map_err(|_| "expected tcp, udp, sctp, icmp or icmpv6"),
        }
    }
}

/// Returns the first packet of a flow.
pub(crate) fn first(carried: Carried, src: Place, dst: Place) -> Result<Packet, String> {
    if src.ip.is_ipv4() != dst.ip.is_ipv4() {
        return Err("--src and --dst must both be IPv4, or both IPv6".to_owned());
    }
    match carried {
        Carried::Protocol(protocol) => {
            let port = |option: &str, place: Place| {
                place.port.ok_or_else(|| {
                    let (ip, word) = (place.ip, protocol.lower());
                    format!(
                        "{option} {ip}: {word} needs a port: expected {option} {}",
                        SocketAddr::new(ip, 80)
                    )
                })
            };
            let src = SocketAddr::new(src.ip, port("--src", src)?);
            Ok(Packet::new(protocol, src, SocketAddr::new(dst.ip, port("--dst", dst)?)))
        }
        Carried::Ping { v6 } => {
            if let Some((option, place)) =
                [("--src", src), ("--dst", dst)].into_iter().find(|(_, place)| place.port.is_some())
            {
                return Err(format!("{option}: icmp has no ports: expected {option} {}", place.ip));
            }
            if v6 == Some(true) && dst.ip.is_ipv4() {
                return Err("--proto icmpv6: found addresses of IPv4, expected --proto icmp".into());
            }
            let kind = if Family::of(dst.ip) == Family::V4 { 8 } else { 128 };
            let transport = Transport::Icmp { kind, code: 0 };
            Ok(Packet { src: src.ip, dst: dst.ip, transport, mark: 0 })
        }
    }
}

/// A user or a group of the node, given by its number or by a name whose number is the same
/// everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner(pub(crate) u32);

/// Users that images run as, and that rules name by their numbers.
const NAMES: [(&str, u32); 5] = [
    ("root", 0),
    ("envoy", 101),
    ("istio-proxy", 1337),
    ("linkerd-proxy", 2102),
    ("nobody", 65534),
];

impl FromStr for Owner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        named.or_else(|| text.parse().ok()).map(Self).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!(
                "expected a number, or one of {}: `id {text}` where the packet is sent says which \
                 number it is",
                names.join(", ")
            )
        })
    }
}
