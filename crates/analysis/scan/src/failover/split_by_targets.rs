//! Splits a class of clients that try targets in different orders.

use std::ops::Range;
use std::rc::Rc;

use uturn_netfilter::hash::FastMap;

use super::retry_ring::Difference;
use super::target_list::Round;
use crate::inventory::interval_set::IntervalSet;
use crate::inventory::{Caller, Inventory};
use crate::partition::target_classes::ClientSet;

/// Splits clients into parts that try targets in the same order. Returns each part with one of its
/// clients; the walked client is in the first part.
pub(crate) fn split_by_targets<'a>(
    client_set: &ClientSet<'a>,
    inventory: &Inventory<'a>,
    rounds: &[Rc<Round>],
) -> Vec<(Caller, ClientSet<'a>)> {
    let add_differences = |caller: Caller, differences: &mut Vec<Difference>| {
        differences.clear();
        rounds.iter().for_each(|round| round.ring.add_differences(caller, differences));
    };
    let walked = client_set.walked(inventory);
    let mut differences = Vec::new();
    add_differences(walked, &mut differences);
    let mut numbers = FastMap::from_iter([(differences.clone(), 0)]);
    let mut parts: Vec<(Caller, Vec<Range<u32>>, Vec<u32>)> =
        vec![(walked, Vec::new(), Vec::new())];
    for range in client_set.places.ranges() {
        let mut at = range.start;
        while at < range.end {
            let place = inventory.homes[at as usize];
            // Pods of a node are adjacent. Each endpoint is by itself.
            let many =
                if client_set.itself { 1 } else { inventory.run_at(place, at).min(range.end) - at };
            let caller = Caller { place, at };
            add_differences(caller, &mut differences);
            let number = numbers.get(&differences).copied().unwrap_or(parts.len());
            if number == parts.len() {
                numbers.insert(differences.clone(), number);
                parts.push((caller, Vec::new(), Vec::new()));
            }
            let (_, ranges, nodes) = &mut parts[number];
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end += many,
                _ => ranges.push(at..at + many),
            }
            nodes.push(place);
            at += many;
        }
    }
    let parts = parts.into_iter().map(|(first, ranges, mut nodes)| {
        nodes.sort_unstable();
        nodes.dedup();
        let pod = inventory.clients[first.at as usize];
        let places = IntervalSet::new(ranges);
        (
            first,
            ClientSet { pod, at: first.at, places, nodes: nodes.len(), itself: client_set.itself },
        )
    });
    parts.collect()
}
