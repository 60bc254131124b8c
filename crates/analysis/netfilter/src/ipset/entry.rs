//! The entries of IP sets.

use std::fmt;
use std::net::IpAddr;

use uturn_model::{Family, IpNet, Origin, Text};

use crate::packet::IpProtocol;

/// The type of a set: how it stores entries, and of which parts they consist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetKind {
    /// `hash:…`
    Hash(Vec<PartKind>),
    /// `bitmap:…`
    Bitmap(Vec<PartKind>),
    /// `list:set`: the names of other sets.
    List,
    /// A type that is not modelled.
    Other(Text),
}

/// The type of one part of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the word of that name")]
pub enum PartKind {
    Ip,
    Net,
    Port,
    Iface,
    Mac,
    Mark,
}

impl PartKind {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Ip, "ip"),
        (Self::Net, "net"),
        (Self::Port, "port"),
        (Self::Iface, "iface"),
        (Self::Mac, "mac"),
        (Self::Mark, "mark"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }
}

impl SetKind {
    /// All types that are modelled.
    const MODELLED: [&'static str; 16] = [
        "bitmap:ip",
        "bitmap:ip,mac",
        "bitmap:port",
        "hash:ip",
        "hash:mac",
        "hash:ip,mac",
        "hash:net",
        "hash:net,net",
        "hash:ip,port",
        "hash:net,port",
        "hash:ip,port,ip",
        "hash:ip,port,net",
        "hash:net,port,net",
        "hash:net,iface",
        "hash:ip,mark",
        "list:set",
    ];

    pub(super) fn from_word(word: &str) -> Self {
        let parts = |words: &str| {
            let part_kind =
                |word| PartKind::ALL.iter().find(|(_, name)| *name == word).map(|(k, _)| *k);
            words.split(',').map(part_kind).collect::<Option<Vec<_>>>()
        };
        let kind = match word.split_once(':').filter(|_| Self::MODELLED.contains(&word)) {
            Some(("list", _)) => Some(Self::List),
            Some(("hash", words)) => parts(words).map(Self::Hash),
            Some((_, words)) => parts(words).map(Self::Bitmap),
            None => None,
        };
        kind.unwrap_or_else(|| Self::Other(word.into()))
    }
}

impl fmt::Display for SetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, parts) = match self {
            Self::Hash(parts) => ("hash:", parts),
            Self::Bitmap(parts) => ("bitmap:", parts),
            Self::List => return f.write_str("list:set"),
            Self::Other(word) => return f.write_str(word),
        };
        f.write_str(method)?;
        for (at, part) in parts.iter().enumerate() {
            write!(f, "{}{}", if at > 0 { "," } else { "" }, part.word())?;
        }
        Ok(())
    }
}

/// One entry of a set.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The entry as it was written.
    pub text: Text,
    /// The parts of the entry; empty in a set of an unmodelled type.
    pub parts: Vec<Part>,
    /// The options after it: `timeout 300 comment "…"`.
    pub options: Vec<Text>,
    /// The place where the entry was written.
    pub origin: Origin,
}

impl Entry {
    /// Whether the entry has an option, such as `nomatch`.
    pub fn has(&self, name: &str) -> bool {
        let mut words = self.options.iter().map(|word| &**word);
        while let Some(word) = words.next() {
            if word == name {
                return true;
            }
            if !matches!(word, "nomatch" | "wildcard") {
                words.next();
            }
        }
        false
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.options) == (&other.text, &other.options)
    }
}

impl Eq for Entry {}

/// One part of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// An address range.
    Ips(IpAddr, IpAddr),
    /// A network, with host bits zero.
    Net(IpNet),
    /// A port range of a protocol; for ICMP, 256 × type + code. Without a protocol, TCP and UDP.
    Ports(Option<IpProtocol>, u16, u16),
    /// An ICMP type or, with `None`, a protocol, by a name that is not modelled.
    Named(Option<IpProtocol>),
    /// An interface, or a bridge port if `bridged`.
    Iface {
        /// The name of the interface.
        name: Text,
        /// Whether the bridge port of that name is meant.
        bridged: bool,
    },
    /// A hardware address, as written.
    Mac(Text),
    /// A mark.
    Mark(u32),
    /// The name of another set.
    Set(Text),
}

