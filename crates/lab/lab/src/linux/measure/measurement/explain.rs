//! Follows one more connection of a failing flow, or one more health check of a dead target,
//! packet by packet.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use uturn_model::lb::Scope;
use uturn_model::{LoadBalancer, Mechanism, Outcome};

use super::{Lab, Tally};
use crate::linux::build::public;
use crate::linux::forward::health::{self, DeadTarget};
use crate::linux::kernel::system::During;
use crate::linux::kernel::wait::{POLL_INTERVAL, wait};
use crate::linux::observe::{
    ConnectionFilter, ConnectionKind, Counters, Drops, EndedPacket, Followed, Frame, Grown, Growth,
    KernelState, Observations, Recorder, Trace, Tracer, places,
};
use crate::{Explanation, KernelPart, LabError, MeasuredFlow, ProbeEnd, Subject};

/// The number of turns of the scheduler that are tried until a connection fails.
const TURNS: u64 = 2;

/// The most rounds of health checks that are observed until a reason is seen for each dead target.
const PROBE_ROUNDS: usize = 5;

/// The means to observe connections.
struct Observer<'a> {
    recorder: &'a Recorder,
    tracer: Option<Tracer>,
    /// The name of each place.
    places: Vec<String>,
    /// The kernel state of each place.
    kernel_states: Vec<KernelState>,
    probers: Vec<IpAddr>,
    notes: Vec<String>,
}

/// The observations made while a closure ran.
struct Observed {
    frames: Vec<Frame>,
    drops: Drops,
    growth: Growth,
    traced: Vec<EndedPacket>,
}

/// The connection that was followed, and how it ended.
struct Case {
    kind: ConnectionKind,
    client: usize,
    to: SocketAddr,
    outcome: Outcome,
    turned_away: bool,
}

