//! Ranges of addresses, as `nft` prints an anonymous set of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Ranges of one family, sorted, with adjacent and overlapping ranges merged.
pub(super) struct Ranges {
    is_v4: bool,
    /// The first and the last address of each range.
    all: Vec<(u128, u128)>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl FromIterator<IpNet> for Ranges {
    fn from_iter<I: IntoIterator<Item = IpNet>>(nets: I) -> Self {
        let mut is_v4 = false;
        let mut ends: Vec<(u128, u128)> = nets
            .into_iter()
            .map(|net| {
                is_v4 = net.network().is_ipv4();
                (bits(net.network()), bits(net.broadcast()))
            })
            .collect();
        ends.sort_unstable();
        let mut all: Vec<(u128, u128)> = Vec::with_capacity(ends.len());
        for (first, last) in ends {
            match all.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => all.push((first, last)),
            }
        }
        Self { is_v4, all }
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let braces = self.all.len() > 1;
        f.write_str(if braces { "{ " } else { "" })?;
        for (place, (first, last)) in self.all.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { ", " })?;
            write_range(f, self.is_v4, *first, *last)?;
        }
        f.write_str(if braces { " }" } else { "" })
    }
}

/// Formats a single range.
pub(super) fn text_of(net: &IpNet) -> String {
    Ranges::from_iter([*net]).to_string()
}

fn write_range(f: &mut fmt::Formatter<'_>, is_v4: bool, first: u128, last: u128) -> fmt::Result {
    let address = |bits: u128| {
        if is_v4 {
            IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
    };
    let size = last - first;
    let is_prefix = size & size.wrapping_add(1) == 0 && first & size == 0;
    let length = if is_v4 { 32 } else { 128 } - size.count_ones();
    match (size, is_prefix) {
        (0, _) => write!(f, "{}", address(first)),
        (_, true) => write!(f, "{}/{length}", address(first)),
        (_, false) => write!(f, "{}-{}", address(first), address(last)),
    }
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(nets: &[&str]) -> String {
        nets.iter().map(|net| net.parse::<IpNet>().unwrap()).collect::<Ranges>().to_string()
    }

    #[test]
    fn what_touches_is_one() {
        assert_eq!(printed(&["10.0.0.0/24", "10.0.1.0/24"]), "10.0.0.0/23");
        assert_eq!(printed(&["10.0.1.0/32", "10.0.0.0/24"]), "10.0.0.0-10.0.1.0");
        assert_eq!(printed(&["10.0.3.0/24", "10.0.0.0/16", "10.0.3.7/32"]), "10.0.0.0/16");
        assert_eq!(printed(&["0.0.0.0/1", "128.0.0.0/1"]), "0.0.0.0/0");
        assert_eq!(printed(&["8000::/1", "::/1"]), "::/0");
    }

    #[test]
    fn what_does_not_touch_stays() {
        assert_eq!(
            printed(&["203.0.113.14/32", "198.51.100.0/24", "10.0.0.0/16"]),
            "{ 10.0.0.0/16, 198.51.100.0/24, 203.0.113.14 }"
        );
        assert_eq!(printed(&["fd00::2/128", "fd00::/128"]), "{ fd00::, fd00::2 }");
    }
}
