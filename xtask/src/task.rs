//! The command line: the tasks with their options, and the help of `cargo xtask`.

use clap::{Parser, Subcommand};

use crate::shell::{self, Failure};
use crate::{
    Outcome, bench, clients, cluster, conformance, deny, docs, fuzz, gen_cluster, h2spec, lab,
    lint, live, portable, release, test,
};

/// Runs the checks, benchmarks and builds of this repository.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Exit status: 0 done, 1 a task failed, 2 wrong usage.\n\
                  `cargo xtask TASK --help` shows the options of a task."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// A task that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Task {
    /// Run every test; list those that were skipped, and why, and the slowest
    ///
    /// As root, first installs the Debian packages that tests need; otherwise prints the command
    /// that does.
    Test {
        /// Build the real CoreDNS for the tests that ask it (needs Go; takes minutes)
        #[arg(long)]
        all: bool,
    },
    /// Check formatting, clippy, documentation, spelling and the structure of the crates
    ///
    /// Warnings are errors.
    Lint {
        /// Without clippy and documentation: seconds instead of minutes
        #[arg(long)]
        quick: bool,
    },
    /// Write the generated parts of the pages anew: shown commands, files of docs/schema
    Docs,
    /// Check licenses, banned crates and sources
    ///
    /// Installs cargo-deny under target/tools.
    Deny {
        /// Check for known vulnerabilities too (needs a network)
        #[arg(long)]
        advisories: bool,
    },
    /// Check that all but the lab builds for macOS and Windows
    Portable,
    /// Run the fuzz targets
    ///
    /// Runs them under libFuzzer, which needs a nightly toolchain and cargo-fuzz, unless an option
    /// says otherwise.
    Fuzz(fuzz::Options),
    /// Compare uturn with real kube-proxies and this kernel (needs Go and root)
    Conformance(conformance::Options),
    /// Check `uturn lb run` against the rules of HTTP/2, in the clear and under TLS (needs Go)
    H2spec,
    /// Call `uturn cloud serve` with independent clients (needs Go, Python and Node.js)
    ///
    /// The clients are the SDKs for Python, Go and Node.js and the command line tool of the API's
    /// vendor.
    Clients,
    /// Predict and measure every scenario (needs root)
    ///
    /// What this kernel cannot run is measured in a small machine.
    Lab {
        /// Arguments of `uturn lab verify`, such as a scenario; without them, random scenarios are
        /// tried too
        #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Build the programs of `uturn lab up` into target/conformance (needs Go; takes minutes)
    BoxParts {
        /// Versions of kube-proxy
        #[arg(
            long,
            value_name = "V,V...",
            value_delimiter = ',',
            default_value = cluster::KUBE_PROXY
        )]
        versions: Vec<String>,
    },
    /// Build these programs, show a cluster in a box from up to down, and play its stories (needs
    /// Go and root)
    Box {
        /// One cluster with one story, ended by a kill; nothing in a small machine
        #[arg(long)]
        short: bool,
    },
    /// Read running clusters of a real API server with RBAC (needs Go; takes minutes)
    ///
    /// Compares a scan of the cluster, of the same objects in a file, and of a bundle. Takes each
    /// right away in turn, tries every form of kubeconfig, and kills the API server.
    Live(live::Options),
    /// Measure the load balancer or the operator (takes minutes)
    #[command(subcommand)]
    Bench(bench::What),
    /// Write a large cluster as manifests, to measure how uturn grows
    GenCluster(gen_cluster::Size),
    /// Build static programs for Linux in archives with checksums, then run `portable`
    ///
    /// The programs are for x86-64 and arm64 and are put under target/release-VERSION after a
    /// check that they run. Needs C compilers for musl, whose packages are named if they are
    /// missing; each program takes minutes to build.
    Release(release::Place),
    /// Run what CI runs: test, lint, deny, portable, fuzz, h2spec, clients, conformance, lab, live
    /// and box --short
    Ci,
}

