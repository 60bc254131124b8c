//! Real programs in a pod's place: started in its namespace, waited for until they serve.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader, Write as _};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::namespace::Namespace;
use super::state::Run;
use super::system::During;
use crate::LabError;

/// How long it may take until it serves.
const START: Duration = Duration::from_secs(60);

/// A program; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Program(Child);

impl Program {
    /// Starts it in a namespace, and waits until it says `ready`. What it says is kept in
    /// `log`.
    pub(super) fn start(
        run: &Run,
        space: &Namespace,
        command: Command,
        log: &Path,
        ready: &'static str,
        during: &str,
    ) -> Result<Self, LabError> {
        Self::start_by(run, |command| space.run(|| command.spawn()), command, log, ready, during)
    }

    /// The same, wherever `start` starts it.
    pub(super) fn start_by(
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
            // Ctrl-C is the lab's to handle: it ends this process when it is done with it.
            .process_group(0);
        let name = command.get_program().to_string_lossy().into_owned();
        let started = Self(start(&mut command).during(&format!("{during}: {name}"))?);
        // Its ends of the pipe are the only ones left.
        drop(command);
        run.started(started.0.id()).during(during)?;
        let file = File::create(log).during(during)?;
        let (ready_sender, ready_receiver) = sync_channel(1);
        let listens = thread::Builder::new().name("program".into());
        listens.spawn(move || listen(reader, file, ready, &ready_sender)).during(during)?;
        let why = match ready_receiver.recv_timeout(START) {
            Ok(()) => return Ok(started),
            Err(RecvTimeoutError::Disconnected) => "it ended".to_owned(),
            Err(RecvTimeoutError::Timeout) => {
                format!("it does not serve after {} s", START.as_secs())
            }
        };
        let printed = fs::read_to_string(log).unwrap_or_default();
        Err(LabError::Program { doing: during.into(), said: format!("{why}\n{printed}") })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has nothing to finish.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Keeps what it says, to its end, and tells when it is ready.
fn listen(reader: PipeReader, mut log: File, ready: &str, ready_sender: &SyncSender<()>) {
    let mut was_ready = false;
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        // What cannot be kept is missed only by who looks for a fault.
        let _ = writeln!(log, "{line}");
        if !was_ready && line.contains(ready) {
            was_ready = true;
            let _ = ready_sender.send(());
        }
    }
}
