//! All load balancers of a lab: their namespaces, the rules and processes that implement them, the
//! events that these report, and the results of health checks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use uturn_lb::event::{Event, ForwardedTarget};
use uturn_model::LoadBalancer;
use uturn_model::lb::{Listener, Scope};

use super::target::Target;
use crate::linux::build::handover::Nodes;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::forward::balancer_process::{BalancerProcess, ConnectionOwners, FlowEvent};
use crate::linux::forward::call_counters::{self, Call};
use crate::linux::forward::health::{self, TargetHealths};
use crate::linux::forward::layer_4::{self, Layer4, ListenerKey, Picks, is_in_kernel};
use crate::linux::forward::rules::Site;
use crate::linux::kernel::wait::{POLL_INTERVAL, wait};
use crate::linux::run::interrupt::Watch;
use crate::linux::run::state::Run;
use crate::{LabError, Plan};

/// The longest time until the load balancers have started and decided the health of their targets.
const START: Duration = Duration::from_secs(300);

/// All running load balancers.
#[derive(Debug)]
pub(crate) struct LoadBalancers {
    sites: Vec<Site>,
    /// The load balancer processes.
    processes: Vec<Process>,
    /// The kernels' reports of picked targets.
    picks: Vec<Picks>,
    /// The health of targets so far.
    pub(crate) healths: TargetHealths,
}

#[derive(Debug)]
struct Process {
    balancer: BalancerProcess,
    owners: ConnectionOwners,
    is_ready: bool,
    /// The listeners that the process makes the kernel forward.
    forwards: BTreeSet<ListenerKey>,
    /// The targets of these listeners that the kernel does not forward to, because they are dead.
    programmed: BTreeSet<(ListenerKey, SocketAddr)>,
}

impl LoadBalancers {
    /// Programs the rules of the load balancers and starts their processes.
    pub(crate) fn start(
        run: &Run,
        plan: &Plan<'_>,
        lab_cluster: &LabCluster,
        targets: &[Target],
    ) -> Result<Self, LabError> {
        let all = plan.load_balancers;
        let public: Vec<LoadBalancer> =
            all.iter().filter(|lb| lb.scope == Scope::Public).cloned().collect();
        let mut balancers = Self {
            sites: Vec::new(),
            processes: Vec::new(),
            picks: Vec::new(),
            healths: TargetHealths::default(),
        };
        for (scope, name) in [(Scope::Private, "inside"), (Scope::Public, "outside")] {
            let Some(space) = lab_cluster.of_balancers(scope) else { continue };
            let of_scope = targets.iter().filter(|target| target.scope == Some(scope));
            let calls: BTreeSet<Call> = of_scope.flat_map(Target::calls).collect();
            let nodes = Nodes::of(plan.cluster);
            let site = Site::new(scope, all, calls, nodes, space)?;
            let beyond_vpc = lab_cluster.edge.as_ref().map(|_| &*public);
            site.program(space, plan.cluster, beyond_vpc)?;
            balancers.picks.extend(Picks::start(space, &site.balancers, &site.nodes)?);
            if needs_process(&site) {
                let accelerated = health::accelerated(&site.balancers);
                let layer_4 = site.layer_4;
                let balancer =
                    BalancerProcess::start(run, &plan.program, &accelerated, space, name, layer_4)?;
                let forwards = match layer_4 {
                    Layer4::Process => layer_4::listeners(&site.balancers),
                    Layer4::Rules => BTreeSet::new(),
                };
                let owners = ConnectionOwners::default();
                let (is_ready, programmed) = (false, BTreeSet::new());
                balancers.processes.push(Process {
                    balancer,
                    owners,
                    is_ready,
                    forwards,
                    programmed,
                });
            }
            balancers.sites.push(site);
        }
        Ok(balancers)
    }

