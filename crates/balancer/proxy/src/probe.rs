//! Health checks: every target of every listener is probed, on both layers.
//!
//! Until a target's state is decided, one probe follows the other without a pause, since a load
//! balancer that knows nothing sends clients to dead targets. From then on probes come at the
//! configured interval. A probe that this machine cannot send says nothing about its target: it is
//! counted as an error of the machine, and the earlier decision stays. Probes of a target continue
//! through configuration changes that do not concern it; otherwise frequent changes would keep a
//! hanging target undecided for ever.

mod ask;
mod http;
mod icmp;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use uturn_lb::config::{ListenerSettings, Probe, RuleSettings};
use uturn_lb::event::{Event, ProbeResult};
use uturn_lb::health::Health;
use uturn_model::Protocol;
use uturn_model::lb::{HealthCheck, Listener};

use crate::admin::ShownListener;
use crate::error::StartError;
use crate::l4::HealthReports;
use crate::local_error::{Operation, SocketError};
use crate::metrics::ProbeRecord;
use crate::process::Process;
use crate::state::Slot;

/// The longest pause until a probe that this machine could not send is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The handle of the thread that probes.
#[derive(Debug)]
pub(crate) struct Prober {
    work: Option<mpsc::UnboundedSender<Work>>,
    handle: Option<thread::JoinHandle<io::Result<()>>>,
}

/// The listeners whose targets are probed from now on.
#[derive(Debug)]
struct Work {
    /// The listeners that have not changed.
    kept: Vec<Arc<ShownListener>>,
    /// All other listeners.
    probed: Vec<Probed>,
}

/// A listener whose targets are probed.
#[derive(Debug)]
pub(crate) struct Probed {
    pub(crate) address: SocketAddr,
    pub(crate) listener: Listener,
    pub(crate) settings: ListenerSettings,
    /// The records of the targets: first those of the first rule, then those of the second, and so
    /// on.
    pub(crate) records: Vec<Arc<ProbeRecord>>,
    /// The slot that keeps decisions; `None` for listeners that the kernel serves.
    pub(crate) slot: Option<Arc<Slot>>,
    /// The receiver of decisions on the targets of a listener that the kernel serves.
    pub(crate) layer_4: Option<HealthReports>,
}

/// A target of a rule.
#[derive(Debug)]
struct Target {
    process: Arc<Process>,
    record: Arc<ProbeRecord>,
    question: Question,
    /// The target's place, which may change while the target is probed.
    place: RefCell<Place>,
    /// The latest decision; `None` while undecided.
    decided: Cell<Option<bool>>,
}

/// The way in which a target is probed.
#[derive(Debug, PartialEq)]
struct Question {
    listener: SocketAddr,
    transport: Protocol,
    address: SocketAddr,
    check: HealthCheck,
    probe: Option<Probe>,
    source: IpAddr,
}

/// The position of a target in its listener, and the receivers of decisions.
#[derive(Debug)]
struct Place {
    rule: usize,
    target: usize,
    slot: Option<Arc<Slot>>,
    layer_4: Option<HealthReports>,
}

/// A target that is probed until this is dropped.
#[derive(Debug)]
struct Probing {
    target: Rc<Target>,
    task: JoinHandle<()>,
}

impl Prober {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(process: Arc<Process>) -> Result<Self, StartError> {
        let (work, receiver) = mpsc::unbounded_channel();
        let handle = thread::Builder::new()
            .name("health checks".into())
            .spawn(move || run(&process, receiver))
            .map_err(|source| StartError { doing: "start the health checks".into(), source })?;
        Ok(Self { work: Some(work), handle: Some(handle) })
    }

