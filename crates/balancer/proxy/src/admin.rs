//! The admin address: an HTTP server for the administrator, on a thread of its own.
//!
//! - `/metrics`: counts, for Prometheus
//! - `/targets`: the state of each target, as JSON
//! - `/healthz`: 200 if every listener accepts connections, else 503
//! - `/readyz`: 200 if moreover the first health checks of every target have decided
//! - `/config` and `/reload`: the configuration, and changes of it; only with a token
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

/// The handle of the thread that answers.
#[derive(Debug)]
pub(crate) struct Admin {
    commands: Option<mpsc::UnboundedSender<Command>>,
    handle: Option<JoinHandle<io::Result<()>>>,
    known: Arc<Known>,
    address: Option<SocketAddr>,
}

/// The means by which the admin address shows and changes the configuration.
#[derive(Clone, Debug)]
pub struct Control {
    /// The channel for requests to change the configuration.
    pub requests: Sender<Request>,
    /// Writes a configuration as a file that can be read again.
    pub describe: fn(&Config, Form) -> String,
    /// The folder for certificates that are uploaded; `None` if uploads are not allowed.
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

/// The state that the answers are made from.
#[derive(Debug)]
struct Known {
    process: Arc<Process>,
    overview: ArcSwap<Overview>,
    started: SystemTime,
    /// The access to the configuration; `None` if another program decides what is served.
    control: Option<Control>,
    /// The configuration that is served; `None` without `control`.
    served: ArcSwapOption<ServedConfig>,
    /// The token for reading and changing the configuration; `None` if neither is allowed.
    token: ArcSwapOption<Token>,
    /// The host names that requests may use.
    names: ArcSwap<Names>,
    /// Serialises changes of the configuration.
    changing: Semaphore,
    /// Whether the health of every target has been decided once.
    was_decided: AtomicBool,
    /// Whether another process answers at the address from now on.
    is_replaced: AtomicBool,
}

/// The configuration that is served.
#[derive(Debug)]
struct ServedConfig {
    config: Config,
    version: Version,
    since: SystemTime,
}

/// The results of preparing a change that can fail.
#[derive(Debug)]
pub(crate) struct Prepared {
    to: Move,
    token: Option<Token>,
}

/// A command to the thread.
#[derive(Debug)]
enum Command {
    /// Answer connections at this socket, and nowhere else.
    Listen(TcpListener),
    /// Give a duplicate of the socket to another process, which answers there as well.
    Share(Sender<io::Result<OwnedFd>>),
    /// Answer what has come in already, and accept no more.
    Close,
    /// Close, and end the thread when all is answered or this time is over.
    End(Duration),
}

/// A change of the address that cannot fail any more.
#[derive(Debug)]
enum Move {
    /// The address stays.
    Stay,
    /// The address is another one, or the first.
    Open(SocketAddr, TcpListener),
    /// There is no address any more.
    Close,
}

impl Admin {
    /// Starts the thread. It does not listen yet.
    ///
    /// # Errors
    /// When the thread cannot be started.
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

    /// Prepares to answer as the settings say. A process that takes over uses the socket of the
    /// previous process.
    ///
    /// # Errors
    /// When the process cannot listen at the address, or the token's file has no token; then
    /// nothing has changed.
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

    /// Answers as was prepared, and shows this state from now on.
    pub(crate) fn change(&mut self, prepared: Prepared, overview: Overview, config: &Config) {
        // This call records a decision about all previous targets, which stays whatever targets
        // there are now.
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

    /// Gives what has come in already this long to end, and then ends the thread.
    pub(crate) fn end(&self, limit: Duration) {
        self.tell(Command::End(limit));
    }

    fn tell(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // The thread is gone only if its runtime could not be set up.
            let _ = commands.send(command);
        }
    }

    /// Returns the version of the configuration that is served; `None` without a [`Control`].
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

    /// Lists the targets whose health is undecided. The list is empty once all have been decided.
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
        // Before the first configuration there are no targets to decide about.
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
