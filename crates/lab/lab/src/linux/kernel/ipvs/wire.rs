//! Encodes and decodes virtual and real servers as netlink attributes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use uturn_model::{Family, Origin, Protocol};
use uturn_netfilter::ipvs::{Forwarding, Persistence, RealServer, VirtualAddress, VirtualServer};

use uturn_netns::netlink::{Attributes, find, read_port, read_u16, read_u32};

const SERVICE: u16 = 1;
const DEST: u16 = 2;

const SVC_AF: u16 = 1;
const SVC_PROTOCOL: u16 = 2;
const SVC_ADDR: u16 = 3;
const SVC_PORT: u16 = 4;
const SVC_FWMARK: u16 = 5;
const SVC_SCHED_NAME: u16 = 6;
const SVC_FLAGS: u16 = 7;
const SVC_TIMEOUT: u16 = 8;
const SVC_NETMASK: u16 = 9;

const DEST_ADDR: u16 = 1;
const DEST_PORT: u16 = 2;
const DEST_FWD_METHOD: u16 = 3;
const DEST_WEIGHT: u16 = 4;
const DEST_U_THRESH: u16 = 5;
const DEST_L_THRESH: u16 = 6;
const DEST_ADDR_FAMILY: u16 = 11;

const PERSISTENT: u32 = 1 << 0;
const ONE_PACKET: u32 = 1 << 2;
/// The names of scheduler flags.
const SCHEDULER_FLAGS: [(&str, u32); 7] = [
    ("sh-fallback", 1 << 3),
    ("sh-port", 1 << 4),
    ("mh-fallback", 1 << 3),
    ("mh-port", 1 << 4),
    ("flag-1", 1 << 3),
    ("flag-2", 1 << 4),
    ("flag-3", 1 << 5),
];

const METHOD_MASK: u32 = 0x7;
const MASQUERADE: u32 = 0;
const TUNNEL: u32 = 2;
const DIRECT: u32 = 3;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// An option that cannot be encoded for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found {}, expected options that kube-proxy uses", self.0)
    }
}

/// Returns a request that selects a virtual server by address or mark.
pub(super) fn address(at: &VirtualAddress) -> Attributes {
    Attributes::default().nested(SERVICE, &service(at))
}

/// Returns a request to create a virtual server.
pub(super) fn server(server: &VirtualServer) -> Result<Attributes, Fault> {
    let mut flags = 0;
    let mut options = server.options.iter();
    while let Some(option) = options.next() {
        match (&**option, options.next()) {
            ("-b" | "--sched-flags", Some(names)) => {
                for name in names.split(',') {
                    let known = SCHEDULER_FLAGS.iter().find(|(known, _)| *known == name);
                    flags |= known.ok_or_else(|| Fault(format!("{option} {name}")))?.1;
                }
            }
            _ => return Err(Fault(option.to_string())),
        }
    }
    if server.persistence.is_some() {
        flags |= PERSISTENT;
    }
    if server.one_packet {
        flags |= ONE_PACKET;
    }
    let family = server.at.family();
    let prefix = server.persistence.map_or(family.bits(), |persistence| persistence.prefix);
    let seconds = server.persistence.and_then(|persistence| persistence.seconds);
    let service = service(&server.at)
        .text(SVC_SCHED_NAME, &server.scheduler)
        // The flags, and the mask of flags to set.
        .bytes(SVC_FLAGS, &[flags.to_ne_bytes(), u32::MAX.to_ne_bytes()].concat())
        .number(SVC_TIMEOUT, seconds.unwrap_or(0))
        .bytes(SVC_NETMASK, &mask(family, prefix));
    Ok(Attributes::default().nested(SERVICE, &service))
}

/// Returns a request to add a real server to a virtual one.
pub(super) fn real(server: &VirtualServer, real: &RealServer) -> Result<Attributes, Fault> {
    let (mut most, mut least) = (0, 0);
    let mut options = real.options.iter();
    while let Some(option) = options.next() {
        let value = options.next().and_then(|value| value.parse().ok());
        match (&**option, value) {
            ("-x" | "--u-threshold", Some(value)) => most = value,
            ("-y" | "--l-threshold", Some(value)) => least = value,
            _ => return Err(Fault(option.to_string())),
        }
    }
    let method = match real.method {
        Forwarding::Masquerade => MASQUERADE,
        Forwarding::Direct => DIRECT,
        Forwarding::Tunnel => TUNNEL,
    };
    let dest = Attributes::default()
        .bytes(DEST_ADDR, &union(real.address.ip()))
        .port(DEST_PORT, real.address.port())
        .number(DEST_FWD_METHOD, method)
        .number(DEST_WEIGHT, real.weight)
        .number(DEST_U_THRESH, most)
        .number(DEST_L_THRESH, least)
        .short(DEST_ADDR_FAMILY, number_of(Family::of(real.address.ip())));
    Ok(address(&server.at).nested(DEST, &dest))
}