impl Lab<'_> {
    /// Explains the targets that are dead and the flows that fail, one connection at a time.
    pub(super) fn explain(
        &mut self,
        measured: &[MeasuredFlow],
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Explanation>, LabError> {
        let Some(recorder) = self.recorder.take() else { return Ok(Vec::new()) };
        let mut notes = Vec::new();
        let tracer = Tracer::start(&self.run.tracing())
            .inspect_err(|why| {
                notes.push(format!(
                    "the kernel's reasons cannot be had here (tracefs: {why}): counters only"
                ));
            })
            .ok();
        let probers = public::probers_of(self.plan);
        let places = places(&self.lab_cluster).into_iter().map(|place| place.what).collect();
        let kernel_states = KernelState::read(&self.lab_cluster)?;
        let observer =
            Observer { recorder: &recorder, tracer, places, kernel_states, probers, notes };
        let mut all = self.explain_probes(&observer, progress)?;
        for (flow, flow_counts) in measured.iter().enumerate() {
            if flow_counts.counts.iter().all(|(outcome, _)| *outcome == Outcome::AT_ONCE) {
                continue;
            }
            progress(&format!("following {} → {}", flow_counts.flow.from, flow_counts.flow.to));
            all.push(self.explain_one(flow, flow_counts, &observer)?);
        }
        drop(observer);
        self.recorder = Some(recorder);
        Ok(all)
    }

    /// Observes until every dead target has been probed once more. On a busy machine that takes
    /// longer than the probes' interval, so the observation is repeated while a reason is missing.
    fn explain_probes(
        &mut self,
        observer: &Observer<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Explanation>, LabError> {
        let dead = self.balancers.healths.dead();
        if dead.is_empty() {
            return Ok(Vec::new());
        }
        progress("following health checks");
        self.tallies = vec![Tally::default(); self.targets.len()];
        let mut explained = Vec::new();
        for _ in 0..PROBE_ROUNDS {
            explained = self.explain_a_round_of_probes(observer, &dead)?;
            if explained.iter().all(|explanation| explanation.mechanism.is_some()) {
                break;
            }
        }
        Ok(explained)
    }

    fn explain_a_round_of_probes(
        &mut self,
        observer: &Observer<'_>,
        dead: &BTreeSet<DeadTarget>,
    ) -> Result<Vec<Explanation>, LabError> {
        let until = Instant::now() + health::probe_round(self.plan.load_balancers);
        let (observed, ()) = self.observe_while(observer, |lab| {
            while Instant::now() < until {
                lab.watch.check()?;
                lab.wait_and_go_on(&mut [], None)?;
            }
            Ok(())
        })?;
        let explain = |dead: &DeadTarget| {
            let of = |lb: &&LoadBalancer| lb.vip == dead.listener.ip();
            let lb = self.plan.load_balancers.iter().find(of);
            let prober = match lb.map(|lb| lb.scope) {
                Some(Scope::Public) => "edge",
                _ => "fabric",
            };
            let case = Case {
                kind: ConnectionKind::Probe,
                client: observer.places.iter().position(|what| what == prober).unwrap_or_default(),
                to: dead.target,
                outcome: match dead.latest {
                    ProbeEnd::Answered => Outcome::AT_ONCE,
                    ProbeEnd::TimedOut => Outcome::Hangs,
                    ProbeEnd::Refused => Outcome::Refused,
                    ProbeEnd::Unreachable => Outcome::Unreachable,
                },
                turned_away: false,
            };
            let DeadTarget { listener, protocol, target, .. } = *dead;
            self.explanation(
                observer,
                Subject::Probe { listener, protocol, target },
                1,
                &case,
                &observed,
            )
        };
        Ok(dead.iter().map(explain).collect())
    }

    fn explain_one(
        &mut self,
        flow: usize,
        measured: &MeasuredFlow,
        observer: &Observer<'_>,
    ) -> Result<Explanation, LabError> {
        let subject = Subject::Flow { flow: measured.flow.clone(), of: flow };
        let mut explanation = Explanation {
            subject: subject.clone(),
            outcome: None,
            connects: 0,
            sightings: Vec::new(),
            mechanism: None,
            because: "no connection made since has failed".into(),
            notes: observer.notes.clone(),
        };
        if !self.targets[flow].has_address() {
            explanation.outcome = Some(Outcome::NameNotFound);
            explanation.mechanism = Some(Mechanism::NameUnresolved);
            explanation.because =
                "the cluster's DNS gives no address, so no connection is made".into();
            return Ok(explanation);
        }
        // If chance decides, more connections may be necessary.
        let most = (self.targets[flow].turns * TURNS).max(self.connects(flow));
        while explanation.connects < most {
            explanation.connects += 1;
            let (observed, (outcome, tally)) =
                self.observe_while(observer, |lab| lab.connect_once(flow))?;
            if outcome == Outcome::AT_ONCE {
                continue;
            }
            let client = self.place_of_client(flow);
            let case = Case {
                kind: if observer.places[client].starts_with("node ") {
                    ConnectionKind::CallOfNode
                } else {
                    ConnectionKind::Call
                },
                client,
                to: self.targets[flow].spec.address,
                outcome,
                turned_away: tally.decided > 0 && tally.picked.is_empty(),
            };
            return Ok(self.explanation(observer, subject, explanation.connects, &case, &observed));
        }
        Ok(explanation)
    }

    /// Observes all namespaces while `work` runs.
    fn observe_while<T>(
        &mut self,
        observer: &Observer<'_>,
        work: impl FnOnce(&mut Self) -> Result<T, LabError>,
    ) -> Result<(Observed, T), LabError> {
        let doing = "follow a connection";
        let before = Counters::read(&self.lab_cluster)?;
        if let Some(tracer) = &observer.tracer {
            tracer.begin().during(doing)?;
        }
        let on_nodes = self.plan.needs().contains(&KernelPart::NfTables);
        let trace = Trace::start(&self.lab_cluster, |place| match place {
            "fabric" => self.balancers.forward_in_nf_tables(Scope::Private),
            "edge" => self.balancers.forward_in_nf_tables(Scope::Public),
            place => on_nodes && place.starts_with("node "),
        })?;
        observer.recorder.begin();
        let done = work(self)?;
        let frames = observer.recorder.take();
        let traced = trace.take(&self.lab_cluster)?;
        let drops = observer.tracer.as_ref().map(Tracer::take).transpose().during(doing)?;
        let growth = Counters::read(&self.lab_cluster)?.grown_since(&before);
        Ok((Observed { frames, drops: drops.unwrap_or_default(), growth, traced }, done))
    }

    /// Explains one connection from what was observed.
    fn explanation(
        &self,
        observer: &Observer<'_>,
        subject: Subject,
        connects: u64,
        case: &Case,
        observed: &Observed,
    ) -> Explanation {
        let Case { kind, client, to, outcome, turned_away } = *case;
        let followed = ConnectionFilter { kind, client, to, probers: &observer.probers }
            .of(&observed.frames, &observed.drops);
        let observations = Observations {
            cluster: self.plan.cluster,
            load_balancers: self.plan.load_balancers,
            places: &observer.places,
            kernel_states: &observer.kernel_states,
            frames: &followed,
            growth: &observed.growth,
            traced: &observed.traced,
            outcome,
            client,
            to,
            turned_away,
        };
        let found = observations.mechanism();
        let describe = |counter: &Grown| {
            format!(
                "{}: `{}` has counted {} packets",
                observer.places[counter.place], counter.what, counter.by
            )
        };
        let ends = observed.growth.grown.iter().filter(|counter| counter.is_end()).map(describe);
        Explanation {
            subject,
            outcome: Some(outcome),
            connects,
            sightings: Followed::sightings(&followed, &observer.places),
            mechanism: found.as_ref().map(|(mechanism, _)| *mechanism),
            because: found.map_or_else(
                || "nothing that was observed says why".into(),
                |(_, because)| because,
            ),
            notes: observer.notes.iter().cloned().chain(ends).collect(),
        }
    }

    /// Runs one connection of a flow to its end.
    fn connect_once(&mut self, flow: usize) -> Result<(Outcome, Tally), LabError> {
        self.tallies = vec![Tally::default(); self.targets.len()];
        let mut attempts = self.begin_some(flow, 0..1)?;
        loop {
            self.collect(&mut attempts)?;
            if attempts.is_empty() {
                break;
            }
            self.watch.check()?;
            self.wait_and_go_on(&mut attempts, Some(flow))?;
        }
        // The load balancer's events arrive a little later than its answer.
        loop {
            self.wait_and_go_on(&mut attempts, Some(flow))?;
            if self.is_quiet {
                break;
            }
        }
        let tally = std::mem::take(&mut self.tallies[flow]);
        let outcome = tally.counts.keys().next().copied().unwrap_or(Outcome::Hangs);
        Ok((outcome, tally))
    }

    fn place_of_client(&self, flow: usize) -> usize {
        let from = &self.plan.flows[flow].from;
        let space = self.lab_cluster.of_client(self.plan.cluster, from);
        let is_it = |name: &str| space.is_some_and(|space| space.name() == name);
        let all = places(&self.lab_cluster);
        all.iter().position(|place| is_it(place.space.name())).unwrap_or_default()
    }

    /// Keeps the lab up, with its load balancers running, until Ctrl-C or Enter.
    pub(super) fn stay(&mut self) -> Result<(), LabError> {
        let stdin = std::io::stdin();
        let mut listens = true;
        while self.watch.check().is_ok() {
            let mut waiting: Vec<_> = self.balancers.waits_for().collect();
            if listens {
                waiting.push(rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN));
            }
            let ready = wait(&mut waiting, Instant::now() + POLL_INTERVAL)?;
            drop(waiting);
            if listens && ready.last() == Some(&true) {
                let mut line = String::new();
                if stdin.read_line(&mut line).during("hear when to stop")? > 0 {
                    return Ok(());
                }
                // Standard input has ended, so only a signal ends the lab.
                listens = false;
            }
            self.balancers.hear(&self.lab_cluster, None)?;
        }
        Ok(())
    }
}