    /// Waits until every listener listens and the health of every target is decided. A target
    /// whose probes alternate between success and failure (because a scheduler sends them to
    /// different endpoints) is never decided and keeps counting as alive.
    pub(crate) fn await_ready(
        &mut self,
        lab_cluster: &LabCluster,
        watch: &Watch,
    ) -> Result<(), LabError> {
        let limit = Instant::now() + START;
        loop {
            let all_ready = self.processes.iter().all(|process| process.is_ready);
            let is_decided = |site: &Site| self.healths.are_decided(&site.balancers);
            if all_ready && self.sites.iter().all(is_decided) && self.are_programmed() {
                return Ok(());
            }
            watch.check()?;
            let mut waiting: Vec<PollFd<'_>> = self.waits_for().collect();
            wait(&mut waiting, Instant::now() + POLL_INTERVAL)?;
            drop(waiting);
            self.hear(lab_cluster, None)?;
            if Instant::now() > limit {
                if self.processes.iter().all(|process| process.is_ready) {
                    return Ok(());
                }
                return Err(LabError::Program {
                    doing: "start the load balancer".into(),
                    reason: format!("not ready after {} s", START.as_secs()),
                });
            }
        }
    }

    /// Returns whether the kernels forward as the health checks have decided.
    pub(crate) fn are_programmed(&self) -> bool {
        let dead = self.healths.dead();
        let dead = || dead.iter().map(|dead| ((dead.listener, dead.protocol), dead.target));
        self.processes.iter().all(|Process { forwards, programmed, .. }| {
            let wanted: BTreeSet<_> =
                dead().filter(|(listener, _)| forwards.contains(listener)).collect();
            wanted == *programmed
        })
    }

    /// Returns whether a process makes the kernel forward in this scope.
    pub(crate) fn forward_in_nf_tables(&self, scope: Scope) -> bool {
        let of_scope = self.sites.iter().filter(|site| site.scope() == scope);
        of_scope
            .filter(|site| site.layer_4 == Layer4::Process)
            .any(|site| site.balancers.iter().flat_map(|lb| &lb.listeners).any(is_in_kernel))
    }

    /// Returns the descriptors that become readable when there are events.
    pub(crate) fn waits_for(&self) -> impl Iterator<Item = PollFd<'_>> {
        let processes =
            self.processes.iter().map(|process| PollFd::new(&process.balancer, PollFlags::IN));
        processes.chain(self.picks.iter().map(|picks| PollFd::new(picks, PollFlags::IN)))
    }

    /// Processes the events since the last call, and returns those that concern flows, each with
    /// its flow. Updates the layer 4 rules if the health of a target changed.
    pub(crate) fn hear(
        &mut self,
        lab_cluster: &LabCluster,
        current: Option<usize>,
    ) -> Result<Vec<(usize, FlowEvent)>, LabError> {
        let mut seen = Vec::new();
        let mut is_news = false;
        for Process { balancer, owners, is_ready, programmed, .. } in &mut self.processes {
            for event in balancer.events()? {
                match &event {
                    Event::Ready { .. } => *is_ready = true,
                    Event::Programmed { targets } => {
                        for ForwardedTarget { listener, protocol, target, alive } in targets {
                            let key = ((*listener, health::transport(protocol)), *target);
                            if *alive {
                                programmed.remove(&key)
                            } else {
                                programmed.insert(key)
                            };
                        }
                    }
                    Event::NotProgrammed { why } => {
                        let reason = why.clone();
                        return Err(LabError::Program { doing: "set up layer 4".into(), reason });
                    }
                    _ => {}
                }
                is_news |= self.healths.record(&event);
                seen.extend(owners.record(&event, current));
            }
        }
        if is_news {
            for site in &self.sites {
                if let Some(space) = lab_cluster.of_balancers(site.scope()) {
                    site.program_layer_4(space, &self.healths)?;
                }
            }
        }
        for picks in &self.picks {
            let picked = picks.take()?.into_iter();
            seen.extend(current.into_iter().flat_map(|flow| {
                picked.clone().map(move |target| (flow, FlowEvent::Picked(target)))
            }));
        }
        Ok(seen)
    }

    /// Returns the number of packets of each call.
    pub(crate) fn called(&self, lab_cluster: &LabCluster) -> Result<BTreeMap<Call, u64>, LabError> {
        let mut counts = BTreeMap::new();
        for site in &self.sites {
            if let Some(space) = lab_cluster.of_balancers(site.scope()) {
                counts.extend(call_counters::read(space, &site.calls)?);
            }
        }
        Ok(counts)
    }
}

/// Returns whether a site needs a process in addition to the rules.
fn needs_process(site: &Site) -> bool {
    let mut listeners = site.balancers.iter().flat_map(|lb| &lb.listeners);
    let by_rules = |listener: &Listener| site.layer_4 == Layer4::Rules && is_in_kernel(listener);
    listeners.any(|listener| !by_rules(listener)) || health::are_any(&site.balancers)
}
