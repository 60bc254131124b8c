//! Builds real programs written in Go, from the modules under `conformance`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::machine;
use crate::shell::{self, Failure};

/// Returns the folder for everything that is built from Go modules.
pub(crate) fn folder() -> PathBuf {
    shell::root().join("target").join("conformance")
}

/// Builds a module's programs into a folder.
pub(crate) fn build(module: &Path, folder: &Path, programs: &[&str]) -> Result<(), Failure> {
    let start = Instant::now();
    let mut build = Command::new("go");
    // go creates a folder whose name ends with a slash.
    let mut into = folder.as_os_str().to_owned();
    into.push("/");
    build.arg("build").arg("-o").arg(into).args(programs);
    build.current_dir(module);
    // go.sum verifies the modules. Debug information would be a fifth of the compiler's work,
    // and these programs are not debugged.
    build.env("GOFLAGS", "-mod=readonly -gcflags=all=-dwarf=false -ldflags=-w");
    build.env("CGO_ENABLED", "0");
    shell::run(&mut build)?;
    println!("built {} ({} s)", folder.display(), start.elapsed().as_secs());
    Ok(())
}

/// Builds the real CoreDNS that the lab and tests of names query.
pub(crate) fn coredns() -> Result<PathBuf, String> {
    if machine::find("go").is_none() {
        return Err("go not found; it builds the real CoreDNS (Go 1.24 or later)".to_owned());
    }
    let module = shell::root().join("conformance").join("coredns");
    let programs = folder().join("bin");
    build(&module, &programs, &["."]).map_err(|failure| failure.to_string())?;
    Ok(programs.join("coredns"))
}

/// Returns the real CoreDNS if an earlier run built it.
pub(crate) fn coredns_if_built() -> Result<PathBuf, String> {
    let program = folder().join("bin").join("coredns");
    let is_there = program.is_file();
    is_there.then_some(program).ok_or_else(|| "not built; `cargo xtask test --all` does".to_owned())
}
