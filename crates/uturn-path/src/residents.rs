//! Who has which address: pods with a network of their own.

use std::net::IpAddr;
use std::ops::Range;

use uturn_model::Pod;
use uturn_netfilter::hash::FastMap;

/// A pod, and the place of its node where that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resident<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) place: Option<u32>,
}

/// Those with a network of their own, by their addresses.
pub(crate) struct Residents<'a> {
    /// Who has the same address stands together.
    all: Vec<Resident<'a>>,
    at: FastMap<IpAddr, Range<u32>>,
}

impl<'a> Residents<'a> {
    /// Of pods that share an address, their order stays.
    pub(crate) fn new(pods: &[Resident<'a>]) -> Self {
        let own = pods.iter().filter(|one| !one.pod.spec.host_network);
        let mut found: Vec<(IpAddr, Resident<'a>)> =
            own.flat_map(|one| one.pod.ips.iter().map(|ip| (*ip, *one))).collect();
        found.sort_by_key(|(ip, _)| *ip);
        let mut at: FastMap<IpAddr, Range<u32>> = FastMap::default();
        at.reserve(found.len());
        for (place, (ip, _)) in (0..).zip(&found) {
            at.entry(*ip).or_insert(place..place).end = place + 1;
        }
        Self { all: found.into_iter().map(|(_, one)| one).collect(), at }
    }

    pub(crate) fn has(&self, ip: IpAddr) -> bool {
        self.at.contains_key(&ip)
    }

    pub(crate) fn at(&self, ip: IpAddr) -> &[Resident<'a>] {
        match self.at.get(&ip) {
            Some(range) => &self.all[range.start as usize..range.end as usize],
            None => &[],
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (IpAddr, &[Resident<'a>])> {
        self.at.iter().map(|(ip, range)| (*ip, &self.all[range.start as usize..range.end as usize]))
    }
}
