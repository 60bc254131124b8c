//! `conformance`: compares uturn with real kube-proxies and a real kernel.
//!
//! Builds the real programs and their helpers under `target/conformance`: those that
//! `conformance/go.mod` names (kube-apiserver, etcd), and kube-proxy in each version that has a
//! module in `conformance/kube-proxy`. The crate `uturn-conformance` does the rest.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Outcome, go, machine};

/// The programs that are built from the Go module.
const PROGRAMS: [&str; 4] =
    ["k8s.io/kubernetes/cmd/kube-apiserver", "./etcd", "./objects", "./wire"];

/// The program that is built from each version's module.
const KUBE_PROXY: [&str; 1] = ["k8s.io/kubernetes/cmd/kube-proxy"];

/// Runs the stage with these words for `uturn-conformance`.
pub(crate) fn run(words: &[String]) -> Result<Outcome, Failure> {
    if let Some(why) = why_not_here() {
        return Ok(Outcome::Skipped(why));
    }
    let programs = go::folder();
    let module = shell::root().join("conformance");
    let modules = module.join("kube-proxy");
    let (versions, words) = versions(&modules, words)?;

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
    shell::run(stage.args(words).current_dir(shell::root()))?;
    Ok(no_ipvs.map_or(Outcome::Complete, |why| Outcome::Skipped(format!("IPVS mode: {why}"))))
}

/// Returns the requested versions of kube-proxy (all by default), and the other arguments.
fn versions<'w>(
    modules: &Path,
    words: &'w [String],
) -> Result<(Vec<String>, Vec<&'w String>), Failure> {
    let unreadable = |error| Failure(format!("{}: {error}", modules.display()));
    let mut known = Vec::new();
    for entry in fs::read_dir(modules).map_err(unreadable)? {
        known.push(entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned());
    }
    known.sort();
    let at = words.iter().position(|word| word == "--versions");
    let Some(list) = at.and_then(|at| words.get(at + 1)) else {
        return Ok((known, words.iter().collect()));
    };
    let wanted: Vec<String> = list.split(',').map(str::to_owned).collect();
    if let Some(other) = wanted.iter().find(|version| !known.contains(version)) {
        let known = known.join(", ");
        return Err(Failure(format!("--versions {other}: expected one or more of {known}")));
    }
    let others = words
        .iter()
        .enumerate()
        .filter(|(nth, _)| Some(*nth) != at && Some(*nth) != at.map(|at| at + 1));
    Ok((wanted, others.map(|(_, word)| word).collect()))
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
    use super::*;

    fn of(line: &str) -> Result<(Vec<String>, Vec<String>), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let modules = shell::root().join("conformance").join("kube-proxy");
        let (versions, others) = versions(&modules, &words).map_err(|failure| failure.0)?;
        Ok((versions, others.into_iter().cloned().collect()))
    }

    #[test]
    fn all_versions_unless_some_are_given() {
        let (all, others) = of("--count 1").unwrap();
        assert!(all.len() >= 3, "{all:?}");
        assert_eq!(others, ["--count", "1"]);
        let (first, others) = of(&format!("--count 1 --versions {} --seed 2", all[0])).unwrap();
        assert_eq!(first, all[..1]);
        assert_eq!(others, ["--count", "1", "--seed", "2"]);
    }

    #[test]
    fn a_version_without_a_module_is_refused() {
        assert!(of("--versions v1.2.3").unwrap_err().contains("v1.2.3"));
    }
}
