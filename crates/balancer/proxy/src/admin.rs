//! What the person who runs the load balancer can ask it: an HTTP server on a thread of its own.
//!
//! - `/metrics`: counts, for Prometheus
//! - `/targets`: what is known of each target, as JSON
//! - `/healthz`: 200 if every listener accepts connections, else 503
//! - `/readyz`: 200 if moreover the first health checks of every target have decided
//! - `/config` and `/reload`: what is served, and changes of it; only with a token
//! - `/certificates`: certificates with keys that `/config` may name; only with a token

mod access;
mod certificates;
mod change;
mod host;
mod metrics;
mod overview;
mod pages;
mod serve;
mod targets;
mod version;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Semaphore, mpsc};
use uturn_lb::config::{Config, ProcessSettings};

use access::Token;
use host::Names;
pub(crate) use overview::{Overview, ShownListener};
use version::Version;

use crate::capability::needs_to_listen;
use crate::error::StartError;
use crate::process::Process;
use crate::requests::Request;
use crate::takeover::Inherited;

/// The thread that answers.
#[derive(Debug)]
pub(crate) struct Admin {
    commands: Option<mpsc::UnboundedSender<Command>>,
    handle: Option<JoinHandle<io::Result<()>>>,
    known: Arc<Known>,
    address: Option<SocketAddr>,
}

/// What the admin address needs to show the configuration and to have it changed.
#[derive(Clone, Debug)]
pub struct Control {
    /// Takes requests for changes.
    pub requests: Sender<Request>,
    /// Writes a configuration as a file that can be read again.
    pub describe: fn(&Config, Form) -> String,
    /// The folder that certificates are kept in that come over HTTP; `None` if none are taken.
    pub certificates: Option<PathBuf>,
}

/// The form in which a configuration is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// What the answers are made of.
#[derive(Debug)]
struct Known {
    process: Arc<Process>,
    overview: ArcSwap<Overview>,
    started: SystemTime,
    /// `None` where another program decides what is served.
    control: Option<Control>,
    /// What is served; `None` without `control`.
    served: ArcSwapOption<ServedConfig>,
    /// What reading and changing the configuration takes; `None` if neither is allowed.
    token: ArcSwapOption<Token>,
    /// By which names it may be called.
    names: ArcSwap<Names>,
    /// Changes are made one after the other.
    changing: Semaphore,
    /// Whether the health of every target has been decided once.
    was_decided: AtomicBool,
    /// Whether another process answers at the address from now on.
    is_replaced: AtomicBool,
}

/// A configuration that is served.
#[derive(Debug)]
struct ServedConfig {
    config: Config,
    version: Version,
    since: SystemTime,
}

/// What a change needs, before anything has changed.
#[derive(Debug)]
pub(crate) struct Prepared {
    to: Move,
    token: Option<Token>,
}

/// What the thread is told to do.
#[derive(Debug)]
enum Command {
    /// Answer what comes in here, and nowhere else.
    Listen(TcpListener),
    /// Give a duplicate of the socket to another process, which answers there as well.
    Share(Sender<io::Result<OwnedFd>>),
    /// Answer what has come in already, and no more.
    Close,
    /// Do the same, and end the thread when that is done or this time is over.
    End(Duration),
}

/// A change of the address, for which everything is ready.
#[derive(Debug)]
enum Move {
    /// The address stays.
    Stay,
    /// It is another one, or the first.
    Open(SocketAddr, TcpListener),
    /// There is none any more.
    Close,
}

