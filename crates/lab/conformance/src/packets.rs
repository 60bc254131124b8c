//! The second judge: compares the ends of packets and of their replies in a kernel with
//! kube-proxy's rules with those that uturn's walk over a dump of the same kernel predicts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use uturn_model::Family;
use uturn_netfilter::{
    End, Kernel, NodeState, addr, ipset, iptables, ipvs, nft, policy_rules, routes, sysctl,
};

use crate::dump::Dump;
use crate::fault::{Fault, Outcome};
use crate::flows::Flow;
use crate::packet_end::{self, Memory, PacketEnd, ReplyEnd};
use crate::wire::{Probe, ProbeResult};

/// The largest number of tries. They miss an end with a share of 1/16 less than once in 10^16
/// flows.
const MAX_TRIES: u16 = 600;
/// The number of packets that must agree even if only one end is predicted.
const FEWEST_TRIES: u16 = 3;

/// A node on which packets are tried.
pub(crate) trait ProbedNode {
    fn name(&self) -> &str;

    /// Sends a packet and lets its target answer.
    fn send(&mut self, probe: &Probe) -> Outcome<ProbeResult>;

    /// Clears the kernel's session affinity. Returns whether that is possible.
    fn forget_clients(&mut self, dump: &Dump) -> Outcome<bool>;
}

/// The number of things tried, and the differences.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) flows: usize,
    pub(crate) packets: usize,
    /// The number of answers that uturn was sure of.
    pub(crate) answers: usize,
    /// Counts of packets and answers by their end, and of flows by their labels.
    pub(crate) end_counts: EndCounts,
    pub(crate) differences: Vec<String>,
}

/// Counts by a heading and a word.
pub(crate) type EndCounts = BTreeMap<(&'static str, &'static str), usize>;

/// The prediction for an end.
#[derive(Debug, Default)]
struct Expected {
    /// Whether some packet must end there.
    must: bool,
    /// The predicted ends of replies from there, or `None` if uturn is not sure.
    back: Option<BTreeSet<ReplyEnd>>,
}

/// Builds uturn's model of the node.
fn kernel(dump: &Dump) -> Outcome<Kernel> {
    let state = NodeState {
        iptables: read(
            "iptables.save",
            iptables::parse("iptables.save", &dump.iptables, Family::V4),
        )?,
        ip6tables: read(
            "ip6tables.save",
            iptables::parse("ip6tables.save", &dump.ip6tables, Family::V6),
        )?,
        interfaces: read("addr", addr::parse("addr", &dump.addresses))?,
        routes: read("route", routes::parse("route", &dump.routes))?,
        rules: read("rule", policy_rules::parse("rule", &dump.rules))?,
        sysctls: read("sysctl", sysctl::parse("sysctl", &dump.sysctls))?,
        nft: read("nft.txt", nft::parse("nft.txt", &(dump.nft.clone() + &dump.nft6)))?,
        sets: read("ipset.save", ipset::parse("ipset.save", &dump.ipset))?,
        ipvs: read("ipvs.save", ipvs::parse("ipvs.save", &dump.ipvs))?,
        ..NodeState::default()
    };
    read("the dump", Kernel::new(state))
}

fn read<T, E: fmt::Display>(what: &str, result: Result<T, Vec<E>>) -> Outcome<T> {
    result.map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Fault::new(format!("uturn cannot read {what} of a node:\n{}", lines.join("\n")))
    })
}

