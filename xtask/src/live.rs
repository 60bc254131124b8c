//! `live`: reads running clusters from a real API server with RBAC.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Outcome, gen_cluster, go, machine};

/// The programs that are built from `conformance/go.mod`.
const SERVERS: [&str; 2] = ["k8s.io/kubernetes/cmd/kube-apiserver", "./etcd"];

/// The programs that are built from `conformance/controllers`.
const KUBECTL: [&str; 1] = ["k8s.io/kubernetes/cmd/kubectl"];

/// The seeds of the random clusters.
const SEEDS: [u64; 2] = [1, 2];

/// The default size of the cluster that is measured, which the words of `--scale` override: small
/// enough for a machine with little else to do.
const USUAL: [&str; 6] = ["--nodes", "500", "--pods", "15000", "--targets", "500"];

/// Returns the size of the cluster that is measured.
pub(crate) fn size(words: &[&str]) -> Result<gen_cluster::Size, String> {
    let file = shell::root().join("target").join("live").join("scale.json");
    let file = file.display().to_string();
    gen_cluster::Size::parse(&[&USUAL, words, &["-o", &file]].concat())
}

/// Builds the programs, writes random clusters, and runs the test.
pub(crate) fn run() -> Result<Outcome, Failure> {
    if let Some(why) = why_not_here() {
        return Ok(Outcome::Skipped(why));
    }
    let clusters = prepare()?;
    for seed in SEEDS {
        let file = clusters.join(format!("{seed}.json")).display().to_string();
        // A larger cluster, as kubectl prints it, would exceed the size up to which a scan tries
        // cures.
        let size = gen_cluster::Size { nodes: 8, pods: 80, targets: 24, seed, file };
        gen_cluster::run(&size)?;
    }
    let mut test = test();
    test.env("UTURN_LIVE_CLUSTERS", clusters);
    shell::run(&mut test)?;
    Ok(Outcome::Complete)
}

/// Measures how fast a large cluster is read.
pub(crate) fn scale(size: &gen_cluster::Size) -> Result<Outcome, Failure> {
    if let Some(why) = why_not_here() {
        return Ok(Outcome::Skipped(why));
    }
    prepare()?;
    gen_cluster::run(size)?;
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn"]))?;
    let mut test = test();
    test.args(["--", "--nocapture"]).env("UTURN_SCALE_CLUSTER", &size.file);
    test.env("UTURN_PROGRAM", shell::target().join("release").join("uturn"));
    let measured = shell::run(&mut test);
    // The file may have hundreds of megabytes.
    let _ = fs::remove_file(&size.file);
    measured.map(|()| Outcome::Complete)
}

/// Returns the reason why the task cannot be done here.
fn why_not_here() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("it needs Linux".to_owned());
    }
    if machine::find("setpriv").is_none() {
        let why = "setpriv not found (package util-linux); it ends servers with the test";
        return Some(why.to_owned());
    }
    let no_go = machine::find("go").is_none();
    no_go.then(|| "go not found; it builds the real API server (Go 1.26 or later)".to_owned())
}

/// Builds the servers, and makes the folder for clusters.
fn prepare() -> Result<PathBuf, Failure> {
    let (module, programs) = (shell::root().join("conformance"), go::folder().join("bin"));
    go::build(&module, &programs, &SERVERS)?;
    go::build(&module.join("controllers"), &programs, &KUBECTL)?;
    let clusters = shell::root().join("target").join("live");
    fs::create_dir_all(&clusters)
        .map_err(|why| Failure(format!("{}: {why}", clusters.display())))?;
    Ok(clusters)
}

/// Returns the command of the test, with its environment.
fn test() -> Command {
    let mut test = shell::cargo(&["test", "--workspace", "--test", "live"]);
    test.env("UTURN_CLUSTER_PARTS", go::folder());
    test.env("UTURN_REQUIRE", "cluster-parts");
    test
}
