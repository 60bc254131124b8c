//! The load balancer as a whole: its threads, its listeners, and changes of its configuration.

mod load;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use uturn_lb::config::{BalancerConfig, Config};
use uturn_lb::event::Event;

use self::load::{Loaded, Renewal};
use crate::access_log::AccessLog;
use crate::admin::{Admin, Control};
use crate::error::StartError;
use crate::l4::{self, Layer4};
use crate::probe::Prober;
use crate::process::{Detail, Observer, Process};
use crate::state::Slot;
use crate::takeover::{Inherited, Predecessor};
use crate::worker_thread::{self, Command};

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 4096;

/// How long workers may take to accept the first connections.
const START: Duration = Duration::from_secs(5);

/// How long answers at the admin address may take when everything else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// How a load balancer is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which events its observer takes.
    pub detail: Detail,
    /// Whether it programs the kernel with TCP and UDP listeners. Without that, their targets are
    /// probed, and no more.
    pub layer_4: bool,
    /// What the admin address needs to show the configuration and to have it changed.
    pub control: Option<Control>,
}

impl Options {
    fn new(detail: Detail, layer_4: bool) -> Self {
        Self { detail, layer_4, control: None }
    }
}

/// A load balancer that serves.
#[derive(Debug)]
pub struct Server {
    workers: Vec<Thread>,
    prober: Prober,
    listeners: HashMap<SocketAddr, Arc<Slot>>,
    /// What is served, as it was configured.
    loaded: Loaded,
    /// How many listeners the latest change was about.
    changed: usize,
    process: Arc<Process>,
    admin: Admin,
    /// `None` where something else forwards layer 4.
    layer_4: Option<Layer4>,
    /// Whether another process may have layer 4 now, that was this one's.
    has_left_layer_4: bool,
    /// Sockets of the process that this one takes over from, until it has.
    inherited: Inherited,
}

/// Ends the time that open connections have while a [`Server`] stops.
#[derive(Clone, Debug)]
pub struct Stopper {
    workers: Vec<mpsc::UnboundedSender<Command>>,
    layer_4: Option<l4::Stopper>,
}

impl Stopper {
    /// Cuts what is open.
    pub fn stop(&self) {
        for worker in &self.workers {
            // A worker that is gone has nothing open.
            let _ = worker.send(Command::Stop(Duration::ZERO));
        }
        if let Some(layer_4) = &self.layer_4 {
            layer_4.stop();
        }
    }
}

#[derive(Debug)]
struct Thread {
    commands: mpsc::UnboundedSender<Command>,
    handle: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    /// Starts to serve. `observer` takes events as detailed as it wants them.
    ///
    /// # Errors
    /// When a listener cannot listen, or probes cannot be sent; then nothing is served.
    pub fn start(config: &Config, observer: Observer, detail: Detail) -> Result<Self, StartError> {
        Self::start_with(config, observer, Options::new(detail, true))
    }

