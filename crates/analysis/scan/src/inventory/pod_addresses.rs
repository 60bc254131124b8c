//! The addresses of pods outside their nodes' networks.

use std::net::IpAddr;
use std::ops::Range;

use uturn_model::{Cluster, Name, Pod};
use uturn_netfilter::hash::FastMap;

use crate::parallel::side_by_side;

/// The number of pods that are looked up at a time.
const PIECE: usize = 4096;

/// A pod, and the place of its node if it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resident<'a> {
    pub(crate) pod: &'a Pod,
    /// Its number among all pods.
    pub(crate) number: u32,
    pub(crate) place: Option<u32>,
}

/// The pods outside their nodes' networks, by address.
pub(crate) struct PodAddresses<'a> {
    /// Pods that share an address are next to each other.
    all: Vec<Resident<'a>>,
    at: FastMap<IpAddr, Range<u32>>,
}

impl<'a> PodAddresses<'a> {
    /// Indexes pods. Pods that share an address stay in their order.
    pub(crate) fn new(pods: &[Resident<'a>]) -> Self {
        let own = pods.iter().filter(|resident| !resident.pod.spec.host_network);
        let mut found: Vec<(IpAddr, Resident<'a>)> =
            own.flat_map(|resident| resident.pod.ips.iter().map(|ip| (*ip, *resident))).collect();
        found.sort_by_key(|(ip, _)| *ip);
        let mut at: FastMap<IpAddr, Range<u32>> = FastMap::default();
        at.reserve(found.len());
        for (place, (ip, _)) in (0..).zip(&found) {
            at.entry(*ip).or_insert(place..place).end = place + 1;
        }
        Self { all: found.into_iter().map(|(_, resident)| resident).collect(), at }
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

/// Returns whether a pod outside its node's network has no address, as while its containers are
/// created. Such a pod cannot call.
pub(crate) fn lacks_address(pod: &Pod) -> bool {
    !pod.spec.host_network && pod.ips.is_empty()
}

/// Returns all pods that are alive, each with its node, numbered in their order.
pub(crate) fn alive<'a>(cluster: &'a Cluster, nodes: &FastMap<&'a Name, u32>) -> Vec<Resident<'a>> {
    let all: Vec<&'a Pod> = cluster.pods.values().collect();
    let homes = side_by_side(
        |piece| all.chunks(PIECE).for_each(piece),
        |pods: &[&'a Pod]| {
            let alive = pods.iter().copied().filter(|pod| pod.is_alive());
            let home = |pod: &Pod| pod.node.as_ref().and_then(|name| nodes.get(name)).copied();
            alive.map(|pod| (pod, home(pod))).collect::<Vec<_>>()
        },
    );
    let resident = |(number, (pod, place))| Resident { pod, number, place };
    (0..).zip(homes.into_iter().flatten()).map(resident).collect()
}
