//! How fast rules are read and walked, beside a list that is read from top to bottom.
//!
//! `cargo bench -p uturn-netfilter` prints it. The rules are those that kube-proxy would
//! write for so many Services and endpoints. Each figure is the best of several runs, since
//! machines have other things to do; ratios are of the same run. A number given behind `--`
//! is the number of runs.
#![allow(clippy::print_stdout, reason = "its figures are what it is for")]
#![allow(clippy::unwrap_used, reason = "what is wrong here ends it")]

mod linear;
mod made;

use std::hint::black_box;
use std::time::Instant;

use linear::Linear;
use uturn_model::Family;
use uturn_netfilter::iptables;
use uturn_netfilter::{Entry, Kernel, Packet};

fn main() {
    // `cargo bench` itself says `--bench`.
    let runs = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(9);
    for (services, endpoints) in [(2_500, 4), (10_000, 10), (3, 1_000)] {
        one_cluster(services, endpoints, runs);
    }
    match peak_memory() {
        Some(kib) => println!("peak memory of all of it: {} MiB", kib / 1024),
        None => println!("peak memory: this system does not tell"),
    }
}

fn one_cluster(services: u32, endpoints: u32, runs: u32) {
    let text = made::rules(services, endpoints);
    let ruleset = iptables::parse("made", &text, Family::V4).unwrap();
    let rules: usize =
        ruleset.tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len()).sum();
    let size = text.len() as f64 / 1e6;
    println!("{services} Services × {endpoints} endpoints: {rules} rules, {size:.1} MB");

    let mut seconds = f64::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        let read = black_box(iptables::parse("made", &text, Family::V4));
        seconds = seconds.min(start.elapsed().as_secs_f64());
        drop(read);
    }
    println!("  parse               {:9.1} ms  {:6.0} MB/s", seconds * 1e3, size / seconds);
    let seconds = best(runs, 1, || drop(black_box(ruleset.to_string())));
    println!("  print               {:9.1} ms  {:6.0} MB/s", seconds * 1e3, size / seconds);
    let mut kernel = None;
    let mut compile = f64::MAX;
    for _ in 0..runs.min(3) {
        let state = made::state(ruleset.clone());
        let start = Instant::now();
        kernel = Kernel::new(state).ok();
        compile = compile.min(start.elapsed().as_secs_f64());
    }
    println!("  make ready          {:9.1} ms", compile * 1e3);
    let kernel = kernel.unwrap();

    let linear = Linear::new(&ruleset);
    for (what, packet) in made::packets(services) {
        walk(what, &kernel, &linear, &packet, runs);
    }
}

fn walk(what: &str, kernel: &Kernel, linear: &Linear<'_>, packet: &Packet, runs: u32) {
    let entry = Entry::Interface("cbr0".into());
    let ends = kernel.walk(packet, &entry, &[]).len();
    let asked = linear.asked(packet);
    let ours = best(runs, 1 + 2_000 / ends as u32, || {
        black_box(kernel.walk(black_box(packet), &entry, &[]));
    });
    let theirs = best(runs, 1 + 200_000 / asked, || {
        black_box(linear.asked(black_box(packet)));
    });
    println!(
        "  walk {what:<16}{:9.2} µs  {ends} ends, {:.2} µs each; a list: {:.1} µs for {asked} rules, {:.0} times as long",
        ours * 1e6,
        ours * 1e6 / ends as f64,
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

/// In KiB.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
