//! The environment variables of tests and of `cargo xtask`: their names, and how they are read.
//!
//! A table in CONTRIBUTING.md says who reads each of them and what it does; `cargo xtask lint`
//! compares it with the tree. A constant has the name of its variable, without `UTURN_`.

use std::env;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

/// The value of [`API`] and [`DOCS`] that makes tests write files instead of comparing them.
pub const UPDATE: &str = "update";

/// [`UPDATE`] writes the typed API of the cloud.
pub const API: &str = "UTURN_API";
/// The number of clusters that are scanned by class and pod by pod.
pub const CASES: &str = "UTURN_CASES";
/// The factor by which runs of arbitrary length against the data plane are longer.
pub const CHAOS: &str = "UTURN_CHAOS";
/// The folder with the real programs of a cluster.
pub const CLUSTER_PARTS: &str = "UTURN_CLUSTER_PARTS";
/// The program of a real CoreDNS.
pub const COREDNS: &str = "UTURN_COREDNS";
/// The only seed of Corefiles.
pub const COREDNS_SEED: &str = "UTURN_COREDNS_SEED";
/// The number of fresh seeds of Corefiles beside the fixed ones.
pub const COREDNS_SEEDS: &str = "UTURN_COREDNS_SEEDS";
/// The number of clusters in which cures are tried.
pub const CURE_CLUSTERS: &str = "UTURN_CURE_CLUSTERS";
/// [`UPDATE`] writes the generated parts of the pages.
pub const DOCS: &str = "UTURN_DOCS";
/// The number of Ingresses of the operator's large cluster.
pub const INGRESSES: &str = "UTURN_INGRESSES";
/// The number of random cases for each seed that are sent through the kernel.
pub const KERNEL_COUNT: &str = "UTURN_KERNEL_COUNT";
/// The only seed of these cases.
pub const KERNEL_SEED: &str = "UTURN_KERNEL_SEED";
/// The folder with generated clusters that are read from a running API server.
pub const LIVE_CLUSTERS: &str = "UTURN_LIVE_CLUSTERS";
/// The number of nodes of the operator's large cluster.
pub const NODES: &str = "UTURN_NODES";
/// The program `uturn` that tests run.
pub const PROGRAM: &str = "UTURN_PROGRAM";
/// The number of clusters that are redacted.
pub const REDACT_CLUSTERS: &str = "UTURN_REDACT_CLUSTERS";
/// The first seed of these clusters.
pub const REDACT_SEED: &str = "UTURN_REDACT_SEED";
/// The requirements that this machine has to meet, separated by commas: a test that is skipped for
/// the lack of one of them fails. `all` stands for every requirement.
pub const REQUIRE: &str = "UTURN_REQUIRE";
/// The file with the large cluster whose reading is measured.
pub const SCALE_CLUSTER: &str = "UTURN_SCALE_CLUSTER";
/// The folder with the files of the operator's processes.
pub const SCALE_FOLDER: &str = "UTURN_SCALE_FOLDER";
/// The part of a process in the test of the operator's processes.
pub const SCALE_ROLE: &str = "UTURN_SCALE_ROLE";
/// The number of Services of the operator's large cluster.
pub const SERVICES: &str = "UTURN_SERVICES";
/// If set, tests of redaction print what they compare.
pub const SHOW: &str = "UTURN_SHOW";
/// The file in which `cargo xtask test` collects the skipped tests.
pub const SKIPPED: &str = "UTURN_SKIPPED";
/// The file in which `cargo xtask test` collects failures, as libtest reports them.
pub const TEST_FAILURES: &str = "UTURN_TEST_FAILURES";
/// The number of test programs that `cargo xtask test` runs at once.
pub const TEST_PROGRAMS: &str = "UTURN_TEST_PROGRAMS";
/// The file in which test programs are recorded instead of being run.
pub const TEST_QUEUE: &str = "UTURN_TEST_QUEUE";
/// The file in which the time of each test is collected.
pub const TEST_TIMES: &str = "UTURN_TEST_TIMES";
/// The number of clusters that are changed at random and analysed again.
pub const WATCH_CLUSTERS: &str = "UTURN_WATCH_CLUSTERS";
/// Random clusters that are edited and compared with themselves before.
pub const WHATIF_CLUSTERS: &str = "UTURN_WHATIF_CLUSTERS";
/// The minutes for which a running cluster is changed at random.
pub const WATCH_MINUTES: &str = "UTURN_WATCH_MINUTES";
/// The number of changed documents that are read by libyaml too.
pub const YAML_MUTANTS: &str = "UTURN_YAML_MUTANTS";

/// Returns the number that a variable states, or `None` if the variable is not set.
///
/// # Panics
/// If the value is no such number: a test must not do less than it was told to.
pub fn number<N: FromStr<Err: Display>>(name: &str) -> Option<N> {
    let text = env::var_os(name)?;
    let text = text.to_string_lossy();
    Some(text.parse().unwrap_or_else(|why| panic!("{name}={text}: {why}")))
}

/// Returns the path that a variable states, or `None` if the variable is not set.
pub fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from)
}

/// Returns the program that a variable states, or else the one on the search path.
pub fn program(name: &str, file: &str) -> Option<PathBuf> {
    path(name).or_else(|| {
        let folders = env::var_os("PATH")?;
        env::split_paths(&folders).map(|folder| folder.join(file)).find(|path| path.is_file())
    })
}

/// Returns whether a variable is set.
pub fn is_set(name: &str) -> bool {
    env::var_os(name).is_some()
}

/// Returns whether a variable tells tests to write files instead of comparing them.
pub fn is_update(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| value == UPDATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_not_set_states_nothing() {
        let name = "NO_SUCH_VARIABLE_ANYWHERE";
        assert_eq!((number::<u64>(name), path(name), is_update(name)), (None, None, false));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_is_found_on_the_search_path() {
        assert!(program("NO_SUCH_VARIABLE_ANYWHERE", "sh").is_some());
        assert_eq!(program("NO_SUCH_VARIABLE_ANYWHERE", "no-such-program-anywhere"), None);
        let stated = program("CARGO_MANIFEST_DIR", "sh");
        assert_eq!(stated, Some(env!("CARGO_MANIFEST_DIR").into()));
    }

    #[test]
    fn a_number_is_read() {
        // Cargo sets this variable.
        let name = "CARGO_PKG_VERSION_MAJOR";
        assert_eq!(number::<u64>(name), Some(env!("CARGO_PKG_VERSION_MAJOR").parse().unwrap()));
    }

    #[test]
    #[should_panic(expected = "CARGO_PKG_NAME=uturn-testing: invalid digit")]
    fn what_is_no_number_is_refused() {
        number::<u64>("CARGO_PKG_NAME");
    }
}
