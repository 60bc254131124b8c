//! `live`: reads running clusters, as a real API server with RBAC has them.

use std::fs;

use crate::shell::{self, Failure};
use crate::{Done, gen_cluster, go, machine};

/// What `conformance/go.mod` has to give.
const SERVERS: [&str; 2] = ["k8s.io/kubernetes/cmd/kube-apiserver", "./etcd"];

/// What `conformance/controllers` has to give.
const KUBECTL: [&str; 1] = ["k8s.io/kubernetes/cmd/kubectl"];

/// The seeds of the random clusters.
const SEEDS: [u64; 2] = [1, 2];

/// Builds the programs, writes random clusters, and runs the test.
pub(crate) fn run() -> Result<Done, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::LeftOut("it needs Linux".to_owned()));
    }
    if machine::find("setpriv").is_none() {
        let why = "setpriv not found (package util-linux); it ends servers with the test";
        return Ok(Done::LeftOut(why.to_owned()));
    }
    if machine::find("go").is_none() {
        let why = "go not found; it builds the real API server (Go 1.26 or later)";
        return Ok(Done::LeftOut(why.to_owned()));
    }
    let (module, programs) = (shell::root().join("conformance"), go::folder().join("bin"));
    go::build(&module, &programs, &SERVERS)?;
    go::build(&module.join("controllers"), &programs, &KUBECTL)?;
    let clusters = shell::root().join("target").join("live");
    fs::create_dir_all(&clusters)
        .map_err(|why| Failure(format!("{}: {why}", clusters.display())))?;
    for seed in SEEDS {
        let file = clusters.join(format!("{seed}.json")).display().to_string();
        // As kubectl prints it, a larger one is more than a scan tries cures of.
        let size = gen_cluster::Size { nodes: 8, pods: 80, targets: 24, seed, file };
        gen_cluster::run(&size)?;
    }
    let mut test = shell::cargo(&["test", "--package", "uturn", "--test", "live"]);
    test.env("UTURN_CLUSTER_PARTS", go::folder());
    test.env("UTURN_LIVE_CLUSTERS", clusters);
    test.env("UTURN_REQUIRE", "cluster-parts");
    shell::run(&mut test)?;
    Ok(Done::Whole)
}
