//! `live`: reads running clusters from a real API server with RBAC.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use uturn_testing::variables;

use crate::gen_cluster::{self, Size};
use crate::shell::{self, Failure};
use crate::{Outcome, go, machine};

/// The programs that are built from `conformance/go.mod`.
const SERVERS: [&str; 2] = ["k8s.io/kubernetes/cmd/kube-apiserver", "./etcd"];

/// The programs that are built from `conformance/controllers`.
const KUBECTL: [&str; 1] = ["k8s.io/kubernetes/cmd/kubectl"];

/// The seeds of the random clusters.
const SEEDS: [u64; 2] = [1, 2];

/// Without `--scale` the clusters are small ones, and what is read of them is compared.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Measure instead how a large cluster is read: time, memory, requests (10 GB of memory and
    /// disk for 150000 pods)
    #[arg(long)]
    scale: bool,
    /// Nodes of the large cluster
    #[arg(
        long,
        value_name = "N",
        default_value_t = 500,
        requires = "scale",
        value_parser = clap::value_parser!(u32).range(1..=gen_cluster::MAX_NODES)
    )]
    nodes: u32,
    /// Pods of the large cluster
    #[arg(long, value_name = "N", default_value_t = 15_000, requires = "scale")]
    pods: u32,
    /// Services and Ingresses of the large cluster
    #[arg(long, value_name = "N", default_value_t = 500, requires = "scale")]
    targets: u32,
    /// Seed of all that varies in the large cluster
    #[arg(long, value_name = "S", default_value_t = 1, requires = "scale")]
    seed: u64,
}

impl Options {
    /// Returns the name of the task in a report.
    pub(crate) fn name(&self) -> &'static str {
        if self.scale { "live --scale" } else { "live" }
    }

    /// Returns the large cluster.
    fn size(&self) -> Size {
        let Self { nodes, pods, targets, seed, .. } = *self;
        let file = shell::root().join("target").join("live").join("scale.json");
        Size { nodes, pods, targets, seed, file }
    }
}

/// Builds the programs, and reads clusters or measures how one is read.
pub(crate) fn run(options: &Options) -> Result<Outcome, Failure> {
    if let Some(why) = why_not_here() {
        return Ok(Outcome::Skipped(why));
    }
    let clusters = prepare()?;
    if options.scale { scale(&options.size()) } else { compare(&clusters) }
}

/// Writes random clusters, and runs the test.
fn compare(clusters: &Path) -> Result<Outcome, Failure> {
    for seed in SEEDS {
        let file = clusters.join(format!("{seed}.json"));
        // A larger cluster, as kubectl prints it, would exceed the size up to which a scan tries
        // cures.
        let size = Size { nodes: 8, pods: 80, targets: 24, seed, file };
        gen_cluster::run(&size)?;
    }
    // The rights of the operator are held against its manifests.
    shell::build(&["uturn", "uturn-operator"])?;
    let mut test = test();
    test.env(variables::LIVE_CLUSTERS, clusters);
    shell::run(&mut test)?;
    Ok(Outcome::Complete)
}

/// Measures how fast a large cluster is read.
fn scale(size: &Size) -> Result<Outcome, Failure> {
    gen_cluster::run(size)?;
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn"]))?;
    let mut test = test();
    test.args(["--", "--nocapture"]).env(variables::SCALE_CLUSTER, &size.file);
    test.env(variables::PROGRAM, shell::target().join("release").join("uturn"));
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
    test.env(variables::CLUSTER_PARTS, go::folder());
    test.env(variables::REQUIRE, "cluster-parts");
    test
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

    #[test]
    fn a_large_cluster_has_a_size() {
        let of = |line: &str| {
            let words = ["live"].into_iter().chain(line.split_whitespace());
            Line::try_parse_from(words).map(|line| line.options)
        };
        assert_eq!(of("").unwrap().name(), "live");
        let size = of("--scale --nodes 50 --pods 900").unwrap().size();
        assert_eq!((size.nodes, size.pods, size.targets, size.seed), (50, 900, 500, 1));
        assert!(of("--nodes 50").is_err());
    }
}
