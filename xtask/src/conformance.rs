//! `conformance`: compares uturn with real kube-proxies and a real kernel.
//!
//! Builds the real programs and their helpers under `target/conformance`: those that
//! `conformance/go.mod` names (kube-apiserver, etcd), and kube-proxy in each version that has a
//! module in `conformance/kube-proxy`. The crate `uturn-conformance` does the rest.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::shell::{self, Failure};
use crate::{Outcome, go, machine};

/// The programs that are built from the Go module.
const PROGRAMS: [&str; 4] =
    ["k8s.io/kubernetes/cmd/kube-apiserver", "./etcd", "./objects", "./wire"];

/// The program that is built from each version's module.
const KUBE_PROXY: [&str; 1] = ["k8s.io/kubernetes/cmd/kube-proxy"];

/// The options that are passed on to `uturn-conformance`. An option that is given twice counts the
/// last time.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    /// Versions of kube-proxy [default: all of conformance/kube-proxy]
    #[arg(long, value_name = "V,V...")]
    versions: Option<String>,
    /// Modes of kube-proxy: iptables, nftables, ipvs (in a small machine) [default: all]
    #[arg(long, value_name = "M,M...")]
    modes: Option<String>,
    /// Random clusters for each version beside the fixed ones [default: 2]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Seed of clusters and packets [default: the time; it is printed]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Flows for each node [default: 100]
    #[arg(long, value_name = "N")]
    packets: Option<u64>,
    /// Only this cluster: the file in which a difference was saved
    #[arg(long, value_name = "FILE")]
    case: Option<PathBuf>,
    /// Put faults into a node in IPVS mode too (takes minutes)
    #[arg(long)]
    ipvs_faults: bool,
}

impl Options {
    /// Returns the options of the stage, except the versions.
    fn words(&self) -> Vec<OsString> {
        let number = |number: Option<u64>| number.map(|number| number.to_string().into());
        let pairs: [(&str, Option<OsString>); 5] = [
            ("--modes", self.modes.clone().map(OsString::from)),
            ("--count", number(self.count)),
            ("--seed", number(self.seed)),
            ("--packets", number(self.packets)),
            ("--case", self.case.clone().map(PathBuf::into_os_string)),
        ];
        let given = pairs.into_iter().filter_map(|(name, value)| Some([name.into(), value?]));
        given.flatten().chain(self.ipvs_faults.then(|| "--ipvs-faults".into())).collect()
    }
}

/// Builds the programs and runs the stage.
pub(crate) fn run(options: &Options) -> Result<Outcome, Failure> {
    if let Some(why) = why_not_here() {
        return Ok(Outcome::Skipped(why));
    }
    let programs = go::folder();
    let module = shell::root().join("conformance");
    let modules = module.join("kube-proxy");
    let versions = versions(&modules, options.versions.as_deref())?;

    go::build(&module, &programs.join("bin"), &PROGRAMS)?;
    for version in &versions {
        go::build(&modules.join(version), &programs.join(version), &KUBE_PROXY)?;
    }
    shell::build(&["uturn", "uturn-conformance"])?;

    let mut stage = Command::new(shell::built("uturn-conformance"));
    stage.arg("--programs").arg(&programs).arg("--work").arg(&programs);
    stage.arg("--versions").arg(versions.join(","));
    stage.arg("--cases").arg(module.join("cases"));
    let no_ipvs = machine::install_for_ipvs().err();
    if no_ipvs.is_some() {
        stage.arg("--modes").arg("iptables,nftables");
    }
    shell::run(stage.args(options.words()).current_dir(shell::root()))?;
    Ok(no_ipvs.map_or(Outcome::Complete, |why| Outcome::Skipped(format!("IPVS mode: {why}"))))
}

/// Returns the requested versions of kube-proxy, by default all that have a module.
fn versions(modules: &Path, wanted: Option<&str>) -> Result<Vec<String>, Failure> {
    let unreadable = |error| Failure(format!("{}: {error}", modules.display()));
    let mut known = Vec::new();
    for entry in fs::read_dir(modules).map_err(unreadable)? {
        known.push(entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned());
    }
    known.sort();
    let Some(list) = wanted else { return Ok(known) };
    let wanted: Vec<String> = list.split(',').map(str::to_owned).collect();
    if let Some(other) = wanted.iter().find(|version| !known.contains(version)) {
        let known = known.join(", ");
        return Err(Failure(format!("--versions {other}: expected one or more of {known}")));
    }
    Ok(wanted)
}

/// Returns the reason why the stage cannot run here.
fn why_not_here() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("it needs Linux".to_owned());
    }
    if !machine::is_root() {
        return Some("it needs root, to make network namespaces".to_owned());
    }
    if let Err(why) = machine::install_for_conformance() {
        return Some(why);
    }
    let no_go = machine::find("go").is_none();
    no_go.then(|| "go not found; it builds the real kube-proxy (Go 1.26 or later)".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn of(line: &str) -> Options {
        let words = ["conformance"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().options
    }

    #[test]
    fn options_are_passed_on() {
        assert_eq!(of("").words(), [""; 0]);
        let line = "--count 1 --ipvs-faults --versions v1.34.4 --seed 2 --case a.json --count 3";
        let words = ["--count", "3", "--seed", "2", "--case", "a.json", "--ipvs-faults"];
        assert_eq!(of(line).words(), words);
        assert_eq!(of("--modes ipvs --packets 9").words(), ["--modes", "ipvs", "--packets", "9"]);
    }

    #[test]
    fn all_versions_unless_some_are_given() {
        let modules = shell::root().join("conformance").join("kube-proxy");
        let all = versions(&modules, None).unwrap();
        assert!(all.len() >= 3, "{all:?}");
        let list = format!("{},{}", all[1], all[0]);
        assert_eq!(versions(&modules, Some(&list)).unwrap(), [all[1].clone(), all[0].clone()]);
        assert!(versions(&modules, Some("v1.2.3")).unwrap_err().0.contains("v1.2.3"));
    }
}
