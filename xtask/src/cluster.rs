//! `box-parts` and `box`: build the real programs of `uturn lab up`, and run the test that builds a
//! cluster of them.

use uturn_testing::variables;

use crate::shell::{self, Failure};
use crate::{Outcome, go, machine};

/// The version of kube-proxy that `uturn lab up` runs by default.
pub(crate) const KUBE_PROXY: &str = "v1.34.4";

/// The programs that are built from `conformance/go.mod`.
const SERVERS: [&str; 2] = ["k8s.io/kubernetes/cmd/kube-apiserver", "./etcd"];

/// The programs that are built from `conformance/controllers`.
const CONTROLLERS: [&str; 3] = [
    "k8s.io/kubernetes/cmd/kube-controller-manager",
    "k8s.io/kubernetes/cmd/kube-scheduler",
    "k8s.io/kubernetes/cmd/kubectl",
];

/// The program that enforces NetworkPolicies in a story, built from `conformance/kube-router`.
const KUBE_ROUTER: &str = "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router";

/// The requirements that CI's machine has to meet.
const REQUIRED_IN_CI: &str = "cluster-parts,kernel,machine";

/// Builds all programs.
pub(crate) fn parts(versions: &[String]) -> Result<Outcome, Failure> {
    if machine::find("go").is_none() {
        let why = "go not found; it builds the real programs (Go 1.26 or later)";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let module = shell::root().join("conformance");
    for version in versions {
        let proxy = module.join("kube-proxy").join(version);
        if !proxy.is_dir() {
            let fault = format!("--versions {version}: there is no {}", proxy.display());
            return Err(Failure(fault));
        }
        go::build(&proxy, &go::folder().join(version), &["k8s.io/kubernetes/cmd/kube-proxy"])?;
    }
    let programs = go::folder().join("bin");
    go::build(&module, &programs, &SERVERS)?;
    go::build(&module.join("controllers"), &programs, &CONTROLLERS)?;
    go::coredns().map_err(Failure)?;
    println!("uturn lab up --parts {}", go::folder().display());
    Ok(Outcome::Complete)
}

/// Builds the programs, and runs the test. If `is_short`, only the part that needs a single cluster
/// on this kernel runs.
pub(crate) fn run(is_short: bool) -> Result<Outcome, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("it needs Linux: it makes network namespaces".to_owned()));
    }
    if !machine::is_root() {
        return Ok(Outcome::Skipped("it needs root: it makes network namespaces".to_owned()));
    }
    if let Err(why) = machine::install_packages() {
        return Ok(Outcome::Skipped(why));
    }
    match parts(&[KUBE_PROXY.to_owned()])? {
        Outcome::Complete => {}
        skipped => return Ok(skipped),
    }
    if !is_short {
        let module = shell::root().join("conformance").join("kube-router");
        go::build(&module, &go::folder().join("bin"), &[KUBE_ROUTER])?;
    }
    shell::build(shell::PROGRAMS)?;
    let mut test = shell::cargo(&["test", "--workspace", "--test", "cluster"]);
    test.args(is_short.then_some(["--", "short"]).into_iter().flatten());
    test.env(variables::PROGRAM, shell::built("uturn"));
    test.env(variables::CLUSTER_PARTS, go::folder());
    test.env(variables::REQUIRE, if shell::is_ci() { REQUIRED_IN_CI } else { "cluster-parts" });
    shell::run(&mut test)?;
    Ok(Outcome::Complete)
}
