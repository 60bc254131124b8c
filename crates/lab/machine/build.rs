//! Compiles `preload/ptrace.rs` to a shared library that the machine's kernel is started with.
//!
//! The library is a part of this crate's executables, so there is nothing to install. User Mode
//! Linux is a program for x86-64 that uses glibc. The library uses nothing but glibc's `syscall`,
//! so the libc of the target does not matter.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "preload/ptrace.rs";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let library = PathBuf::from(variable("OUT_DIR")).join("ptrace.so");
    let is_for_machine =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ARCH") == "x86_64";
    if is_for_machine
        && let Err(why) = compile(&library, &variable("TARGET"), &variable("RUSTC_LINKER"))
    {
        // The machine runs without the library, except on processors with a large extended state,
        // where the machine reports that the library is missing.
        println!("cargo::warning=the small machine's {SOURCE} is left out: {why}");
        let _ = fs::remove_file(&library);
    }
    if !library.is_file() {
        fs::write(&library, "").expect("OUT_DIR can be written to");
    }
}

fn compile(library: &PathBuf, target: &str, linker: &str) -> Result<(), String> {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--target", target]);
    let options =
        ["opt-level=3", "panic=abort", "strip=symbols", "link-args=-nostartfiles -nostdlib"];
    rustc.args(options.iter().flat_map(|option| ["-C", option]));
    if target.ends_with("musl") {
        // Links neither the target's libc nor its startup objects.
        rustc.args(["-C", "target-feature=-crt-static", "-C", "link-self-contained=no"]);
    }
    if !linker.is_empty() {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    // Options for a wrapper or for the crates of the workspace do not apply to this compilation.
    rustc.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output =
        rustc.arg("-o").arg(library).arg(SOURCE).output().map_err(|why| why.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).replace('\n', " "))
    }
}
