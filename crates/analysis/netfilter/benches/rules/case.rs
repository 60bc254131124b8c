//! One benchmark case: parses, prints, compiles and walks its rules.

use std::fmt::Display;
use std::hint::black_box;
use std::io::Read;
use std::net::IpAddr;
use std::time::Instant;

use uturn_model::Family;
use uturn_netfilter::{Entry, Kernel, NodeState, Packet, ParseError, ipset, iptables, ipvs, nft};
use uturn_testing::yardstick::{Beside, hash_keys, split_into_words};

use crate::linear::Linear;
use crate::{machine, made};

/// A walk is measured beside hashing so many keys.
const KEYS: usize = 1_000;

/// Runs the case whose texts are on standard input.
pub(crate) fn run(services: u32, runs: u32) {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    let texts: Vec<&str> = input.split('\0').collect();
    let [rules, nft, sets, servers, bound, _] = texts[..] else { panic!("not six texts") };
    let bound: Vec<IpAddr> =
        bound.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();

    // First, while this process holds nothing else.
    let before = machine::taken();
    let mut state = made::state(&bound);
    state.iptables = iptables::parse("made", rules, Family::V4).unwrap();
    state.nft = nft::parse("made", nft).unwrap();
    state.sets = ipset::parse("made", sets).unwrap();
    state.ipvs = ipvs::parse("made", servers).unwrap();
    let count = count(&state);
    memory_of("memory", count, before);

    let read_rules = |text: &str| iptables::parse("made", text, Family::V4);
    parse("iptables", rules, runs, read_rules, &state.iptables);
    parse("nft", nft, runs, |text| nft::parse("made", text), &state.nft);
    parse("ipset", sets, runs, |text| ipset::parse("made", text), &state.sets);
    parse("ipvsadm", servers, runs, |text| ipvs::parse("made", text), &state.ipvs);

    let linear = (rules.len() > 100_000).then(|| Linear::new(&state.iptables));
    let mut compile = f64::MAX;
    for _ in 0..runs.min(3) {
        let state = state.clone();
        let start = Instant::now();
        drop(black_box(Kernel::new(state).unwrap()));
        compile = compile.min(start.elapsed().as_secs_f64());
    }
    let kernel = Kernel::new(state.clone()).unwrap();
    println!("  make ready          {:9.1} ms", compile * 1e3);
    for (what, packet) in made::packets(services) {
        walk(what, &kernel, linear.as_ref(), &packet, runs);
    }
    if let Some((_, peak)) = machine::taken() {
        println!("  peak memory, with copies of the rules: {} MiB", peak / 1024);
    }
}

fn count(state: &NodeState) -> usize {
    let tables = &state.iptables.tables;
    let rules = tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len());
    let nft = state.nft.tables.iter().flat_map(|table| &table.chains);
    let servers = state.ipvs.0.iter().map(|server| 1 + server.servers.len());
    rules.chain(nft.map(|chain| chain.rules.len())).chain(servers).sum()
}

fn memory_of(what: &str, count: usize, before: Option<(u64, u64)>) {
    let (Some((before, _)), Some((now, peak))) = (before, machine::taken()) else {
        return println!("  {what}: this system does not tell");
    };
    let each = |kib: u64| kib as f64 * 1024.0 / count as f64;
    let (now, peak) = (now.saturating_sub(before), peak.saturating_sub(before));
    println!(
        "  {what:<20}{:9.1} MB  {count} rules and servers, {:.0} bytes each; while reading {:.0}",
        now as f64 * 1024.0 / 1e6,
        each(now),
        each(peak)
    );
}

fn parse<T: Display>(
    what: &str,
    text: &str,
    runs: u32,
    read: impl Fn(&str) -> Result<T, Vec<ParseError>>,
    printed: &T,
) {
    // A few lines are too short to measure.
    if text.len() < 100_000 {
        return;
    }
    let size = text.len() as f64 / 1e6;
    let mut seconds = f64::MAX;
    let mut beside = Beside { work: f64::MAX, yardstick: f64::MAX };
    for _ in 0..runs {
        let start = Instant::now();
        let clock = || machine::worked().unwrap_or_else(|| start.elapsed().as_secs_f64());
        let (took, (read, elapsed)) = Beside::once(
            clock,
            || {
                let start = Instant::now();
                (read(text), start.elapsed().as_secs_f64())
            },
            || split_into_words(text),
        );
        seconds = seconds.min(elapsed);
        beside = beside.shortest(took);
        drop(read);
    }
    let label = format!("parse {what}");
    print!("  {label:<20}{:9.1} ms  {:6.0} MB/s of {size:.1} MB", seconds * 1e3, size / seconds);
    // On a busy machine, much of the elapsed time is waiting.
    println!(
        "; by time of the processor, {:.0} MB/s, {:.1} times as long as splitting into words",
        size / beside.work,
        beside.ratio()
    );
    let seconds = best(runs, 1, || drop(black_box(printed.to_string())));
    let label = format!("print {what}");
    println!("  {label:<20}{:9.1} ms  {:6.0} MB/s", seconds * 1e3, size / seconds);
}

fn walk(what: &str, kernel: &Kernel, linear: Option<&Linear<'_>>, packet: &Packet, runs: u32) {
    let entry = Entry::Interface("cbr0".into());
    let ends = kernel.walk(packet, &entry, &[]).len();
    let ours = best(runs, 1 + 2_000 / ends as u32, || {
        black_box(kernel.walk(black_box(packet), &entry, &[]));
    });
    let hashing = best(runs, 10, || {
        black_box(hash_keys(black_box(KEYS)));
    });
    print!(
        "  walk {what:<16}{:9.2} µs  {ends} ends, {:.2} µs each; {:.2} times as long as hashing \
         {KEYS} keys",
        ours * 1e6,
        ours * 1e6 / ends as f64,
        ours / hashing
    );
    let Some(linear) = linear else { return println!() };
    let asked = linear.asked(packet);
    let theirs = best(runs, 1 + 200_000 / asked, || {
        black_box(linear.asked(black_box(packet)));
    });
    println!(
        "; a list: {:.1} µs for {asked} rules, {:.1} times as long",
        theirs * 1e6,
        theirs / ours
    );
}

/// The best time of one call, in seconds, over several runs of many calls.
fn best(runs: u32, calls: u32, mut call: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        for _ in 0..calls.max(1) {
            call();
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(calls.max(1)));
    }
    best
}
