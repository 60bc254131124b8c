//! Indexes IP sets, so that a lookup does not scan the entries.
//!
//! Every part of an entry is a prefix of a bit string: an address, a protocol and port, a mark.
//! Entries are stored by their prefix lengths, one table for each combination of lengths, and the
//! tables are queried from the longest prefixes to the shortest, as the kernel does.

use std::cell::Cell;
use std::net::IpAddr;

use uturn_model::{Family, Text};

use super::entry::mark;
use super::{Entry, Part, PartKind, Set, SetKind, Sets};
use crate::hash::{FastMap, FastSet};
use crate::packet::IpProtocol;

/// The number of prefixes that ranges may take in all sets together, besides one for each entry.
/// The kernel adds ranges of up to 16,384 addresses, and saves them one by one: it has not saved a
/// text that exceeds this.
const MAX_OF_RANGES: usize = 500_000;

/// Looking into so many sets of a list takes as long as evaluating a rule.
const SETS_OF_A_RULE: usize = 4;

/// All sets, indexed.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    names: FastMap<Text, usize>,
    sets: Vec<Index>,
}

/// The result of a set lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Yes,
    No,
    /// A `nomatch` entry matches.
    Except,
    /// Not known.
    Unknown,
}

/// One end of a packet, as sets match it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe<'a> {
    pub(crate) ip: IpAddr,
    /// For ICMP, 256 × type + code.
    pub(crate) port: u16,
    pub(crate) protocol: IpProtocol,
    pub(crate) iface: Option<&'a str>,
    pub(crate) mark: u32,
    /// Whether the packet has a source hardware address.
    pub(crate) has_mac: bool,
}

#[derive(Debug)]
struct Index {
    family: Option<Family>,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Table(Table),
    List(Vec<usize>),
    Unmodelled,
    /// The ranges of the set do not fit: the reason, with the entry.
    TooWide(String),
}

type Key = [u128; 3];
type Lengths = [u8; 3];

#[derive(Debug)]
struct Table {
    kinds: Vec<PartKind>,
    bitmap: bool,
    /// The bits of an address that the set compares.
    mask: Option<u128>,
    markmask: u32,
    ifaces: FastMap<Text, u128>,
    wildcards: FastMap<Text, u128>,
    /// For sets of networks and interfaces: if a longer network contains the packet, shorter ones
    /// are not queried, whatever their interface.
    with_iface: FastSet<(u8, u128)>,
    by_lengths: Vec<(Lengths, FastMap<Key, Flags>)>,
}

#[derive(Clone, Copy, Debug)]
struct Flags {
    nomatch: bool,
    /// Whether a match depends on something unknown.
    unsure: bool,
}

