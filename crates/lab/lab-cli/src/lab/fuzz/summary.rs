//! The summary of all scenarios: counts and findings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use uturn_model::{Mechanism, Outcome};
use uturn_report::schema::lab_fuzz::{Found as FoundOutput, Fuzz, NotRun};
use uturn_report::words;

use super::judge::Judged;

/// The summary of all scenarios.
pub(super) struct Summary {
    seed: u64,
    scenarios: usize,
    pub(super) flows: usize,
    connects: u64,
    probed: usize,
    /// Flows that cannot be judged because chance decides which targets are alive.
    by_chance: usize,
    /// Flows whose outcome is unknown according to the prediction.
    not_known: usize,
    pub(super) seconds: f64,
    outcomes: BTreeMap<String, u64>,
    mechanisms: BTreeMap<Mechanism, usize>,
    /// The names of scenarios that were not run, with the reasons.
    not_run: Vec<(String, String)>,
    failed: Vec<Found>,
    flaky: Vec<Found>,
    disagreements: Vec<Found>,
}

/// A saved scenario that disagrees or failed.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) differences: Vec<String>,
    /// The command that reproduces the result.
    pub(super) run: String,
}

impl Found {
    fn output(&self) -> FoundOutput<'_> {
        FoundOutput {
            name: &self.name,
            file: self.file.display().to_string(),
            differences: &self.differences,
            run: &self.run,
        }
    }

    fn outputs(all: &[Self]) -> Vec<FoundOutput<'_>> {
        all.iter().map(Self::output).collect()
    }
}

impl Summary {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            scenarios: 0,
            flows: 0,
            connects: 0,
            probed: 0,
            by_chance: 0,
            not_known: 0,
            seconds: 0.0,
            outcomes: BTreeMap::new(),
            mechanisms: BTreeMap::new(),
            not_run: Vec::new(),
            failed: Vec::new(),
            flaky: Vec::new(),
            disagreements: Vec::new(),
        }
    }

    /// Counts a scenario that was measured.
    pub(super) fn add(&mut self, flows: &[Judged]) {
        self.scenarios += 1;
        for flow in flows {
            self.flows += 1;
            self.probed += flow.probed;
            self.by_chance += usize::from(flow.by_chance);
            self.not_known += usize::from(flow.is_open);
            for (outcome, count) in &flow.measured {
                self.connects += count;
                *self.outcomes.entry(kind(*outcome)).or_default() += count;
            }
            for mechanism in &flow.mechanisms {
                *self.mechanisms.entry(*mechanism).or_default() += 1;
            }
        }
    }

    pub(super) fn not_run(&mut self, name: &str, why: String) {
        self.not_run.push((name.to_owned(), why));
    }

    pub(super) fn failed(&mut self, found: Found) {
        self.failed.push(found);
    }

    pub(super) fn flaky(&mut self, found: Found) {
        self.flaky.push(found);
    }

    pub(super) fn disagrees(&mut self, found: Found) {
        self.disagreements.push(found);
    }

    /// Returns whether there are no disagreements. Flaky ones are reported and do not count.
    pub(super) fn is_clean(&self) -> bool {
        self.disagreements.is_empty() && self.failed.is_empty()
    }

    pub(super) fn text(&self) -> String {
        let Self { seed, scenarios, flows, connects, probed, seconds, .. } = self;
        let mut text = format!(
            "seed {seed}: {}, {}, {}, {} in {seconds:.0} s\n",
            words::count(*scenarios, "scenario"),
            words::count(*flows, "flow"),
            words::count(*connects as usize, "connect"),
            words::count(*probed, "probed target"),
        );
        let mut line = |what: &str, all: Vec<String>| {
            if !all.is_empty() {
                text.push_str(&format!("  {what:<11} {}\n", all.join(", ")));
            }
        };
        line(
            "outcomes",
            self.outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect(),
        );
        let mechanisms = self.mechanisms.iter();
        line(
            "mechanisms",
            mechanisms.map(|(mechanism, count)| format!("{mechanism} {count}")).collect(),
        );
        if self.by_chance > 0 {
            let flows = words::count(self.by_chance, "flow");
            line("not judged", vec![format!("{flows}: chance decides which targets are alive")]);
        }
        if self.not_known > 0 {
            let flows = words::count(self.not_known, "flow");
            line("not judged", vec![format!("{flows}: the prediction is that it is not known")]);
        }
        for (why, count) in self.reasons() {
            line("not run", vec![format!("{} because {why}", words::count(count, "scenario"))]);
        }
        let all = [
            ("the lab failed", &self.failed),
            ("comes and goes", &self.flaky),
            ("disagrees", &self.disagreements),
        ];
        for (what, found) in all {
            for found_case in found {
                text.push_str(&format!("{}: {what}\n", found_case.name));
                for differences in &found_case.differences {
                    text.push_str(&format!("  {differences}\n"));
                }
                text.push_str(&format!("  {}\n", found_case.run));
            }
        }
        text.push_str(match (self.is_clean(), self.flows > 0) {
            (true, true) => "the kernel does what was predicted\n",
            (true, false) => "nothing was measured\n",
            (false, _) => "the kernel does not do what was predicted\n",
        });
        text
    }

    pub(super) fn output(&self) -> Fuzz<'_> {
        let mechanisms = self.mechanisms.iter();
        let not_run = self.not_run.iter();
        Fuzz {
            seed: self.seed,
            scenarios: self.scenarios,
            flows: self.flows,
            connects: self.connects,
            probed: self.probed,
            by_chance: self.by_chance,
            not_known: self.not_known,
            seconds: self.seconds,
            outcomes: &self.outcomes,
            mechanisms: mechanisms.map(|(name, count)| (name.as_str(), *count)).collect(),
            not_run: not_run.map(|(name, why)| NotRun { name, why }).collect(),
            failed: Found::outputs(&self.failed),
            flaky: Found::outputs(&self.flaky),
            disagreements: Found::outputs(&self.disagreements),
        }
    }

    /// Returns the reasons why scenarios were not run, with the number for each.
    fn reasons(&self) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        for (_, why) in &self.not_run {
            *reasons.entry(why.as_str()).or_default() += 1;
        }
        reasons
    }
}

/// Returns the kind of an outcome. Late answers are one kind.
fn kind(outcome: Outcome) -> String {
    match outcome {
        Outcome::Status { code, .. } => format!("status {code}"),
        Outcome::Answered { after } if !after.is_zero() => "answered late".to_owned(),
        other => other.word().to_owned(),
    }
}
