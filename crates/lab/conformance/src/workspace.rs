//! The resources that the stage creates on this machine: namespaces, processes, a folder. They are
//! removed when their owner is dropped. The next run removes those that a killed run left.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use uturn_model::Version;

use crate::fault::{During as _, Fault, Outcome};

/// The prefix of every namespace of the stage. The number of its process follows.
const PREFIX: &str = "uturn-conf-";

/// The resources of one run.
#[derive(Debug)]
pub(crate) struct Workspace {
    id: u32,
    programs: PathBuf,
    folder: PathBuf,
    stopped: Arc<AtomicBool>,
    links: Cell<u16>,
}

impl Workspace {
    pub(crate) fn new(programs: &Path, work: &Path) -> Outcome<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&stopped)).during("listen for signals")?;
        }
        sweep(work)?;
        let id = std::process::id();
        let folder = work.join(format!("run-{id}"));
        fs::create_dir_all(&folder).during(folder.display())?;
        Ok(Self { id, programs: programs.to_owned(), folder, stopped, links: Cell::new(0) })
    }

    /// Returns the folder for files that are needed during the run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a number that no other link has, since the kernel may remove links late.
    pub(crate) fn next_link(&self) -> u16 {
        self.links.set(self.links.get() + 1);
        self.links.get()
    }

    /// Returns a flag that becomes true once the user interrupts the run.
    pub(crate) fn stopped(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    /// Fails once the user has interrupted the run.
    pub(crate) fn check(&self) -> Outcome<()> {
        if self.stopped.load(Ordering::SeqCst) { Err(Fault::new("interrupted")) } else { Ok(()) }
    }

    /// Creates a network namespace.
    pub(crate) fn namespace(&self, name: &str) -> Outcome<Namespace> {
        let name = format!("{PREFIX}{}-{name}", self.id);
        run(Command::new("ip").args(["netns", "add", &name]), "")?;
        let namespace = Namespace { name };
        namespace.ip("link set lo up\n")?;
        Ok(namespace)
    }

    /// Returns a command that runs a program of the stage in a namespace.
    pub(crate) fn program(&self, namespace: &Namespace, name: &str) -> Command {
        namespace.command(&self.programs.join("bin").join(name))
    }

    /// Returns a command that runs a version of kube-proxy in a namespace.
    pub(crate) fn kube_proxy(&self, namespace: &Namespace, version: Version) -> Command {
        namespace.command(&self.programs.join(version.to_string()).join("kube-proxy"))
    }

    /// Starts a program with its output in a file of the folder.
    pub(crate) fn start(&self, command: &mut Command, what: &str) -> Outcome<Running> {
        let path = self.folder.join(format!("{what}.log"));
        let log = File::create(&path).during(path.display())?;
        let again = log.try_clone().during(path.display())?;
        let child = command.stdin(Stdio::null()).stdout(log).stderr(again).spawn();
        Ok(Running { child: child.during(what)?, log: Some(path) })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a command that runs a program in the namespace and is killed when this process ends.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "ip", "netns", "exec", &self.name]);
        command.arg(program);
        command
    }

    /// Runs lines of `ip -batch` in the namespace.
    pub(crate) fn ip(&self, lines: &str) -> Outcome<()> {
        run(Command::new("ip").args(["-n", &self.name, "-batch", "-"]), lines).map(|_| ())
    }

    /// Runs a program in the namespace and returns its output.
    pub(crate) fn output(&self, words: &[&str]) -> Outcome<String> {
        run(self.command(Path::new(words[0])).args(&words[1..]), "")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The next run's sweep removes what could not be removed now.
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    log: Option<PathBuf>,
}

impl Running {
    /// Starts a process with pipes for input and output.
    pub(crate) fn with_pipes(command: &mut Command, what: &str) -> Outcome<Self> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().during(what)?;
        Ok(Self { child, log: None })
    }

    /// Fails if the process has ended, with the end of its log.
    pub(crate) fn check(&mut self) -> Outcome<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                Err(Fault::new(format!("ended with {status}:\n{}", self.last_lines())))
            }
            Err(error) => Err(Fault::new(error.to_string())),
        }
    }

    /// Returns the end of the log.
    pub(crate) fn last_lines(&self) -> String {
        let text = self.log.as_ref().and_then(|log| fs::read_to_string(log).ok());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command with this input. Returns its output, or fails with its standard error.
pub(crate) fn run(command: &mut Command, input: &str) -> Outcome<String> {
    let line = format!("{command:?}").replace('"', "");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().during(&line)?;
    let mut stdin = child.stdin.take().expect("it is piped");
    let text = input.to_owned();
    // Write on a thread, since both sides may write more than a pipe holds. A program that stops
    // reading early reports its own error.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(text.as_bytes());
    });
    let mut stderr = child.stderr.take().expect("it is piped");
    let words = std::thread::spawn(move || {
        let mut words = String::new();
        let _ = stderr.read_to_string(&mut words);
        words
    });
    let mut printed = Vec::new();
    child.stdout.take().expect("it is piped").read_to_end(&mut printed).during(&line)?;
    let status = child.wait().during(&line)?;
    let _ = writer.join();
    let words = words.join().unwrap_or_default();
    if !status.success() {
        return Err(Fault::new(format!("`{line}` ended with {status}: {}", words.trim())));
    }
    String::from_utf8(printed).map_err(|_| Fault::new(format!("`{line}` printed no text")))
}

/// Removes the namespaces and folders that dead runs left.
fn sweep(work: &Path) -> Outcome<()> {
    for line in run(Command::new("ip").args(["netns", "list"]), "")?.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let id = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if id.is_some_and(is_gone) {
            run(Command::new("ip").args(["netns", "delete", name]), "")?;
        }
    }
    let Ok(entries) = fs::read_dir(work) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix("run-").is_some_and(is_gone) {
            let path = entry.path();
            fs::remove_dir_all(&path).during(path.display())?;
        }
    }
    Ok(())
}

/// Returns whether no process of this number runs this program.
fn is_gone(id: &str) -> bool {
    // The kernel keeps 15 bytes of a process name.
    let name = &env!("CARGO_PKG_NAME")[..15];
    id.parse::<u32>().is_ok()
        && fs::read_to_string(format!("/proc/{id}/comm")).map_or(true, |comm| comm.trim() != name)
}
