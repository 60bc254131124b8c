//! The places of targets in a map, if they are too many for a chain each.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::Target;

use crate::hash::fnv1a;

/// The number of other targets over which a client with a target's address is spread.
pub(super) const OTHERS: u32 = 8;

/// The maximum number of places that are tried before the next target is taken.
const TRIES: u32 = 4096;

/// Arranges targets so that as few as possible change their places from `before`: the last target
/// gets the place of a removed one.
pub(super) fn arrange(wanted: Vec<SocketAddr>, before: &[SocketAddr]) -> Vec<SocketAddr> {
    if before.is_empty() {
        return wanted;
    }
    let mut left: HashMap<SocketAddr, usize> = HashMap::new();
    for target in &wanted {
        *left.entry(*target).or_default() += 1;
    }
    let mut take = |target: &SocketAddr| match left.get_mut(target) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let kept = before.iter().take(wanted.len()).map(|target| take(target).then_some(*target));
    let mut places: Vec<Option<SocketAddr>> = kept.collect();
    places.resize(wanted.len(), None);
    let mut others = wanted.iter().filter(|target| take(target)).copied();
    // The number of targets left equals the number of free places.
    places.into_iter().filter_map(|place| place.or_else(|| others.next())).collect()
}

/// A sampler that picks targets by hashes of addresses, in proportion to their weights. A change of
/// a target changes the picks of that target, and few others.
pub(super) struct Sampler<'t> {
    targets: &'t [Target],
    is_candidate: Vec<bool>,
    /// The target at each place. A target has one place, which follows from its address.
    places: Vec<Option<usize>>,
    /// A power of two that no weight exceeds.
    heaviest: u64,
}

impl<'t> Sampler<'t> {
    pub(super) fn new(targets: &'t [Target], candidates: &[usize]) -> Self {
        let size = (targets.len() * 4).next_power_of_two();
        let mut places = vec![None; size];
        for (i, target) in targets.iter().enumerate() {
            let first = hash(target.address.ip(), u32::from(target.address.port()), 0) as usize;
            // Three quarters of the places are free.
            if let Some(place) =
                (0..size).map(|step| (first + step) % size).find(|at| places[*at].is_none())
            {
                places[place] = Some(i);
            }
        }
        let mut is_candidate = vec![false; targets.len()];
        for i in candidates {
            is_candidate[*i] = true;
        }
        let heaviest = candidates.iter().map(|i| u64::from(targets[*i].weight)).max();
        let heaviest = heaviest.unwrap_or(1).next_power_of_two();
        Self { targets, is_candidate, places, heaviest }
    }

    /// Returns a candidate with another address than this client's. Returns `None` if there is
    /// none.
    pub(super) fn other(&self, client: IpAddr, number: u32) -> Option<SocketAddr> {
        let other = |i: &usize| self.is_candidate[*i] && self.targets[*i].address.ip() != client;
        for attempt in 1..=TRIES {
            let hash = hash(client, number, attempt);
            let place = hash as usize % self.places.len();
            if let Some(i) = self.places[place].filter(other)
                && (hash >> 40) % self.heaviest < u64::from(self.targets[i].weight)
            {
                return Some(self.targets[i].address);
            }
        }
        let first = hash(client, number, 0) as usize % self.places.len();
        let (before, after) = self.places.split_at(first);
        let mut in_order = after.iter().chain(before).copied().flatten();
        in_order.find(other).map(|i| self.targets[i].address)
    }
}

/// Returns a hash whose bits all depend on every input.
fn hash(address: IpAddr, number: u32, attempt: u32) -> u64 {
    let mut bytes = [0; 24];
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes[..16].copy_from_slice(&address.octets()),
    }
    bytes[16..20].copy_from_slice(&number.to_be_bytes());
    bytes[20..].copy_from_slice(&attempt.to_be_bytes());
    // The last steps of MurmurHash3.
    let mut hash = fnv1a(&bytes);
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}
