//! A whole measurement: builds the lab, starts it, connects, counts, and takes it down.

mod explain;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::{Duration, Instant};

use rustix::event::PollFd;
use uturn_model::{Client, Destination, NamespacedName, Outcome, Pod, Text};

use super::client::Attempt;
use super::load_balancers::LoadBalancers;
use super::target::{PickedBy, Target};
use super::workload::Split;
use crate::linux::build::kernel_parts;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::forward::balancer_process::FlowEvent;
use crate::linux::forward::node_answers;
use crate::linux::forward::rules::program_node;
use crate::linux::kernel::system::During;
use crate::linux::kernel::wait::{POLL_INTERVAL, QUIET_PERIOD, wait};
use crate::linux::observe::{Recorder, lab_namespaces};
use crate::linux::run::interrupt::Watch;
use crate::linux::run::program::Program;
use crate::linux::run::state::Run;
use crate::linux::serve::haproxy;
use crate::linux::serve::names::{self, Found, Names};
use crate::linux::serve::nginx;
use crate::linux::serve::server::Servers;
use crate::{Evidence, LabError, MeasuredFlow, OnReady, Plan, TargetHealth, Watched, Watching};

/// The time without an event after which a connection of a paced flow waits for a timeout, and not
/// for a processor.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn measure(
    plan: &Plan<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<MeasuredFlow>, LabError> {
    Ok(watch(plan, &Watching::default(), None, progress)?.flows)
}

pub(crate) fn watch(
    plan: &Plan<'_>,
    watching: &Watching,
    standing: Option<OnReady<'_>>,
    progress: &mut dyn FnMut(&str),
) -> Result<Watched, LabError> {
    let watch = Watch::new()?;
    let split = Split::of(plan)?;
    let load_balancers = node_answers::answered(plan.cluster, plan.load_balancers);
    let parts = Plan { flows: &split.flows, load_balancers: &load_balancers, ..plan.clone() };
    let measured = Lab::build(&parts, &watch, watching, progress).and_then(|mut lab| {
        let measured = lab.run(progress)?;
        let explanations =
            if watching.explain { lab.explain(&measured, progress)? } else { Vec::new() };
        let explanations =
            explanations.into_iter().filter_map(|explanation| split.whole(explanation)).collect();
        let watched = Watched { flows: split.join(plan, &measured), explanations };
        let stays = standing.is_some();
        if let Some(standing) = standing {
            standing(&watched, &lab_namespaces(&lab.lab_cluster).during("look inside the lab")?);
            lab.stay()?;
        }
        lab.recorder.take().map(Recorder::finish).transpose()?;
        Ok((watched, stays))
    });
    match measured {
        // A lab that stays up may be interrupted once it has been measured.
        Ok((watched, true)) => Ok(watched),
        measured => {
            // A program may have failed because Ctrl-C reached it first.
            watch.check()?;
            Ok(measured?.0)
        }
    }
}

/// A lab that is up. Fields are dropped in this order: the state on disk, which lets other runs
/// clean up, goes last.
struct Lab<'a> {
    plan: &'a Plan<'a>,
    watch: &'a Watch,
    balancers: LoadBalancers,
    _programs: Vec<Program>,
    _names: Option<Names>,
    _servers: Servers,
    recorder: Option<Recorder>,
    lab_cluster: LabCluster,
    run: Run,
    targets: Vec<Target>,
    /// The value of [`Lab::called`] when the latest flow began.
    called_before: u64,
    /// The time when the kernel's counters were last read, or the latest flow began. Reading them
    /// takes longer than most flows.
    counters_read_at: Instant,
    /// Whether nothing happened for [`QUIET_PERIOD`]. Only then does the next flow begin, so that a
    /// slow machine does not delay answers.
    is_quiet: bool,
    /// The connections of the latest flow that have not begun, if the plan is paced.
    remaining: Range<u64>,
    tallies: Vec<Tally>,
}

/// The results of one flow so far.
#[derive(Clone, Default)]
struct Tally {
    /// The number of connections that the load balancer has decided on.
    decided: u64,
    counts: BTreeMap<Outcome, u64>,
    picked: BTreeMap<SocketAddr, u64>,
    timed_out: BTreeMap<SocketAddr, u64>,
    health: Vec<TargetHealth>,
    answered_by: BTreeMap<String, u64>,
    sources_seen: BTreeMap<IpAddr, u64>,
    forwarded_for: BTreeMap<String, u64>,
}

