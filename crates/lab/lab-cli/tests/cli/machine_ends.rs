//! A small machine that does not start, and `uturn lab up` whose user goes before the cluster is up.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, PipeReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use uturn_testing::{Requirement, skip};

use uturn_testing::commands::{Folder, root};

/// Only ends a test that hangs.
const LIMIT: Duration = Duration::from_secs(900);

/// The number that every program of a [`Run`] inherits the pipe's end as.
const PIPE: u8 = 9;

/// What is said of a machine that cannot be had, and not of one that does not work.
fn is_not_to_be_had(stderr: &str) -> bool {
    stderr.contains("machine needs")
        || stderr.contains("has no modules")
        || stderr.contains("cannot run")
}

/// Puts a script in place of the machine's kernel. `None` if there is no kernel.
fn kernel(folder: &Folder, script: &str) -> Option<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|folder| folder.join("linux.uml"));
    let real = all.find(|file| file.is_file())?.display().to_string();
    let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && exec {real} --version\n{script}\n");
    program(folder, "linux.uml", &text);
    let folders = [folder.0.clone()].into_iter().chain(std::env::split_paths(&path));
    Some(std::env::join_paths(folders).unwrap())
}

fn program(folder: &Folder, name: &str, text: &str) {
    folder.file(name, text);
    fs::set_permissions(folder.0.join(name), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_kernel_that_panics_ends_the_command_with_its_last_lines() {
    let what = "a small machine whose kernel panics";
    let folder = Folder::new("machine-panics");
    let script = "echo 'Kernel panic - not syncing: Attempted to kill init!' >&2\n\
                  echo ' [<60048839>] put_fp_registers+0x10/0x12' >&2\n\
                  while :; do :; done";
    let Some(path) = kernel(&folder, script) else {
        return skip(Requirement::Machine, what, "no linux.uml");
    };
    let rows: [&[&str]; 4] = [
        &["lab", "run", "--vm", "l4-iptables"],
        &["lab", "verify", "--vm", "l4-iptables", "--mode", "iptables", "--nodes", "1"],
        &["lab", "verify", "--vm", "l4-iptables", "--nodes", "1", "-o", "json"],
        &["lab", "up", "--vm"],
    ];
    for words in rows {
        let run = Run::start(&folder, words, Some(&path));
        let (status, stderr) = run.ended();
        if is_not_to_be_had(&stderr) {
            return skip(Requirement::Machine, what, stderr);
        }
        assert_eq!(status.code(), Some(3), "{words:?}: {stderr}");
        for part in [
            "the small machine did not start: its kernel panicked, because the host refused to",
            "extended state is larger",
            "last lines of its console: Kernel panic - not syncing: Attempted to kill init!; \
             [<60048839>] put_fp_registers",
        ] {
            assert!(stderr.contains(part), "{words:?}: {part}: {stderr}");
        }
    }
}

#[test]
fn a_cluster_that_is_not_up_goes_with_its_user() {
    let what = "the start of a cluster in a small machine";
    let folder = Folder::new("machine-goes");
    // It never gets to its job.
    let script = format!("echo up >&{PIPE}; while :; do :; done");
    let Some(path) = kernel(&folder, &script) else {
        return skip(Requirement::Machine, what, "no linux.uml");
    };
    for signal in ["INT", "TERM", "HUP", "KILL"] {
        let mut run = Run::start(&folder, &["lab", "up", "--vm"], Some(&path));
        let mut line = String::new();
        run.pipe.read_line(&mut line).unwrap();
        if line != "up\n" {
            let (_, stderr) = run.ended();
            assert!(is_not_to_be_had(&stderr), "{stderr}");
            return skip(Requirement::Machine, what, stderr);
        }
        run.wait_for_step("the small machine");
        run.signal(signal);
        let (status, stderr) = run.ended();
        assert!(status.signal().is_some(), "{signal}: {status}: {stderr}");
        assert!(stderr.contains("waiting for: the small machine (User Mode Linux"), "{stderr}");
    }
}

/// The programs of the control plane start, and never serve.
fn parts(folder: &Folder) -> String {
    let all = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns"];
    for name in all {
        program(folder, &format!("parts/bin/{name}"), "#!/bin/sh\nexec sleep 100000\n");
    }
    program(folder, "parts/v1.34.4/kube-proxy", "#!/bin/sh\nexec sleep 100000\n");
    folder.0.join("parts").to_str().unwrap().to_owned()
}

#[test]
fn nor_does_anything_of_it_stay_once_its_programs_run() {
    let what = "the start of a cluster";
    let folder = Folder::new("machine-programs");
    let parts = parts(&folder);
    let rows: [(&[&str], &str); 4] = [
        (&["--vm"], "TERM"),
        (&["--vm"], "KILL"),
        (&["--mode", "iptables"], "HUP"),
        (&["--mode", "iptables"], "KILL"),
    ];
    for (options, signal) in rows {
        let words = [&["lab", "up", "--parts", &parts], options].concat();
        let mut run = Run::start(&folder, &words, None);
        if let Err(stderr) = run.wait_for("waiting for: etcd and kube-apiserver") {
            let is_missing = stderr.contains("needs") || stderr.contains("cannot run");
            assert!(is_missing, "{words:?}: {stderr}");
            skip(Requirement::Machine, what, stderr);
            continue;
        }
        run.signal(signal);
        let (status, stderr) = run.ended();
        assert!(status.signal().is_some(), "{words:?}: {signal}: {status}: {stderr}");
    }
}

/// A command whose records are in a folder of its own, and whose processes hold the end of a pipe.
struct Run {
    child: Child,
    pipe: BufReader<PipeReader>,
    stderr: BufReader<ChildStderr>,
    said: String,
    records: std::path::PathBuf,
}

impl Run {
    fn start(folder: &Folder, words: &[&str], path: Option<&OsString>) -> Self {
        let (pipe, end) = io::pipe().unwrap();
        let records = folder.0.join("run");
        fs::create_dir_all(&records).unwrap();
        let is_root = Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0);
        let mount = if is_root { "mount --bind \"$RECORDS\" /run; " } else { "" };
        // A shell without a terminal has what it starts in the background ignore signals.
        let exec = "exec env --default-signal \"$@\"";
        let script = format!("set -e; exec {PIPE}>&1 >/dev/null; {mount}{exec}");
        let mut command = if is_root { Command::new("unshare") } else { Command::new("env") };
        command.args(is_root.then_some("--mount"));
        command.args(["sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_uturn-lab")]).args(words);
        command.env("RECORDS", &records).env("XDG_RUNTIME_DIR", &records);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        command.current_dir(root()).stdin(Stdio::null()).stdout(end).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(command);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, pipe: BufReader::new(pipe), stderr, said: String::new(), records }
    }

    fn wait_for_step(&mut self, step: &str) {
        self.wait_for(&format!("waiting for: {step}")).unwrap();
    }

    /// Waits until the command has said this. Fails with all that it said if it ends before.
    fn wait_for(&mut self, text: &str) -> Result<(), String> {
        while !self.said.contains(text) {
            if self.stderr.read_line(&mut self.said).unwrap() == 0 {
                return Err(self.said.clone());
            }
        }
        Ok(())
    }

    fn signal(&self, signal: &str) {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &process]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until the command and every process that came of it are gone, and its records with them.
    /// Returns how the command ended, and what it said.
    fn ended(mut self) -> (std::process::ExitStatus, String) {
        let status = self.child.wait().unwrap();
        self.stderr.read_to_string(&mut self.said).unwrap();
        let (tell, told) = channel();
        thread::spawn(move || tell.send(self.pipe.read_to_end(&mut Vec::new())));
        let closed = told.recv_timeout(LIMIT);
        closed.unwrap_or_else(|_| panic!("processes are left: {}", self.said)).unwrap();
        let records = fs::read_dir(self.records.join("uturn-lab"));
        let left = records.into_iter().flatten().map(|entry| entry.unwrap().path());
        let left: Vec<_> = left.filter(|path| path.is_dir()).collect();
        assert!(left.is_empty(), "{left:?}: {}", self.said);
        (status, self.said)
    }
}