    /// Probes the targets of these listeners from now on, and no others. Targets of `kept`
    /// listeners are probed already.
    pub(crate) fn probe(&self, kept: Vec<Arc<ShownListener>>, probed: Vec<Probed>) {
        if let Some(work) = &self.work {
            // The thread is gone only if its runtime could not be set up.
            let _ = work.send(Work { kept, probed });
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

fn run(process: &Arc<Process>, mut work: mpsc::UnboundedReceiver<Work>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        // The record of a target stays the same for as long as it is in a rule.
        let mut probed: HashMap<*const ProbeRecord, Probing> = HashMap::new();
        while let Some(work) = work.recv().await {
            let mut before = std::mem::take(&mut probed);
            let kept = work.kept.iter().flat_map(|listener| &listener.targets);
            probed.extend(kept.filter_map(|kept| before.remove_entry(&Arc::as_ptr(&kept.probes))));
            for target in work.probed.iter().flat_map(|probed| targets(process, probed)) {
                let key = Arc::as_ptr(&target.record);
                let same = before.remove(&key).filter(|now| now.target.question == target.question);
                let probing = match same {
                    Some(probing) => {
                        probing.target.move_to(target.place.into_inner());
                        probing
                    }
                    None => Probing::start(target),
                };
                probed.insert(key, probing);
            }
        }
        drop(probed);
    });
    Ok(())
}

impl Probing {
    fn start(target: Target) -> Self {
        let target = Rc::new(target);
        let probed = Rc::clone(&target);
        let task = tokio::task::spawn_local(async move { probed.run().await });
        Self { target, task }
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Fails if probes cannot be sent from the source address of the listener's health check.
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
        for (number, target) in config.targets.iter().enumerate() {
            targets.push(Target {
                process: Arc::clone(process),
                record: records.next().map_or_else(Arc::default, Arc::clone),
                question: Question {
                    listener: *address,
                    transport: listener.protocol.transport(),
                    address: target.address,
                    check: check.clone(),
                    probe: probe.clone(),
                    source: check.source.address(address.ip()),
                },
                place: RefCell::new(Place {
                    rule,
                    target: number,
                    slot: slot.clone(),
                    layer_4: layer_4.clone(),
                }),
                decided: Cell::new(None),
            });
        }
    }
    targets
}

impl Target {
    /// Probes the target again and again.
    async fn run(&self) {
        let check = &self.question.check;
        let mut health = Health::new(check);
        loop {
            let began = Instant::now();
            let result = match self.ask().await {
                Ok(result) => result,
                Err(SocketError { cause: None, source }) => ask::result_of(&source),
                Err(SocketError { cause: Some(cause), .. }) => {
                    self.process.local_errors.count(Operation::Probe, cause);
                    sleep_until(began + check.interval.min(AGAIN)).await;
                    continue;
                }
            };
            let decision = health.record(result == ProbeResult::Answered);
            self.record.record(result, health.decided());
            self.decided.set(health.decided());
            if let Some(alive) = decision {
                self.decide(alive, result);
            }
            match health.decided() {
                Some(_) => sleep_until(began + check.interval).await,
                // A target on this machine may answer without a pause.
                None => tokio::task::yield_now().await,
            }
        }
    }

    async fn ask(&self) -> Result<ProbeResult, SocketError> {
        let Question { transport, address, check, probe, source, .. } = &self.question;
        let limit = check.timeout;
        match (probe, transport) {
            (Some(Probe::Http { method, path, host, classes }), _) => {
                let request =
                    http::Request { method: *method, path, host: host.as_deref(), classes };
                http::ask(*source, *address, limit, &request).await
            }
            (Some(Probe::Exchange { send, expect }), transport) => {
                ask::exchange(*source, *address, *transport, limit, send, expect).await
            }
            (None, Protocol::Udp) => ask::udp(*source, *address, limit).await,
            (None, Protocol::Tcp | Protocol::Sctp) => ask::tcp(*source, *address, limit).await,
        }
    }

    fn decide(&self, alive: bool, result: ProbeResult) {
        let Question { listener, transport, address, .. } = self.question;
        let place = self.place.borrow();
        place.keep(&self.question, alive);
        self.process.report_change(&Event::Health {
            listener,
            protocol: transport.lower().into(),
            rule: place.rule,
            target: address,
            alive,
            result,
        });
    }

    /// Moves the target to another place. A decision that was made before the move is recorded
    /// there too.
    fn move_to(&self, place: Place) {
        if let Some(alive) = self.decided.get() {
            place.keep(&self.question, alive);
        }
        self.place.replace(place);
    }
}

impl Place {
    /// Records a decision about the target.
    fn keep(&self, question: &Question, alive: bool) {
        if let Some(slot) = &self.slot {
            // After a reload, the slot may have other rules until the probes are replaced too.
            let listener = slot.current();
            if let Some(rule) = listener.rules.get(self.rule)
                && listener.profile.health_check.is_some()
            {
                rule.set_alive(self.target, question.address, alive);
            }
        }
        if let Some(layer_4) = &self.layer_4 {
            layer_4.report(question.listener, question.transport, question.address, alive);
        }
    }
}
