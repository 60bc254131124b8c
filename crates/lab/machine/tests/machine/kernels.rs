//! Tests with other kernels in place of the machine's own, by a program `linux.uml` that comes
//! first in `PATH`.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use uturn_machine::{Machine, MachineError};

use super::checks::{ASKS, NO_MACHINE, closes, run, shell, watched};

/// A script for `sh` in place of the machine's kernel. `$KERNEL` is the real one.
struct Kernel {
    folder: PathBuf,
}

impl Kernel {
    fn new(name: &str, script: &str) -> Self {
        let folder = env::temp_dir().join(format!("uturn-machine-{}-{name}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let file = folder.join("linux.uml");
        let kernel = real_kernel();
        let text = format!(
            "#!/bin/sh\nKERNEL={0}\n[ \"$1\" = --version ] && exec {0} --version\n{script}\n",
            kernel.display()
        );
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// Returns the output of a program that runs a job in a machine with this kernel. Checks that
    /// nothing of the machine is left then.
    fn run(&self, script: &str) -> Output {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = [self.folder.clone()].into_iter().chain(env::split_paths(&path));
        let (gone, kept) = watched();
        let child = Command::new(env::current_exe().unwrap())
            .args([ASKS, script])
            .env("PATH", env::join_paths(folders).unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(kept);
        let output = child.wait_with_output().unwrap();
        assert!(closes(&gone), "something of the machine is left");
        output
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn real_kernel() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut all = env::split_paths(&path).map(|folder| folder.join("linux.uml"));
    all.find(|file| file.is_file()).unwrap()
}

/// Builds the library that simulates a host with a larger processor.
fn larger_host(folder: &Path) -> PathBuf {
    let library = folder.join("larger-host.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machine/larger_host.c");
    let cc = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut compile = Command::new(cc);
    compile.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source);
    // Rust needs a C compiler, too, to link.
    assert!(compile.status().unwrap().success());
    library
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(super) fn a_larger_processor_is_no_obstacle(_: &Machine) {
    // The library comes after the machine's own, so it stands for the host.
    let kernel = Kernel::new(
        "larger",
        "LD_PRELOAD=\"$LD_PRELOAD ${0%/*}/larger-host.so\" exec $KERNEL \"$@\"",
    );
    larger_host(&kernel.folder);
    // Two processes at a time, so that their states are set again and again.
    let script = "seq 1 20000 | sort -n | tail -n 1; echo done";
    let output = kernel.run(script);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "20000\ndone\n", "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

pub(super) fn a_kernel_that_panics_before_the_job(_: &Machine) {
    // The kernel runs without the machine's own library, as it once did on such a host.
    let kernel = Kernel::new("panics", "LD_PRELOAD=${0%/*}/larger-host.so exec $KERNEL \"$@\"");
    larger_host(&kernel.folder);
    let output = kernel.run("echo up");
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(NO_MACHINE), "{stderr}");
    assert!(output.stdout.is_empty());
    for part in [
        "the small machine did not start: its kernel panicked, because the host refused",
        "extended state is larger",
        "Kernel panic - not syncing: Attempted to kill init!",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }

    // A kernel that panics for an unknown reason, and does not end.
    let script = "echo 'Kernel panic - not syncing: no root' >&2; while :; do :; done";
    let output = Kernel::new("stays", script).run("echo up");
    let stderr = self::stderr(&output);
    assert_eq!(output.status.code(), Some(NO_MACHINE), "{stderr}");
    let expected = "did not start: its kernel panicked; the last lines of its console: \
                    Kernel panic - not syncing: no root\n";
    assert!(stderr.ends_with(expected), "{stderr}");
}

pub(super) fn a_kernel_that_panics_beside_the_job(machine: &Machine) {
    let (gone, kept) = watched();
    let ran = run(machine, &shell("echo c > /proc/sysrq-trigger; sleep 1000"));
    drop(kept);
    let Err(MachineError::Panicked { console }) = ran else { panic!("{ran:?}") };
    assert!(console.contains("sysrq triggered crash"), "{console}");
    assert!(closes(&gone), "something of the machine is left");
}

pub(super) fn a_kernel_that_is_none(_: &Machine) {
    for (name, script, expected) in [
        ("ends", "exit 3", "the small machine ended before its job did, and did not say why\n"),
        ("complains", "echo no memory >&2; exit 1", "ended before its job did: no memory\n"),
        ("dies", "echo before; kill -SEGV $$", "ended before its job did: before\n"),
    ] {
        let output = Kernel::new(name, script).run("echo up");
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(NO_MACHINE), "{name}: {stderr}");
        assert!(stderr.ends_with(expected), "{name}: {stderr}");
    }
}
