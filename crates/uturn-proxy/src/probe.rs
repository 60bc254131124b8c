//! Health checks: every target of every listener is asked for real, on both layers.
//!
//! Until a target's state is decided one probe follows the other, since a load balancer without an
//! opinion sends clients to dead targets; from then on they come at the interval that was asked
//! for.

mod ask;
mod http;
mod icmp;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use uturn_lb::config::{ListenerSettings, Probe, RuleSettings};
use uturn_lb::event::{Event, ProbeResult};
use uturn_lb::health::Health;
use uturn_model::Protocol;
use uturn_model::lb::{HealthCheck, Listener};

use crate::error::StartError;
use crate::l4::HealthReports;
use crate::metrics::ProbeRecord;
use crate::process::Process;
use crate::state::Slot;

/// The thread that probes.
#[derive(Debug)]
pub(crate) struct Prober {
    work: Option<mpsc::UnboundedSender<Vec<Probed>>>,
    handle: Option<JoinHandle<io::Result<()>>>,
}

/// A listener whose targets are probed.
#[derive(Debug)]
pub(crate) struct Probed {
    pub(crate) address: SocketAddr,
    pub(crate) listener: Listener,
    pub(crate) settings: ListenerSettings,
    /// What is known of each target: of the first rule's, of the second's, and so on.
    pub(crate) records: Vec<Arc<ProbeRecord>>,
    /// Where decisions are kept; `None` for listeners that the kernel serves.
    pub(crate) slot: Option<Arc<Slot>>,
    /// Where the results go of listeners that the kernel serves.
    pub(crate) layer_4: Option<HealthReports>,
}

/// A target of a rule, and how it is asked.
#[derive(Debug)]
struct Target {
    process: Arc<Process>,
    listener: SocketAddr,
    transport: Protocol,
    rule: usize,
    place: usize,
    address: SocketAddr,
    check: HealthCheck,
    probe: Option<Probe>,
    source: IpAddr,
    slot: Option<Arc<Slot>>,
    record: Arc<ProbeRecord>,
    layer_4: Option<HealthReports>,
}

impl Prober {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start(process: Arc<Process>) -> Result<Self, StartError> {
        let (work, receiver) = mpsc::unbounded_channel();
        let handle = thread::Builder::new()
            .name("health checks".into())
            .spawn(move || run(&process, receiver))
            .map_err(|source| StartError { doing: "start the health checks".into(), source })?;
        Ok(Self { work: Some(work), handle: Some(handle) })
    }

    /// Probes the targets of these listeners from now on, and no others.
    pub(crate) fn probe(&self, listeners: Vec<Probed>) {
        if let Some(work) = &self.work {
            // The thread is gone only if its runtime could not be set up.
            let _ = work.send(listeners);
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn run(process: &Arc<Process>, mut work: mpsc::UnboundedReceiver<Vec<Probed>>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        while let Some(listeners) = work.recv().await {
            // Dropping the old tasks ends them.
            tasks = JoinSet::new();
            for target in listeners.iter().flat_map(|probed| targets(process, probed)) {
                tasks.spawn_local(async move { target.run().await });
            }
        }
        drop(tasks);
    });
    Ok(())
}

/// Fails if probes cannot be sent from where a listener's health check sends them from.
pub(crate) fn check_source(address: SocketAddr, listener: &Listener) -> Result<(), StartError> {
    let Some(check) = &listener.profile.health_check else { return Ok(()) };
    if listener.rules.iter().all(|rule| rule.targets.is_empty()) {
        return Ok(());
    }
    let source = check.source.address(address.ip());
    ask::can_ask_from(source, listener.protocol.transport()).map_err(|error| StartError {
        doing: format!("send the health checks of {address} from {source}"),
        source: error,
    })
}

fn targets(process: &Arc<Process>, probed: &Probed) -> Vec<Target> {
    let Probed { address, listener, settings, records, slot, layer_4 } = probed;
    let Some(check) = &listener.profile.health_check else { return Vec::new() };
    let mut targets = Vec::new();
    let mut records = records.iter();
    for (rule, config) in listener.rules.iter().enumerate() {
        let probe = settings.rules.get(rule).and_then(|RuleSettings { probe, .. }| probe.clone());
        for (place, target) in config.targets.iter().enumerate() {
            targets.push(Target {
                process: Arc::clone(process),
                listener: *address,
                transport: listener.protocol.transport(),
                rule,
                place,
                address: target.address,
                check: check.clone(),
                probe: probe.clone(),
                source: check.source.address(address.ip()),
                slot: slot.clone(),
                record: records.next().map_or_else(Arc::default, Arc::clone),
                layer_4: layer_4.clone(),
            });
        }
    }
    targets
}

impl Target {
    /// Asks again and again.
    async fn run(&self) {
        let mut health = Health::new(&self.check);
        loop {
            let began = Instant::now();
            let result = self.ask().await;
            let decision = health.record(result == ProbeResult::Answered);
            self.record.record(result, health.decided());
            if let Some(alive) = decision {
                self.decide(alive, result);
            }
            match health.decided() {
                Some(_) => sleep_until(began + self.check.interval).await,
                // A target on this machine may answer without a pause.
                None => tokio::task::yield_now().await,
            }
        }
    }

    async fn ask(&self) -> ProbeResult {
        let limit = self.check.timeout;
        let asked = match (&self.probe, self.transport) {
            (Some(Probe::Http { method, path, host, classes }), _) => {
                let request =
                    http::Request { method: *method, path, host: host.as_deref(), classes };
                http::ask(self.source, self.address, limit, &request).await
            }
            (Some(Probe::Exchange { send, expect }), transport) => {
                ask::exchange(self.source, self.address, transport, limit, send, expect).await
            }
            (None, Protocol::Udp) => ask::udp(self.source, self.address, limit).await,
            (None, Protocol::Tcp | Protocol::Sctp) => {
                ask::tcp(self.source, self.address, limit).await
            }
        };
        asked.unwrap_or_else(|error| ask::result_of(&error))
    }

    fn decide(&self, alive: bool, result: ProbeResult) {
        if let Some(slot) = &self.slot {
            // After a reload, other rules may stand there until the probes are replaced too.
            let listener = slot.current();
            if let Some(rule) = listener.rules.get(self.rule)
                && listener.profile.health_check.is_some()
            {
                rule.set_alive(self.place, self.address, alive);
            }
        }
        if let Some(layer_4) = &self.layer_4 {
            layer_4.report(self.listener, self.transport, self.address, alive);
        }
        self.process.report_change(&Event::Health {
            listener: self.listener,
            protocol: self.transport.lower().into(),
            rule: self.rule,
            target: self.address,
            alive,
            result,
        });
    }
}
