//! An index of address ranges, of which rules may name thousands.

use std::net::IpAddr;

use uturn_model::{Family, IpNet};
use uturn_netfilter::hash::FastMap;

/// The number of ranges up to which each is compared with an address.
const FEW: usize = 16;

/// Ranges by the lengths of their prefixes, so that not all of them are compared with an address.
pub(crate) struct RangeIndex {
    all: Vec<IpNet>,
    by_length: Vec<(Family, u8, FastMap<IpAddr, u32>)>,
}

impl RangeIndex {
    /// Makes an index of distinct ranges.
    pub(crate) fn new(all: impl IntoIterator<Item = IpNet>) -> Self {
        let all: Vec<IpNet> = all.into_iter().collect();
        let mut by_length: Vec<(Family, u8, FastMap<IpAddr, u32>)> = Vec::new();
        for (place, net) in (0..).zip(&all) {
            let (family, length) = (Family::of(net.addr()), net.prefix_len());
            let same = |known: &(Family, u8, _)| (known.0, known.1) == (family, length);
            let at = by_length.iter().position(same).unwrap_or_else(|| {
                by_length.push((family, length, FastMap::default()));
                by_length.len() - 1
            });
            // Ranges may be written with host bits: several such ranges are one.
            by_length[at].2.entry(net.network()).or_insert(place);
        }
        Self { all, by_length }
    }

    /// Adds the places of the ranges that contain an address, in their order.
    pub(crate) fn add_places(&self, ip: IpAddr, places: &mut Vec<u32>) {
        if self.all.len() <= FEW {
            let within = (0..).zip(&self.all).filter(|(_, net)| net.contains(&ip));
            return places.extend(within.map(|(place, _)| place));
        }
        let from = places.len();
        for (_, length, nets) in self.by_length.iter().filter(|known| known.0 == Family::of(ip)) {
            let net = IpNet::new(ip, *length).ok().map(|net| net.network());
            places.extend(net.and_then(|net| nets.get(&net)));
        }
        places[from..].sort_unstable();
    }

    /// Returns the ranges that contain an address.
    pub(crate) fn with(&self, ip: IpAddr) -> Vec<IpNet> {
        let mut places = Vec::new();
        self.add_places(ip, &mut places);
        places.into_iter().map(|place| self.all[place as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_ranges_that_contain_it() {
        let texts = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "fd00::/8", "::/0"];
        let others: Vec<String> = (0..FEW).map(|number| format!("10.{number}.7.0/24")).collect();
        let all = texts.into_iter().chain(others.iter().map(String::as_str));
        let nets: Vec<IpNet> = all.map(|text| text.parse().expect("a range")).collect();
        let index = RangeIndex::new(nets.iter().copied());
        for ip in ["10.1.2.3", "10.2.7.1", "192.0.2.1", "fd00::1", "2001:db8::1"] {
            let ip: IpAddr = ip.parse().expect("an address");
            let expected: Vec<IpNet> =
                nets.iter().copied().filter(|net| net.contains(&ip)).collect();
            assert_eq!(index.with(ip), expected, "{ip}");
        }
    }
}
