//! The replacements of addresses.
//!
//! Addresses and ranges are collected first. They are the leaves of a binary tree in which each bit
//! of an address is a step to the left or to the right. A bit is inverted, as a key decides, where
//! all addresses of the input take the same step; where they differ, the bit is kept. So addresses
//! with a common prefix keep one of the same length, and the order of addresses is kept: an address
//! within a range stays in it, and the longest prefix stays the longest.
//!
//! Some steps are kept for their meaning: those to the ranges that kernels, clouds and uturn treat
//! specially (private, shared, link-local, multicast and so on), those to the first and the last
//! address of each range, and those that make two ranges adjacent. The ranges with a meaning are
//! not replaced (`10.0.0.0/8` is kept, `10.0.0.0/16` is not). Addresses that mean the same on every
//! machine (127.0.0.1, 169.254.169.254, 0.0.0.0, masks) are not replaced either.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sha2::{Digest, Sha256};

/// The ranges with a meaning: the replacement of an address in one of them is in it, too.
const MEANT: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "10.42.0.0/16",
    "100.64.0.0/10",
    "100.127.0.0/16",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/16",
    "64:ff9b::/96",
    "2000::/3",
    "fc00::/7",
    "fd00::/8",
    "fd00:10:1::/48",
    "fd00:10:96::/112",
    "fe80::/64",
    "ff00::/8",
];

/// The number of keys that are tried to find one under which no replacement equals an original
/// address; the second number applies if there are many addresses.
const TRIES: (u32, u32) = (64, 8);
/// The number of addresses that counts as many.
const MANY: usize = 10_000;

/// An address as its bits, left-aligned in 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Point {
    is_v6: bool,
    bits: u128,
}

impl Point {
    fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self { is_v6: false, bits: u128::from(ip.to_bits()) << 96 },
            IpAddr::V6(ip) => Self { is_v6: true, bits: ip.to_bits() },
        }
    }

    fn ip(self) -> IpAddr {
        if self.is_v6 {
            Ipv6Addr::from_bits(self.bits).into()
        } else {
            Ipv4Addr::from_bits((self.bits >> 96) as u32).into()
        }
    }

    fn length(self) -> u32 {
        if self.is_v6 { 128 } else { 32 }
    }

    fn next(self) -> Option<Self> {
        let step = 1_u128 << (128 - self.length());
        Some(Self { bits: self.bits.checked_add(step)?, ..self })
    }
}

/// Returns the first bits, with the others cleared.
fn first_bits(bits: u128, length: u32) -> u128 {
    if length == 0 { 0 } else { bits & (u128::MAX << (128 - length)) }
}

/// A place in the tree: the family, the number of steps from the root, and the bits of these steps.
type Place = (bool, u32, u128);

/// The collected addresses of an input.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    points: BTreeSet<Point>,
    /// The places at which the step is kept.
    kept: HashSet<Place>,
    addresses: HashSet<IpAddr>,
}

impl Collected {
    pub(crate) fn address(&mut self, ip: IpAddr) {
        if !stands_for_itself(ip) {
            self.points.insert(Point::of(ip));
            self.addresses.insert(ip);
        }
    }

    /// Collects the range that contains an address.
    pub(crate) fn range(&mut self, ip: IpAddr, length: u8) {
        if stands_for_itself(ip) {
            return;
        }
        let point = Point::of(ip);
        let length = u32::from(length).min(point.length());
        let first = Point { bits: first_bits(point.bits, length), ..point };
        let beyond = if length == 128 { 0 } else { u128::MAX >> length };
        let whole = first_bits(u128::MAX, point.length());
        let last = Point { bits: (first.bits | beyond) & whole, ..point };
        for end in [first, last] {
            self.points.insert(end);
            self.keep(end, length);
        }
    }

    /// Keeps the steps to a point from a depth on.
    fn keep(&mut self, point: Point, from: u32) {
        for depth in from..point.length() {
            self.kept.insert((point.is_v6, depth, first_bits(point.bits, depth)));
        }
    }

