//! All load balancers of a lab: their namespaces, the rules and processes that implement them,
//! the events that these report, and the results of health checks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use uturn_lb::event::Event;
use uturn_model::LoadBalancer;
use uturn_model::lb::Scope;

use super::balancer_process::{BalancerProcess, ConnectionOwners, FlowEvent};
use super::build::Twin;
use super::call_counters::{self, Call};
use super::health::{self, TargetHealths};
use super::interrupt::Watch;
use super::rules::{Site, is_in_kernel};
use super::state::Run;
use super::target::Target;
use super::wait::{POLL_INTERVAL, wait};
use crate::{LabError, Plan};

/// How long the load balancers may take to start and to decide the health of their targets.
const START: Duration = Duration::from_secs(20);

/// All running load balancers.
#[derive(Debug)]
pub(crate) struct LoadBalancers {
    sites: Vec<Site>,
    /// The load balancer processes.
    processes: Vec<Process>,
    /// The health of targets so far.
    pub(crate) healths: TargetHealths,
}

#[derive(Debug)]
struct Process {
    balancer: BalancerProcess,
    owners: ConnectionOwners,
    is_ready: bool,
}

impl LoadBalancers {
    /// Programs the rules of the load balancers and starts their processes.
    pub(crate) fn start(
        run: &Run,
        plan: &Plan<'_>,
        twin: &Twin,
        targets: &[Target],
    ) -> Result<Self, LabError> {
        let all = plan.load_balancers;
        let public: Vec<LoadBalancer> =
            all.iter().filter(|lb| lb.scope == Scope::Public).cloned().collect();
        let mut balancers =
            Self { sites: Vec::new(), processes: Vec::new(), healths: TargetHealths::default() };
        for (scope, name) in [(Scope::Private, "inside"), (Scope::Public, "outside")] {
            let Some(space) = twin.of_balancers(scope) else { continue };
            let of_scope = targets.iter().filter(|target| target.scope == Some(scope));
            let calls: BTreeSet<Call> = of_scope.flat_map(Target::calls).collect();
            let site = Site::new(scope, all, calls);
            let beyond_vpc = twin.edge.as_ref().map(|_| &*public);
            site.program(space, plan.cluster, beyond_vpc)?;
            if needs_process(&site.balancers) {
                let accelerated = health::accelerated(&site.balancers);
                let balancer =
                    BalancerProcess::start(run, &plan.program, &accelerated, space, name)?;
                let (owners, is_ready) = (ConnectionOwners::default(), false);
                balancers.processes.push(Process { balancer, owners, is_ready });
            }
            balancers.sites.push(site);
        }
        Ok(balancers)
    }

    /// Waits until every listener listens and the health of every target is decided. A target
    /// whose probes alternate between success and failure (because a scheduler sends them to
    /// different endpoints) is never decided and keeps counting as alive.
    pub(crate) fn await_ready(&mut self, twin: &Twin, watch: &Watch) -> Result<(), LabError> {
        let limit = Instant::now() + START;
        loop {
            let all_ready = self.processes.iter().all(|process| process.is_ready);
            let is_decided = |site: &Site| self.healths.are_decided(&site.balancers);
            if all_ready && self.sites.iter().all(is_decided) {
                return Ok(());
            }
            watch.check()?;
            let mut waiting: Vec<PollFd<'_>> = self.waits_for().collect();
            wait(&mut waiting, Instant::now() + POLL_INTERVAL)?;
            drop(waiting);
            self.hear(twin, None)?;
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

    /// The descriptors that become readable when there are events.
    pub(crate) fn waits_for(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.processes.iter().map(|process| PollFd::new(&process.balancer, PollFlags::IN))
    }

    /// Processes the events since the last call and returns those that concern flows, each with
    /// its flow. Updates the layer 4 rules if the health of a target changed.
    pub(crate) fn hear(
        &mut self,
        twin: &Twin,
        current: Option<usize>,
    ) -> Result<Vec<(usize, FlowEvent)>, LabError> {
        let mut seen = Vec::new();
        let mut is_news = false;
        for Process { balancer, owners, is_ready } in &mut self.processes {
            for event in balancer.events()? {
                *is_ready |= matches!(event, Event::Ready { .. });
                is_news |= self.healths.record(&event);
                seen.extend(owners.record(&event, current));
            }
        }
        if is_news {
            for site in &self.sites {
                if let Some(space) = twin.of_balancers(site.scope()) {
                    site.program_layer_4(space, &self.healths)?;
                }
            }
        }
        Ok(seen)
    }

    /// The number of packets of each call.
    pub(crate) fn called(&self, twin: &Twin) -> Result<BTreeMap<Call, u64>, LabError> {
        let mut counts = BTreeMap::new();
        for site in &self.sites {
            if let Some(space) = twin.of_balancers(site.scope()) {
                counts.extend(call_counters::read(space, &site.calls)?);
            }
        }
        Ok(counts)
    }
}

/// Whether these load balancers need a process besides the rules.
fn needs_process(all: &[LoadBalancer]) -> bool {
    let mut listeners = all.iter().flat_map(|lb| &lb.listeners);
    listeners.any(|listener| !is_in_kernel(listener)) || health::are_any(all)
}
