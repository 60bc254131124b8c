//! Programs that the comparison starts: where they run, and what they cost.

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

/// How long a program may take to end after it was asked to.
const END: Duration = Duration::from_secs(5);

/// Where a program runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) space: &'a Space,
    pub(crate) core: u32,
}

/// A program that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
}

impl Place<'_> {
    /// A command that runs there. It ends with this process, whatever ends this process.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        // Others may be at work on the machine; what is compared comes first.
        let mut command = self.space.command(-5);
        command.args(["taskset", "-c", &self.core.to_string()]).arg(program);
        command
    }
}

impl Running {
    /// Starts a program. What it writes goes to `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, Failure> {
        let doing = || format!("start {command:?}");
        let file = || fs::File::options().create(true).append(true).open(log);
        let stdout = file().map_err(Failure::of(doing()))?;
        let stderr = file().map_err(Failure::of(doing()))?;
        let doing = doing();
        // A Ctrl-C is for this process, which ends programs in order.
        let child = command
            .process_group(0)
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(Failure::of(doing))?;
        Ok(Self { child })
    }

    /// The time for which the program and its children were on a core.
    pub(crate) fn cost(&self) -> Result<Cost, Failure> {
        let mut sum = Cost::default();
        for process in self.processes() {
            sum = sum + cost_of(process)?;
        }
        Ok(sum)
    }

    /// The memory of the program and its children, in kB; what several share counts once.
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

    /// The memory of the program itself, in kB, as the kernel counts it.
    pub(crate) fn resident(&self) -> Result<u64, Failure> {
        let file = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(&file).map_err(Failure::of(format!("read {file}")))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        kilobytes.ok_or_else(|| Failure(format!("{file} has no VmRSS: the program has ended")))
    }

    /// How many descriptors the program has open.
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
    match output.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Failure(format!("`{line}` failed: {why}")))
        }
    }
}
