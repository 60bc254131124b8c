//! Keeps the kernel's table in line with the configuration and the health of targets.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use uturn_lb::event::{Event, ForwardedTarget};
use uturn_lb::nft::{Forwarded, Ruleset, deletion};
use uturn_model::{Family, Protocol};

use super::claim::Claim;
use super::conntrack::{Connection, Conntrack};
use super::endings::Endings;
use super::{Command, Endpoint, nft};
use crate::error::StartError;
use crate::process::Process;

/// The time until a change that the kernel refused is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The time between two counts of open connections while the process stops.
const COUNT: Duration = Duration::from_millis(100);

/// The time to wait when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// The kernel's table, and the state that it should have.
#[derive(Debug)]
pub(super) struct Forwarder {
    process: Arc<Process>,
    listeners: Vec<Forwarded>,
    /// The claim to the table, held while the table belongs to this process.
    claim: Option<Claim>,
    /// The rules that the kernel has; `None` before the first listener.
    loaded: Option<Ruleset>,
    /// The time when the table is to be programmed, if it is out of date.
    due: Option<Instant>,
    endings: Endings,
    /// The targets of UDP listeners that died. Their flows move to other targets at once, because
    /// such a client sees no connection break and continues to send.
    dead: HashSet<Endpoint>,
    /// The decisions on targets that the table does not have yet: whether they are alive.
    decided: HashMap<Endpoint, bool>,
}

impl Forwarder {
    pub(super) fn new(process: Arc<Process>) -> Self {
        Self {
            process,
            listeners: Vec::new(),
            claim: None,
            loaded: None,
            due: None,
            endings: Endings::default(),
            dead: HashSet::new(),
            decided: HashMap::new(),
        }
    }

    /// Follows commands until one says to stop, or to leave the table to another process. A table
    /// that exists at the start was left by a killed process, unless this one `takes_over`.
    pub(super) fn run(mut self, commands: &Receiver<Command>, takes_over: bool) {
        let mut has_looked = takes_over;
        let drain = loop {
            let next = self.due.into_iter().chain(self.endings.next()).min();
            let wait = next.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
            match commands.recv_timeout(wait) {
                Ok(Command::Load(listeners, drain, answer)) => {
                    // The sender waits for the answer.
                    let _ = answer.send(self.load(listeners, drain));
                    if !has_looked && self.loaded.is_none() {
                        delete_leftover();
                    }
                    has_looked = true;
                }
                // The next round programs the result of all decisions together.
                Ok(Command::Health(endpoint, alive)) => self.set_alive(endpoint, alive),
                Ok(Command::Stop(drain)) => break drain,
                Ok(Command::Leave) => return,
                Err(RecvTimeoutError::Disconnected) => break Duration::ZERO,
                Err(RecvTimeoutError::Timeout) => self.act(),
            }
        };
        self.stop(drain, commands);
    }

    /// Serves other listeners.
    fn load(&mut self, mut listeners: Vec<Forwarded>, drain: Duration) -> Result<(), StartError> {
        let failed = |source| StartError { doing: "set up layer 4".into(), source };
        if listeners.is_empty() && self.loaded.is_none() {
            return Ok(());
        }
        let known: HashMap<Endpoint, bool> = self.listeners.iter().flat_map(endpoints).collect();
        for listener in &mut listeners {
            // Until something is decided, a target counts as alive.
            let alive = |(endpoint, _)| known.get(&endpoint).copied().unwrap_or(true);
            listener.alive = endpoints(listener).map(alive).collect();
        }
        for family in Family::BOTH {
            if listeners.iter().any(|listener| Family::of(listener.vip) == family) {
                nft::check_forwarding(family).map_err(failed)?;
            }
        }
        if self.claim.is_none() {
            self.claim = Some(Claim::new().map_err(failed)?);
        }
        let before = std::mem::replace(&mut self.listeners, listeners);
        if let Err(error) = self.program() {
            self.listeners = before;
            return Err(failed(error));
        }
        self.due = None;
        self.report_programmed();
        let all = |listeners: &[Forwarded]| -> HashSet<Endpoint> {
            listeners.iter().flat_map(endpoints).map(|(endpoint, _)| endpoint).collect()
        };
        self.endings.record(&all(&before), &all(&self.listeners), Instant::now(), drain);
        Ok(())
    }

    fn set_alive(&mut self, endpoint: Endpoint, alive: bool) {
        let is_meant = |listener: &&mut Forwarded| {
            (listener.address(), listener.transport()) == (endpoint.listener, endpoint.transport)
        };
        for listener in self.listeners.iter_mut().filter(is_meant) {
            let Forwarded { listener, alive: health, .. } = listener;
            let targets = listener.rules.first().into_iter().flat_map(|rule| &rule.targets);
            for (known, target) in health.iter_mut().zip(targets) {
                if target.address == endpoint.target && *known != alive {
                    *known = alive;
                    self.decided.insert(endpoint, alive);
                    self.due.get_or_insert_with(Instant::now);
                }
            }
        }
        if !alive && endpoint.transport == Protocol::Udp {
            self.dead.insert(endpoint);
        } else {
            self.dead.remove(&endpoint);
        }
    }

