//! A network namespace without a name.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::namespace::run_in;

/// A network namespace that a process holds. The process ends when this is dropped, and with this
/// program, however that ends; the namespace is gone with it.
#[derive(Debug)]
pub struct Held {
    holder: Child,
}

impl Held {
    /// Makes a network namespace, in which the loopback interface is up.
    ///
    /// # Errors
    /// When there can be none, as without root privileges.
    pub fn new() -> io::Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-ec", "ip link set lo up; echo ready; exec cat"])
            // The pipe closes with this process, and `cat` ends with the pipe. A Ctrl-C is not for
            // it: others are still to end in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = holder.stdout.take();
        let held = Self { holder };
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output).read_line(&mut line)?;
        }
        match line.as_str() {
            "ready\n" => Ok(held),
            _ => Err(io::Error::other("is this root?")),
        }
    }

    /// Returns the number of the process that holds the namespace. Tools find the namespace by it.
    pub fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Returns the path of the namespace's file.
    pub fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.pid())
    }

    /// Returns a command that runs the program that is its next argument in the namespace. The
    /// program ends with this process, however this process ends.
    pub fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).args(["setpriv", "--pdeathsig", "TERM"]);
        command
    }

    /// Runs a shell script in the namespace, and returns what it printed.
    ///
    /// # Errors
    /// When the script fails: its output on stderr.
    pub fn sh(&self, script: &str) -> io::Result<String> {
        let output = self.command().args(["sh", "-ec", script]).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(io::Error::other(format!("{script}: {}", text(&output.stderr))))
        }
    }

    /// Runs a closure in the namespace. Threads that it starts stay there.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        run_in(File::open(self.path())?, || Ok(work()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
