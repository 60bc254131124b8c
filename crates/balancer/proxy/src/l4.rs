//! Layer 4: TCP and UDP listeners that the kernel forwards.
//!
//! A thread programs the table of [`uturn_lb::nft`] when the configuration changes, when health
//! checks decide something, and when the process stops. Connections keep their targets meanwhile,
//! since conntrack remembers them.

mod claim;
mod conntrack;
mod endings;
mod forwarder;
mod nft;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use uturn_lb::config::{BalancerConfig, Config, ListenerSettings};
use uturn_lb::nft::Forwarded;
use uturn_model::Protocol;
use uturn_model::lb::{Listener, ListenerProtocol, Scheduler};

use self::forwarder::Forwarder;
use crate::error::StartError;
use crate::process::Process;

/// The handle of the thread that programs the kernel. When it is dropped, the thread deletes the
/// table.
#[derive(Debug)]
pub(crate) struct Layer4 {
    commands: Sender<Command>,
    handle: Option<JoinHandle<()>>,
}

/// A target of a listener that the kernel forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Endpoint {
    listener: SocketAddr,
    transport: Protocol,
    target: SocketAddr,
}

#[derive(Debug)]
enum Command {
    /// Serve these listeners, and end connections to removed targets after this time.
    Load(Vec<Forwarded>, Duration, SyncSender<Result<(), StartError>>),
    /// Note that a target is alive or dead.
    Health(Endpoint, bool),
    /// Admit nothing new, and delete the table when open connections have ended or this time is
    /// over. A second such command shortens the time.
    Stop(Duration),
    /// Leave the table as it is to the process that has replaced it.
    Leave,
}

/// The receiver of decisions of health checks.
#[derive(Clone, Debug)]
pub(crate) struct HealthReports(Sender<Command>);

/// Ends the drain of a thread that stops.
#[derive(Clone, Debug)]
pub(crate) struct Stopper(Sender<Command>);

impl Stopper {
    /// Ends the drain at once.
    pub(crate) fn stop(&self) {
        // The thread may have ended already.
        let _ = self.0.send(Command::Stop(Duration::ZERO));
    }
}

impl Layer4 {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(process: Arc<Process>, takes_over: bool) -> Result<Self, StartError> {
        let (commands, receiver) = channel();
        let handle = thread::Builder::new()
            .name("layer 4".into())
            .spawn(move || Forwarder::new(process).run(&receiver, takes_over))
            .map_err(|source| StartError { doing: "start layer 4".into(), source })?;
        Ok(Self { commands, handle: Some(handle) })
    }

    /// Serves these listeners, and no others. The known health of targets stays.
    ///
    /// # Errors
    /// When the kernel refuses them; then nothing changes.
    pub(crate) fn load(
        &self,
        listeners: Vec<Forwarded>,
        drain: Duration,
    ) -> Result<(), StartError> {
        let (answer, answers) = sync_channel(1);
        let gone = |_| StartError {
            doing: "set up layer 4".into(),
            source: io::Error::other("its thread has ended"),
        };
        self.commands.send(Command::Load(listeners, drain, answer)).map_err(|_| gone(()))?;
        answers.recv().map_err(|_| gone(()))?
    }

    /// Waits for the end of the thread, after [`Layer4::stop`].
    pub(crate) fn join(mut self) {
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }

    /// Returns a handle that ends the drain of a thread that stops.
    pub(crate) fn stopper(&self) -> Stopper {
        Stopper(self.commands.clone())
    }

    /// Returns the receiver of decisions of health checks.
    pub(crate) fn health_reports(&self) -> HealthReports {
        HealthReports(self.commands.clone())
    }

    /// Leaves the table as it is to another process.
    pub(crate) fn leave(&self) {
        // The thread is gone only if it was stopped already.
        let _ = self.commands.send(Command::Leave);
    }

    /// Admits nothing new. Open connections have this long to end; then the table is deleted.
    pub(crate) fn stop(&self, drain: Duration) {
        // The thread is gone only if it was stopped already.
        let _ = self.commands.send(Command::Stop(drain));
    }
}

impl Drop for Layer4 {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

impl HealthReports {
    /// Reports that a target is alive or dead.
    pub(crate) fn report(
        &self,
        listener: SocketAddr,
        transport: Protocol,
        target: SocketAddr,
        alive: bool,
    ) {
        let endpoint = Endpoint { listener, transport, target };
        // The thread is gone only when everything stops.
        let _ = self.0.send(Command::Health(endpoint, alive));
    }
}

/// Returns the configuration without the listeners that the kernel forwards.
pub(crate) fn without_forwarded(config: &Config) -> Config {
    let mut config = config.clone();
    for BalancerConfig { load_balancer, listeners, .. } in &mut config.load_balancers {
        let models = std::mem::take(&mut load_balancer.listeners);
        let settings = std::mem::take(listeners);
        let served = models
            .into_iter()
            .zip(settings)
            .filter(|(listener, settings)| !is_in_kernel(listener, settings, true));
        (load_balancer.listeners, *listeners) = served.unzip();
    }
    config
}

/// Returns whether the kernel forwards a listener's packets, instead of this process serving its
/// connections. A PROXY header is data, which the kernel neither reads nor adds. The kernel cannot
/// compare the targets' numbers of connections either. `is_ours` tells whether this process
/// programs the kernel; a different forwarder schedules by the fewest connections as well.
pub(crate) fn is_in_kernel(
    listener: &Listener,
    settings: &ListenerSettings,
    is_ours: bool,
) -> bool {
    match listener.protocol {
        ListenerProtocol::Udp => true,
        ListenerProtocol::Tcp => {
            let compares = listener.profile.scheduler == Scheduler::LeastConnections;
            let adds_or_reads = !settings.proxy_from.is_empty() || settings.proxy_to.is_some();
            let takes_connections = listener.profile.ends_connections || adds_or_reads;
            !(takes_connections || is_ours && compares)
        }
        ListenerProtocol::TcpSsl | ListenerProtocol::Http | ListenerProtocol::Https => false,
    }
}
