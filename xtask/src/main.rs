//! The tasks that people and CI run: `cargo xtask WORD`.
//!
//! **Owns** the order of checks, their requirements of the machine, and the report of what was left
//! out. **Out of scope:** uturn's own subject. It has no dependency.
//! **Start reading** at [`Task`]; each task has a file of its own.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to people")]

mod bench;
mod clients;
mod cluster;
mod conformance;
mod deny;
mod fuzz;
mod gen_cluster;
mod go;
mod h2spec;
mod lab;
mod lint;
mod live;
mod machine;
mod portable;
mod release;
mod shell;
mod test;

use std::env;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

use shell::Failure;

const HELP: &str = "\
cargo xtask TASK

  test               install the Debian packages that tests need (as root; else print the
                     command to run), run every test of the workspace, list what was skipped
                     and why, and the slowest tests
       --all         build the real CoreDNS first, for the tests that ask it (needs Go; minutes)
  lint               formatting, clippy and documentation; warnings are errors
  deny               licenses, banned crates, sources (installs cargo-deny under target/tools)
       --advisories  known vulnerabilities too: needs a network
  portable           check that all but the lab builds for macOS and Windows
  fuzz               run the fuzz targets (needs a nightly toolchain and cargo-fuzz)
       --count N     so many inputs a target (default 20000)
       --seconds N   so long a target instead
       --short       their seeds and 300 mutants of each that belong to the commit, without libFuzzer:
                     and 300 whole commands: needs neither, and takes about a minute
       --mutants N … N mutants in all, of all targets or those that are named, in an optimised build
                     that finds overflows: those that take less time get more
       --commands N  N whole commands over mutants of their arguments and files, likewise
       --growth …    instead: how the work of each target grows with the length of its input,
                     of all targets or those that are named (needs valgrind; minutes)
  conformance        hold uturn against real kube-proxies and this kernel (needs Go and root)
       --versions V  of kube-proxy, with commas between (default: all of
                     conformance/kube-proxy)
       --modes M     of kube-proxy, likewise: iptables, nftables, ipvs (default: all; ipvs in
                     a small machine)
       --count N     so many random clusters a version beside the fixed ones (default 2)
       --seed S      of clusters and packets (default: from the clock; it is printed)
       --packets N   so many flows a node (default 100)
       --case FILE   one cluster and no other: what a difference was saved as
       --ipvs-faults put faults into a node in IPVS mode too (minutes)
  h2spec             hold uturn lb run against the rules of HTTP/2, in the clear and under TLS,
                     with h2spec (needs Go)
  clients            hold uturn cloud serve against clients from elsewhere: the SDKs for Python, Go
                     and Node.js and the command line tool (needs Go, Python and Node.js)
  lab                every scenario, predicted and measured (needs root; what this kernel
                     cannot run is measured in a small machine); words go to uturn lab verify
  box-parts          build the programs of `uturn lab up` into target/conformance (needs Go; minutes)
       --versions V  of kube-proxy, with commas between (default: that of the API server)
  box                build them, show a cluster in a box from up to down, and play its stories
                     (needs Go and root)
       --short       one cluster, with one story, that ends by a kill: nothing in a small machine
  live               read running clusters of a real API server with RBAC: scan of it, of the same
                     objects in a file and of a bundle; each right taken away; kubeconfigs; an API
                     server that dies (needs Go; minutes)
       --scale       instead, how a large cluster is read: time, memory, requests (needs memory and
                     disk: 10 GB for 150000 pods)
       --nodes N, --pods N, --targets N, --seed S
                     after --scale: as for gen-cluster (default 500, 15000, 500, 1)
  bench lb           uturn lb run beside nginx, HAProxy and plain routing: requests a second, times
                     at a constant rate, memory (needs root; minutes); words go to uturn-bench lb,
                     such as --quick, --rounds N, --seconds N, --rows small,l4-new, --save FILE
  bench hostile      honest clients of uturn lb run alone and beside hostile ones, in turns: what
                     honest ones wait for, what hostile ones meet, and whether what they took comes
                     back (needs root; an hour); words go to uturn-bench hostile, such as --quick,
                     --minutes N
  bench operator     uturn operator with 5000 Services, 1000 Ingresses and 200 nodes, against a
                     cloud and an API server in memory: calls and time at the API's rate; then in
                     processes of their own: time on processors, memory (minutes)
  gen-cluster -o FILE
                     write a large cluster as manifests, to see how uturn grows
       --nodes N, --pods N, --targets N
                     its size (default 5000, 150000, 10000 Services and Ingresses)
       --seed S      of all that varies (default 1)
  release            static programs for Linux on x86-64 and arm64 in archives with checksums under
                     target/release-VERSION, after a look whether they run; then `portable` (needs C
                     compilers for musl: packages are named; an optimised build each: minutes)
       --base-url U  where the archives will be: writes the manifest for krew too
       --homepage U  the project's page in it (default: the same)
  ci                 test, lint, deny, portable, fuzz, h2spec, clients, conformance, lab, live and
                     box --short, in this order
  help               this text

