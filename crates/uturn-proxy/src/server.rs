//! The load balancer as a whole: its threads, its listeners, and changes of its configuration.

mod load;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
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
use crate::worker_thread::{self, Command};

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 4096;

/// How long workers may take to accept the first connections.
const START: Duration = Duration::from_secs(5);

/// How a load balancer is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which events its observer takes.
    pub detail: Detail,
    /// Whether it programs the kernel with TCP and UDP listeners. Without that, their targets are
    /// probed, and no more.
    pub layer_4: bool,
    /// Whether it takes over from another process, whose table then stays in the kernel until this
    /// one has listeners for it.
    pub takes_over: bool,
    /// What the admin address needs to show the configuration and to have it changed.
    pub control: Option<Control>,
}

impl Options {
    fn new(detail: Detail, layer_4: bool) -> Self {
        Self { detail, layer_4, takes_over: false, control: None }
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
        let Options { detail, layer_4: with_layer_4, takes_over, control } = options;
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
            admin: Admin::start(Arc::clone(&process), control, takes_over)?,
            layer_4,
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

    /// Serves on while another process takes over: that one may have what the kernel forwards, and
    /// listen at the admin address as well.
    pub fn share(&mut self) {
        if let Some(layer_4) = self.layer_4.take() {
            layer_4.leave();
        }
        self.admin.share();
    }

    /// Stops as [`Server::stop`] does, when another process serves everything after
    /// [`Server::share`].
    pub fn hand_over(mut self, drain: Duration) {
        self.admin.leave();
        self.stop(drain);
    }

    /// Stops: nothing is accepted any more, and what is open may take this long to end.
    pub fn stop(mut self, drain: Duration) {
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
