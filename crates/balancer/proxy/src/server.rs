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

/// The number of connections that the kernel completes before the process accepts them.
const BACKLOG: i32 = 4096;

/// The longest time to wait for workers to accept the first connections.
const START: Duration = Duration::from_secs(5);

/// The time for the last answers of the admin address after everything else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The options of a load balancer that do not belong to its configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// The events that the observer receives.
    pub detail: Detail,
    /// Whether the kernel is programmed with TCP and UDP listeners. Without that, their targets are
    /// only probed.
    pub layer_4: bool,
    /// The access that the admin address has to the configuration.
    pub control: Option<Control>,
}

impl Options {
    fn new(detail: Detail, layer_4: bool) -> Self {
        Self { detail, layer_4, control: None }
    }
}

/// A running load balancer.
#[derive(Debug)]
pub struct Server {
    workers: Vec<Thread>,
    prober: Prober,
    listeners: HashMap<SocketAddr, Arc<Slot>>,
    /// The listeners that are served, as they were configured.
    loaded: Loaded,
    /// The number of listeners that the latest change concerned.
    changed: usize,
    process: Arc<Process>,
    admin: Admin,
    /// Layer 4; `None` if something else forwards it.
    layer_4: Option<Layer4>,
    /// Whether this process has left layer 4, so that another process may have it now.
    has_left_layer_4: bool,
    /// The sockets of the process that this one takes over from, until the takeover is complete.
    inherited: Inherited,
}

/// Ends the drain of a [`Server`] that stops.
#[derive(Clone, Debug)]
pub struct Stopper {
    workers: Vec<mpsc::UnboundedSender<Command>>,
    layer_4: Option<l4::Stopper>,
}

impl Stopper {
    /// Cuts the open connections.
    pub fn stop(&self) {
        for worker in &self.workers {
            // A worker that is gone has no open connections.
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
    /// Starts to serve. `observer` receives events as detailed as `detail` says.
    ///
    /// # Errors
    /// When a listener cannot listen, or probes cannot be sent; then nothing is served.
    pub fn start(config: &Config, observer: Observer, detail: Detail) -> Result<Self, StartError> {
        Self::start_with(config, observer, Options::new(detail, true))
    }

    /// Starts to serve without programming the kernel: the targets of TCP and UDP listeners are
    /// only probed.
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

    /// Starts to serve in place of another process, which then stops. No connection is lost, and
    /// the other process continues to serve if this one fails.
    ///
    /// # Errors
    /// As [`Server::start`], and when there is no such process, or it does not permit the takeover.
    pub fn take_over(
        process: u32,
        config: &Config,
        observer: Observer,
        options: Options,
    ) -> Result<Self, StartError> {
        let predecessor = Predecessor::find(process)?;
        let inherited = predecessor.sockets()?;
        // The kernel's rules belong to the other process until it leaves them. The admin address is
        // taken over last, when nothing can fail any more, so that `/healthz` is right all the
        // time.
        let mut first = l4::without_forwarded(config);
        first.process.admin = None;
        let mut server = Self::start_from(Some(inherited), &first, observer, options)?;
        predecessor.leave_kernel()?;
        server.reload(config)?;
        server.inherited = Inherited::default();
        predecessor.stop()?;
        Ok(server)
    }

    /// Starts to serve with the sockets of a previous process.
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
        // `/healthz` then finds every listener accepting. It reports a worker that is late.
        server.is_responsive(START);
        Ok(server)
    }

    /// Serves another configuration. Connections stay open, whatever changes; those of removed
    /// listeners are served to their end.
    ///
    /// # Errors
    /// When a new listener cannot listen, or probes cannot be sent; then nothing changes.
    pub fn reload(&mut self, config: &Config) -> Result<(), StartError> {
        self.reload_with(config, Renewal::All)
    }

    /// Serves another configuration as [`Server::reload`] does, but leaves unchanged listeners as
    /// they are: files that they name are not read again.
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

    /// Returns the number of listeners that the latest reload made anew or removed.
    pub fn changed_listeners(&self) -> usize {
        self.changed
    }

    /// Counts a reload that failed before there was a configuration to serve.
    pub fn count_failed_reload(&self) {
        self.process.count_reload(false);
    }

    /// Returns the version of the configuration that is served; `None` without a [`Control`].
    pub fn version(&self) -> Option<String> {
        self.admin.version()
    }

    /// Returns whether every worker answers a command within this time.
    pub fn is_responsive(&self, limit: Duration) -> bool {
        let (answer, answers) = std::sync::mpsc::channel();
        for worker in &self.workers {
            worker.tell(Command::Answer(answer.clone()));
        }
        let end = Instant::now() + limit;
        let wait = |_| answers.recv_timeout(end.saturating_duration_since(Instant::now()));
        self.workers.iter().map(wait).all(|answer| answer.is_ok())
    }

    /// Returns duplicates of all listening sockets, for a process that takes over.
    ///
    /// # Errors
    /// When the duplicates would exceed this process's limit of descriptors.
    pub fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let (taker, taken) = std::sync::mpsc::channel();
        for worker in &self.workers {
            worker.tell(Command::Share(taker.clone()));
        }
        self.admin.share(taker);
        // The iteration ends when all have sent their sockets, or are gone.
        taken.into_iter().collect()
    }

    /// Leaves the kernel's rules to a process that takes over. They stay as they are.
    pub fn leave_layer_4(&mut self) {
        if let Some(layer_4) = self.layer_4.take() {
            layer_4.leave();
            self.has_left_layer_4 = true;
        }
    }

    /// Continues to serve after another process failed to take over, including the listeners that
    /// the kernel forwards.
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

    /// Stops as [`Server::stop`] does, after another process has taken over.
    pub fn hand_over(mut self, drain: Duration) {
        self.admin.leave();
        self.end(drain, LAST_ANSWERS);
    }

    /// Stops: accepts no more connections, and gives open ones this long to end.
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

    /// Returns a handle that makes [`Server::stop`] end at once.
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
        // A worker that is gone needs no commands.
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

/// Returns the addresses that the process listens on.
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
