//! Programs that the comparison starts: the place that they run in, and their CPU time and memory.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cost::{Cost, cost_of};
use crate::failure::Failure;
use crate::network::Space;

/// The longest time from SIGTERM to a program's end. After it the program is killed.
const END: Duration = Duration::from_secs(5);

/// The namespace and the core that a program runs in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) space: &'a Space,
    pub(crate) core: u32,
}

/// A running program. It is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
}

impl Place<'_> {
    /// Returns a command that runs there. The program ends with this process, however this process
    /// ends.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        // Other programs may be at work on the machine; contestants, clients and targets go first.
        let mut command = self.space.command(-5);
        command.args(["taskset", "-c", &self.core.to_string()]).arg(program);
        command
    }
}

impl Running {
    /// Starts a program. Its output goes to `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, Failure> {
        let doing = || format!("start {command:?}");
        let file = || fs::File::options().create(true).append(true).open(log);
        let stdout = file().map_err(Failure::of(doing()))?;
        let stderr = file().map_err(Failure::of(doing()))?;
        let doing = doing();
        // A Ctrl-C is meant for this process, which ends programs in order.
        let child = command
            .process_group(0)
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(Failure::of(doing))?;
        Ok(Self { child })
    }

    /// Returns the CPU time of the program and its children.
    pub(crate) fn cost(&self) -> Result<Cost, Failure> {
        let mut sum = Cost::default();
        for process in self.processes() {
            sum = sum + cost_of(process)?;
        }
        Ok(sum)
    }

    /// Returns the memory of the program and its children, in kB. Memory that several share counts
    /// once.
    pub(crate) fn memory(&self) -> Result<u64, Failure> {
        let mut sum = 0;
        for process in self.processes() {
            let file = format!("/proc/{process}/smaps_rollup");
            let text = fs::read_to_string(&file).map_err(Failure::of(format!("read {file}")))?;
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
            let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
            sum += kilobytes.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    /// Returns the resident memory of the program without its children, in kB.
    pub(crate) fn resident(&self) -> Result<u64, Failure> {
        let file = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(&file).map_err(Failure::of(format!("read {file}")))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        kilobytes.ok_or_else(|| Failure(format!("{file} has no VmRSS: the program has ended")))
    }

    /// Returns the number of descriptors that the program has open.
    pub(crate) fn descriptors(&self) -> Result<usize, Failure> {
        let folder = format!("/proc/{}/fd", self.child.id());
        let all = fs::read_dir(&folder).map_err(Failure::of(format!("read {folder}")))?;
        Ok(all.count())
    }

    fn processes(&self) -> Vec<u32> {
        let first = self.child.id();
        let file = format!("/proc/{first}/task/{first}/children");
        let children = fs::read_to_string(file).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|number| number.parse().ok());
        std::iter::once(first).chain(children).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let end = Instant::now() + END;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program to its end.
pub(crate) fn run(words: &[&str]) -> Result<(), Failure> {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let line = words.join(" ");
    let output = output.map_err(Failure::of(format!("run {line}")))?;
    if output.status.success() {
        Ok(())
    } else {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Failure(format!("`{line}` failed: {why}")))
    }
}
