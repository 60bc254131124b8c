//! Runs every target, or those that are named, over its seeds and a count of mutants: `uturn-mutants
//! COUNT NUMBER [NAME…]`. Another number gives other mutants, the same on every machine. `cargo xtask fuzz --short` runs this.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use uturn_fuzz::TARGETS;
use uturn_fuzz::run::first_broken;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().take(2).map_while(|word| word.parse().ok()).collect();
    let names = words.get(2..).unwrap_or_default();
    let is_known = |name: &String| TARGETS.iter().any(|(known, _)| known == name);
    let ([count, number], true) = (&numbers[..], names.iter().all(is_known)) else {
        eprintln!("usage: uturn-mutants COUNT NUMBER [NAME…]");
        return ExitCode::from(2);
    };
    let (number, is_wanted) =
        (*number, |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name));
    let targets: Vec<_> = TARGETS.iter().filter(|(name, _)| is_wanted(name)).collect();
    let count = usize::try_from(*count).unwrap_or(usize::MAX);
    let began = Instant::now();
    let (next, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some((name, target)) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let said = first_broken(name, *target, number, count);
            let said = said.unwrap_or_else(|why| Some(format!("{name} cannot run: {why}")));
            if let Some(fault) = said {
                failures.fetch_add(1, Ordering::Relaxed);
                eprintln!("{fault}");
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    println!(
        "{} targets, {count} mutants of sequence {number} each: {} s",
        targets.len(),
        began.elapsed().as_secs()
    );
    match failures.into_inner() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
