//! A whole measurement: build, start, connect, count, take down.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use uturn_lb::l7::Event;
use uturn_model::lb::Layer;
use uturn_model::{Client, Destination, LoadBalancer, NamespacedName, Outcome, Pod, Text};

use super::balancer::{Balancer, Ledger, Seen};
use super::build::Twin;
use super::client::Attempt;
use super::count::{self, Call};
use super::interrupt::Watch;
use super::namespace::Namespace;
use super::rules::{program_fabric, program_node};
use super::server::Servers;
use super::state::Run;
use super::system::During;
use super::target::{PickedBy, Target};
use crate::{Evidence, LabError, MeasuredFlow, Plan};

/// How soon a signal is noticed.
const ATTENTION: Duration = Duration::from_millis(100);

/// How long the load balancer may take to start.
const START: Duration = Duration::from_secs(10);

pub(crate) fn measure(
    plan: &Plan<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<MeasuredFlow>, LabError> {
    let watch = Watch::new()?;
    let measured = Lab::build(plan, &watch, progress).and_then(|mut lab| lab.run(progress));
    // A program that Ctrl-C reached first fails for that reason and no other.
    watch.check()?;
    measured
}

/// A lab that stands. Fields are dropped in this order: the state that lets others clean up
/// goes last.
struct Lab<'a> {
    plan: &'a Plan<'a>,
    watch: &'a Watch,
    balancer: Option<Balancer>,
    _servers: Servers,
    twin: Twin,
    _run: Run,
    targets: Vec<Target>,
    calls: BTreeSet<Call>,
    /// What [`Lab::called`] was before the latest flow began.
    called_before: u64,
    /// When the kernel was last asked for its counts, or the latest flow began: asking takes
    /// longer than most flows.
    asked: Instant,
    ledger: Ledger,
    tallies: Vec<Tally>,
}

/// What came out for one flow so far.
#[derive(Clone, Default)]
struct Tally {
    /// Connections that the load balancer has decided on.
    decided: u64,
    counts: BTreeMap<Outcome, u64>,
    picked: BTreeMap<SocketAddr, u64>,
    timed_out: BTreeMap<SocketAddr, u64>,
    answered_by: BTreeMap<String, u64>,
    sources_seen: BTreeMap<IpAddr, u64>,
    forwarded_for: BTreeMap<String, u64>,
}

impl<'a> Lab<'a> {
    fn build(
        plan: &'a Plan<'a>,
        watch: &'a Watch,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        let (cluster, load_balancers) = (plan.cluster, plan.load_balancers);
        let targets: Vec<Target> = plan
            .flows
            .iter()
            .map(|flow| Target::of(cluster, load_balancers, flow))
            .collect::<Result<_, _>>()?;
        check(plan)?;
        super::available()?;
        let run = Run::new()?;
        progress(&format!("building {} nodes", cluster.nodes.len()));
        let needed = Needed::by(plan);
        let twin = Twin::build(&run, cluster, |pod| needed.has(pod))?;
        watch.check()?;
        for (name, space) in &twin.nodes {
            program_node(cluster, name, space)?;
            watch.check()?;
        }
        let calls = calls(load_balancers, &targets);
        program_fabric(&twin.fabric, load_balancers, &calls)?;
        let servers = Servers::start(cluster, &twin)?;
        let balancer = serves_layer_7(load_balancers)
            .then(|| Balancer::start(&run, &plan.program, load_balancers, &twin.fabric))
            .transpose()?;
        let tallies = vec![Tally::default(); targets.len()];
        let ledger = Ledger::default();
        let mut lab = Self {
            plan,
            watch,
            balancer,
            _servers: servers,
            twin,
            _run: run,
            targets,
            calls,
            called_before: 0,
            asked: Instant::now(),
            ledger,
            tallies,
        };
        lab.await_ready()?;
        Ok(lab)
    }

