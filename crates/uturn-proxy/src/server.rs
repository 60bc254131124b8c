//! The load balancer as a whole: its threads, its listeners, and changes of its configuration.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::mpsc;
use uturn_lb::config::{Config, ListenerSettings, Served};
use uturn_lb::event::Event;
use uturn_lb::nft::Forwarded;
use uturn_model::lb::{self, ListenerProtocol};
use uturn_model::network::SecurityRule;
use uturn_model::{LoadBalancer, Text};

use crate::access_log::{self, AccessLog};
use crate::admin::{Admin, Control, Overview, ShownListener};
use crate::capability::needs_to_listen;
use crate::error::StartError;
use crate::l4::{self, Layer4};
use crate::peer;
use crate::probe::{self, Probed, Prober};
use crate::process::{Detail, Observer, Process};
use crate::state::{Listener, Slot};
use crate::tls;
use crate::upstream;
use crate::worker_thread::{self, Command};

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 4096;

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

/// A listener's new configuration, and the sockets that it needs.
struct Change {
    address: SocketAddr,
    listener: Listener,
    /// One for each worker; empty if it listens already.
    sockets: Vec<TcpListener>,
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
            process: Arc::clone(&process),
            admin: Admin::start(Arc::clone(&process), control)?,
            layer_4,
        };
        let count = config.process.workers.unwrap_or_else(cores);
        for number in 0..count {
            server.workers.push(Thread::start(number, Arc::clone(&process))?);
        }
        server.serve(config)?;
        process.report_change(&Event::Ready { listeners: listening(config, with_layer_4) });
        Ok(server)
    }

    /// Serves as another configuration says. Connections stay open, whatever changes; those of
    /// listeners that are no more are served to their end.
    ///
    /// # Errors
    /// When a new listener cannot listen, or probes cannot be sent; then nothing changes.
    pub fn reload(&mut self, config: &Config) -> Result<(), StartError> {
        let served = self.serve(config);
        self.process.count_reload(served.is_ok());
        served
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

    fn serve(&mut self, config: &Config) -> Result<(), StartError> {
        let access_log = open_access_log(config)?;
        let admin = self.admin.prepare(&config.process)?;
        let mut changes = Vec::new();
        let mut probes = Vec::new();
        let mut forwarded = Vec::new();
        for Served { load_balancer, listeners, derived: _ } in &config.load_balancers {
            let default = ListenerSettings::default();
            let settings = listeners.iter().chain(std::iter::repeat(&default));
            for (listener, settings) in load_balancer.listeners.iter().zip(settings) {
                let address = SocketAddr::new(load_balancer.vip, listener.port.number());
                let security = security_rules(config, load_balancer);
                let is_forwarded = l4::is_in_kernel(listener, settings, self.layer_4.is_some());
                if is_forwarded {
                    forwarded.push(Forwarded {
                        vip: load_balancer.vip,
                        listener: listener.clone(),
                        settings: settings.clone(),
                        security: security.clone(),
                        alive: Vec::new(),
                    });
                }
                let change =
                    self.change(address, listener, settings, security).map_err(|source| {
                        let doing = format!("listen on {address} of {}", load_balancer.name);
                        StartError { doing, source }
                    })?;
                if !is_forwarded {
                    upstream::check_source(address, listener)?;
                }
                probe::check_source(address, listener)?;
                let name = load_balancer.name.clone();
                probes.push((name, address, listener.clone(), settings.clone()));
                changes.extend(change);
            }
        }
        if let Some(layer_4) = &self.layer_4 {
            layer_4.load(forwarded, config.process.drain)?;
        }
        self.apply(changes);
        let previous = self.admin.overview();
        let mut overview = Overview::default();
        let probed = probes.into_iter().map(|(name, address, listener, settings)| {
            let is_in_kernel = l4::is_in_kernel(&listener, &settings, self.layer_4.is_some());
            let slot = self.listeners.get(&address).filter(|_| !is_in_kernel).map(Arc::clone);
            let layer_4 = self.layer_4.as_ref().filter(|_| is_in_kernel);
            let layer_4 = layer_4.map(Layer4::health_reports);
            let shown = ShownListener::new(&name, address, &listener, slot.clone(), &previous);
            let records = shown.targets.iter().map(|target| Arc::clone(&target.probes)).collect();
            overview.listeners.push(shown);
            Probed { address, listener, settings, records, slot, layer_4 }
        });
        self.prober.probe(probed.collect());
        self.process.access_log.switch(access_log);
        self.admin.change(admin, overview, config);
        Ok(())
    }

    /// Stops as [`Server::stop`] does, but for what another process has taken over: what the kernel
    /// forwards stays, and the admin address is free at once.
    pub fn hand_over(mut self, drain: Duration) {
        if let Some(layer_4) = self.layer_4.take() {
            layer_4.leave();
        }
        self.admin.close();
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

    fn change(
        &self,
        address: SocketAddr,
        listener: &lb::Listener,
        settings: &ListenerSettings,
        security: Option<Vec<SecurityRule>>,
    ) -> io::Result<Option<Change>> {
        if l4::is_in_kernel(listener, settings, self.layer_4.is_some()) {
            return Ok(None);
        }
        let speaks_http2 = settings.http2 && listener.protocol == ListenerProtocol::Https;
        let tls = match listener.protocol.ends_tls() {
            true => Some(tls::server(&settings.certificates, speaks_http2)?),
            false => None,
        };
        let known = self.listeners.get(&address).map(|slot| slot.current());
        let sockets = match known {
            Some(_) => Ok(Vec::new()),
            None => self.workers.iter().map(|_| listen(address)).collect(),
        }?;
        let listener = Listener::new(address, listener, settings, tls, security, known.as_deref());
        Ok(Some(Change { address, listener, sockets }))
    }

    fn apply(&mut self, changes: Vec<Change>) {
        let mut gone = std::mem::take(&mut self.listeners);
        for Change { address, listener, sockets } in changes {
            let slot = match gone.remove(&address) {
                Some(slot) => {
                    slot.replace(listener);
                    slot
                }
                None => Arc::new(Slot::new(listener, self.workers.len())),
            };
            for (worker, socket) in self.workers.iter().zip(sockets) {
                worker.tell(Command::Listen(socket, Arc::clone(&slot)));
            }
            self.listeners.insert(address, slot);
        }
        for address in gone.into_keys() {
            for worker in &self.workers {
                worker.tell(Command::Close(address));
            }
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

fn open_access_log(config: &Config) -> Result<access_log::Output, StartError> {
    access_log::open(&config.process.access_log)
        .map_err(|source| StartError { doing: "open the access log".into(), source })
}

/// The rules of all groups of a load balancer, as they stand. `None` where it has no group that the
/// configuration knows.
fn security_rules(config: &Config, load_balancer: &LoadBalancer) -> Option<Vec<SecurityRule>> {
    let group = |name: &Text| config.security_groups.iter().find(|group| group.name == *name);
    let groups: Vec<_> = load_balancer.security_groups.iter().filter_map(group).collect();
    let rules = || groups.iter().flat_map(|group| group.inbound.iter().cloned()).collect();
    (!groups.is_empty()).then(rules)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A socket that others may share its address with: each worker has one. The machine need not have
/// the address yet: of a pair of load balancers, only the active one has it.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.set_nonblocking(true)?;
    // Accepted connections take both over, which saves calls for each.
    socket.set_tcp_nodelay(true)?;
    peer::set_keepalive(&socket)?;
    socket.bind(&address.into()).map_err(|error| needs_to_listen(error, address))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The addresses that the process listens on.
fn listening(config: &Config, with_layer_4: bool) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for Served { load_balancer, listeners, derived: _ } in &config.load_balancers {
        for (listener, settings) in load_balancer.listeners.iter().zip(listeners) {
            if !l4::is_in_kernel(listener, settings, with_layer_4) {
                addresses.push(SocketAddr::new(load_balancer.vip, listener.port.number()));
            }
        }
    }
    addresses
}