impl Lookup {
    pub(crate) fn new(sets: &Sets) -> Self {
        let names: FastMap<Text, usize> =
            sets.0.iter().enumerate().map(|(at, set)| (set.name.clone(), at)).collect();
        let mut room = MAX_OF_RANGES;
        let sets = sets.0.iter().map(|set| Index::new(set, &names, &mut room)).collect();
        Self { names, sets }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Returns why the contents of a set are unknown, if an entry of the set, or of a member of a
    /// list, has ranges that do not fit.
    pub(crate) fn too_wide(&self, name: &str) -> Option<&str> {
        let why = |at: &usize| match &self.sets[*at].shape {
            Shape::TooWide(why) => Some(why.as_str()),
            _ => None,
        };
        let at = self.names.get(name)?;
        match &self.sets[*at].shape {
            Shape::List(members) => members.iter().find_map(why),
            _ => why(at),
        }
    }

    /// Looks up a packet in a set; `probes` has one end of the packet for each direction in the
    /// rule.
    ///
    /// Adds to `work` what a list of sets takes, as so many rules.
    pub(crate) fn ask(
        &self,
        name: &str,
        probes: &[Probe<'_>],
        family: Family,
        work: &Cell<u64>,
    ) -> Found {
        match self.names.get(name) {
            Some(at) => self.ask_one(*at, probes, family, work),
            None => Found::Unknown,
        }
    }

    fn ask_one(&self, at: usize, probes: &[Probe<'_>], family: Family, work: &Cell<u64>) -> Found {
        let set = &self.sets[at];
        if set.family.is_some_and(|own| own != family) {
            return Found::No;
        }
        match &set.shape {
            Shape::Unmodelled | Shape::TooWide(_) => Found::Unknown,
            Shape::Table(table) => table.ask(probes),
            Shape::List(members) => {
                let mut unknown = false;
                work.set(work.get() + (members.len() / SETS_OF_A_RULE) as u64);
                for member in members {
                    // The kernel does not nest lists, and the parser rejects nested lists.
                    if matches!(self.sets[*member].shape, Shape::List(_)) {
                        return Found::Unknown;
                    }
                    match self.ask_one(*member, probes, family, work) {
                        Found::Yes if !unknown => return Found::Yes,
                        Found::Yes | Found::Unknown => unknown = true,
                        Found::No | Found::Except => {}
                    }
                }
                if unknown { Found::Unknown } else { Found::No }
            }
        }
    }
}

impl Index {
    /// Takes out of `room` what the ranges of the set take. A set whose ranges do not fit is not known.
    fn new(set: &Set, names: &FastMap<Text, usize>, room: &mut usize) -> Self {
        let (kinds, bitmap) = match &set.kind {
            SetKind::Hash(kinds) => (kinds, false),
            SetKind::Bitmap(kinds) => (kinds, true),
            SetKind::List => {
                let member = |entry: &Entry| match entry.parts.first() {
                    Some(Part::Set(name)) => names.get(name).copied(),
                    _ => None,
                };
                let members = set.entries.iter().filter_map(member).collect();
                return Self { family: None, shape: Shape::List(members) };
            }
            SetKind::Other(_) => return Self { family: None, shape: Shape::Unmodelled },
        };
        let family = set.family();
        let masked = set.option("bitmask").is_some() || set.option("netmask").is_some();
        // Networks under an additional mask are a recent feature that no known dump uses.
        if masked && kinds.contains(&PartKind::Net) {
            return Self { family, shape: Shape::Unmodelled };
        }
        let bits = family.map_or(32, Family::bits);
        let mask = match (set.option("bitmask"), set.option("netmask")) {
            (Some(mask), _) => mask.parse().ok().map(|mask: IpAddr| number(mask)),
            (None, Some(length)) => {
                length.parse::<u8>().ok().map(|length| top(u128::MAX, bits, length.min(bits)))
            }
            (None, None) => None,
        };
        let markmask = set.option("markmask").and_then(mark).unwrap_or(u32::MAX);
        let mut table = Table {
            kinds: kinds.clone(),
            bitmap,
            mask,
            markmask,
            ifaces: FastMap::default(),
            wildcards: FastMap::default(),
            with_iface: FastSet::default(),
            by_lengths: Vec::new(),
        };
        let mut places = FastMap::default();
        let mut left = *room;
        for entry in &set.entries {
            if table.add(entry, bits, &mut places, &mut left).is_none() {
                let Entry { text, origin, .. } = entry;
                let why = format!(
                    "with the entry {text} of set {} ({origin}), ranges of sets take more than \
                     {MAX_OF_RANGES} prefixes",
                    set.name
                );
                return Self { family, shape: Shape::TooWide(why) };
            }
        }
        *room = left;
        table.sort();
        Self { family, shape: Shape::Table(table) }
    }
}

impl Table {
    /// `None` if there is no room for the prefixes of its ranges.
    fn add(
        &mut self,
        entry: &Entry,
        bits: u8,
        places: &mut FastMap<Lengths, usize>,
        room: &mut usize,
    ) -> Option<()> {
        let mut unsure = false;
        let wildcard = entry.has("wildcard");
        let mut prefixes: Vec<Vec<(u128, u8)>> = Vec::with_capacity(3);
        for part in &entry.parts {
            prefixes.push(match part {
                Part::Ips(first, last) => match self.mask {
                    Some(mask) if first == last => vec![(number(*first) & mask, bits)],
                    _ => self.masked(cover(number(*first), number(*last), bits), bits),
                },
                Part::Net(net) => self.masked(vec![(number(net.addr()), net.prefix_len())], bits),
                Part::Ports(protocol, first, last) => {
                    let own = protocol.map_or(0, |protocol| u128::from(protocol.0) << 16);
                    cover(own | u128::from(*first), own | u128::from(*last), PORT_BITS)
                }
                Part::Named(protocol) => {
                    unsure = true;
                    vec![protocol.map_or((0, 0), |protocol| (u128::from(protocol.0) << 16, 8))]
                }
                Part::Iface { bridged: true, .. } | Part::Mac(_) => {
                    unsure = true;
                    vec![(0, 0)]
                }
                Part::Iface { name, .. } => {
                    let names = if wildcard { &mut self.wildcards } else { &mut self.ifaces };
                    // Zero stands for no interface; odd numbers for name prefixes.
                    let next = (names.len() as u128 + 1) * 2 + u128::from(wildcard);
                    vec![(*names.entry(name.clone()).or_insert(next), IFACE_BITS)]
                }
                Part::Mark(mark) => vec![(u128::from(mark & self.markmask), MARK_BITS)],
                Part::Set(_) => Vec::new(),
            });
        }
        // The hardware address of `bitmap:ip,mac` may be omitted.
        prefixes.resize(3, vec![(0, 0)]);
        let count: usize = prefixes.iter().map(Vec::len).product();
        *room = room.checked_sub(count.saturating_sub(1))?;
        if let [Part::Net(_), Part::Iface { bridged: false, .. }] = entry.parts.as_slice() {
            self.with_iface.extend(prefixes[0].iter().map(|(net, length)| (*length, *net)));
        }
        let nomatch = entry.has("nomatch");
        for a in &prefixes[0] {
            for b in &prefixes[1] {
                for c in &prefixes[2] {
                    let lengths = [a.1, b.1, c.1];
                    let by_lengths = &mut self.by_lengths;
                    let place = *places.entry(lengths).or_insert_with(|| {
                        by_lengths.push((lengths, FastMap::default()));
                        by_lengths.len() - 1
                    });
                    by_lengths[place].1.insert([a.0, b.0, c.0], Flags { nomatch, unsure });
                }
            }
        }
        Some(())
    }

    /// Applies the set's own mask to prefixes.
    fn masked(&self, mut prefixes: Vec<(u128, u8)>, bits: u8) -> Vec<(u128, u8)> {
        if let Some(mask) = self.mask {
            for (value, length) in &mut prefixes {
                // Bits outside the mask are ignored; a network at least as wide as the mask is
                // stored under its own length.
                if top(mask, bits, *length) == mask {
                    *length = bits;
                }
                *value &= mask;
            }
        }
        prefixes
    }

    /// Sorts from the longest prefix to the shortest, networks first.
    fn sort(&mut self) {
        let kinds = &self.kinds;
        let rank = |lengths: &Lengths| {
            let net = |at: usize| kinds.get(at) == Some(&PartKind::Net);
            let nets: Vec<u8> = (0..3).filter(|at| net(*at)).map(|at| lengths[at]).collect();
            std::cmp::Reverse((nets, *lengths))
        };
        self.by_lengths.sort_by_key(|(lengths, _)| rank(lengths));
    }

    fn ask(&self, probes: &[Probe<'_>]) -> Found {
        if self.by_lengths.is_empty() || probes.len() < self.kinds.len() {
            return Found::No;
        }
        let (mut values, mut bits) = ([0; 3], [0; 3]);
        let mut iface = None;
        for (at, (kind, probe)) in self.kinds.iter().zip(probes).enumerate() {
            let family = Family::of(probe.ip);
            (values[at], bits[at]) = match kind {
                PartKind::Ip | PartKind::Net => {
                    (number(probe.ip) & self.mask.unwrap_or(u128::MAX), family.bits())
                }
                PartKind::Port if self.bitmap => match probe.protocol {
                    IpProtocol::TCP | IpProtocol::UDP => (u128::from(probe.port), PORT_BITS),
                    _ => return Found::No,
                },
                PartKind::Port => {
                    (u128::from(probe.protocol.0) << 16 | u128::from(probe.port), PORT_BITS)
                }
                PartKind::Iface => match probe.iface {
                    Some(name) => {
                        iface = Some((at, name));
                        (self.ifaces.get(name).copied().unwrap_or(0), IFACE_BITS)
                    }
                    None => return Found::No,
                },
                PartKind::Mac if !probe.has_mac => return Found::No,
                PartKind::Mac => (0, 0),
                PartKind::Mark => (u128::from(probe.mark & self.markmask), MARK_BITS),
            };
        }
        let (mut unsure, mut shortest) = (false, 0);
        for (lengths, table) in &self.by_lengths {
            if lengths[0] < shortest {
                break;
            }
            let mut key = [0; 3];
            for at in 0..self.kinds.len() {
                key[at] = top(values[at], bits[at], lengths[at]);
            }
            if self.with_iface.contains(&(lengths[0], key[0])) {
                shortest = lengths[0];
            }
            let mut hit = table.get(&key);
            if hit.is_none()
                && let Some((at, name)) = iface.filter(|_| !self.wildcards.is_empty())
            {
                let starts = (1..=name.len()).rev().filter(|end| name.is_char_boundary(*end));
                hit = starts.filter_map(|end| self.wildcards.get(&name[..end])).find_map(|id| {
                    key[at] = *id;
                    table.get(&key)
                });
            }
            match hit {
                Some(Flags { unsure: true, .. }) => unsure = true,
                Some(_) if unsure => return Found::Unknown,
                Some(Flags { nomatch: true, .. }) => return Found::Except,
                Some(_) => return Found::Yes,
                None => {}
            }
        }
        if unsure { Found::Unknown } else { Found::No }
    }
}

const PORT_BITS: u8 = 24;
const MARK_BITS: u8 = 32;
const IFACE_BITS: u8 = 64;

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The first `length` of the lowest `bits`.
fn top(value: u128, bits: u8, length: u8) -> u128 {
    let whole = u128::MAX.checked_shr(128 - u32::from(bits)).unwrap_or(0);
    let below = u32::from(bits.saturating_sub(length));
    value & whole & u128::MAX.checked_shl(below).unwrap_or(0)
}

/// The prefixes that cover a range.
fn cover(first: u128, last: u128, bits: u8) -> Vec<(u128, u8)> {
    let mut prefixes = Vec::new();
    let mut at = first;
    loop {
        let room = (last - at).checked_add(1).map_or(127, u128::ilog2).min(u32::from(bits));
        let free = at.trailing_zeros().min(room);
        prefixes.push((at, bits - free as u8));
        let step = 1u128 << free;
        match at.checked_add(step) {
            Some(next) if next <= last => at = next,
            _ => return prefixes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_covered_by_prefixes() {
        assert_eq!(cover(80, 80, 16), [(80, 16)]);
        assert_eq!(cover(0, 65535, 16), [(0, 0)]);
        assert_eq!(cover(1, 4, 8), [(1, 8), (2, 7), (4, 8)]);
        assert_eq!(cover(0, u128::MAX, 128), [(0, 1), (1 << 127, 1)]);
        assert_eq!(cover(u128::MAX, u128::MAX, 128), [(u128::MAX, 128)]);
        for (first, last) in [(3u128, 200u128), (0, 255), (17, 18), (128, 254)] {
            let prefixes = cover(first, last, 8);
            for value in 0..=255u128 {
                let inside = prefixes.iter().any(|(p, l)| top(value, 8, *l) == *p);
                assert_eq!(inside, (first..=last).contains(&value), "{first}-{last}: {value}");
            }
        }
    }
}