    /// The same, but for what the kernel forwards: the targets of TCP and UDP listeners are probed,
    /// and no more.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_without_layer_4(
        config: &Config,
        observer: Observer,
        detail: Detail,
    ) -> Result<Self, StartError> {
        Self::start_with(config, observer, Options::new(detail, false))
    }

    /// Starts to serve with these options.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_with(
        config: &Config,
        observer: Observer,
        options: Options,
    ) -> Result<Self, StartError> {
        Self::start_from(None, config, observer, options)
    }

    /// Starts to serve in the place of another process, which then stops. No connection is lost,
    /// and it serves on if this one fails.
    ///
    /// # Errors
    /// As [`Server::start`], and when there is no such process, or it does not let this one take
    /// over.
    pub fn take_over(
        process: u32,
        config: &Config,
        observer: Observer,
        options: Options,
    ) -> Result<Self, StartError> {
        let predecessor = Predecessor::find(process)?;
        let inherited = predecessor.sockets()?;
        // The kernel's rules are the other process's until it leaves them. The admin address is
        // answered here last, when nothing can fail any more: `/healthz` is right all the time.
        let mut first = l4::without_forwarded(config);
        first.process.admin = None;
        let mut server = Self::start_from(Some(inherited), &first, observer, options)?;
        predecessor.leave_kernel()?;
        server.reload(config)?;
        server.inherited = Inherited::default();
        predecessor.stop()?;
        Ok(server)
    }

    /// Starts to serve with sockets of a process before.
    fn start_from(
        inherited: Option<Inherited>,
        config: &Config,
        observer: Observer,
        options: Options,
    ) -> Result<Self, StartError> {
        let Options { detail, layer_4: with_layer_4, control } = options;
        let takes_over = inherited.is_some();
        let most = config.process.connections;
        let process = Arc::new(Process::new(observer, detail, most, AccessLog::start()?));
        let prober = Prober::start(Arc::clone(&process))?;
        let layer_4 =
            with_layer_4.then(|| Layer4::start(Arc::clone(&process), takes_over)).transpose()?;
        let mut server = Self {
            workers: Vec::new(),
            prober,
            listeners: HashMap::new(),
            loaded: Loaded::new(),
            changed: 0,
            process: Arc::clone(&process),
            admin: Admin::start(Arc::clone(&process), control)?,
            layer_4,
            has_left_layer_4: false,
            inherited: inherited.unwrap_or_default(),
        };
        let count = config.process.workers.unwrap_or_else(cores);
        for number in 0..count {
            server.workers.push(Thread::start(number, Arc::clone(&process))?);
        }
        server.serve(config, Renewal::All)?;
        process.report_change(&Event::Ready { listeners: listening(config, with_layer_4) });
        // From here on `/healthz` finds every listener accepting. A worker that is late says so there.
        server.is_responsive(START);
        Ok(server)
    }

    /// Serves as another configuration says. Connections stay open, whatever changes; those of
    /// listeners that are no more are served to their end.
    ///
    /// # Errors
    /// When a new listener cannot listen, or probes cannot be sent; then nothing changes.
    pub fn reload(&mut self, config: &Config) -> Result<(), StartError> {
        self.reload_with(config, Renewal::All)
    }

    /// The same, but listeners that are as they were stay as they are: files that they name are
    /// not read again.
    ///
    /// # Errors
    /// As [`Server::reload`].
    pub fn reload_changed(&mut self, config: &Config) -> Result<(), StartError> {
        self.reload_with(config, Renewal::Changed)
    }

    fn reload_with(&mut self, config: &Config, renewal: Renewal) -> Result<(), StartError> {
        let served = self.serve(config, renewal);
        self.process.count_reload(served.is_ok());
        served
    }

    /// How many listeners the latest reload made anew, or removed.
    pub fn changed_listeners(&self) -> usize {
        self.changed
    }

    /// Counts a reload that failed before there was a configuration to serve.
    pub fn count_failed_reload(&self) {
        self.process.count_reload(false);
    }

    /// The version of the configuration that is served; `None` without a [`Control`].
    pub fn version(&self) -> Option<String> {
        self.admin.version()
    }

    /// Whether every worker follows commands within this time.
    pub fn is_responsive(&self, limit: Duration) -> bool {
        let (answer, answers) = std::sync::mpsc::channel();
        for worker in &self.workers {
            worker.tell(Command::Answer(answer.clone()));
        }
        let end = Instant::now() + limit;
        let wait = |_| answers.recv_timeout(end.saturating_duration_since(Instant::now()));
        self.workers.iter().map(wait).all(|answer| answer.is_ok())
    }

    /// Duplicates of all listening sockets, for a process that takes over.
    ///
    /// # Errors
    /// When this process may not have so many descriptors.
    pub fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let (taker, taken) = std::sync::mpsc::channel();
        for worker in &self.workers {
            worker.tell(Command::Share(taker.clone()));
        }
        self.admin.share(taker);
        // It ends when all have given theirs, or are gone.
        taken.into_iter().collect()
    }

    /// Leaves the kernel's rules to a process that takes over. They stay as they are.
    pub fn leave_layer_4(&mut self) {
        if let Some(layer_4) = self.layer_4.take() {
            layer_4.leave();
            self.has_left_layer_4 = true;
        }
    }

    /// Serves what it has served before, also what the kernel forwards: the other process has not
    /// taken over.
    ///
    /// # Errors
    /// As [`Server::reload`].
    pub fn keep(&mut self, config: &Config) -> Result<(), StartError> {
        if !self.has_left_layer_4 {
            return Ok(());
        }
        if self.layer_4.is_none() {
            self.layer_4 = Some(Layer4::start(Arc::clone(&self.process), true)?);
        }
        self.serve(config, Renewal::All)?;
        self.has_left_layer_4 = false;
        Ok(())
    }

    /// Stops as [`Server::stop`] does, when another process serves everything.
    pub fn hand_over(mut self, drain: Duration) {
        self.admin.leave();
        self.end(drain, LAST_ANSWERS);
    }

    /// Stops: nothing is accepted any more, and what is open may take this long to end.
    pub fn stop(self, drain: Duration) {
        self.end(drain, drain.min(LAST_ANSWERS));
    }

    fn end(mut self, drain: Duration, last_answers: Duration) {
        self.process.is_draining.store(true, Ordering::Relaxed);
        for worker in &self.workers {
            worker.tell(Command::Stop(drain));
        }
        if let Some(layer_4) = &self.layer_4 {
            layer_4.stop(drain);
        }
        for worker in &mut self.workers {
            worker.join();
        }
        if let Some(layer_4) = self.layer_4.take() {
            layer_4.join();
        }
        self.process.access_log.stop();
        self.admin.end(last_answers);
    }

    /// What makes [`Server::stop`] end at once.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            workers: self.workers.iter().map(|worker| worker.commands.clone()).collect(),
            layer_4: self.layer_4.as_ref().map(Layer4::stopper),
        }
    }
}

impl Thread {
    fn start(number: usize, process: Arc<Process>) -> Result<Self, StartError> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let handle = thread::Builder::new()
            .name(format!("worker {number}"))
            .spawn(move || worker_thread::run(number, process, receiver))
            .map_err(|source| StartError { doing: "start a worker".into(), source })?;
        Ok(Self { commands, handle: Some(handle) })
    }

    fn tell(&self, command: Command) {
        // A worker that is gone has no need of commands.
        let _ = self.commands.send(command);
    }

    fn join(&mut self) {
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The addresses that the process listens on.
fn listening(config: &Config, with_layer_4: bool) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for BalancerConfig { load_balancer, listeners, derived: _ } in &config.load_balancers {
        for (listener, settings) in load_balancer.listeners.iter().zip(listeners) {
            if !l4::is_in_kernel(listener, settings, with_layer_4) {
                addresses.push(SocketAddr::new(load_balancer.vip, listener.port.number()));
            }
        }
    }
    addresses
}
