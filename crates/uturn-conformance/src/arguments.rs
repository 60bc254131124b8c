//! What the stage is asked to do.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use uturn_model::Version;

use crate::mode::Mode;

pub(crate) const HELP: &str = "\
uturn-conformance --programs DIR --work DIR --versions V,V... [--cases DIR] [--count N]
                  [--seed S] [--packets N] [--case FILE] [--modes M,M...]

  --programs DIR  where programs are: kube-proxy in a folder for each version, in bin
                  kube-apiserver, etcd, objects and wire
  --versions V,V  versions of kube-proxy to try
  --work DIR      for logs while it runs, and for cases that failed
  --cases DIR     fixed cases: every .json in it
  --count N       so many random cases a version (default 2)
  --seed S        of random cases and of packets (default: from the clock; it is printed)
  --packets N     so many flows a node (default 100)
  --case FILE     this one case and no other, in the version that it names if that is one
                  of those above, else in all of them
  --modes M,M     iptables, nftables, ipvs (default: all; ipvs in the small machine)

exit: 0 all equal, 1 a difference, 2 wrong usage, 3 it could not be done here
";

/// All of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) programs: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) versions: Vec<Version>,
    pub(crate) cases: Option<PathBuf>,
    pub(crate) count: u64,
    pub(crate) seed: u64,
    pub(crate) packets: usize,
    pub(crate) case: Option<PathBuf>,
    pub(crate) modes: Vec<Mode>,
    /// Whether this is the stage in the small machine.
    pub(crate) in_machine: bool,
}

impl Arguments {
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let (mut programs, mut work, mut cases, mut case) = (None, None, None, None);
        let (mut count, mut seed, mut packets) = (2, None, 100);
        let (mut versions, mut modes) = (Vec::new(), Mode::ALL.to_vec());
        let mut in_machine = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word}: expected a value after it"))?;
            match word.as_str() {
                "--programs" => programs = Some(PathBuf::from(value)),
                "--work" => work = Some(PathBuf::from(value)),
                "--versions" => versions = several(word, value)?,
                "--modes" => modes = several(word, value)?,
                "--cases" => cases = Some(PathBuf::from(value)),
                "--case" => case = Some(PathBuf::from(value)),
                // How the stage starts itself in the small machine.
                "--in-machine" => in_machine = value == "yes",
                "--count" => count = number(word, value)?,
                "--seed" => seed = Some(number(word, value)?),
                "--packets" => packets = number(word, value)?,
                _ => return Err(format!("{word:?} is no option")),
            }
        }
        Ok(Self {
            programs: programs.ok_or("--programs is missing")?,
            work: work.ok_or("--work is missing")?,
            versions: match versions.is_empty() {
                true => return Err("--versions is missing".to_owned()),
                false => versions,
            },
            cases,
            count,
            seed: seed.unwrap_or_else(from_the_clock),
            packets,
            case,
            modes,
            in_machine,
        })
    }
}

fn number<T: FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{word} {value}: expected a number"))
}

fn several<T: FromStr<Err: fmt::Display>>(word: &str, value: &str) -> Result<Vec<T>, String> {
    let number = |text: &str| text.parse().map_err(|fault| format!("{word} {text}: {fault}"));
    value.split(',').map(number).collect()
}

fn from_the_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_said_is_kept() {
        let read =
            parse("--programs p --work w --versions v1.30.14,v1.36.3 --count 0 --seed 7").unwrap();
        assert_eq!((read.count, read.seed, read.packets), (0, 7, 100));
        assert_eq!(read.modes, Mode::ALL);
        assert_eq!(read.versions, [Version::new(1, 30, 14), Version::new(1, 36, 3)]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, named) in [
            ("--work w", "--programs"),
            ("--programs p --work w", "--versions"),
            ("--programs p --work w --versions new", "--versions new"),
            ("--programs p --work w --seed x", "--seed x"),
            ("--programs p --work w --modes ipvs,ebpf", "--modes ebpf"),
            ("--programs p --work", "--work"),
            ("--programs p --loud yes", "--loud"),
        ] {
            assert!(parse(line).unwrap_err().contains(named), "{line}");
        }
    }
}
