//! Counters of a lab's kernels, before and after: which rules that drop or reject grew, and
//! how many packets the reverse-path filter took.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use uturn_model::Family;

use super::inside::places;
use crate::LabError;
use crate::linux::build::Twin;
use crate::linux::system::During;
use crate::linux::tables;

/// What the reverse-path filter's counter is called here.
const REVERSE_PATH: &str = "IPReversePathFilter";

/// All counters, by place and what is counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters(BTreeMap<(usize, String), u64>);

/// A counter that grew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grown {
    pub(crate) place: usize,
    /// The rule, or the counter's name.
    pub(crate) what: String,
    pub(crate) by: u64,
}

impl Grown {
    pub(super) fn is_reverse_path(&self) -> bool {
        self.what == REVERSE_PATH
    }

    /// The chain of the rule.
    pub(super) fn chain(&self) -> &str {
        self.what.split(' ').nth(1).unwrap_or_default()
    }
}

impl Counters {
    /// As they are in fabric, edge and nodes. Pods have no rules.
    pub(crate) fn read(twin: &Twin) -> Result<Self, LabError> {
        let mut all = Self::default();
        for (number, place) in places(twin).iter().enumerate() {
            if place.what.starts_with("pod ") || place.what.starts_with("outside") {
                continue;
            }
            let texts = || -> io::Result<_> {
                let tables =
                    [tables::save(Family::V4, &["-c"])?, tables::save(Family::V6, &["-c"])?];
                Ok((tables, fs::read_to_string("/proc/thread-self/net/netstat")?))
            };
            let doing = format!("read the counters of {}", place.what);
            let (tables, netstat) = place.space.run(texts).during(&doing)?;
            for (rule, count) in tables.iter().flat_map(|text| rules(text)) {
                *all.0.entry((number, rule)).or_default() += count;
            }
            let filtered = reverse_path(&netstat).unwrap_or_default();
            all.0.insert((number, REVERSE_PATH.into()), filtered);
        }
        Ok(all)
    }

    /// What has grown since.
    pub(crate) fn grown_since(&self, before: &Self) -> Vec<Grown> {
        let grown = |((place, what), count): (&(usize, String), &u64)| {
            let was = before.0.get(&(*place, what.clone())).copied().unwrap_or_default();
            let by = count.saturating_sub(was);
            (by > 0).then(|| Grown { place: *place, what: what.clone(), by })
        };
        self.0.iter().filter_map(grown).collect()
    }
}

/// Rules that end a packet, with how many they have ended.
fn rules(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.lines().filter_map(|line| {
        let (counts, rule) = line.strip_prefix('[')?.split_once("] ")?;
        let ends = rule.contains(" -j DROP") || rule.contains(" -j REJECT");
        let packets = counts.split(':').next()?.parse().ok()?;
        ends.then(|| (rule.to_owned(), packets))
    })
}

/// The second line of each pair has the numbers for the first one's names.
fn reverse_path(netstat: &str) -> Option<u64> {
    let lines: Vec<&str> = netstat.lines().collect();
    lines.chunks_exact(2).find_map(|pair| {
        let at = pair[0].split(' ').position(|name| name == REVERSE_PATH)?;
        pair[1].split(' ').nth(at)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let text = "*filter\n:A - [1:60]\n[3:180] -A A -p tcp -j DROP\n[9:1] -A A -j B\nCOMMIT\n";
        let found: Vec<_> = rules(text).collect();
        assert_eq!(found, [("-A A -p tcp -j DROP".to_owned(), 3)]);
        let netstat = "TcpExt: SyncookiesSent IPReversePathFilter X\nTcpExt: 0 7 1\n";
        assert_eq!(reverse_path(netstat), Some(7));
    }
}