impl Part {
    /// Parses one part; an error says what was expected.
    pub(super) fn read(
        kind: PartKind,
        word: &str,
        family: Family,
        bitmap: bool,
    ) -> Result<Self, &'static str> {
        match kind {
            PartKind::Ip | PartKind::Net => addresses(word, family).ok_or(match family {
                Family::V4 => "an IPv4 address, a network or a range",
                Family::V6 => "an IPv6 address or a network",
            }),
            PartKind::Port => ports(word, bitmap).ok_or("a port: `tcp:80` or `80-90`"),
            PartKind::Iface => {
                let (name, bridged) = match word.strip_prefix("physdev:") {
                    Some(name) => (name, true),
                    None => (word, false),
                };
                let fits = !name.is_empty() && name.len() < 16;
                fits.then(|| Self::Iface { name: name.into(), bridged })
                    .ok_or("the name of an interface")
            }
            PartKind::Mac => mac(word).ok_or("a hardware address: `02:00:00:00:00:01`"),
            PartKind::Mark => mark(word).map(Self::Mark).ok_or("a mark: `0x1`"),
        }
    }
}

fn addresses(word: &str, family: Family) -> Option<Part> {
    let ip = |word: &str| word.parse::<IpAddr>().ok().filter(|ip| Family::of(*ip) == family);
    // The kernel accepts no IPv6 ranges.
    if let Some((first, last)) = word.split_once('-').filter(|_| family == Family::V4) {
        let (first, last) = (ip(first)?, ip(last)?);
        return (first <= last).then_some(Part::Ips(first, last));
    }
    match word.split_once('/') {
        Some((first, length)) => {
            let net = IpNet::new(ip(first)?, length.parse().ok()?).ok()?;
            Some(Part::Net(net.trunc()))
        }
        None => ip(word).map(|ip| Part::Ips(ip, ip)),
    }
}

fn ports(word: &str, bitmap: bool) -> Option<Part> {
    let (protocol, ports) = match word.split_once(':') {
        Some((name, ports)) => match IpProtocol::from_word(name) {
            Some(protocol) => (protocol, ports),
            None => {
                let named = name.starts_with(|first: char| first.is_ascii_alphabetic());
                let number = ports.parse::<u16>().is_ok();
                return (named && number).then_some(Part::Named(None));
            }
        },
        None => (IpProtocol::TCP, word),
    };
    let icmp = matches!(protocol, IpProtocol::ICMP | IpProtocol::ICMPV6);
    if icmp && !ports.bytes().all(|byte| byte.is_ascii_digit()) {
        let (kind, code) = match ports.split_once('/') {
            Some((kind, code)) => (kind.parse::<u8>().ok()?, code.parse::<u8>().ok()?),
            None => match (ports, protocol) {
                ("echo-request" | "ping", IpProtocol::ICMP) => (8, 0),
                ("echo-reply" | "pong", IpProtocol::ICMP) => (0, 0),
                ("echo-request" | "ping", _) => (128, 0),
                ("echo-reply" | "pong", _) => (129, 0),
                _ => return Some(Part::Named(Some(protocol))),
            },
        };
        let message = u16::from(kind) << 8 | u16::from(code);
        return Some(Part::Ports(Some(protocol), message, message));
    }
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(Part::Ports((!bitmap).then_some(protocol), first, last))
}

fn mac(word: &str) -> Option<Part> {
    let byte = |part: &str| part.len() <= 2 && u8::from_str_radix(part, 16).is_ok();
    let whole = word.split(':').count() == 6 && word.split(':').all(byte);
    whole.then(|| Part::Mac(word.into()))
}

pub(super) fn mark(word: &str) -> Option<u32> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}
