//! The load balancer as a process of its own, `uturn lb run`, and its events.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::fs::{OFlags, fcntl_setfl};
use uturn_lb::event::Event;
use uturn_model::LoadBalancer;
use uturn_snapshot::write_load_balancers;

use super::layer_4::Layer4;
use crate::LabError;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::run::state::Run;

/// The load balancer process. It ends when this is dropped or when the lab's process dies, because
/// its standard input is closed then.
#[derive(Debug)]
pub(crate) struct BalancerProcess {
    child: Child,
    life: Option<ChildStdin>,
    events: ChildStdout,
    unread: Vec<u8>,
    log: PathBuf,
}

impl BalancerProcess {
    /// Starts the process in the namespace of its load balancers.
    pub(crate) fn start(
        run: &Run,
        program: &Path,
        all: &[LoadBalancer],
        space: &Namespace,
        name: &str,
        layer_4: Layer4,
    ) -> Result<Self, LabError> {
        let during = "start the load balancer";
        let file = run.file(&format!("load-balancers-{name}.yaml"));
        let log = run.file(&format!("load-balancer-{name}.log"));
        fs::write(&file, write_load_balancers(all)).during(during)?;
        let mut child = Command::new(program)
            .args(["lb", "run", "--netns", space.name(), "--until-stdin-closes", "--events"])
            .args((layer_4 == Layer4::Rules).then_some("--no-layer-4"))
            .arg("-f")
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).during(during)?)
            // The lab handles Ctrl-C: it ends this process when it is no longer needed.
            .process_group(0)
            .spawn()
            .during(&format!("{during}: {}", program.display()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (life, events) = pipes.expect("both were asked for");
        let balancer = Self { child, life: Some(life), events, unread: Vec::new(), log };
        run.started(balancer.child.id()).during(during)?;
        fcntl_setfl(&balancer.events, OFlags::NONBLOCK).during(during)?;
        Ok(balancer)
    }

    /// Returns the events since the last call.
    pub(crate) fn events(&mut self) -> Result<Vec<Event>, LabError> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.events.read(&mut bytes) {
                Ok(0) => return Err(self.died()),
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).during("hear from the load balancer"),
            }
        }
        let Some(end) = self.unread.iter().rposition(|b| *b == b'\n') else {
            return Ok(Vec::new());
        };
        let lines: Vec<u8> = self.unread.drain(..=end).collect();
        let lines = String::from_utf8_lossy(&lines);
        let read = |line: &str| {
            Event::from_json(line).ok_or_else(|| LabError::Program {
                doing: "understand the load balancer".into(),
                reason: line.to_owned(),
            })
        };
        lines.lines().map(read).collect()
    }

    fn died(&mut self) -> LabError {
        let status = self.child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        LabError::Program {
            doing: "keep the load balancer running".into(),
            reason: format!("{status}\n{log}"),
        }
    }
}

impl AsFd for BalancerProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

impl Drop for BalancerProcess {
    fn drop(&mut self) {
        drop(self.life.take());
        // The process has nothing to finish.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Maps the load balancer's connections to flows.
#[derive(Debug, Default)]
pub(crate) struct ConnectionOwners {
    flows: HashMap<u64, usize>,
}

/// The meaning of an event for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowEvent {
    /// A target was picked first.
    Picked(SocketAddr),
    /// A target did not answer.
    TimedOut(SocketAddr),
    /// No target was picked: the load balancer answered on its own.
    TurnedAway,
    /// An event that is not counted.
    Other,
}

impl ConnectionOwners {
    /// Records an event. A new connection belongs to the `current` flow.
    pub(crate) fn record(
        &mut self,
        event: &Event,
        current: Option<usize>,
    ) -> Option<(usize, FlowEvent)> {
        let (connection, seen) = match event {
            Event::Ready { .. }
            | Event::Reloaded { .. }
            | Event::Health { .. }
            | Event::Resting { .. }
            | Event::Programmed { .. }
            | Event::NotProgrammed { .. } => return None,
            Event::Pick { connection, target, .. } => (connection, FlowEvent::Picked(*target)),
            Event::Timeout { connection, target } => (connection, FlowEvent::TimedOut(*target)),
            Event::Refused { connection, .. }
            | Event::Redirected { connection, .. }
            | Event::Answered { connection, .. }
            | Event::Passed { connection, .. } => (connection, FlowEvent::Other),
            Event::Failed { connection, .. } => {
                let is_new = !self.flows.contains_key(connection);
                (connection, if is_new { FlowEvent::TurnedAway } else { FlowEvent::Other })
            }
        };
        let flow = match self.flows.get(connection) {
            Some(flow) => *flow,
            None => *self.flows.entry(*connection).or_insert(current?),
        };
        Some((flow, seen))
    }
}