    /// Decides the replacements of all collected addresses.
    pub(crate) fn decide(mut self, key: &[u8]) -> Addresses {
        for range in MEANT {
            let (ip, length) = range.split_once('/').expect("a constant range");
            let point = Point::of(ip.parse().expect("a constant address"));
            for depth in 0..length.parse().expect("a constant length") {
                self.kept.insert((point.is_v6, depth, first_bits(point.bits, depth)));
            }
        }
        let points: Vec<Point> = self.points.iter().copied().collect();
        let touching = points.windows(2).filter(|pair| pair[0].next() == Some(pair[1]));
        let ends: Vec<(Point, u32)> = touching
            .flat_map(|pair| {
                let beyond = 128 - pair[0].length();
                let run = (pair[0].bits >> beyond).trailing_ones();
                [(pair[0], run), (pair[1], run)]
            })
            .collect();
        for (point, run) in ends {
            self.keep(point, point.length().saturating_sub(run));
        }
        let mut addresses =
            Addresses { points, kept: self.kept, key: [0; 32], known: HashMap::new() };
        let mut best: Option<(usize, [u8; 32])> = None;
        let tries = if self.addresses.len() < MANY { TRIES.0 } else { TRIES.1 };
        for number in 0..tries {
            let mut hasher = Sha256::new();
            hasher.update(key);
            hasher.update(number.to_be_bytes());
            addresses.key = hasher.finalize().into();
            addresses.known.clear();
            let clashes =
                self.addresses.iter().filter(|ip| self.addresses.contains(&addresses.map(**ip)));
            let clashes = clashes.count();
            if best.is_none_or(|(least, _)| clashes < least) {
                best = Some((clashes, addresses.key));
            }
            if clashes == 0 {
                break;
            }
        }
        addresses.key = best.map_or([0; 32], |(_, key)| key);
        addresses.known = self.addresses.iter().map(|ip| (*ip, addresses.map(*ip))).collect();
        addresses
    }
}

/// The decided replacements of addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    points: Vec<Point>,
    kept: HashSet<Place>,
    key: [u8; 32],
    known: HashMap<IpAddr, IpAddr>,
}

impl Addresses {
    /// Returns the replacement of an address.
    pub(crate) fn of(&self, ip: IpAddr) -> IpAddr {
        self.known.get(&ip).copied().unwrap_or_else(|| self.map(ip))
    }

    /// Returns whether an address is in the input, or is an end of one of its ranges.
    pub(crate) fn is_given(&self, ip: IpAddr) -> bool {
        self.points.binary_search(&Point::of(ip)).is_ok()
    }

    /// Returns the addresses of the input with their replacements.
    pub(crate) fn all(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        self.known.iter().map(|(old, new)| (*old, *new))
    }

    fn map(&self, ip: IpAddr) -> IpAddr {
        if stands_for_itself(ip) {
            return ip;
        }
        let point = Point::of(ip);
        let mut mapped = point.bits;
        // The points with the same first steps.
        let family = self.points.partition_point(|own| !own.is_v6);
        let (mut from, mut to) =
            if point.is_v6 { (family, self.points.len()) } else { (0, family) };
        for depth in 0..point.length() {
            let prefix = first_bits(point.bits, depth);
            let bit = 1_u128 << (127 - depth);
            let right = prefix | bit;
            let middle = from + self.points[from..to].partition_point(|own| own.bits < right);
            let parts = from < middle && middle < to;
            if !parts
                && !self.kept.contains(&(point.is_v6, depth, prefix))
                && self.flips(point.is_v6, depth, prefix)
            {
                mapped ^= bit;
            }
            match point.bits & bit {
                0 => to = middle,
                _ => from = middle,
            }
        }
        Point { bits: mapped, ..point }.ip()
    }

    /// Returns whether the key inverts the bit at a place.
    fn flips(&self, is_v6: bool, depth: u32, prefix: u128) -> bool {
        let mut hasher = Sha256::new();
        hasher.update(self.key);
        hasher.update([u8::from(is_v6), depth as u8]);
        hasher.update(prefix.to_be_bytes());
        hasher.finalize()[0] & 1 == 1
    }
}

