//! Real programs in the namespaces of pods: starts them and waits until they serve.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader, Write as _};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::interrupt;
use super::state::Run;
use crate::LabError;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::kernel::wait::POLL_INTERVAL;

/// The longest time until a program serves, which also suffices in a small machine on a busy host.
pub(crate) const START: Duration = Duration::from_secs(300);

/// The number of lines that are shown of the log of a program that ended.
const LAST_LINES: usize = 10;

/// A running program. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Program(Child);

impl Program {
    /// Starts a program in a namespace and waits until its output contains `ready`. Writes its
    /// output to `log`.
    pub(crate) fn start(
        run: &Run,
        space: &Namespace,
        command: Command,
        log: &Path,
        ready: &'static str,
        during: &str,
    ) -> Result<Self, LabError> {
        Self::start_by(run, |command| space.run(|| command.spawn()), command, log, ready, during)
    }

    /// Like [`Program::start`], but `start` spawns the process.
    pub(crate) fn start_by(
        run: &Run,
        start: impl FnOnce(&mut Command) -> io::Result<Child>,
        mut command: Command,
        log: &Path,
        ready: &'static str,
        during: &str,
    ) -> Result<Self, LabError> {
        let (reader, writer) = io::pipe().during(during)?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone().during(during)?)
            .stderr(writer)
            // The lab handles Ctrl-C: it ends this process when it is no longer needed.
            .process_group(0);
        let name = command.get_program().to_string_lossy().into_owned();
        let started = Self(start(&mut command).during(&format!("{during}: {name}"))?);
        // Closes this process's copies of the pipe's write end.
        drop(command);
        run.started(started.0.id()).during(during)?;
        let file = File::create(log).during(during)?;
        let (ready_sender, ready_receiver) = sync_channel(1);
        let listens = thread::Builder::new().name("program".into());
        listens.spawn(move || listen(reader, file, ready, &ready_sender)).during(during)?;
        let limit = Instant::now() + START;
        let why = loop {
            match ready_receiver.recv_timeout(POLL_INTERVAL) {
                Ok(()) => return Ok(started),
                Err(RecvTimeoutError::Disconnected) => break "it ended".to_owned(),
                Err(RecvTimeoutError::Timeout) if Instant::now() > limit => {
                    break format!("it does not serve after {} s", START.as_secs());
                }
                Err(RecvTimeoutError::Timeout) => interrupt::check()?,
            }
        };
        let printed = fs::read_to_string(log).unwrap_or_default();
        Err(LabError::Program { doing: during.into(), reason: format!("{why}\n{printed}") })
    }
}

impl Program {
    /// Fails with the end of the log if the program has ended.
    pub(crate) fn check(&mut self, log: &Path, during: &str) -> Result<(), LabError> {
        let Some(status) = self.0.try_wait().during(during)? else { return Ok(()) };
        let printed = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = printed.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        let reason = format!("it ended with {status}\n{last}");
        Err(LabError::Program { doing: during.into(), reason })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program has nothing to finish.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a program's output to `log` until the program ends, and sends a message when it is ready.
fn listen(reader: PipeReader, mut log: File, ready: &str, ready_sender: &SyncSender<()>) {
    let mut was_ready = false;
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        // The log only serves to find errors, so a failed write is ignored.
        let _ = writeln!(log, "{line}");
        if !was_ready && line.contains(ready) {
            was_ready = true;
            let _ = ready_sender.send(());
        }
    }
}
