//! How long a scan takes, and how it grows: `cargo bench -p uturn-path --bench scan -- FILE`
//! for each file that `cargo xtask gen-cluster` wrote; of several, exponents are said.

#![expect(clippy::print_stdout, reason = "a program that talks to people")]

use std::env;
use std::fs;
use std::time::Instant;

use uturn_model::Verdict;
use uturn_path::{Engine, Met};
use uturn_snapshot::{Source, read};

fn main() {
    let mut before: Option<(f64, f64)> = None;
    for file in env::args().skip(1).filter(|word| !word.starts_with("--")) {
        let text = fs::read_to_string(&file).expect("a file that can be read");
        let size = text.len() as f64 / 1e6;
        let start = Instant::now();
        let cluster =
            read(vec![Source { name: file.as_str().into(), text }]).expect("manifests").cluster;
        let load = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let engine = Engine::new(&cluster).expect("rules that can be walked");
        let targets = engine.targets();
        let ready = start.elapsed().as_secs_f64();
        let met = engine.scan(&targets).expect("verdicts");
        let scan = start.elapsed().as_secs_f64();
        let fine = met.iter().filter(|one| one.verdicts.iter().all(Verdict::is_fine));
        println!(
            "{file}: {} nodes, {} pods, {} targets; load {load:.2} s ({:.0} MB/s); scan {scan:.2} s \
             (ready after {ready:.2} s); {} classes, {} of {} flows fine; {} MB at most",
            cluster.nodes.len(),
            cluster.pods.len(),
            targets.len(),
            size / load,
            met.len(),
            fine.map(Met::flows).sum::<usize>(),
            met.iter().map(Met::flows).sum::<usize>(),
            most_memory(),
        );
        if let Some((size_before, scan_before)) = before {
            let exponent = (scan / scan_before).ln() / (size / size_before).ln();
            println!("  scan grows with the size to the power of {exponent:.2}");
        }
        before = Some((size, scan));
    }
}

/// The most memory this process has had, where the kernel says it.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) / 1024
}