/// Returns whether a range has a meaning: it is not replaced, and its addresses stay in it.
pub(crate) fn is_meant(ip: IpAddr, length: u8) -> bool {
    let is_it = |range: &&str| {
        let (own, long) = range.split_once('/').expect("a constant range");
        long.parse() == Ok(length) && own.parse() == Ok(ip)
    };
    MEANT.iter().any(is_it)
}

/// Returns whether an address means the same on every machine.
fn stands_for_itself(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [first, second, third, _] = ip.octets();
            matches!(first, 0 | 127 | 240..=255)
                || (first, second) == (169, 254)
                || (first, second, third) == (224, 0, 0)
        }
        IpAddr::V6(ip) => {
            let segments = ip.segments();
            is_mask(ip)
                || segments[..7].iter().all(|segment| *segment == 0)
                || (segments[0] >> 8 == 0xff && segments[1..7].iter().all(|own| *own == 0))
                || (segments[0] == 0xfe80 && segments[1..].iter().all(|own| *own == 0))
        }
    }
}

/// Returns whether an address is a mask of at least 8 bits, as `-m recent` uses.
fn is_mask(ip: Ipv6Addr) -> bool {
    let bits = ip.to_bits();
    bits.leading_ones() >= 8 && bits.leading_ones() + bits.trailing_zeros() >= 128
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(texts: &[&str], key: u8) -> Vec<IpAddr> {
        let mut collected = Collected::default();
        for text in texts {
            match text.split_once('/') {
                Some((ip, length)) => {
                    let ip = ip.parse().expect("an address");
                    collected.address(ip);
                    collected.range(ip, length.parse().expect("a length"));
                }
                None => collected.address(text.parse().expect("an address")),
            }
        }
        let addresses = collected.decide(&[key]);
        let ip = |text: &&str| text.split('/').next().expect("a text").parse().expect("an address");
        texts.iter().map(ip).map(|ip| addresses.of(ip)).collect()
    }

    fn common(a: IpAddr, b: IpAddr) -> u32 {
        (Point::of(a).bits ^ Point::of(b).bits).leading_zeros()
    }

    #[test]
    fn order_prefixes_and_touching_ranges_stay() {
        let texts = [
            "10.0.0.0/16",
            "10.0.0.11",
            "10.0.0.12",
            "10.0.1.0/24",
            "10.0.1.255",
            "10.0.2.0/24",
            "10.1.2.10",
            "172.16.0.1",
            "172.16.0.10",
            "192.168.7.9",
            "100.64.3.4",
            "8.8.8.8",
            "203.0.113.7",
            "fd00:1::5",
            "fd00:1::6",
            "2001:db8::1",
            "fe80::1:2",
        ];
        let old: Vec<IpAddr> = texts
            .iter()
            .map(|text| text.split('/').next().unwrap_or(text).parse().expect("an address"))
            .collect();
        for key in 0..20 {
            let new = mapped(&texts, key);
            for (at, a) in old.iter().enumerate() {
                for (to, b) in old.iter().enumerate() {
                    if a.is_ipv4() == b.is_ipv4() {
                        assert_eq!(common(*a, *b), common(new[at], new[to]), "{a} {b}");
                    }
                    assert_eq!(a.cmp(b), new[at].cmp(&new[to]), "{a} {b}");
                }
            }
            assert!(new.iter().all(|ip| !old.contains(ip)), "{new:?}");
            let next = Point::of(new[4]).next().expect("not the last");
            assert_eq!(next.ip(), new[5], "10.0.1.255 touches 10.0.2.0");
            assert!(new[0].to_string().ends_with(".0.0"), "{}", new[0]);
        }
    }

    #[test]
    fn what_is_the_same_everywhere_stays() {
        let texts = [
            "0.0.0.0/0",
            "127.0.0.1",
            "169.254.20.10",
            "255.255.255.0",
            "::1",
            "::/0",
            "ff02::1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "ffff:ffff:ffff:ff00::",
        ];
        let old: Vec<IpAddr> = texts
            .iter()
            .map(|text| text.split('/').next().unwrap_or(text).parse().expect("an address"))
            .collect();
        assert_eq!(mapped(&texts, 3), old);
    }
}
