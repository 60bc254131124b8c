//! A load balancer of the pair: uturn, keepalived and conntrackd as the examples configure them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::space::Space;

/// How long a change may take to arrive.
const CHANGE: Duration = Duration::from_secs(600);

/// What a machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Daemon {
    Uturn,
    Keepalived,
    Conntrackd,
    Bird,
    /// The example's script `announce-while-healthy`.
    Announce,
}

/// A load balancer of the pair.
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) space: Space,
    folder: PathBuf,
    running: Vec<(Daemon, Child)>,
}

impl Machine {
    /// A machine with configuration files in a folder of its own.
    pub(crate) fn new(
        name: &'static str,
        space: Space,
        folder: &Path,
        files: &[(&str, String)],
    ) -> Self {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            let path = folder.join(file);
            fs::write(&path, text).unwrap();
            let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        Self { name, space, folder, running: Vec::new() }
    }

    /// The path of one of its files.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub(crate) fn start(&mut self, daemon: Daemon) {
        let command = match daemon {
            Daemon::Uturn => self.uturn(),
            Daemon::Keepalived => {
                let mut command = self.space.command("keepalived");
                command
                    .args(["--dont-fork", "--log-console", "--log-detail", "--no-syslog"])
                    .args(["--use-file", &self.path("keepalived.conf")])
                    .args(["--pid", &self.path("keepalived.pid")])
                    .args(["--vrrp_pid", &self.path("vrrp.pid")]);
                command
            }
            Daemon::Conntrackd => {
                let mut command = self.space.command("conntrackd");
                command.args(["-C", &self.path("conntrackd.conf")]);
                command
            }
            Daemon::Bird => {
                let mut command = self.space.command("bird");
                command.args(["-f", "-c", &self.path("bird.conf"), "-s", &self.path("bird.ctl")]);
                command
            }
            Daemon::Announce => self.space.command(&self.path("announce-while-healthy")),
        };
        self.spawn(daemon, command);
    }

    fn uturn(&self) -> Command {
        let mut command = self.space.command(env!("CARGO_BIN_EXE_uturn-lb"));
        command.args(["lb", "run", "-f", &self.path("lb.yaml")]);
        command
    }

    fn spawn(&mut self, daemon: Daemon, mut command: Command) {
        let log = File::options().create(true).append(true).open(self.log(daemon)).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.running.push((daemon, command.spawn().unwrap()));
    }

    /// Replaces uturn by another process of it, and waits until the first has ended.
    pub(crate) fn take_over(&mut self) {
        let at = self.running.iter().position(|(daemon, _)| *daemon == Daemon::Uturn).unwrap();
        let mut first = self.running.remove(at).1;
        let mut command = self.uturn();
        command.args(["--takeover", &first.id().to_string()]);
        self.spawn(Daemon::Uturn, command);
        let ended = first.wait().unwrap();
        assert!(ended.success(), "{ended}\n{}", self.logs());
    }

    /// Has another process of uturn take over, that finds no nft. Returns what it prints.
    pub(crate) fn fail_to_take_over(&self) -> String {
        let (_, first) = self.running.iter().find(|(it, _)| *it == Daemon::Uturn).unwrap();
        let mut command = self.space.command("env");
        command.args(["PATH=/nowhere", env!("CARGO_BIN_EXE_uturn-lb"), "lb", "run"]);
        command.args(["-f", &self.path("lb.yaml"), "--takeover", &first.id().to_string()]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Sends a signal to a daemon.
    pub(crate) fn signal(&self, daemon: Daemon, signal: &str) {
        let (_, child) = self.running.iter().find(|(running, _)| *running == daemon).unwrap();
        send(child, signal);
    }

    /// Waits until a daemon has ended.
    pub(crate) fn await_end(&mut self, daemon: Daemon) {
        let at = self.running.iter().position(|(running, _)| *running == daemon).unwrap();
        self.running.remove(at).1.wait().unwrap();
    }

    /// Starts a daemon again that is ending.
    pub(crate) fn restart(&mut self, daemon: Daemon) {
        self.await_end(daemon);
        self.start(daemon);
    }

    fn log(&self, daemon: Daemon) -> PathBuf {
        self.folder.join(format!("{daemon:?}.log"))
    }

    /// How often a daemon's log has a text.
    pub(crate) fn logged(&self, daemon: Daemon, text: &str) -> usize {
        fs::read_to_string(self.log(daemon)).unwrap_or_default().matches(text).count()
    }

    /// Whether the machine has the VIP.
    pub(crate) fn is_active(&self) -> bool {
        !self.space.sh("ip -o address show to 10.0.0.100").is_empty()
    }

    /// All that its daemons wrote.
    pub(crate) fn logs(&self) -> String {
        let log = |(daemon, _): &(Daemon, Child)| {
            let text = fs::read_to_string(self.log(*daemon)).unwrap_or_default();
            format!("--- {} {daemon:?}\n{text}", self.name)
        };
        self.running.iter().map(log).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for (daemon, child) in &mut self.running {
            // uturn would wait for connections whose clients it no longer hears.
            send(child, if *daemon == Daemon::Uturn { "KILL" } else { "TERM" });
            let _ = child.wait();
        }
    }
}

fn send(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    let _ = Command::new("kill").args(["-s", signal, &pid]).status();
}

/// Waits until something is so.
pub(crate) fn await_that(what: &str, mut is_so: impl FnMut() -> bool, logs: impl Fn() -> String) {
    let end = Instant::now() + CHANGE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}\n{}", logs());
        // Leaves the processor to those that it waits for.
        thread::park_timeout(Duration::from_millis(10));
    }
}