    fn await_ready(&mut self) -> Result<(), LabError> {
        let limit = Instant::now() + START;
        while let Some(balancer) = &mut self.balancer {
            self.watch.check()?;
            wait(&mut [PollFd::new(balancer, PollFlags::IN)], Instant::now() + ATTENTION)?;
            for event in balancer.events()? {
                match event {
                    Event::Ready { .. } => return Ok(()),
                    Event::Unserved { listener, why }
                        if self.targets.iter().any(|one| one.aim.address == listener) =>
                    {
                        return Err(LabError::Plan(format!("listener {listener}: {why}")));
                    }
                    _ => {}
                }
            }
            if Instant::now() > limit {
                return Err(LabError::Program {
                    doing: "start the load balancer".into(),
                    said: format!("not ready after {} s", START.as_secs()),
                });
            }
        }
        Ok(())
    }

    fn run(&mut self, progress: &mut dyn FnMut(&str)) -> Result<Vec<MeasuredFlow>, LabError> {
        let mut attempts: Vec<Attempt> = Vec::new();
        let mut begun = 0;
        loop {
            self.collect(&mut attempts)?;
            while begun < self.targets.len() && self.is_decided(begun, &attempts)? {
                progress(&format!(
                    "measuring {} → {}",
                    self.plan.flows[begun].from, self.plan.flows[begun].to
                ));
                self.called_before = self.called(begun)?;
                attempts.extend(self.begin(begun)?);
                self.asked = Instant::now();
                begun += 1;
            }
            if attempts.is_empty() && begun == self.targets.len() {
                break;
            }
            self.watch.check()?;
            self.wait_and_go_on(&mut attempts, begun.checked_sub(1))?;
        }
        self.hear(begun.checked_sub(1))?;
        let called = count::read(&self.twin.fabric, &self.calls)?;
        let flows = self.plan.flows.iter().zip(&self.targets);
        let flows = flows.zip(std::mem::take(&mut self.tallies));
        Ok(flows
            .map(|((flow, target), tally)| {
                let (counts, mut evidence) = tally.into_evidence();
                let own = target.calls().filter_map(|call| called.get(&call));
                evidence.reached_load_balancer = own.sum();
                MeasuredFlow { flow: flow.clone(), counts, evidence }
            })
            .collect())
    }

    /// How many connections a flow makes: whole turns.
    fn connects(&self, flow: usize) -> u64 {
        let turns = self.targets[flow].turns;
        (self.plan.connects as u64).max(1).div_ceil(turns) * turns
    }

    /// Whether the flow before this one leaves the scheduler's turns alone from now on:
    /// whoever picks has seen all its connections, or they have ended without.
    fn is_decided(&mut self, flow: usize, attempts: &[Attempt]) -> Result<bool, LabError> {
        let Some(before) = flow.checked_sub(1) else { return Ok(true) };
        if !attempts.iter().any(|attempt| attempt.flow == before) {
            return Ok(true);
        }
        let decided = match self.targets[before].picked_by {
            PickedBy::Nobody => return Ok(true),
            PickedBy::Process => self.tallies[before].decided,
            PickedBy::Kernel if self.asked.elapsed() < ATTENTION / 2 => return Ok(false),
            PickedBy::Kernel => {
                self.asked = Instant::now();
                self.called(before)? - self.called_before
            }
        };
        Ok(decided >= self.connects(before))
    }

    /// How many packets of a flow have come to the rules of layer 4 (others may share its
    /// node's address).
    fn called(&self, flow: usize) -> Result<u64, LabError> {
        let target = &self.targets[flow];
        if target.picked_by != PickedBy::Kernel {
            return Ok(0);
        }
        let counts = count::read(&self.twin.fabric, &self.calls)?;
        Ok(target.calls().filter_map(|call| counts.get(&call)).sum())
    }

    fn begin(&self, flow: usize) -> Result<Vec<Attempt>, LabError> {
        let Target { aim, limit, .. } = &self.targets[flow];
        let from = &self.plan.flows[flow].from;
        let space = self
            .space_of(from)
            .ok_or_else(|| LabError::Plan(format!("{from} does not run, so it calls nobody")))?;
        Attempt::begin(space, aim, flow, self.connects(flow), *limit)
            .during(&format!("connect from {from} to {}", aim.address))
    }