impl Admin {
    /// Starts the thread. It does not listen yet.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start(
        process: Arc<Process>,
        control: Option<Control>,
    ) -> Result<Self, StartError> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let overview = ArcSwap::default();
        let known = Arc::new(Known {
            process,
            overview,
            started: SystemTime::now(),
            control,
            served: ArcSwapOption::empty(),
            token: ArcSwapOption::empty(),
            names: ArcSwap::default(),
            changing: Semaphore::new(1),
            was_decided: AtomicBool::new(false),
            is_replaced: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&known);
        let handle = thread::Builder::new()
            .name("admin".into())
            .spawn(move || serve::run(&of_thread, receiver))
            .map_err(|source| StartError { doing: "start the admin thread".into(), source })?;
        let commands = Some(commands);
        Ok(Self { commands, handle: Some(handle), known, address: None })
    }

    /// Prepares to answer as these settings say. A process that takes over uses a socket of the
    /// process before.
    ///
    /// # Errors
    /// When the address cannot be listened at, or there is no token in its file; then nothing has
    /// changed.
    pub(crate) fn prepare(
        &self,
        settings: &ProcessSettings,
        inherited: &Inherited,
    ) -> Result<Prepared, StartError> {
        let read = |path| {
            Token::read(path).map_err(|source| {
                let doing = format!("take the admin token from {}", path.display());
                StartError { doing, source }
            })
        };
        let token = settings.admin_token.as_deref().map(read).transpose()?;
        Ok(Prepared { to: self.prepare_move(settings.admin, inherited)?, token })
    }

    fn prepare_move(
        &self,
        address: Option<SocketAddr>,
        inherited: &Inherited,
    ) -> Result<Move, StartError> {
        match address {
            same if same == self.address => Ok(Move::Stay),
            None => Ok(Move::Close),
            Some(address) => match listen(address, inherited) {
                Ok(listener) => Ok(Move::Open(address, listener)),
                Err(source) => {
                    let doing = format!("listen on {address}, the admin address");
                    Err(StartError { doing, source })
                }
            },
        }
    }

    /// Answers as was prepared, and shows this from now on.
    pub(crate) fn change(&mut self, prepared: Prepared, overview: Overview, config: &Config) {
        // What has been decided before stays so, whatever targets there are now.
        self.known.undecided();
        self.known.overview.store(Arc::new(overview));
        self.known.served.store(self.known.serves(config));
        self.known.token.store(prepared.token.map(Arc::new));
        let names = config.process.admin_hosts.iter().map(ToString::to_string);
        self.known.names.store(Arc::new(Names::new(names)));
        let (address, command) = match prepared.to {
            Move::Stay => return,
            Move::Open(address, listener) => (Some(address), Command::Listen(listener)),
            Move::Close => (None, Command::Close),
        };
        self.address = address;
        self.tell(command);
    }

    /// Gives a duplicate of the socket to another process, if there is one.
    pub(crate) fn share(&self, taker: Sender<io::Result<OwnedFd>>) {
        self.tell(Command::Share(taker));
    }

    /// Answers what has come in already, and leaves the rest to the process that shares the socket.
    pub(crate) fn leave(&mut self) {
        self.address = None;
        self.known.is_replaced.store(true, Ordering::Relaxed);
        self.tell(Command::Close);
    }

    /// Ends what has come in already within this time, and the thread.
    pub(crate) fn end(&self, limit: Duration) {
        self.tell(Command::End(limit));
    }

    fn tell(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // The thread is gone only if its runtime could not be set up.
            let _ = commands.send(command);
        }
    }

    /// The version of the configuration that is served; `None` where nothing can write it.
    pub(crate) fn version(&self) -> Option<String> {
        self.known.served.load().as_ref().map(|served| served.version.to_string())
    }
}

impl Known {
    fn serves(&self, config: &Config) -> Option<Arc<ServedConfig>> {
        let describe = self.control.as_ref()?.describe;
        let before = self.served.load();
        let (config, since) = (config.clone(), SystemTime::now());
        let version =
            Version::of(&config, before.as_ref().map(|it| (&it.config, &it.version)), describe);
        Some(Arc::new(ServedConfig { config, version, since }))
    }

    /// The targets whose health is not decided, if that has not been the case for all before.
    fn undecided(&self) -> Vec<String> {
        if self.was_decided.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let overview = self.overview.load();
        let undecided: Vec<String> = overview
            .listeners
            .iter()
            .flat_map(|listener| listener.undecided().map(|name| (listener.address, name)))
            .map(|(address, name)| format!("{address}: target {name} has not been checked\n"))
            .collect();
        // Before the first configuration there is nothing to decide.
        if undecided.is_empty() && !overview.listeners.is_empty() {
            self.was_decided.store(true, Ordering::Relaxed);
        }
        undecided
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn listen(address: SocketAddr, inherited: &Inherited) -> io::Result<TcpListener> {
    if let Some(listener) = inherited.at(address)?.pop() {
        return Ok(listener);
    }
    let listener = TcpListener::bind(address).map_err(|error| needs_to_listen(error, address))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
