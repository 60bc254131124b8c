//! The command line of the stage.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use uturn_model::Version;

use crate::mode::Mode;

const EXIT_CODES: &str =
    "Exit codes: 0 all equal, 1 a difference, 2 wrong usage, 3 the stage cannot run here";

/// Compares uturn with real kube-proxies and a real kernel.
///
/// An option that is given twice counts the last time: `cargo xtask conformance` and the stage
/// itself put theirs before and after those of the user.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(args_override_self = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Programs: kube-proxy in a folder for each version; kube-apiserver, etcd, objects and wire
    /// in bin
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: PathBuf,
    /// Logs while the stage runs, and cases that failed
    #[arg(long, value_name = "DIR")]
    pub(crate) work: PathBuf,
    /// Versions of kube-proxy to try
    #[arg(long, value_name = "V,V...", value_parser = list::<Version>)]
    pub(crate) versions: Versions,
    /// Fixed cases: every .json in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// How many random cases to try for each version
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) count: u64,
    /// The seed of random cases and of packets [default: the time; it is printed]
    #[arg(long, value_name = "S", default_value_t = seconds_since_1970(), hide_default_value = true)]
    pub(crate) seed: u64,
    /// How many flows to try for each node
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) packets: usize,
    /// Only this case: in the version that it names if --versions has it, else in all of them
    #[arg(long, value_name = "FILE")]
    pub(crate) case: Option<PathBuf>,
    /// Modes of kube-proxy: iptables, nftables, ipvs (in the small machine)
    #[arg(
        long,
        value_name = "M,M...",
        value_parser = list::<Mode>,
        default_value = "iptables,nftables,ipvs"
    )]
    pub(crate) modes: Modes,
    /// Put faults into a node in IPVS mode too: four minutes, since programs start slowly in the
    /// small machine
    #[arg(long)]
    pub(crate) ipvs_faults: bool,
    /// Set when the stage starts itself in the small machine
    #[arg(long, hide = true)]
    pub(crate) in_machine: bool,
}

// A list is one value of its option, so that the last occurrence replaces the others. (clap adds up
// the occurrences of what is spelt `Vec`.)
type Versions = Vec<Version>;
type Modes = Vec<Mode>;

/// Reads a list with commas.
fn list<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<Vec<T>, String> {
    let item = |item: &str| item.parse().map_err(|error| format!("{item}: {error}"));
    text.split(',').map(item).collect()
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(["uturn-conformance"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_are_read() {
        let read =
            parse("--programs p --work w --versions v1.30.14,v1.36.3 --count 0 --seed 7").unwrap();
        assert_eq!((read.count, read.seed, read.packets), (0, 7, 100));
        assert_eq!(read.modes, Mode::ALL);
        assert_eq!(read.versions, [Version::new(1, 30, 14), Version::new(1, 36, 3)]);
        assert!(!read.in_machine && !read.ipvs_faults);
    }

    /// The stage in the small machine is started with the user's words and its own after them.
    #[test]
    fn the_last_value_of_an_option_counts() {
        let read = parse(
            "--programs p --work w --versions v1.30.14,v1.36.3 --modes iptables,nftables --seed 7 \
             --ipvs-faults --modes ipvs --in-machine --seed 8 --versions v1.34.4",
        )
        .unwrap();
        assert_eq!(read.seed, 8);
        assert_eq!(read.versions, [Version::new(1, 34, 4)]);
        assert_eq!(read.modes, [Mode::Ipvs]);
        assert!(read.in_machine && read.ipvs_faults);
    }

    #[test]
    fn errors_name_the_option() {
        for (line, named) in [
            ("--work w", "--programs"),
            ("--programs p --work w", "--versions"),
            ("--programs p --work w --versions new", "--versions"),
            ("--programs p --work w --versions v1.34.4 --seed x", "--seed"),
            ("--programs p --work w --versions v1.34.4 --modes ipvs,ebpf", "ebpf"),
            ("--programs p --work", "--work"),
            ("--programs p --loud yes", "--loud"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.to_string().contains(named), "{line}: {error}");
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
