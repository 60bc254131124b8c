//! Network namespaces.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

/// A network namespace, which is gone when this is dropped.
pub(crate) struct Space {
    holder: Child,
    life: Option<ChildStdin>,
}

impl Space {
    pub(crate) fn new() -> Self {
        let mut holder = Command::new("unshare")
            .args(["-n", "sh", "-c", "ip link set lo up; echo ready; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let life = holder.stdin.take();
        Self { holder, life }
    }

    /// The process by which tools find the namespace.
    pub(crate) fn pid(&self) -> u32 {
        self.holder.id()
    }

    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.pid())
    }

    /// A command that runs there, and ends with this process.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        let net = format!("--net={}", self.path());
        command.args(["--pdeathsig", "TERM", "nsenter", &net, program]);
        command
    }

    /// Runs a shell script there, and returns what it printed.
    pub(crate) fn sh(&self, script: &str) -> String {
        let output = self.command("sh").args(["-ec", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a closure there. Threads that it starts stay there.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            uturn_proxy::enter(&self.path()).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join().unwrap())
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        drop(self.life.take());
        let _ = self.holder.wait();
    }
}
