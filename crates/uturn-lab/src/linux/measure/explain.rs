//! One more connection of a flow that fails, followed packet by packet.

use std::net::IpAddr;

use uturn_model::{Mechanism, Outcome};

use super::{Lab, Tally};
use crate::linux::public;
use crate::linux::sight::{
    Counters, Drops, Followed, Grown, Recorder, Scene, Story, Tracer, places,
};
use crate::linux::system::During;
use crate::linux::wait::ATTENTION;
use crate::{Explanation, LabError, MeasuredFlow};

/// How many turns of whoever picks are tried until a connection fails.
const TURNS: u64 = 2;

/// What is needed for following.
struct Eyes<'a> {
    recorder: &'a Recorder,
    tracer: Option<Tracer>,
    /// What each place is.
    places: Vec<String>,
    probers: Vec<IpAddr>,
    notes: Vec<String>,
}

impl Lab<'_> {
    /// Explains the flows that `fails` says, one connection at a time.
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
        let places = places(&self.twin).into_iter().map(|place| place.what).collect();
        let eyes = Eyes { recorder: &recorder, tracer, places, probers, notes };
        let mut all = Vec::new();
        for (flow, one) in measured.iter().enumerate() {
            if one.counts.iter().all(|(outcome, _)| *outcome == Outcome::AT_ONCE) {
                continue;
            }
            progress(&format!("following {} → {}", one.flow.from, one.flow.to));
            all.push(self.explain_one(flow, one, &eyes)?);
        }
        drop(eyes);
        self.recorder = Some(recorder);
        Ok(all)
    }

    fn explain_one(
        &mut self,
        flow: usize,
        measured: &MeasuredFlow,
        eyes: &Eyes<'_>,
    ) -> Result<Explanation, LabError> {
        let mut explanation = Explanation {
            flow: measured.flow.clone(),
            of: flow,
            outcome: None,
            connects: 0,
            sightings: Vec::new(),
            mechanism: None,
            because: "no connection made since has failed".into(),
            notes: eyes.notes.clone(),
        };
        if !self.targets[flow].has_address() {
            explanation.outcome = Some(Outcome::NameNotFound);
            explanation.mechanism = Some(Mechanism::NameUnresolved);
            explanation.because = "the cluster's DNS gives no address, so nobody is called".into();
            return Ok(explanation);
        }
        // By chance it may take longer.
        let most = (self.targets[flow].turns * TURNS).max(self.connects(flow));
        while explanation.connects < most {
            explanation.connects += 1;
            let doing = "follow a connection";
            let before = Counters::read(&self.twin)?;
            if let Some(tracer) = &eyes.tracer {
                tracer.begin().during(doing)?;
            }
            eyes.recorder.begin();
            let (outcome, tally) = self.connect_once(flow)?;
            let frames = eyes.recorder.take();
            if outcome == Outcome::AT_ONCE {
                continue;
            }
            let drops = eyes.tracer.as_ref().map(Tracer::take).transpose().during(doing)?;
            let grown = Counters::read(&self.twin)?.grown_since(&before);
            let client = self.place_of_client(flow);
            let story =
                Story { client, to: self.targets[flow].aim.address, probers: &eyes.probers };
            let followed = story.of(&frames, &drops.unwrap_or_else(Drops::default));
            let scene = Scene {
                cluster: self.plan.cluster,
                load_balancers: self.plan.load_balancers,
                places: &eyes.places,
                frames: &followed,
                grown: &grown,
                outcome,
                client,
                turned_away: tally.decided > 0 && tally.picked.is_empty(),
            };
            let found = scene.mechanism();
            explanation.mechanism = found.as_ref().map(|(mechanism, _)| *mechanism);
            explanation.because = found
                .map_or_else(|| "nothing that was seen says why".into(), |(_, because)| because);
            explanation.outcome = Some(outcome);
            explanation.sightings = Followed::tell(&followed, &eyes.places);
            let told = |one: &Grown| {
                format!("{}: `{}` has counted {} packets", eyes.places[one.place], one.what, one.by)
            };
            explanation.notes.extend(grown.iter().map(told));
            return Ok(explanation);
        }
        Ok(explanation)
    }

    /// One connection of a flow, to its end.
    fn connect_once(&mut self, flow: usize) -> Result<(Outcome, Tally), LabError> {
        self.tallies = vec![Tally::default(); self.targets.len()];
        let mut attempts = self.begin_some(flow, 1)?;
        loop {
            self.collect(&mut attempts)?;
            if attempts.is_empty() {
                break;
            }
            self.watch.check()?;
            self.wait_and_go_on(&mut attempts, Some(flow))?;
        }
        // What the load balancer has to say comes a little later than its answer.
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
        let space = self.twin.of_client(self.plan.cluster, from);
        let is_it = |name: &str| space.is_some_and(|space| space.name() == name);
        let all = places(&self.twin);
        all.iter().position(|place| is_it(place.space.name())).unwrap_or_default()
    }

    /// Stays up, load balancers at work, until Ctrl-C or Enter.
    pub(super) fn stay(&mut self) -> Result<(), LabError> {
        let stdin = std::io::stdin();
        let mut listens = true;
        while self.watch.check().is_ok() {
            let mut waiting: Vec<_> = self.balancing.waits_for().collect();
            if listens {
                waiting.push(rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN));
            }
            let ready =
                crate::linux::wait::wait(&mut waiting, std::time::Instant::now() + ATTENTION)?;
            drop(waiting);
            if listens && ready.last() == Some(&true) {
                let mut line = String::new();
                if stdin.read_line(&mut line).during("hear when to stop")? > 0 {
                    return Ok(());
                }
                // Nobody is there to press a key: a signal ends it.
                listens = false;
            }
            self.balancing.hear(&self.twin, None)?;
        }
        Ok(())
    }
}
