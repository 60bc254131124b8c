//! `conformance`: uturn held against real kube-proxies and a real kernel.
//!
//! Builds the real programs that `conformance/go.mod` names (kube-proxy, kube-apiserver,
//! etcd) and what goes with them, under `target/conformance`; the crate
//! `uturn-conformance` does the rest.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Done, machine};

/// What the Go module has to give.
const PROGRAMS: [&str; 5] = [
    "k8s.io/kubernetes/cmd/kube-proxy",
    "k8s.io/kubernetes/cmd/kube-apiserver",
    "./etcd",
    "./objects",
    "./wire",
];

/// Runs it with these words for `uturn-conformance`.
pub(crate) fn run(words: &[String]) -> Result<Done, Failure> {
    if let Some(why) = left_out() {
        return Ok(Done::LeftOut(why));
    }
    let work = shell::root().join("target").join("conformance");
    let programs = work.join("bin");
    let module = shell::root().join("conformance");

    shell::run(&mut build(&module, &programs))?;
    shell::run(&mut shell::cargo(&["build", "--package", "uturn-conformance"]))?;

    let mut stage = Command::new(built());
    stage.arg("--programs").arg(&programs).arg("--work").arg(&work);
    stage.arg("--cases").arg(module.join("cases")).args(words);
    shell::run(stage.current_dir(shell::root()))?;
    Ok(Done::Whole)
}

/// Why it cannot be done here.
fn left_out() -> Option<String> {
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
    no_go.then(|| "go not found; it builds the real kube-proxy (Go 1.24 or later)".to_owned())
}

fn build(module: &std::path::Path, programs: &std::path::Path) -> Command {
    let mut build = Command::new("go");
    // A folder with a slash at its end is one that go makes.
    let mut folder = programs.as_os_str().to_owned();
    folder.push("/");
    build.arg("build").arg("-o").arg(folder).args(PROGRAMS);
    build.current_dir(module);
    // The module's own checksums say what is right.
    build.env("GOFLAGS", "-mod=readonly").env("CGO_ENABLED", "0");
    build
}

/// Where cargo puts the stage.
fn built() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.map_or_else(|| shell::root().join("target"), |one| shell::root().join(one));
    target.join("debug").join("uturn-conformance")
}
