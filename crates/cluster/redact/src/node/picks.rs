//! The order in which a Service's chain picks endpoints. kube-proxy sorts endpoints by the text of
//! their addresses, and replaced addresses sort differently. Sorted endpoints of a chain are sorted
//! again, so that the rules stay as kube-proxy would write them.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::chains::Chains;
use crate::names::Names;

/// The lines of the chains of Services that lead to endpoints.
pub(super) struct Picks<'t> {
    lines: Vec<&'t str>,
    /// The lines and their endpoints, by the chain and by the line's use of an endpoint.
    chains: HashMap<(&'t str, bool), Vec<(usize, &'t str)>>,
    endpoints: HashMap<&'t str, SocketAddr>,
}

impl<'t> Picks<'t> {
    pub(super) fn of(text: &'t str, known: &Chains) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut picks = Self { lines, chains: HashMap::new(), endpoints: HashMap::new() };
        for (at, line) in picks.lines.iter().enumerate() {
            let Some(rest) = line.strip_prefix("-A ") else { continue };
            let (chain, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            if chain.starts_with("KUBE-SEP-") {
                let to = rest.split("--to-destination ").nth(1);
                let to = to.and_then(|to| to.split(' ').next()?.parse().ok());
                if let Some(endpoint) = known.endpoint(chain).or(to) {
                    picks.endpoints.insert(chain, endpoint);
                }
                continue;
            }
            let is_service = chain.starts_with("KUBE-SVC-") || chain.starts_with("KUBE-SVL-");
            if let Some(to) =
                rest.rsplit("-j ").next().filter(|to| is_service && to.starts_with("KUBE-SEP-"))
            {
                let affinity = rest.contains("--rcheck");
                picks.chains.entry((chain, affinity)).or_default().push((at, to.trim_end()));
            }
        }
        picks
    }

    /// Returns the text with the endpoints of each chain in the order of their new addresses.
    /// Returns `None` if the text does not change.
    pub(super) fn sorted(self, names: &mut Names) -> Option<String> {
        let mut new: HashMap<usize, String> = HashMap::new();
        for picked in self.chains.values() {
            let known: Option<Vec<(&str, SocketAddr)>> =
                picked.iter().map(|(_, to)| Some((*to, *self.endpoints.get(to)?))).collect();
            let Some(known) = known else { continue };
            if !known.is_sorted_by_key(|(_, endpoint)| endpoint.to_string()) {
                continue;
            }
            let mut sorted: Vec<(&str, String)> = known
                .iter()
                .map(|(to, old)| {
                    (*to, SocketAddr::new(names.address(old.ip()), old.port()).to_string())
                })
                .collect();
            sorted.sort_by(|a, b| a.1.cmp(&b.1));
            for ((at, old), (to, _)) in picked.iter().zip(&sorted) {
                if old != to {
                    // The chain's name occurs twice if it is also the key of an affinity, and the
                    // remark names the endpoint.
                    let line = self.lines[*at].replace(old, to);
                    let remark = |chain| format!(" -> {}\"", self.endpoints[chain]);
                    new.insert(*at, line.replace(&remark(*old), &remark(*to)));
                }
            }
        }
        if new.is_empty() {
            return None;
        }
        let lines = self
            .lines
            .iter()
            .enumerate()
            .map(|(at, line)| new.get(&at).map_or(*line, |line| &**line));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }
}