exit: 0 done, 1 something failed, 2 wrong usage
";

/// A task that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    Test { with_go: bool },
    Lint,
    Deny { advisories: bool },
    Portable,
    Fuzz { much: fuzz::Much },
    ShortFuzz,
    Mutants { count: u64, names: Vec<String> },
    WholeCommands { count: u64 },
    Growth { words: Vec<String> },
    H2spec,
    Clients,
    Conformance { words: Vec<String> },
    Lab { words: Vec<String> },
    BoxParts { versions: Vec<String> },
    Box { is_short: bool },
    Live,
    Scale { size: gen_cluster::Size },
    Bench { what: bench::What, words: Vec<String> },
    BenchOperator,
    GenCluster { size: gen_cluster::Size },
    Release { place: release::Place },
    Ci,
    Help,
}

/// The result of a task that did not fail.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The whole task was done.
    Complete,
    /// The task, or a part of it, could not be done on this machine, for this reason.
    Skipped(String),
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == test::RUNNER) {
        return test::run_one(&words[1..]);
    }
    match Task::parse(&words) {
        Ok(Task::Help) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(task) => run_all(&task.parts()),
        Err(fault) => {
            eprintln!("error: {fault}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

/// Runs every task even after one failed, so that one run lists all failures.
fn run_all(tasks: &[Task]) -> ExitCode {
    let mut failed = false;
    let mut lines = Vec::new();
    for task in tasks {
        let start = Instant::now();
        let ended = task.run();
        let took = start.elapsed().as_secs();
        lines.push(match ended {
            Ok(Outcome::Complete) => format!("{}: passed ({took} s)", task.name()),
            Ok(Outcome::Skipped(why)) if task.may_be_skipped() => {
                format!("{}: left out: {why}", task.name())
            }
            Ok(Outcome::Skipped(why)) => {
                failed = true;
                format!("{}: FAILED: could not be done here: {why}", task.name())
            }
            Err(why) => {
                failed = true;
                format!("{}: FAILED: {why}", task.name())
            }
        });
    }
    println!();
    for line in lines {
        println!("xtask {line}");
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Task {
    fn parse(words: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Err("which task?".to_owned()),
            ["help" | "-h" | "--help", ..] | [_, "-h" | "--help"] => Ok(Self::Help),
            ["test"] => Ok(Self::Test { with_go: machine::is_ci() }),
            ["test", "--all"] => Ok(Self::Test { with_go: true }),
            ["lint"] => Ok(Self::Lint),
            ["deny"] => Ok(Self::Deny { advisories: false }),
            ["deny", "--advisories"] => Ok(Self::Deny { advisories: true }),
            ["portable"] => Ok(Self::Portable),
            ["fuzz"] => Ok(Self::Fuzz { much: fuzz::USUAL }),
            ["fuzz", "--short"] => Ok(Self::ShortFuzz),
            ["fuzz", "--growth", rest @ ..] => {
                Ok(Self::Growth { words: rest.iter().map(|&word| word.to_owned()).collect() })
            }
            ["fuzz", "--mutants", number, rest @ ..] => Ok(Self::Mutants {
                count: above_0("--mutants", number)?,
                names: rest.iter().map(|&word| word.to_owned()).collect(),
            }),
            ["fuzz", "--commands", number] => {
                Ok(Self::WholeCommands { count: above_0("--commands", number)? })
            }
            ["fuzz", "--count", number] => {
                Ok(Self::Fuzz { much: fuzz::Much::Count(above_0("--count", number)?) })
            }
            ["fuzz", "--seconds", number] => {
                Ok(Self::Fuzz { much: fuzz::Much::Seconds(above_0("--seconds", number)?) })
            }
            ["fuzz", how @ ("--count" | "--seconds" | "--mutants" | "--commands")] => {
                Err(format!("{how}: expected a number after it"))
            }
            ["h2spec"] => Ok(Self::H2spec),
            ["clients"] => Ok(Self::Clients),
            ["conformance", rest @ ..] => conformance_words(rest),
            ["lab", rest @ ..] => {
                Ok(Self::Lab { words: rest.iter().map(|&word| word.to_owned()).collect() })
            }
            ["box-parts"] => Ok(Self::BoxParts { versions: vec![cluster::KUBE_PROXY.to_owned()] }),
            ["box-parts", "--versions", list] => {
                Ok(Self::BoxParts { versions: list.split(',').map(str::to_owned).collect() })
            }
            ["box"] => Ok(Self::Box { is_short: false }),
            ["box", "--short"] => Ok(Self::Box { is_short: true }),
            ["live"] => Ok(Self::Live),
            ["live", "--scale", rest @ ..] => Ok(Self::Scale { size: live::size(rest)? }),
            ["bench", "lb", rest @ ..] => Ok(Self::bench(bench::What::Lb, rest)),
            ["bench", "hostile", rest @ ..] => Ok(Self::bench(bench::What::Hostile, rest)),
            ["bench", "operator"] => Ok(Self::BenchOperator),
            ["bench", ..] => Err("bench: expected lb, hostile or operator after it".to_owned()),
            ["gen-cluster", rest @ ..] => {
                Ok(Self::GenCluster { size: gen_cluster::Size::parse(rest)? })
            }
            ["release", rest @ ..] => Ok(Self::Release { place: release::Place::parse(rest)? }),
            ["ci"] => Ok(Self::Ci),
            [
                task @ ("test" | "lint" | "deny" | "portable" | "fuzz" | "h2spec" | "clients"
                | "box" | "box-parts" | "live" | "ci"),
                other,
                ..,
            ] => Err(format!("{task} takes no {other:?}")),
            [other, ..] => Err(format!("{other:?} is no task")),
        }
    }

    /// Returns the single tasks that a task consists of.
    fn parts(self) -> Vec<Self> {
        match self {
            Self::Ci => vec![
                Self::Test { with_go: true },
                Self::Lint,
                Self::Deny { advisories: false },
                Self::Portable,
                Self::Fuzz { much: fuzz::USUAL },
                Self::H2spec,
                Self::Clients,
                Self::Conformance { words: Vec::new() },
                Self::Lab { words: Vec::new() },
                Self::Live,
                Self::Box { is_short: true },
            ],
            single => vec![single],
        }
    }

    fn run(&self) -> Result<Outcome, Failure> {
        match self {
            Self::Test { with_go } => test::run(*with_go),
            Self::Lint => lint::run(),
            Self::Deny { advisories } => deny::run(*advisories),
            Self::Portable => portable::run(),
            Self::Fuzz { much } => fuzz::run(*much),
            Self::ShortFuzz => fuzz::short(),
            Self::Mutants { count, names } => fuzz::mutants(*count, names),
            Self::WholeCommands { count } => fuzz::commands(*count),
            Self::Growth { words } => fuzz::growth(words),
            Self::H2spec => h2spec::run(),
            Self::Clients => clients::run(),
            Self::Conformance { words } => conformance::run(words),
            Self::Lab { words } => lab::run(words),
            Self::BoxParts { versions } => cluster::parts(versions),
            Self::Box { is_short } => cluster::run(*is_short),
            Self::Live => live::run(),
            Self::Scale { size } => live::scale(size),
            Self::Bench { what, words } => bench::run(*what, words),
            Self::BenchOperator => bench::operator(),
            Self::GenCluster { size } => gen_cluster::run(size),
            Self::Release { place } => release::run(place),
            Self::Ci | Self::Help => Ok(Outcome::Complete),
        }
    }

    fn bench(what: bench::What, words: &[&str]) -> Self {
        Self::Bench { what, words: words.iter().map(|&word| word.to_owned()).collect() }
    }

    /// Returns whether the task may be skipped. CI must not pass by skipping tasks, but fuzz
    /// targets run there as ordinary tests anyway.
    fn may_be_skipped(&self) -> bool {
        !machine::is_ci() || matches!(self, Self::Fuzz { .. })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Test { .. } => "test",
            Self::Lint => "lint",
            Self::Deny { .. } => "deny",
            Self::Portable => "portable",
            Self::Fuzz { .. } => "fuzz",
            Self::ShortFuzz => "fuzz --short",
            Self::Mutants { .. } => "fuzz --mutants",
            Self::WholeCommands { .. } => "fuzz --commands",
            Self::Growth { .. } => "fuzz --growth",
            Self::H2spec => "h2spec",
            Self::Clients => "clients",
            Self::Conformance { .. } => "conformance",
            Self::Lab { .. } => "lab",
            Self::BoxParts { .. } => "box-parts",
            Self::Box { is_short: false } => "box",
            Self::Box { is_short: true } => "box --short",
            Self::Live => "live",
            Self::Scale { .. } => "live --scale",
            Self::Bench { .. } | Self::BenchOperator => "bench",
            Self::GenCluster { .. } => "gen-cluster",
            Self::Release { .. } => "release",
            Self::Ci => "ci",
            Self::Help => "help",
        }
    }
}

/// Reads the value of an option that is a number above 0.
fn above_0<N: FromStr + Default + PartialOrd>(option: &str, word: &str) -> Result<N, String> {
    let number = word.parse().ok().filter(|number| *number > N::default());
    number.ok_or_else(|| format!("{option} {word}: expected a number above 0"))
}

/// Checks options and their values, in the form that the stage takes them.
fn conformance_words(words: &[&str]) -> Result<Task, String> {
    const ALONE: &str = "--ipvs-faults";
    let pairs: Vec<&str> = words.iter().copied().filter(|word| *word != ALONE).collect();
    for pair in pairs.chunks(2) {
        match *pair {
            ["--case" | "--versions" | "--modes", _] => {}
            ["--count" | "--seed" | "--packets", value] => {
                let number = value.parse::<u64>();
                number.map_err(|_| format!("{} {value}: expected a number", pair[0]))?;
            }
            ["--case" | "--versions" | "--modes" | "--count" | "--seed" | "--packets"] => {
                return Err(format!("{}: expected a value after it", pair[0]));
            }
            _ => return Err(format!("conformance takes no {:?}", pair[0])),
        }
    }
    Ok(Task::Conformance { words: words.iter().map(|&word| word.to_owned()).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        Task::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn known_words_are_tasks() {
        assert!(matches!(parse("test"), Ok(Task::Test { .. })));
        assert_eq!(parse("test --all"), Ok(Task::Test { with_go: true }));
        assert_eq!(parse("deny --advisories"), Ok(Task::Deny { advisories: true }));
        assert_eq!(parse("fuzz --count 7"), Ok(Task::Fuzz { much: fuzz::Much::Count(7) }));
        assert_eq!(parse("fuzz --seconds 9"), Ok(Task::Fuzz { much: fuzz::Much::Seconds(9) }));
        let words = ["nft".to_owned()].into();
        assert_eq!(parse("fuzz --growth nft"), Ok(Task::Growth { words }));
        let names = ["nft", "walk"].map(str::to_owned).into();
        assert_eq!(parse("fuzz --mutants 70 nft walk"), Ok(Task::Mutants { count: 70, names }));
        assert_eq!(parse("fuzz --commands 70"), Ok(Task::WholeCommands { count: 70 }));
        assert_eq!(parse("fuzz --help"), Ok(Task::Help));
        let words = ["--count", "2"].map(str::to_owned).into();
        assert_eq!(parse("conformance --count 2"), Ok(Task::Conformance { words }));
        let words = ["--ipvs-faults", "--count", "2"].map(str::to_owned).into();
        assert_eq!(parse("conformance --ipvs-faults --count 2"), Ok(Task::Conformance { words }));
        let words = ["--rows", "tls"].map(str::to_owned).into();
        let versions = ["v1.30.14", "v1.34.4"].map(str::to_owned).into();
        assert_eq!(parse("box-parts --versions v1.30.14,v1.34.4"), Ok(Task::BoxParts { versions }));
        assert_eq!(parse("bench lb --rows tls"), Ok(Task::Bench { what: bench::What::Lb, words }));
        let words = vec!["--quick".to_owned()];
        let hostile = Task::Bench { what: bench::What::Hostile, words };
        assert_eq!(parse("bench hostile --quick"), Ok(hostile));
        assert_eq!(parse("bench operator"), Ok(Task::BenchOperator));
        assert_eq!(parse("live"), Ok(Task::Live));
        assert!(
            matches!(parse("live --scale --nodes 50 --pods 900"), Ok(Task::Scale { size }) if size.nodes == 50 && size.targets == 500)
        );
        assert_eq!(parse("box"), Ok(Task::Box { is_short: false }));
        assert!(matches!(parse("release --base-url https://a/"), Ok(Task::Release { .. })));
        assert_eq!(parse("box --short"), Ok(Task::Box { is_short: true }));
    }

    #[test]
    fn unknown_words_are_refused_by_name() {
        for (line, named) in [
            ("", "which"),
            ("tests", "\"tests\""),
            ("test fast", "\"fast\""),
            ("fuzz --count", "--count"),
            ("fuzz --count 0", "--count 0"),
            ("fuzz --seconds", "--seconds"),
            ("fuzz --mutants nft", "--mutants nft"),
            ("fuzz --commands 5 more", "\"--commands\""),
            ("fuzz --count 5 more", "\"--count\""),
            ("conformance fast", "\"fast\""),
            ("conformance --count", "--count"),
            ("conformance --seed x", "--seed x"),
            ("box-parts --mode x", "--mode"),
            ("box fast", "\"fast\""),
            ("live --scale --pods", "--pods"),
            ("live fast", "\"fast\""),
            ("release --base-url", "--base-url"),
            ("bench", "lb"),
            ("bench scan", "lb"),
        ] {
            let fault = parse(line).unwrap_err();
            assert!(fault.contains(named), "{line:?}: {fault}");
        }
    }

    #[test]
    fn ci_is_every_other_task() {
        let parts: Vec<&str> = Task::Ci.parts().iter().map(Task::name).collect();
        assert_eq!(
            parts,
            [
                "test",
                "lint",
                "deny",
                "portable",
                "fuzz",
                "h2spec",
                "clients",
                "conformance",
                "lab",
                "live",
                "box --short"
            ]
        );
    }

    #[test]
    fn help_names_every_task() {
        for task in Task::Ci.parts() {
            let word = task.name().split(' ').next().unwrap_or_default();
            assert!(HELP.contains(&format!("\n  {word} ")), "{task:?}");
        }
    }
}