    /// Performs what is due.
    fn act(&mut self) {
        let now = Instant::now();
        if self.due.is_some_and(|at| at <= now) {
            match self.program() {
                Ok(()) => {
                    self.due = None;
                    let dead = std::mem::take(&mut self.dead);
                    self.end(&dead);
                    self.report_programmed();
                }
                Err(error) => {
                    self.due = Some(now + AGAIN);
                    self.report(&error);
                }
            }
        }
        let ended = self.endings.take_due(now);
        self.end(&ended);
    }

    /// Programs the table as it should be.
    fn program(&mut self) -> io::Result<()> {
        let wanted = match &self.loaded {
            None => Ruleset::new(&self.listeners),
            Some(loaded) => loaded.next(&self.listeners),
        }
        .map_err(io::Error::other)?;
        match &self.loaded {
            None => nft::load(wanted.text())?,
            Some(loaded) => {
                if let Some(change) = wanted.change_from(loaded) {
                    // If something else has changed the table, it is made anew.
                    nft::load(change).or_else(|_| nft::load(wanted.text()))?;
                }
            }
        }
        self.loaded = Some(wanted);
        Ok(())
    }

    /// Ends all connections to these targets.
    fn end(&self, endpoints: &HashSet<Endpoint>) {
        if endpoints.is_empty() {
            return;
        }
        let is_meant = |connection: &Connection| endpoints.contains(&connection.endpoint);
        let ended = Conntrack::open().and_then(|mut conntrack| {
            let meant: Vec<_> = conntrack.connections()?.into_iter().filter(is_meant).collect();
            meant.iter().try_for_each(|connection| conntrack.delete(connection))
        });
        if let Err(error) = ended {
            self.report(&error);
        }
    }

    /// Reports that the kernel follows the decisions on targets.
    fn report_programmed(&mut self) {
        if self.decided.is_empty() {
            return;
        }
        let target = |(Endpoint { listener, transport, target }, alive)| {
            let protocol = transport.lower().to_owned();
            ForwardedTarget { listener, protocol, target, alive }
        };
        let mut targets: Vec<_> = self.decided.drain().map(target).collect();
        targets.sort_unstable_by_key(|of| (of.listener, of.protocol.clone(), of.target));
        self.process.report_change(&Event::Programmed { targets });
    }

    fn report(&self, error: &io::Error) {
        self.process.report_change(&Event::NotProgrammed { why: error.to_string() });
    }

    /// Lets open connections end, and deletes the table. Another command to stop shortens the time.
    fn stop(self, drain: Duration, commands: &Receiver<Command>) {
        let Some(loaded) = &self.loaded else { return };
        let mut end = Instant::now() + drain;
        if !drain.is_zero()
            && let Some(text) = loaded.closed().change_from(loaded)
        {
            if let Err(error) = nft::load(text) {
                self.report(&error);
            }
            let mut count = Instant::now();
            loop {
                let now = Instant::now();
                if now >= end {
                    break;
                }
                if now >= count {
                    if !self.has_open_connections() {
                        break;
                    }
                    count = now + COUNT;
                }
                let wait = count.min(end).saturating_duration_since(now);
                match commands.recv_timeout(wait) {
                    Ok(Command::Stop(drain)) => end = end.min(Instant::now() + drain),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                }
            }
        }
        if let Err(error) = nft::load(deletion()) {
            self.report(&error);
        }
    }

    /// Returns whether a TCP connection is open. UDP flows have no end that conntrack sees.
    fn has_open_connections(&self) -> bool {
        let ours: Vec<_> = self.listeners.iter().map(|l| (l.address(), l.transport())).collect();
        let is_open = |connection: &Connection| {
            let Endpoint { listener, transport, .. } = connection.endpoint;
            connection.is_open && ours.contains(&(listener, transport))
        };
        let connections = Conntrack::open().and_then(|mut conntrack| conntrack.connections());
        match connections {
            Ok(connections) => connections.iter().any(is_open),
            Err(error) => {
                self.report(&error);
                false
            }
        }
    }
}

/// Deletes the table that a killed process has left, unless another process has claimed it.
/// Failures do not matter, as this process may need neither nft nor the right to use it.
fn delete_leftover() {
    if Claim::new().is_ok() {
        let _ = nft::load(deletion());
    }
}

/// Returns each target with its health.
fn endpoints(forwarded: &Forwarded) -> impl Iterator<Item = (Endpoint, bool)> {
    let (listener, transport) = (forwarded.address(), forwarded.transport());
    let endpoint = move |target| Endpoint { listener, transport, target };
    let alive = forwarded.alive.iter().copied().chain(std::iter::repeat(true));
    forwarded.targets().map(endpoint).zip(alive)
}
