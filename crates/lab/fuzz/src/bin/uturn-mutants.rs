//! Tries targets, all or the named ones, over their seeds and mutants of them: `uturn-mutants COUNT
//! NUMBER [NAME…]`. COUNT is the number of mutants of each target. With `--in-all`, COUNT is the
//! number of mutants of all targets together, and faster targets get more of them. Another NUMBER
//! gives other mutants, the same on every machine. `cargo xtask fuzz --short` and `--mutants` run
//! this.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::env;
use std::io;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use uturn_fuzz::corpus::seeds;
use uturn_fuzz::watched::{CHILD, Inputs, Tried, child, watched};
use uturn_fuzz::{TARGETS, Target, program};

/// The number of mutants of one sequence that one process tries.
const BATCH: usize = 20_000;

/// The number of mutants by which the time of a target is measured.
const MEASURED: usize = 200;

/// The divisor for the smallest share: each target gets at least the number of all mutants, divided
/// by this.
const LEAST_SHARE: usize = 500;

/// The outcomes of an input: the target takes it for valid, or not.
const TAKEN: &str = "taken";
const REFUSED: &str = "refused";

type Named = (&'static str, Target);

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((first, [name, rest @ ..])) if first == CHILD => run_child(name, rest).map(|()| true),
        Some((first, rest)) if first == "--in-all" => run(rest, true),
        _ => run(&words, false),
    };
    program::end(done)
}

fn run_child(name: &str, rest: &[String]) -> io::Result<()> {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.ok_or_else(|| io::Error::other(format!("no target {name}")))?;
    let came_of = |input: &[u8]| if target(input) { TAKEN } else { REFUSED };
    child(name, &texts(name)?, rest, &mut |input| came_of(input).to_owned())
}

fn texts(name: &str) -> io::Result<Vec<Vec<u8>>> {
    Ok(seeds(name)?.into_iter().map(|(_, bytes)| bytes).collect())
}

fn run(words: &[String], is_in_all: bool) -> io::Result<bool> {
    let numbers: Vec<u64> = words.iter().take(2).map_while(|word| word.parse().ok()).collect();
    let names = words.get(2..).unwrap_or_default();
    let is_known = |name: &String| TARGETS.iter().any(|(known, _)| known == name);
    let ([count, number], true) = (&numbers[..], names.iter().all(is_known)) else {
        return Err(io::Error::other("usage: uturn-mutants [--in-all] COUNT NUMBER [NAME…]"));
    };
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let targets: Vec<Named> = TARGETS.iter().filter(|(name, _)| is_wanted(name)).copied().collect();
    let (number, count) = (*number, usize::try_from(*count).unwrap_or(usize::MAX));
    let began = Instant::now();
    let counts =
        if is_in_all { shares(&targets, count, number)? } else { vec![count; targets.len()] };
    println!(
        "{:<22} {:>10} {:>10} {:>9} {:>9} {:>6}",
        "TARGET", "INPUTS", "TAKEN", "CPU s", "MOST ms", "MiB"
    );
    let (next, is_well, in_all) = (AtomicUsize::new(0), AtomicBool::new(true), Mutex::new(0));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some((name, _)), Some(count)) = (targets.get(at), counts.get(at)) else { return };
            match tried(name, number, *count) {
                Ok(tried) => {
                    print(name, &tried);
                    is_well.fetch_and(tried.findings.is_empty(), Ordering::Relaxed);
                    *in_all.lock().expect("nothing panics with it") += tried.inputs;
                }
                Err(why) => {
                    eprintln!("{name} cannot run: {why}");
                    is_well.store(false, Ordering::Relaxed);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    println!(
        "{} targets, {} inputs of sequence {number}: {} s",
        targets.len(),
        in_all.into_inner().unwrap_or_default(),
        began.elapsed().as_secs()
    );
    Ok(is_well.into_inner())
}

/// Divides a number of mutants among targets: a target which takes a hundredth of the time gets ten
/// times as many.
fn shares(targets: &[Named], count: usize, number: u64) -> io::Result<Vec<usize>> {
    let weight = |(name, _): &Named| {
        let seeds = texts(name)?;
        let tried = watched(Inputs { name, source: &seeds, number, mutants: MEASURED })?;
        let each = tried.time.as_secs_f64() / tried.inputs.max(1) as f64;
        Ok(each.max(1e-6).sqrt().recip())
    };
    let weights = targets.iter().map(weight).collect::<io::Result<Vec<f64>>>()?;
    let sum: f64 = weights.iter().sum();
    let least = count / LEAST_SHARE;
    let share = |weight: f64| ((count as f64 * weight / sum) as usize).max(least);
    Ok(weights.into_iter().map(share).collect())
}

/// Tries this many mutants, of a new sequence for each batch, and the seeds with each batch.
fn tried(name: &str, number: u64, count: usize) -> io::Result<Tried> {
    let seeds = texts(name)?;
    let mut tried = Tried::default();
    for (batch, from) in (0..count.max(1)).step_by(BATCH).enumerate() {
        let mutants = BATCH.min(count - from);
        let number = number.wrapping_add(batch as u64);
        tried.add(watched(Inputs { name, source: &seeds, number, mutants })?);
        if !tried.findings.is_empty() {
            break;
        }
    }
    Ok(tried)
}

fn print(name: &str, tried: &Tried) {
    println!(
        "{name:<22} {:>10} {:>10} {:>9.1} {:>9.1} {:>6}",
        tried.inputs,
        tried.came_of(TAKEN),
        tried.time.as_secs_f64(),
        tried.slowest.as_secs_f64() * 1e3,
        tried.peak >> 20,
    );
    for finding in &tried.findings {
        println!("{finding}");
    }
}