/// Tries every flow, often enough to see all its ends.
pub(crate) fn compare(
    node_under_test: &mut dyn ProbedNode,
    dump: &Dump,
    flows: &[Flow],
    memory: Memory,
) -> Outcome<Tried> {
    let (mut tried, kernel) = (Tried::default(), kernel(dump)?);
    let mut port = 1024;
    for flow in flows {
        let ends =
            kernel.walk(&packet_end::packet(&flow.probe), &packet_end::entry(&flow.probe), &[]);
        let predicted = predicted(&kernel, &ends, &flow.probe, memory);
        let mut seen_ends: BTreeMap<(PacketEnd, Option<ReplyEnd>), u16> = BTreeMap::new();
        let (mut wrong, mut forgets) = (false, true);
        for tries in 1..=MAX_TRIES {
            port = if port == u16::MAX { 1024 } else { port + 1 };
            let probe = Probe { sport: port, ..flow.probe.clone() };
            if flow.affinity {
                forgets = node_under_test.forget_clients(dump)?;
            }
            let result = node_under_test.send(&probe)?;
            let place = PacketEnd::seen(&result, &probe);
            tried.packets += 1;
            *tried.end_counts.entry(("packets", place.class())).or_default() += 1;
            let back = match predicted.get(&place) {
                None => {
                    wrong = true;
                    None
                }
                Some(Expected { back: Some(expected), .. }) if !expected.is_empty() => {
                    let back = ReplyEnd::seen(&result);
                    tried.answers += 1;
                    *tried.end_counts.entry(("answers", back.class(&probe))).or_default() += 1;
                    wrong |= !expected.contains(&back);
                    Some(back)
                }
                Some(_) => None,
            };
            *seen_ends.entry((place, back)).or_default() += 1;
            let enough = !forgets || missing(&predicted, &seen_ends).is_none();
            if wrong || (tries >= FEWEST_TRIES && enough) {
                break;
            }
        }
        tried.flows += 1;
        for sort in flow.labels() {
            *tried.end_counts.entry(sort).or_default() += 1;
        }
        if wrong || (forgets && missing(&predicted, &seen_ends).is_some()) {
            tried.differences.push(difference(
                node_under_test.name(),
                flow,
                &predicted,
                &seen_ends,
                &ends,
            ));
        }
    }
    Ok(tried)
}

fn predicted(
    kernel: &Kernel,
    ends: &[End],
    probe: &Probe,
    memory: Memory,
) -> BTreeMap<PacketEnd, Expected> {
    let mut predicted: BTreeMap<PacketEnd, Expected> = BTreeMap::new();
    for end in ends {
        let back = ReplyEnd::predicted(kernel, end, memory);
        let expected = predicted
            .entry(PacketEnd::predicted(end, probe))
            .or_insert_with(|| Expected { must: false, back: Some(BTreeSet::new()) });
        expected.must |= end.unknown.is_empty() && !end.share.is_none();
        match (&mut expected.back, back) {
            (Some(all), Some(more)) => all.extend(more),
            (all, _) => *all = None,
        }
    }
    predicted
}

/// Returns a predicted end that no packet had.
fn missing<'p>(
    predicted: &'p BTreeMap<PacketEnd, Expected>,
    seen_ends: &BTreeMap<(PacketEnd, Option<ReplyEnd>), u16>,
) -> Option<&'p PacketEnd> {
    let was_seen = |place: &PacketEnd| seen_ends.keys().any(|(seen_end, _)| seen_end == place);
    predicted
        .iter()
        .find(|(place, expected)| expected.must && !was_seen(place))
        .map(|(place, _)| place)
}

fn difference(
    node: &str,
    flow: &Flow,
    predicted: &BTreeMap<PacketEnd, Expected>,
    seen_ends: &BTreeMap<(PacketEnd, Option<ReplyEnd>), u16>,
    ends: &[End],
) -> String {
    let Probe { device, proto, src, dst, dport, .. } = &flow.probe;
    let device = if device.is_empty() { "the node" } else { device };
    let mut text =
        format!("{node}: {}: {proto} {src} to {dst} port {dport}, from {device}", flow.what());
    for (place, expected) in predicted {
        text += &format!("\n  - uturn says: {place}");
        for back in expected.back.iter().flatten() {
            text += &format!("\n               {back}");
        }
    }
    for ((place, back), count) in seen_ends {
        text += &format!("\n  + the kernel: {place}, {count} times");
        if let Some(back) = back {
            text += &format!("\n               {back}");
        }
    }
    for step in ends.iter().take(1).flat_map(|end| &end.steps) {
        text += &format!("\n    {step:?}");
    }
    text
}
