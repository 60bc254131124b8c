//! The results of a comparison: every round of every contestant, as `--output json` prints them.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::contestant::Contestant;
use crate::cost::Cost;
use crate::goal::Goal;
use crate::load::Measured;
use crate::row::Row;
use crate::statistics::{ENOUGH, Summary};

/// The results of a whole run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) machine: Machine,
    pub(crate) rounds: u32,
    pub(crate) seconds: u32,
    pub(crate) rows: Vec<RowResult>,
    pub(crate) goals: Vec<Goal>,
}

/// The machine and the programs of the comparison.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    /// The load average of the last minute when the run began.
    pub(crate) load: String,
    /// The versions of the programs.
    pub(crate) programs: Vec<String>,
}

/// The results of a row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RowResult {
    pub(crate) row: Row,
    pub(crate) title: &'static str,
    /// The name of the unit that is counted.
    pub(crate) unit: &'static str,
    pub(crate) connections: usize,
    /// The duration of a round at full speed, in seconds.
    pub(crate) full_seconds: u32,
    /// The constant rate; the next field is the duration of a round at that rate, in seconds.
    pub(crate) rate: Option<u32>,
    pub(crate) rate_seconds: Option<u32>,
    /// The contestants; uturn is the first.
    pub(crate) contestants: Vec<ContestantResult>,
}

/// A contestant's samples, in the order of the rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ContestantResult {
    pub(crate) contestant: Contestant,
    /// The rounds in which clients sent the next request as soon as an answer came.
    pub(crate) full: Vec<Sample>,
    /// The rounds at the constant rate.
    pub(crate) constant: Vec<Sample>,
    pub(crate) memory: Option<Memory>,
}

/// The measurements of one round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    #[serde(flatten)]
    pub(crate) measured: Measured,
    pub(crate) per_second: f64,
    /// The CPU time per answer in microseconds: the load balancer's; on layer 4, that of clients,
    /// load balancer and targets together.
    pub(crate) cpu: f64,
    pub(crate) cpu_user: f64,
    pub(crate) cpu_system: f64,
    /// The CPU time per answer of everything on the core of clients and targets, in microseconds.
    pub(crate) cpu_others: f64,
}

/// The memory of idle connections, in kB.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Memory {
    /// The proportional set size of the load balancer's processes, before and with the connections.
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// The kernel's memory for the connections of all processes, which includes both ends of each.
    pub(crate) kernel_before: Option<u64>,
    pub(crate) kernel_after: Option<u64>,
}

/// A figure of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Figure {
    #[serde(rename = "per second")]
    PerSecond,
    #[serde(rename = "p50")]
    Median,
    #[serde(rename = "p99")]
    OneInHundred,
    #[serde(rename = "p99.9")]
    OneInThousand,
    #[serde(rename = "CPU")]
    Processor,
    #[serde(rename = "CPU, user")]
    User,
    #[serde(rename = "CPU, system")]
    System,
    /// The part of the load balancer's core that was used, in percent.
    #[serde(rename = "busy")]
    Busy,
    /// The part of the core of clients and targets that was used, in percent.
    #[serde(rename = "others busy")]
    OthersBusy,
    #[serde(rename = "memory")]
    Memory,
}

impl Machine {
    pub(crate) fn this(programs: Vec<String>) -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
        let load = read("/proc/loadavg");
        Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: processor.unwrap_or("?").trim_start_matches([' ', '\t', ':']).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: load.split(' ').next().unwrap_or("?").to_owned(),
            programs,
        }
    }
}

/// Returns the first line that a program prints about its version.
pub(crate) fn version(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().map(str::to_owned)
}

impl Sample {
    pub(crate) fn new(measured: Measured, taken: Cost, others: Cost) -> Self {
        let answered = measured.answered.max(1) as f64;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / answered;
        Self {
            per_second: measured.answered as f64 / measured.seconds,
            cpu: each(taken.total()),
            cpu_user: each(taken.user()),
            cpu_system: each(taken.system()),
            cpu_others: each(others.total()),
            measured,
        }
    }
}

impl Figure {
    pub(crate) fn more_is_better(self) -> bool {
        self == Self::PerSecond
    }

    pub(crate) fn of(self, sample: &Sample) -> f64 {
        let measured = &sample.measured;
        match self {
            Self::PerSecond => sample.per_second,
            Self::Median => measured.p50,
            Self::OneInHundred => measured.p99,
            Self::OneInThousand => measured.p999,
            Self::Processor => sample.cpu,
            Self::User => sample.cpu_user,
            Self::System => sample.cpu_system,
            Self::Busy => 100.0 * sample.cpu * sample.per_second / 1e6,
            Self::OthersBusy => 100.0 * sample.cpu_others * sample.per_second / 1e6,
            Self::Memory => f64::NAN,
        }
    }

    /// Returns the name of the figure in tables.
    pub(crate) fn name(self, unit: &str) -> String {
        match self {
            Self::PerSecond => format!("{unit}/s"),
            Self::Median => "p50 µs".to_owned(),
            Self::OneInHundred => "p99 µs".to_owned(),
            Self::OneInThousand => "p99.9 µs".to_owned(),
            Self::Processor => "CPU µs each".to_owned(),
            Self::User => "  user".to_owned(),
            Self::System => "  kernel".to_owned(),
            Self::Busy => "core busy, %".to_owned(),
            Self::OthersBusy => "other core, %".to_owned(),
            Self::Memory => "kB each".to_owned(),
        }
    }
}