impl<'a> Lab<'a> {
    fn build(
        plan: &'a Plan<'a>,
        watch: &'a Watch,
        watching: &Watching,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        let (cluster, load_balancers) = (plan.cluster, plan.load_balancers);
        let targets = |found: &Found| -> Result<Vec<Target>, LabError> {
            let of = |flow| Target::of(cluster, load_balancers, flow, found);
            plan.flows.iter().map(of).collect()
        };
        // Errors in the plan are reported before anything is built.
        targets(&names::asked(plan).into_iter().map(|asked| (asked, Vec::new())).collect())?;
        let coredns = names::program(plan)?;
        crate::linux::available()?;
        let run = Run::new()?;
        kernel_parts::check(&plan.needs(), &run)?;
        progress(&format!("building {} nodes", cluster.nodes.len()));
        let needed = Needed::by(plan);
        let lab_cluster = LabCluster::build(&run, plan, |pod| needed.has(pod))?;
        let observes = watching.explain || watching.captures.is_some();
        let recorder = observes.then(|| Recorder::start(&lab_cluster, watching.captures.clone()));
        let recorder = recorder.transpose()?;
        watch.check()?;
        for (name, space) in &lab_cluster.nodes {
            program_node(plan, name, space)?;
            watch.check()?;
        }
        let has_own =
            |pod: &Pod| is_program(pod) || coredns.is_some() && names::serves(cluster, pod);
        let servers = Servers::start(plan, &lab_cluster, has_own)?;
        let mut programs = nginx::start(&run, cluster, &lab_cluster)?;
        programs.extend(haproxy::start(&run, cluster, &lab_cluster)?);
        let names =
            coredns.map(|program| Names::start(&run, plan, &lab_cluster, &program)).transpose()?;
        let found = names.as_ref().map(|names| names.resolve(plan, &lab_cluster)).transpose()?;
        let targets = targets(&found.unwrap_or_default())?;
        // Probes begin immediately, so everything that they reach must be up.
        let mut balancers = LoadBalancers::start(&run, plan, &lab_cluster, &targets)?;
        balancers.await_ready(&lab_cluster, watch)?;
        let tallies = vec![Tally::default(); targets.len()];
        Ok(Self {
            plan,
            watch,
            balancers,
            _programs: programs,
            _names: names,
            _servers: servers,
            recorder,
            lab_cluster,
            run,
            targets,
            called_before: 0,
            counters_read_at: Instant::now(),
            is_quiet: false,
            remaining: 0..0,
            tallies,
        })
    }

    fn run(&mut self, progress: &mut dyn FnMut(&str)) -> Result<Vec<MeasuredFlow>, LabError> {
        let mut attempts: Vec<Attempt> = Vec::new();
        let mut begun = 0_usize;
        loop {
            self.collect(&mut attempts)?;
            self.begin_next(begun.checked_sub(1), &mut attempts)?;
            while begun < self.targets.len()
                && self.remaining.is_empty()
                && self.balancers.are_programmed()
                && self.is_decided(begun, &attempts)?
            {
                progress(&format!(
                    "measuring {} → {}",
                    self.plan.flows[begun].from, self.plan.flows[begun].to
                ));
                self.called_before = self.called(begun)?;
                self.update(begun);
                if self.targets[begun].has_address() {
                    attempts.extend(self.begin(begun)?);
                } else {
                    let all = self.connects(begun);
                    self.tallies[begun].counts.insert(Outcome::NameNotFound, all);
                }
                self.counters_read_at = Instant::now();
                self.is_quiet = false;
                begun += 1;
            }
            if attempts.is_empty() && self.remaining.is_empty() && begun == self.targets.len() {
                break;
            }
            self.watch.check()?;
            self.wait_and_go_on(&mut attempts, begun.checked_sub(1))?;
        }
        self.hear(begun.checked_sub(1))?;
        let called = self.balancers.called(&self.lab_cluster)?;
        let flows = self.plan.flows.iter().zip(&self.targets);
        let flows = flows.zip(std::mem::take(&mut self.tallies));
        Ok(flows
            .map(|((flow, target), tally)| {
                let (counts, mut evidence) = tally.into_evidence();
                let own = target.calls().filter_map(|call| called.get(&call));
                evidence.reached_load_balancer = own.sum();
                MeasuredFlow { flow: flow.clone(), counts, limit: target.limit, evidence }
            })
            .collect())
    }