fn service(at: &VirtualAddress) -> Attributes {
    let all = Attributes::default().short(SVC_AF, number_of(at.family()));
    match at {
        VirtualAddress::Address { protocol, address } => all
            .short(SVC_PROTOCOL, u16::from(protocol_number(*protocol)))
            .bytes(SVC_ADDR, &union(address.ip()))
            .port(SVC_PORT, address.port()),
        VirtualAddress::Mark { mark, .. } => all.number(SVC_FWMARK, *mark),
    }
}

/// Reads a virtual server, without its real servers.
pub(super) fn read_server(answer: &[u8]) -> Option<VirtualServer> {
    let own = find(answer, SERVICE)?;
    let of = |kind: u16| find(own, kind);
    let family = family_of(read_u16(of(SVC_AF)?)?)?;
    let at = match of(SVC_FWMARK) {
        Some(mark) => VirtualAddress::Mark { mark: read_u32(mark)?, family },
        None => VirtualAddress::Address {
            protocol: protocol_of(read_u16(of(SVC_PROTOCOL)?)?)?,
            address: SocketAddr::new(ip(family, of(SVC_ADDR)?)?, read_port(of(SVC_PORT)?)?),
        },
    };
    let name = of(SVC_SCHED_NAME)?;
    let name = name.split(|byte| *byte == 0).next()?;
    let scheduler: uturn_model::Text = std::str::from_utf8(name).ok()?.into();
    let flags = read_u32(of(SVC_FLAGS)?)?;
    let prefix = match family {
        Family::V4 => Ipv4Addr::from(*of(SVC_NETMASK)?.first_chunk::<4>()?).to_bits().count_ones(),
        Family::V6 => read_u32(of(SVC_NETMASK)?)?,
    };
    let persistence = (flags & PERSISTENT != 0).then_some(Persistence {
        seconds: Some(read_u32(of(SVC_TIMEOUT)?)?),
        prefix: prefix.try_into().ok()?,
    });
    let named = SCHEDULER_FLAGS.iter().filter(|(flag, bit)| {
        let own = flag.split('-').next();
        flags & bit != 0
            && (own == Some(&*scheduler)
                || own == Some("flag")
                    && (*flag == "flag-3" || !["sh", "mh"].contains(&&*scheduler)))
    });
    let named: Vec<&str> = named.map(|(flag, _)| *flag).collect();
    let options =
        if named.is_empty() { Vec::new() } else { vec!["-b".into(), named.join(",").into()] };
    Some(VirtualServer {
        at,
        scheduler,
        persistence,
        one_packet: flags & ONE_PACKET != 0,
        options,
        servers: Vec::new(),
        origin: kernel(),
    })
}

/// Reads a real server of a virtual one.
pub(super) fn read_real(at: &VirtualAddress, answer: &[u8]) -> Option<RealServer> {
    let own = find(answer, DEST)?;
    let of = |kind: u16| find(own, kind);
    // Older kernels know only one family, the virtual server's.
    let family = match of(DEST_ADDR_FAMILY) {
        Some(family) => family_of(read_u16(family)?)?,
        None => at.family(),
    };
    let method = match read_u32(of(DEST_FWD_METHOD)?)? & METHOD_MASK {
        DIRECT => Forwarding::Direct,
        TUNNEL => Forwarding::Tunnel,
        // This includes the method that the kernel itself sets for one of its own addresses.
        _ => Forwarding::Masquerade,
    };
    let limit = |kind: u16, option: &str| {
        let limit = of(kind).and_then(read_u32).filter(|limit| *limit > 0);
        limit.map(|limit| [option.into(), limit.to_string().into()])
    };
    let options = limit(DEST_U_THRESH, "-x").into_iter().chain(limit(DEST_L_THRESH, "-y"));
    Some(RealServer {
        address: SocketAddr::new(ip(family, of(DEST_ADDR)?)?, read_port(of(DEST_PORT)?)?),
        method,
        weight: read_u32(of(DEST_WEIGHT)?)?,
        options: options.flatten().collect(),
        origin: kernel(),
    })
}

fn kernel() -> Origin {
    Origin::Kernel
}

/// Returns an address as `union nf_inet_addr`.
fn union(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut room = [0; 16];
            room[..4].copy_from_slice(&ip.octets());
            room
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn ip(family: Family, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        Family::V4 => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
        Family::V6 => Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).into()),
    }
}

/// Returns the persistence mask: a netmask in network order for IPv4, a prefix length for IPv6.
fn mask(family: Family, prefix: u8) -> [u8; 4] {
    match family {
        Family::V4 => u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0).to_be_bytes(),
        Family::V6 => u32::from(prefix).to_ne_bytes(),
    }
}

fn number_of(family: Family) -> u16 {
    match family {
        Family::V4 => AF_INET,
        Family::V6 => AF_INET6,
    }
}

fn family_of(number: u16) -> Option<Family> {
    Family::BOTH.into_iter().find(|family| number_of(*family) == number)
}

fn protocol_number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}

fn protocol_of(number: u16) -> Option<Protocol> {
    [Protocol::Tcp, Protocol::Udp, Protocol::Sctp]
        .into_iter()
        .find(|protocol| u16::from(protocol_number(*protocol)) == number)
}