/// Returns a figure of every sample.
pub(crate) fn figures(samples: &[Sample], figure: Figure) -> Vec<f64> {
    samples.iter().map(|sample| figure.of(sample)).collect()
}

impl ContestantResult {
    pub(crate) fn new(contestant: Contestant) -> Self {
        Self { contestant, full: Vec::new(), constant: Vec::new(), memory: None }
    }
}

impl RowResult {
    /// Returns the contestants that uturn, the first, is compared with.
    pub(crate) fn peers(&self) -> &[ContestantResult] {
        self.contestants.get(1..).unwrap_or_default()
    }

    /// Returns the number of answers of the round with the fewest, of those at the constant rate.
    pub(crate) fn fewest_answers(&self) -> Option<u64> {
        let samples = self.contestants.iter().flat_map(|result| &result.constant);
        samples.map(|sample| sample.measured.answered).min()
    }

    /// Returns whether every round at the constant rate has enough answers for a p99.9.
    pub(crate) fn has_enough_answers(&self) -> bool {
        self.fewest_answers().is_some_and(|fewest| fewest >= ENOUGH)
    }

    /// Compares uturn with a peer, round by round; in ratios above 1 uturn is better.
    pub(crate) fn ratio(
        &self,
        peer: &ContestantResult,
        of: fn(&ContestantResult) -> &[Sample],
        figure: Figure,
    ) -> Option<Summary> {
        let ours = figures(of(self.contestants.first()?), figure);
        Summary::ratio(&ours, &figures(of(peer), figure), figure.more_is_better())
    }
}

impl Memory {
    /// Returns the load balancer's memory per connection, in kB.
    pub(crate) fn each(&self, connections: usize) -> f64 {
        self.after.saturating_sub(self.before) as f64 / connections as f64
    }

    /// Returns the kernel's memory per connection, in kB.
    pub(crate) fn kernel_each(&self, connections: usize) -> Option<f64> {
        let more = self.kernel_after?.saturating_sub(self.kernel_before?);
        Some(more as f64 / connections as f64)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a one-second sample with this many answers.
    pub(crate) fn sample(answered: u64, p50: f64) -> Sample {
        let measured = Measured {
            answered,
            failed: 0,
            unanswered: 0,
            seconds: 1.0,
            p50,
            p99: 2.0 * p50,
            p999: 3.0 * p50,
            cost: Cost::default(),
            errors: Default::default(),
        };
        let taken = Cost { nanos: 500_000_000, user_ticks: 10, system_ticks: 40 };
        Sample::new(measured, taken, Cost { nanos: 700_000_000, ..taken })
    }

    /// Returns a row with these answers per second in each round of each contestant.
    pub(crate) fn row_result(row: Row, answers: &[&[u64]]) -> RowResult {
        let contestants = row.contestants().iter().zip(answers).map(|(contestant, answers)| {
            let samples: Vec<Sample> =
                answers.iter().map(|answers| sample(*answers, 1e6 / *answers as f64)).collect();
            ContestantResult {
                full: samples.clone(),
                constant: samples,
                ..ContestantResult::new(*contestant)
            }
        });
        RowResult {
            row,
            title: row.title(),
            unit: row.unit(),
            connections: row.connections(),
            full_seconds: 1,
            rate: Some(5000),
            rate_seconds: Some(2),
            contestants: contestants.collect(),
        }
    }

    #[test]
    fn figures_are_those_of_one_request() {
        let sample = sample(10_000, 80.0);
        assert_eq!(Figure::PerSecond.of(&sample), 10_000.0);
        assert_eq!(Figure::Processor.of(&sample), 50.0);
        assert_eq!((Figure::User.of(&sample), Figure::System.of(&sample)), (10.0, 40.0));
        assert_eq!((Figure::Busy.of(&sample), Figure::OthersBusy.of(&sample)), (50.0, 70.0));
        assert_eq!(Figure::OneInThousand.of(&sample), 240.0);
    }

    #[test]
    fn one_in_a_thousand_takes_enough_answers_in_every_round() {
        assert!(
            row_result(Row::Small, &[&[10_000, 20_000], &[30_000, 10_000]]).has_enough_answers()
        );
        assert!(
            !row_result(Row::Small, &[&[10_000, 20_000], &[30_000, 9_999]]).has_enough_answers()
        );
        assert!(!row_result(Row::Small, &[]).has_enough_answers());
    }

    #[test]
    fn memory_is_that_of_one_connection() {
        let memory = Memory { before: 1000, after: 5000, kernel_before: None, kernel_after: None };
        assert_eq!(memory.each(2000), 2.0);
        assert_eq!(memory.kernel_each(2000), None);
        let memory = Memory { kernel_before: Some(10), kernel_after: Some(4010), ..memory };
        assert_eq!(memory.kernel_each(2000), Some(2.0));
    }
}