    /// Returns the number of connections that a flow makes: a whole number of turns.
    fn connects(&self, flow: usize) -> u64 {
        let turns = self.targets[flow].turns;
        (self.plan.connects as u64).max(1).div_ceil(turns) * turns
    }

    /// Returns whether the previous flow no longer affects the scheduler's turns: the load balancer
    /// has seen all its connections, or they have ended without reaching it.
    fn is_decided(&mut self, flow: usize, attempts: &[Attempt]) -> Result<bool, LabError> {
        let Some(before) = flow.checked_sub(1) else { return Ok(true) };
        if !attempts.iter().any(|attempt| attempt.flow == before) {
            return Ok(true);
        }
        let connects = self.connects(before);
        match self.targets[before].picked_by {
            PickedBy::NoBalancer => Ok(self.is_quiet),
            _ if self.tallies[before].decided >= connects => Ok(true),
            PickedBy::Process => Ok(false),
            // The kernel does not report connections that it drops. No events are processed while
            // the counters are read.
            PickedBy::Kernel
                if !self.is_quiet || self.counters_read_at.elapsed() < POLL_INTERVAL / 2 =>
            {
                Ok(false)
            }
            PickedBy::Kernel => {
                self.counters_read_at = Instant::now();
                Ok(self.called(before)? - self.called_before >= connects)
            }
        }
    }

    /// Returns the number of a flow's packets that have reached the layer 4 rules. Other flows may
    /// share its node's address.
    fn called(&self, flow: usize) -> Result<u64, LabError> {
        let target = &self.targets[flow];
        if target.picked_by != PickedBy::Kernel {
            return Ok(0);
        }
        let counts = self.balancers.called(&self.lab_cluster)?;
        Ok(target.calls().filter_map(|call| counts.get(&call)).sum())
    }

    /// Records the health of a flow's targets when the flow begins.
    fn update(&mut self, flow: usize) {
        let (balancers, healths) = (self.plan.load_balancers, &self.balancers.healths);
        self.targets[flow].update(balancers, healths);
        self.tallies[flow].health = self.targets[flow].health(balancers, healths);
    }

    /// Begins the connections of a flow, or the first of them if the plan is paced.
    fn begin(&mut self, flow: usize) -> Result<Vec<Attempt>, LabError> {
        let all = self.connects(flow);
        let now = if self.plan.paced { 1 } else { all };
        self.remaining = now..all;
        self.begin_some(flow, 0..now)
    }

    /// Begins the next connection of the latest flow, if the plan is paced and it is time.
    fn begin_next(
        &mut self,
        latest: Option<usize>,
        attempts: &mut Vec<Attempt>,
    ) -> Result<(), LabError> {
        let Some(flow) = latest.filter(|_| !self.remaining.is_empty()) else { return Ok(()) };
        if (self.is_quiet || !attempts.iter().any(|attempt| attempt.flow == flow))
            && let Some(next) = self.remaining.next()
        {
            attempts.extend(self.begin_some(flow, next..next + 1)?);
            self.is_quiet = false;
        }
        Ok(())
    }

    fn begin_some(&self, flow: usize, numbers: Range<u64>) -> Result<Vec<Attempt>, LabError> {
        let Target { spec, limit, .. } = &self.targets[flow];
        let from = &self.plan.flows[flow].from;
        let space = self
            .lab_cluster
            .of_client(self.plan.cluster, from)
            .ok_or_else(|| LabError::Plan(format!("{from} does not run, so it cannot call")))?;
        Attempt::begin(space, spec, flow, numbers, *limit)
            .during(&format!("connect from {from} to {}", spec.address))
    }

