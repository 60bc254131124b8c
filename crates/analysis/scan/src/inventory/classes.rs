//! Classes of nodes, and the kinds of pods on them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

use uturn_model::{Family, Pod};
use uturn_netfilter::hash::{FastMap, FastSet};

use super::Inventory;
use super::interval_set::IntervalSet;
use super::pod_addresses::{Resident, lacks_address};
use crate::distinguish::discriminators::Discriminators;
use crate::numbers::Numbers;

/// Nodes that are equivalent, Services aside.
#[derive(Default)]
pub(crate) struct NodeClass {
    pub(crate) nodes: Vec<u32>,
    /// The kinds of pods on any of them, each with those nodes and the indices of the pods.
    pub(crate) kinds: BTreeMap<u32, (Vec<u32>, IntervalSet)>,
}

/// The properties of a pod's address that rules can distinguish: its family, its discriminators,
/// the address itself if it has another owner too, and whether it is in a node's range.
type Look = (Family, u32, Option<IpAddr>, bool);

/// The kind of every hostNetwork pod: it sends with its node's address.
pub(crate) const HOST: u32 = 0;

impl<'a> Inventory<'a> {
    pub(super) fn count_pods(
        &mut self,
        pods: &[Resident<'a>],
        not_plain: &FastSet<IpAddr>,
        discriminators: &mut Discriminators,
    ) {
        let mut kinds: Numbers<Vec<Look>> = Numbers::default();
        // A hostNetwork pod: no address of its own, in no node's range.
        let host = kinds.of(vec![(Family::V4, u32::MAX, None, false)]);
        debug_assert_eq!(host, HOST, "the first number");
        let mut clients: Vec<([u32; 4], u32, &'a Pod)> = Vec::with_capacity(pods.len());
        let mut listens: FastSet<(u16, u32)> = FastSet::default();
        let mut looks = Vec::new();
        for Resident { pod, number, place } in pods.iter().copied() {
            let Some(place) = place.filter(|_| !lacks_address(pod)) else { continue };
            let mut kind = HOST;
            if pod.spec.host_network {
                for port in pod.spec.ports() {
                    let port = port.port.number();
                    if listens.insert((port, place)) {
                        self.host_ports.entry(port).or_default().push((place, pod));
                    }
                }
            } else {
                looks.clear();
                for ip in &pod.ips {
                    let odd = not_plain.contains(ip).then_some(*ip);
                    let in_range = self.ranges.holder(*ip).is_some();
                    looks.push((Family::of(*ip), discriminators.of(*ip), odd, in_range));
                }
                kind = kinds.of_list(&looks);
            }
            // What is on a node that is down calls nobody.
            if self.nodes[place as usize].node.loss.is_some() {
                continue;
            }
            let class = self.nodes[place as usize].class;
            clients.push(([class[0], class[1], kind, place], number, pod));
        }
        self.client_places = vec![None; pods.len()];
        // Equivalent pods stay in the order of their names.
        clients.sort_unstable_by_key(|(key, number, _)| (*key, *number));
        for (at, ([_, _, kind, place], number, pod)) in clients.iter().enumerate() {
            let at = at as u32;
            let kinds = &mut self.nodes[*place as usize].kinds;
            match kinds.last_mut() {
                Some((last, range)) if last == kind => range.end = at + 1,
                _ => kinds.push((*kind, at..at + 1)),
            }
            if !pod.spec.host_network {
                self.client_places[*number as usize] = Some(at);
            }
        }
        self.homes = clients.iter().map(|([_, _, _, place], ..)| *place).collect();
        self.clients = clients.into_iter().map(|(.., pod)| pod).collect();
    }

    pub(super) fn fill_classes(&mut self) {
        let mut ranges: FastMap<(usize, u32, u32), Vec<Range<u32>>> = FastMap::default();
        for (place, node) in self.nodes.iter().enumerate() {
            if !node.node.unprogrammed.is_empty() {
                self.behind.push(place as u32);
            }
            for (of, classes) in self.classes.iter_mut().enumerate() {
                let class = &mut classes[node.class[of] as usize];
                class.nodes.push(place as u32);
                for (kind, range) in &node.kinds {
                    class.kinds.entry(*kind).or_default().0.push(place as u32);
                    ranges.entry((of, node.class[of], *kind)).or_default().push(range.clone());
                }
            }
        }
        for ((of, class, kind), ranges) in ranges {
            if let Some((_, places)) = self.classes[of][class as usize].kinds.get_mut(&kind) {
                *places = IntervalSet::new(ranges);
            }
        }
    }
}
