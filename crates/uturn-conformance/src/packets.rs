//! The second judge: where packets end in the kernel that holds kube-proxy's rules, and
//! where the answers to them end, against where uturn's walk over the same kernel's dump
//! says that they do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use uturn_model::Family;
use uturn_netfilter::{
    End, Kernel, NodeState, addr, ipset, iptables, ipvs, nft, policy_rules, routes, sysctl,
};

use crate::dump::Dump;
use crate::fault::{Fault, Outcome};
use crate::flows::Flow;
use crate::place::{self, Back, Place};
use crate::wire::{Fate, Probe};

/// A way of one in sixteen is missed by so many tries less than once in 10^16 flows.
const MOST_TRIES: u16 = 600;
/// Even where one end is predicted, so many packets must agree.
const FEWEST_TRIES: u16 = 3;

/// A node on which packets are tried.
pub(crate) trait Ground {
    fn name(&self) -> &str;

    /// Sends a packet and lets its target answer.
    fn send(&mut self, probe: &Probe) -> Outcome<Fate>;

    /// Lets the kernel forget which client went where; whether it can be made to.
    fn forget_clients(&mut self, dump: &Dump) -> Outcome<bool>;
}

/// What was tried and what differed.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) flows: usize,
    pub(crate) packets: usize,
    /// Answers that uturn was sure of.
    pub(crate) answers: usize,
    /// How many packets and answers ended in which way, and of which sort flows were.
    pub(crate) ways: Ways,
    pub(crate) differences: Vec<String>,
}

/// Counts, under a heading and a word.
pub(crate) type Ways = BTreeMap<(&'static str, &'static str), usize>;

/// What uturn says of a place.
#[derive(Debug, Default)]
struct Expected {
    /// Some packet must end there.
    must: bool,
    /// Where answers from there end; nothing where uturn is not sure.
    back: Option<BTreeSet<Back>>,
}

/// uturn's model of the node.
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

/// What uturn's walk is told of connections when an answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Whole,
    /// Nothing: it must then be found wrong.
    None,
}

/// Tries every flow, often enough to see all its ends.
pub(crate) fn compare(
    ground: &mut dyn Ground,
    dump: &Dump,
    flows: &[Flow],
    memory: Memory,
) -> Outcome<Tried> {
    let (mut tried, kernel) = (Tried::default(), kernel(dump)?);
    let mut port = 1024;
    for flow in flows {
        let ends = kernel.walk(&place::packet(&flow.probe), &place::entry(&flow.probe), &[]);
        let predicted = predicted(&kernel, &ends, &flow.probe, memory);
        let mut met: BTreeMap<(Place, Option<Back>), u16> = BTreeMap::new();
        let (mut wrong, mut forgets) = (false, true);
        for tries in 1..=MOST_TRIES {
            port = if port == u16::MAX { 1024 } else { port + 1 };
            let probe = Probe { sport: port, ..flow.probe.clone() };
            if flow.affinity {
                forgets = ground.forget_clients(dump)?;
            }
            let fate = ground.send(&probe)?;
            let place = Place::seen(&fate, &probe);
            tried.packets += 1;
            *tried.ways.entry(("packets", place.way())).or_default() += 1;
            let back = match predicted.get(&place) {
                None => {
                    wrong = true;
                    None
                }
                Some(Expected { back: Some(said), .. }) if !said.is_empty() => {
                    let back = Back::seen(&fate);
                    tried.answers += 1;
                    *tried.ways.entry(("answers", back.way(&probe))).or_default() += 1;
                    wrong |= !said.contains(&back);
                    Some(back)
                }
                Some(_) => None,
            };
            *met.entry((place, back)).or_default() += 1;
            let enough = !forgets || missing(&predicted, &met).is_none();
            if wrong || (tries >= FEWEST_TRIES && enough) {
                break;
            }
        }
        tried.flows += 1;
        for sort in flow.sorts() {
            *tried.ways.entry(sort).or_default() += 1;
        }
        if wrong || (forgets && missing(&predicted, &met).is_some()) {
            tried.differences.push(difference(ground.name(), flow, &predicted, &met, &ends));
        }
    }
    Ok(tried)
}

fn predicted(
    kernel: &Kernel,
    ends: &[End],
    probe: &Probe,
    memory: Memory,
) -> BTreeMap<Place, Expected> {
    let mut predicted: BTreeMap<Place, Expected> = BTreeMap::new();
    for end in ends {
        let back = Back::predicted(kernel, end, memory);
        let expected = predicted
            .entry(Place::predicted(end, probe))
            .or_insert_with(|| Expected { must: false, back: Some(BTreeSet::new()) });
        expected.must |= end.unknown.is_empty() && end.share > 1e-9;
        match (&mut expected.back, back) {
            (Some(all), Some(more)) => all.extend(more),
            (all, _) => *all = None,
        }
    }
    predicted
}

/// A place where some packet must end and none did.
fn missing<'p>(
    predicted: &'p BTreeMap<Place, Expected>,
    met: &BTreeMap<(Place, Option<Back>), u16>,
) -> Option<&'p Place> {
    let was_met = |place: &Place| met.keys().any(|(one, _)| one == place);
    predicted.iter().find(|(place, said)| said.must && !was_met(place)).map(|(place, _)| place)
}

fn difference(
    node: &str,
    flow: &Flow,
    predicted: &BTreeMap<Place, Expected>,
    met: &BTreeMap<(Place, Option<Back>), u16>,
    ends: &[End],
) -> String {
    let Probe { device, proto, src, dst, dport, .. } = &flow.probe;
    let device = if device.is_empty() { "the node" } else { device };
    let mut text =
        format!("{node}: {}: {proto} {src} to {dst} port {dport}, from {device}", flow.what());
    for (place, said) in predicted {
        text += &format!("\n  - uturn says: {place}");
        for back in said.back.iter().flatten() {
            text += &format!("\n               {back}");
        }
    }
    for ((place, back), count) in met {
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
