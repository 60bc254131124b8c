//! Compares counters of a lab's kernels before and after a connection: DROP and REJECT rules, the
//! reverse-path filter, resets, closed ports, unroutable packets and martian sources.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;

use uturn_model::Family;

use super::places::places;
use crate::LabError;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::system::During;
use crate::linux::kernel::tables;

/// The subject of a counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counted {
    /// Packets that a rule dropped or rejected; the rule is as `iptables-save` prints it.
    Rule(String),
    /// Packets that the reverse-path filter dropped.
    ReversePath,
    /// Connections that the kernel itself reset, rather than a rule or a process.
    Resets,
    /// Datagrams to a closed port.
    NoPorts,
    /// Packets without a route.
    NoWay,
}

/// The names of the kernel's counters.
const KERNELS: [(&str, Counted); 9] = [
    ("TcpExt: IPReversePathFilter", Counted::ReversePath),
    ("Tcp: OutRsts", Counted::Resets),
    ("Udp: NoPorts", Counted::NoPorts),
    ("Udp6NoPorts", Counted::NoPorts),
    ("UdpLite6NoPorts", Counted::NoPorts),
    ("Ip: InAddrErrors", Counted::NoWay),
    ("IpExt: InNoRoutes", Counted::NoWay),
    ("Ip6InAddrErrors", Counted::NoWay),
    ("Ip6InNoRoutes", Counted::NoWay),
];

/// All counters, by place and subject.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    places: BTreeMap<(usize, Counted), u64>,
    /// Packets with martian sources. The kernel counts them for all namespaces together.
    martians: Option<u64>,
}

/// The counters that grew between two readings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growth {
    pub(crate) grown: Vec<Grown>,
    /// The number of packets with martian sources on the whole machine. `None` if the kernel does
    /// not count them.
    pub(super) martians: Option<u64>,
}

/// A counter that grew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grown {
    pub(crate) place: usize,
    pub(crate) what: Counted,
    pub(crate) by: u64,
}

impl Grown {
    /// Returns whether the counter counts packets that ended.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self.what, Counted::Rule(_) | Counted::ReversePath | Counted::NoWay)
    }

    /// Returns the rule, if the counter is a rule's.
    pub(super) fn rule(&self) -> Option<&str> {
        match &self.what {
            Counted::Rule(rule) => Some(rule),
            _ => None,
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => f.write_str(rule),
            Self::ReversePath => f.write_str("IPReversePathFilter"),
            Self::Resets => f.write_str("TcpOutRsts"),
            Self::NoPorts => f.write_str("UdpNoPorts"),
            Self::NoWay => f.write_str("IpInAddrErrors, IpInNoRoutes"),
        }
    }
}

impl Counters {
    /// Reads the counters of all places. Pods have no rules.
    pub(crate) fn read(lab_cluster: &LabCluster) -> Result<Self, LabError> {
        let mut all = Self { places: BTreeMap::new(), martians: martians() };
        for (number, place) in places(lab_cluster).iter().enumerate() {
            let has_rules = !place.what.starts_with("pod ") && !place.what.starts_with("outside");
            let texts = || -> io::Result<_> {
                let mut rules = Vec::new();
                if has_rules {
                    for family in Family::BOTH {
                        rules.push(tables::save(family, &["-c"])?);
                    }
                }
                let files = ["netstat", "snmp", "snmp6"].map(|name| {
                    // A kernel without IPv6 has no such file.
                    fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
                });
                Ok((rules, files))
            };
            let doing = format!("read the counters of {}", place.what);
            let (tables, files) = place.space.run(texts).during(&doing)?;
            for (rule, count) in tables.iter().flat_map(|text| rules(text)) {
                *all.places.entry((number, Counted::Rule(rule))).or_default() += count;
            }
            for (name, count) in files.iter().flat_map(|text| numbers(text)) {
                let found = KERNELS.iter().find(|(known, _)| *known == name);
                if let Some((_, what)) = found {
                    *all.places.entry((number, what.clone())).or_default() += count;
                }
            }
        }
        Ok(all)
    }

    /// Returns the counters that have grown since `before`.
    pub(crate) fn grown_since(&self, before: &Self) -> Growth {
        let grown = |(key, count): (&(usize, Counted), &u64)| {
            let was = before.places.get(key).copied().unwrap_or_default();
            let by = count.saturating_sub(was);
            (by > 0).then(|| Grown { place: key.0, what: key.1.clone(), by })
        };
        let martians = self.martians.zip(before.martians);
        Growth {
            grown: self.places.iter().filter_map(grown).collect(),
            martians: martians.map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

/// Returns the DROP and REJECT rules with their packet counts.
fn rules(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.lines().filter_map(|line| {
        let (counts, rule) = line.strip_prefix('[')?.split_once("] ")?;
        let ends = rule.contains(" -j DROP") || rule.contains(" -j REJECT");
        let packets = counts.split(':').next()?.parse().ok()?;
        ends.then(|| (rule.to_owned(), packets))
    })
}

/// Reads `/proc/net/{netstat,snmp,snmp6}`: pairs of lines with names and numbers or, for IPv6, a
/// line for each counter.
fn numbers(text: &str) -> Vec<(String, u64)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for pair in lines.windows(2) {
        let (Some((head, names)), Some((second, counts))) =
            (pair[0].split_once(": "), pair[1].split_once(": "))
        else {
            continue;
        };
        if head == second {
            let counts = counts.split(' ').map(|count| count.parse().unwrap_or_default());
            let names = names.split(' ').map(|name| format!("{head}: {name}"));
            all.extend(names.zip(counts));
        }
    }
    let single = |line: &&str| {
        let mut words = line.split_whitespace();
        let (name, count) = (words.next()?, words.next()?.parse().ok()?);
        (words.next().is_none() && !name.ends_with(':')).then(|| (name.to_owned(), count))
    };
    all.extend(lines.iter().filter_map(single));
    all
}

/// Returns the number of packets with martian sources so far, on all processors.
fn martians() -> Option<u64> {
    count_martians(&fs::read_to_string("/proc/net/stat/rt_cache").ok()?)
}

fn count_martians(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let names = lines.next()?.split_whitespace();
    let at = names.into_iter().position(|name| name == "in_martian_src")?;
    let count = |line: &str| u64::from_str_radix(line.split_whitespace().nth(at)?, 16).ok();
    lines.map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let text = "*filter\n:A - [1:60]\n[3:180] -A A -p tcp -j DROP\n[9:1] -A A -j B\nCOMMIT\n";
        let found: Vec<_> = rules(text).collect();
        assert_eq!(found, [("-A A -p tcp -j DROP".to_owned(), 3)]);
        let text = "TcpExt: SyncookiesSent IPReversePathFilter X\nTcpExt: 0 7 1\n\
                    Tcp: InErrs OutRsts\nTcp: 0 5\nUdp6NoPorts                     \t9\n";
        let found = numbers(text);
        for (name, count) in
            [("TcpExt: IPReversePathFilter", 7), ("Tcp: OutRsts", 5), ("Udp6NoPorts", 9)]
        {
            assert!(found.contains(&(name.to_owned(), count)), "{name}: {found:?}");
        }
    }

    #[test]
    fn martians_of_all_processors_are_added_up() {
        let text = "entries  in_hit in_martian_dst in_martian_src  out_hit\n\
                    00000000  00000001 00000002 0000000a 00000003\n\
                    00000000  00000001 00000002 00000010 00000003\n";
        assert_eq!(count_martians(text), Some(26));
        assert_eq!(count_martians("entries\n0\n"), None);
    }
}