    /// Waits for events, then advances the connections that are ready and processes the load
    /// balancers' events.
    fn wait_and_go_on(
        &mut self,
        attempts: &mut [Attempt],
        current: Option<usize>,
    ) -> Result<(), LabError> {
        let soon = if !self.remaining.is_empty() {
            PATIENCE
        } else if current.is_some_and(|flow| flow + 1 < self.targets.len()) {
            QUIET_PERIOD
        } else {
            POLL_INTERVAL
        };
        let soon = Instant::now() + soon;
        let until = attempts.iter().map(Attempt::deadline).fold(soon, Instant::min);
        let mut waiting: Vec<PollFd<'_>> = attempts.iter().map(Attempt::waits_for).collect();
        waiting.extend(self.balancers.waits_for());
        let ready = wait(&mut waiting, until)?;
        drop(waiting);
        self.is_quiet = !ready.contains(&true);
        let now = Instant::now();
        for (attempt, ready) in attempts.iter_mut().zip(ready) {
            if ready {
                attempt.advance();
            }
            attempt.check_deadline(now);
        }
        self.hear(current)
    }

    /// Adds the load balancers' events to the tallies.
    fn hear(&mut self, current: Option<usize>) -> Result<(), LabError> {
        for (flow, seen) in self.balancers.hear(&self.lab_cluster, current)? {
            let tally = &mut self.tallies[flow];
            match seen {
                FlowEvent::Picked(target) => {
                    tally.decided += 1;
                    *tally.picked.entry(target).or_default() += 1;
                }
                FlowEvent::TurnedAway => tally.decided += 1,
                FlowEvent::TimedOut(target) => *tally.timed_out.entry(target).or_default() += 1,
                FlowEvent::Other => {}
            }
        }
        Ok(())
    }

    /// Counts and removes the attempts that have ended.
    fn collect(&mut self, attempts: &mut Vec<Attempt>) -> Result<(), LabError> {
        for attempt in attempts.extract_if(.., |attempt| attempt.has_ended()) {
            let flow = attempt.flow;
            let Some(ending) = attempt.into_ending() else { continue };
            let flow_name = &self.plan.flows[flow];
            let (outcome, answer) =
                ending.during(&format!("connect from {} to {}", flow_name.from, flow_name.to))?;
            let tally = &mut self.tallies[flow];
            *tally.counts.entry(outcome).or_default() += 1;
            if let Some(answer) = answer {
                *tally.answered_by.entry(answer.by).or_default() += 1;
                *tally.sources_seen.entry(answer.source).or_default() += 1;
                if let Some(text) = answer.forwarded_for {
                    *tally.forwarded_for.entry(text).or_default() += 1;
                }
            }
        }
        Ok(())
    }
}

impl Tally {
    fn into_evidence(self) -> (Vec<(Outcome, u64)>, Evidence) {
        fn texts(all: BTreeMap<String, u64>) -> Vec<(Text, u64)> {
            all.into_iter().map(|(text, count)| (text.into(), count)).collect()
        }
        let evidence = Evidence {
            reached_load_balancer: 0,
            picked: self.picked.into_iter().collect(),
            timed_out: self.timed_out.into_iter().collect(),
            health: self.health,
            answered_by: texts(self.answered_by),
            sources_seen: self.sources_seen.into_iter().collect(),
            forwarded_for: texts(self.forwarded_for),
        };
        (self.counts.into_iter().collect(), evidence)
    }
}

/// Returns whether a pod runs a program of its own.
fn is_program(pod: &Pod) -> bool {
    nginx::is_one(pod) || haproxy::is_one(pod)
}

/// The names and addresses of the pods that take part in flows. Other pods are not built.
struct Needed<'a> {
    names: BTreeSet<&'a NamespacedName>,
    addresses: BTreeSet<IpAddr>,
}

impl<'a> Needed<'a> {
    fn by(plan: &'a Plan<'_>) -> Self {
        let slices = plan.cluster.endpoints.values().flatten();
        let endpoints = slices.flat_map(|slice| &slice.endpoints);
        let mut needed = Self {
            names: BTreeSet::new(),
            addresses: endpoints.map(|endpoint| endpoint.address).collect(),
        };
        for flow in plan.flows {
            if let Client::Pod(name) = &flow.from {
                needed.names.insert(name);
            }
            match &flow.to {
                Destination::Pod(name, _) => drop(needed.names.insert(name)),
                Destination::Address(address) => drop(needed.addresses.insert(address.ip())),
                Destination::Url { host, .. } | Destination::Host(host, _) => {
                    needed.addresses.extend(host.parse::<IpAddr>());
                }
                _ => {}
            }
        }
        needed
    }

    fn has(&self, pod: &Pod) -> bool {
        is_program(pod)
            || self.names.contains(&pod.name)
            || pod.ips.iter().any(|ip| self.addresses.contains(ip))
    }
}