impl Task {
    /// Returns the single tasks that a task consists of.
    pub(crate) fn parts(self) -> Vec<Self> {
        match self {
            Self::Ci => vec![
                Self::Test { all: true },
                Self::Lint { quick: false },
                Self::Deny { advisories: false },
                Self::Portable,
                Self::Fuzz(fuzz::Options::default()),
                Self::H2spec,
                Self::Clients,
                Self::Conformance(conformance::Options::default()),
                Self::Lab { words: Vec::new() },
                Self::Live(live::Options::default()),
                Self::Box { short: true },
            ],
            single => vec![single],
        }
    }

    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        match self {
            Self::Test { all } => test::run(*all || shell::is_ci()),
            Self::Lint { quick } => lint::run(*quick),
            Self::Docs => docs::run(),
            Self::Deny { advisories } => deny::run(*advisories),
            Self::Portable => portable::run(),
            Self::Fuzz(options) => fuzz::run(options),
            Self::Conformance(options) => conformance::run(options),
            Self::H2spec => h2spec::run(),
            Self::Clients => clients::run(),
            Self::Lab { words } => lab::run(words),
            Self::BoxParts { versions } => cluster::parts(versions),
            Self::Box { short } => cluster::run(*short),
            Self::Live(options) => live::run(options),
            Self::Bench(what) => bench::run(what),
            Self::GenCluster(size) => gen_cluster::run(size),
            Self::Release(place) => release::run(place),
            Self::Ci => Ok(Outcome::Complete),
        }
    }

    /// Returns whether the task may be skipped. CI must not pass by skipping tasks, but fuzz
    /// targets run there as ordinary tests anyway.
    pub(crate) fn may_be_skipped(&self) -> bool {
        !shell::is_ci() || matches!(self, Self::Fuzz(options) if options.is_of_libfuzzer())
    }

    /// Returns the name in the report of all tasks.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Test { .. } => "test",
            Self::Lint { .. } => "lint",
            Self::Docs => "docs",
            Self::Deny { .. } => "deny",
            Self::Portable => "portable",
            Self::Fuzz(options) => options.name(),
            Self::Conformance(_) => "conformance",
            Self::H2spec => "h2spec",
            Self::Clients => "clients",
            Self::Lab { .. } => "lab",
            Self::BoxParts { .. } => "box-parts",
            Self::Box { short: false } => "box",
            Self::Box { short: true } => "box --short",
            Self::Live(options) => options.name(),
            Self::Bench(_) => "bench",
            Self::GenCluster(_) => "gen-cluster",
            Self::Release(_) => "release",
            Self::Ci => "ci",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        let words = ["xtask"].into_iter().chain(line.split_whitespace());
        Arguments::try_parse_from(words)
            .map(|arguments| arguments.task)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn known_words_are_tasks() {
        assert_eq!(parse("test"), Ok(Task::Test { all: false }));
        assert_eq!(parse("test --all"), Ok(Task::Test { all: true }));
        assert_eq!(parse("deny --advisories"), Ok(Task::Deny { advisories: true }));
        assert_eq!(
            parse("box-parts"),
            Ok(Task::BoxParts { versions: vec![cluster::KUBE_PROXY.to_owned()] })
        );
        let versions = ["v1.30.14", "v1.34.4"].map(str::to_owned).into();
        assert_eq!(parse("box-parts --versions v1.30.14,v1.34.4"), Ok(Task::BoxParts { versions }));
        assert_eq!(parse("box"), Ok(Task::Box { short: false }));
        assert_eq!(parse("box --short"), Ok(Task::Box { short: true }));
        assert_eq!(parse("docs"), Ok(Task::Docs));
        assert_eq!(parse("lint --quick"), Ok(Task::Lint { quick: true }));
    }

    /// Returns the words of each `cargo xtask …` that a page has in a block or in backticks.
    fn commands_of(page: &str) -> Vec<String> {
        let parts = page.split("```").enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part.replace('\n', " ").split('`').map(str::to_owned).collect::<Vec<_>>(),
            _ => part.lines().map(str::to_owned).collect(),
        });
        parts
            .filter_map(|part| {
                let words = part.strip_prefix("cargo xtask ")?.split(" #").next()?.trim();
                Some(words.replace(" N", " 1").replace("URL", "https://a").replace("TASK", "lint"))
            })
            .collect()
    }

    #[test]
    fn pages_and_ci_name_commands_that_there_are() {
        let root = shell::root();
        let mut pages: Vec<_> =
            ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)).into();
        for folder in ["docs", "docs/decisions"] {
            let entries = std::fs::read_dir(root.join(folder)).unwrap();
            pages.extend(entries.map(|entry| entry.unwrap().path()));
        }
        pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
        let texts = pages.iter().map(|page| std::fs::read_to_string(page).unwrap());
        let mut commands: Vec<String> = texts.flat_map(|text| commands_of(&text)).collect();
        assert!(commands.len() > 40, "{commands:?}");

        let ci = std::fs::read_to_string(root.join(".ci/run")).unwrap();
        let tasks = ci.split_once("for task in ").unwrap().1.split_once("; do").unwrap().0;
        for (at, part) in tasks.replace("\\\n", "").split('\'').enumerate() {
            match at % 2 {
                1 => commands.push(part.to_owned()),
                _ => commands.extend(part.split_whitespace().map(str::to_owned)),
            }
        }
        for line in commands {
            let words = ["xtask"].into_iter().chain(line.split_whitespace());
            if let Err(error) = Arguments::try_parse_from(words) {
                // A page may name an option without its value.
                let names_option = line.rsplit(' ').next().is_some_and(|it| it.starts_with("--"));
                let is_fine = error.kind() == ErrorKind::DisplayHelp
                    || (names_option && error.kind() == ErrorKind::InvalidValue);
                assert!(is_fine, "{line}: {error}");
            }
        }
    }

    #[test]
    fn words_for_other_programs_are_passed_on() {
        let words = ["l7-loop", "--coredns", "x", "-v", "--help"].map(str::to_owned).to_vec();
        assert_eq!(parse("lab l7-loop --coredns x -v --help"), Ok(Task::Lab { words }));
        let words = ["--coredns", "x"].map(str::to_owned).to_vec();
        assert_eq!(parse("lab --coredns x"), Ok(Task::Lab { words }));
        let words = ["--rows", "tls"].map(str::to_owned).into();
        assert_eq!(parse("bench lb --rows tls"), Ok(Task::Bench(bench::What::Lb { words })));
        let words = vec!["--quick".to_owned()];
        assert_eq!(parse("bench hostile --quick"), Ok(Task::Bench(bench::What::Hostile { words })));
        assert_eq!(parse("bench operator"), Ok(Task::Bench(bench::What::Operator)));
    }

    #[test]
    fn unknown_words_are_refused_by_name() {
        for (line, named) in [
            ("", "Usage: cargo xtask <COMMAND>"),
            ("tests", "'tests'"),
            ("test fast", "'fast'"),
            ("fuzz --count", "'--count <N>'"),
            ("fuzz --count 0", "'--count <N>'"),
            ("fuzz --seconds", "'--seconds <N>'"),
            ("fuzz --mutants nft", "'nft'"),
            ("fuzz --commands 5 more", "'--commands <N>'"),
            ("fuzz --count 5 more", "'--count <N>'"),
            ("fuzz --short --growth", "'--growth'"),
            ("fuzz nft", "--growth"),
            ("conformance fast", "'fast'"),
            ("conformance --count", "'--count <N>'"),
            ("conformance --seed x", "'--seed <S>'"),
            ("box-parts --mode x", "'--mode'"),
            ("box fast", "'fast'"),
            ("live --scale --pods", "'--pods <N>'"),
            ("live --pods 5", "--scale"),
            ("live fast", "'fast'"),
            ("gen-cluster --nodes 5", "-o <FILE>"),
            ("release --base-url", "'--base-url <URL>'"),
            ("release fast", "'fast'"),
            ("bench", "operator"),
            ("bench scan", "'scan'"),
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
        let about = Arguments::command();
        let about = about.find_subcommand("ci").unwrap().get_about().unwrap().to_string();
        let list = format!("{} and {}", parts[..10].join(", "), parts[10]);
        assert!(about.ends_with(&list), "{about}");
    }
}
