//! The kernel judges the walk: random rules of iptables and nftables, and cases that once were
//! wrong, with real packets.
//!
//! Needs root, TAP devices and the tools; if one is missing, the test says so and ends.
//! `UTURN_KERNEL_COUNT` sets the number of random cases, `UTURN_KERNEL_SEED` their seed. A case
//! that differs is shrunk and printed: it goes to `cases/` under a name that says what was wrong.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]
#![allow(clippy::print_stdout, reason = "a seed has to be printed to be tried again")]
#![cfg(target_os = "linux")]

mod around;
mod bytes;
mod case;
mod device;
mod dice;
mod iptables;
mod judge;
mod nft;
mod node;
mod sets;
mod shrink;
mod wire;

use uturn_dice::Dice;

use std::fs;
use std::thread;
use std::time::SystemTime;

use case::Case;
use dice::of_case;
use judge::{Tried, judge};
use node::Refused;
use shrink::shrink;
use uturn_testing::{Requirement, variables};

/// The seeds of every run, and the number of cases for each.
const SEEDS: [u64; 2] = [1, 2];
const CASES: u64 = 5;
/// At most this many differing cases are shrunk; for others, only the differences are printed.
const MAX_SHRUNK: usize = 3;

/// Tries a case in a thread of its own, which moves to another network namespace.
fn tried(case: &Case) -> Result<Tried, Refused> {
    let case = case.clone();
    match thread::spawn(move || judge(&case)).join() {
        Ok(tried) => tried,
        Err(_) => Err(Refused("the trial panicked".to_owned())),
    }
}

/// What a section of a case needs of the machine.
fn section_requirement(section: &str) -> Requirement {
    match section {
        "nft" => Requirement::Nft,
        _ => Requirement::Kernel,
    }
}

fn can_judge(section: &str, rules: &str) -> bool {
    let case = Case::read(&format!("== {section}\n{rules}\n"));
    match tried(&case) {
        Ok(_) => true,
        Err(Refused(why)) => {
            uturn_testing::skip(
                section_requirement(section),
                &format!("asking the kernel where packets go by {section}"),
                why,
            );
            false
        }
    }
}

fn random_cases(what: &str, make: fn(&mut Dice) -> Case) {
    let fresh = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let count = variables::number(variables::KERNEL_COUNT).unwrap_or(CASES);
    let seeds = match variables::number(variables::KERNEL_SEED) {
        Some(seed) => vec![seed],
        None => [SEEDS.as_slice(), &[fresh % 1_000_000_000]].concat(),
    };
    let asked = count * seeds.len() as u64;
    let (mut sum, mut cases, mut different) = (Tried::default(), 0, Vec::new());
    for seed in seeds {
        println!("{what}: {count} cases of {}={seed}", variables::KERNEL_SEED);
        for number in 0..count {
            let case = make(&mut of_case(seed, number));
            let result = match tried(&case) {
                Ok(result) => result,
                Err(Refused(why)) if is_not_for_here(&why) => {
                    uturn_testing::skip(
                        Requirement::KernelModules,
                        &format!("{what}: seed {seed}, case {number}"),
                        why,
                    );
                    continue;
                }
                Err(Refused(why)) => panic!("{what}: seed {seed}, case {number}: {why}\n{case}"),
            };
            cases += 1;
            if !result.differences.is_empty() {
                let name = format!("{what}: seed {seed}, case {number}");
                let whole = format!("# {name}\n{case}{}\n", result.differences.join("\n"));
                let is_shrunk = different.len() < MAX_SHRUNK;
                let small = is_shrunk.then(|| smaller(&name, &case)).flatten();
                different.push(small.unwrap_or(whole));
            }
            sum.packets += result.packets;
            sum.answers += result.answers;
            sum.followers += result.followers;
            for (way, count) in result.ways {
                *sum.ways.entry(way).or_default() += count;
            }
        }
    }
    println!(
        "{what}: {cases} rulesets, {} packets, among them {} answers and {} that follow; {:?}",
        sum.packets, sum.answers, sum.followers, sum.ways
    );
    assert!(cases * 2 > asked, "only {cases} of {asked} rulesets could be loaded");
    assert!(
        different.is_empty(),
        "{} of {cases} differ\n{}",
        different.len(),
        different.join("\n")
    );
}

/// Whether a refusal is due to a module that this kernel lacks, or to a rule that no packet can
/// match, which nft refuses.
fn is_not_for_here(why: &str) -> bool {
    ["No such file", "not supported", "missing kernel module", "conflicting protocols"]
        .iter()
        .any(|words| why.contains(words))
}

/// The differences of a case after shrinking it; `None` if the small case does not differ each time.
fn smaller(name: &str, case: &Case) -> Option<String> {
    let fails = |case: &Case| tried(case).is_ok_and(|tried| !tried.differences.is_empty());
    let small = shrink(case, fails);
    let differences = tried(&small).ok()?.differences;
    (!differences.is_empty()).then(|| format!("# {name}\n{small}{}\n", differences.join("\n")))
}

#[test]
fn random_rules_of_iptables() {
    if can_judge("iptables", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT") {
        random_cases("iptables", iptables::case);
    }
}

#[test]
fn random_rules_of_nftables() {
    if can_judge("nft", "table ip t {\n}") {
        random_cases("nftables", nft::case);
    }
}

#[test]
fn cases_that_were_wrong_once() {
    if !can_judge("iptables", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT")
        || !can_judge("nft", "table ip t {\n}")
    {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel/cases");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in &files {
        let case = Case::read(&fs::read_to_string(file).unwrap());
        assert!(!case.probes().is_empty(), "{}", file.display());
        let tried = tried(&case).unwrap_or_else(|Refused(why)| panic!("{}: {why}", file.display()));
        assert!(
            tried.differences.is_empty(),
            "{}:\n{}",
            file.display(),
            tried.differences.join("\n")
        );
    }
}