    fn space_of(&self, client: &Client) -> Option<&Namespace> {
        match client {
            Client::Pod(name) => self.twin.of_pod(self.plan.cluster.pods.get(name)?),
            Client::Node(name) => self.twin.nodes.get(name),
            Client::Workload(..) | Client::Outside(_) => None,
        }
    }

    /// Waits until something happens, and lets everybody it concerns go on.
    fn wait_and_go_on(
        &mut self,
        attempts: &mut [Attempt],
        current: Option<usize>,
    ) -> Result<(), LabError> {
        let soon = Instant::now() + ATTENTION;
        let until = attempts.iter().map(Attempt::deadline).fold(soon, Instant::min);
        let mut waiting: Vec<PollFd<'_>> = attempts.iter().map(Attempt::waits_for).collect();
        waiting.extend(self.balancer.iter().map(|one| PollFd::new(one, PollFlags::IN)));
        let ready = wait(&mut waiting, until)?;
        drop(waiting);
        let now = Instant::now();
        for (attempt, ready) in attempts.iter_mut().zip(ready) {
            if ready {
                attempt.go_on();
            }
            attempt.look_at_clock(now);
        }
        self.hear(current)
    }

    /// Books what the load balancer has reported.
    fn hear(&mut self, current: Option<usize>) -> Result<(), LabError> {
        let Some(balancer) = &mut self.balancer else { return Ok(()) };
        for event in balancer.events()? {
            let Some((flow, seen)) = self.ledger.book(&event, current) else { continue };
            let tally = &mut self.tallies[flow];
            match seen {
                Seen::Picked(target) => {
                    tally.decided += 1;
                    *tally.picked.entry(target).or_default() += 1;
                }
                Seen::TurnedAway => tally.decided += 1,
                Seen::TimedOut(target) => *tally.timed_out.entry(target).or_default() += 1,
                Seen::Other => {}
            }
        }
        Ok(())
    }

    /// Counts the attempts that have ended, and forgets them.
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
            answered_by: texts(self.answered_by),
            sources_seen: self.sources_seen.into_iter().collect(),
            forwarded_for: texts(self.forwarded_for),
        };
        (self.counts.into_iter().collect(), evidence)
    }
}

/// Which descriptors are ready; none when the time is over first.
fn wait(waiting: &mut [PollFd<'_>], until: Instant) -> Result<Vec<bool>, LabError> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(waiting, Some(&left)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error).during("wait"),
    }
    Ok(waiting.iter().map(|one| !one.revents().is_empty()).collect())
}

/// Calls of load balancers that the flows can make.
fn calls(load_balancers: &[LoadBalancer], targets: &[Target]) -> BTreeSet<Call> {
    let vips: BTreeSet<IpAddr> = load_balancers.iter().map(|lb| lb.vip).collect();
    let all = targets.iter().flat_map(Target::calls);
    all.filter(|(_, to)| vips.contains(&to.ip())).collect()
}

fn serves_layer_7(load_balancers: &[LoadBalancer]) -> bool {
    let mut listeners = load_balancers.iter().flat_map(|lb| &lb.listeners);
    listeners.any(|listener| listener.protocol.layer() == Layer::L7)
}

/// What the lab would leave out, so that it would measure another cluster than was meant.
fn check(plan: &Plan<'_>) -> Result<(), LabError> {
    let is_known = |group: &&Text| plan.cluster.security_groups.contains_key(*group);
    let of_nodes = plan.cluster.nodes.values().filter_map(|node| node.security_groups.as_ref());
    let of_balancers = plan.load_balancers.iter().map(|lb| &lb.security_groups);
    match of_nodes.chain(of_balancers).flatten().find(is_known) {
        Some(group) => {
            Err(LabError::Plan(format!("security groups cannot be built yet, such as {group}")))
        }
        None => Ok(()),
    }
}

/// Addresses and names of the pods that are called or call; all others are left out.
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
                _ => {}
            }
        }
        needed
    }

    fn has(&self, pod: &Pod) -> bool {
        self.names.contains(&pod.name) || pod.ips.iter().any(|ip| self.addresses.contains(ip))
    }
}
