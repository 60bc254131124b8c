//! `lab list -o json`, and `lab run` and `lab verify -o json`.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::common::{Flow, Outcome, OutcomeShare};
use crate::lab::{CaseReport, FlowReport, ProbeReport};

/// What `uturn lab list -o json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct List<'a> {
    /// The scenarios, by name.
    pub scenarios: Vec<Listed<'a>>,
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its cases: a number of nodes and a mode of kube-proxy each.
    pub cases: Vec<&'a str>,
    /// What it shows.
    pub shows: &'a str,
    /// Where it comes from; empty where that is not recorded.
    pub seed: &'a str,
    /// Where it is written: `FILE:LINE:COLUMN`.
    pub file: String,
}

/// What `uturn lab run -o json` and `uturn lab verify -o json` print.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lab<'a> {
    /// A case of a scenario each.
    pub scenarios: Vec<Case<'a>>,
    /// What `--explain` saw of connections that fail; absent without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<Explained<'a>>,
}

impl<'a> Lab<'a> {
    /// Of cases, and what was seen of connections that fail.
    pub fn new(cases: &'a [CaseReport], explained: Vec<Explained<'a>>) -> Self {
        Self { scenarios: cases.iter().map(Case::from).collect(), explained }
    }
}

/// A case of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Case<'a> {
    /// The name of the scenario.
    pub name: &'a str,
    /// The case: `3 nodes, ipvs`.
    pub case: &'a str,
    /// Its flows; empty where it did not run.
    pub flows: Vec<MeasuredFlow<'a>>,
    /// Its health checks, where the scenario expects something of them.
    pub probes: Vec<Probes<'a>>,
    /// How long it took.
    pub seconds: f64,
    /// The kernel that it ran on; null where it did not run.
    pub ran_on: Option<&'a str>,
    /// What did not agree at the first try, where there was a second.
    pub first_try: &'a [String],
    /// Why it did not run; null where it ran.
    pub not_run: Option<&'a str>,
    /// Whether it ran, and everything in it agrees.
    pub agrees: bool,
}

impl<'a> From<&'a CaseReport> for Case<'a> {
    fn from(case: &'a CaseReport) -> Self {
        Self {
            name: &case.scenario,
            case: &case.case,
            flows: case.flows.iter().map(MeasuredFlow::from).collect(),
            probes: case.probes.iter().map(Probes::from).collect(),
            seconds: case.seconds,
            ran_on: case.place.as_deref(),
            first_try: &case.first_try,
            not_run: case.not_run.as_deref(),
            agrees: case.not_run.is_none() && case.agrees(),
        }
    }
}

/// A flow as the scenario expects it, as it was predicted and as the kernel did it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredFlow<'a> {
    /// The flow.
    #[serde(flatten)]
    pub flow: Flow,
    /// What the scenario expects; empty where it leaves that open.
    pub expected: Vec<OutcomeShare>,
    /// What was predicted; null where nothing was asked to predict it.
    pub predicted: Option<Vec<OutcomeShare>>,
    /// The mechanisms that were predicted; null where nothing was asked to predict them.
    pub mechanisms: Option<Vec<&'static str>>,
    /// What was measured.
    pub measured: Vec<OutcomeCount>,
    /// Whether all of them agree.
    pub agrees: bool,
    /// What does not agree.
    pub differences: &'a [String],
}

impl<'a> From<&'a FlowReport> for MeasuredFlow<'a> {
    fn from(flow: &'a FlowReport) -> Self {
        let predicted = flow.predicted.as_ref();
        let measured = flow.measured.iter();
        Self {
            flow: Flow::from(&flow.flow),
            expected: OutcomeShare::all(&flow.expected),
            predicted: predicted.map(|predicted| OutcomeShare::all(&predicted.outcomes)),
            mechanisms: predicted.map(|predicted| {
                predicted.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect()
            }),
            measured: measured
                .map(|(outcome, count)| OutcomeCount { outcome: (*outcome).into(), count: *count })
                .collect(),
            agrees: flow.differences.is_empty(),
            differences: &flow.differences,
        }
    }
}

/// An outcome, and how many connections ended so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeCount {
    /// How the connections ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How many ended so.
    pub count: u64,
}

/// The health checks of a listener's targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probes<'a> {
    /// The load balancer's address and port.
    pub listener: String,
    /// What was predicted; null where nothing was asked to predict it.
    pub predicted: Option<Vec<Health>>,
    /// What was measured.
    pub measured: Vec<Health>,
    /// Whether both agree with what the scenario expects.
    pub agrees: bool,
    /// What does not agree.
    pub differences: &'a [String],
}

impl<'a> From<&'a ProbeReport> for Probes<'a> {
    fn from(probes: &'a ProbeReport) -> Self {
        Self {
            listener: probes.listener.to_string(),
            predicted: probes.predicted.as_deref().map(Health::all),
            measured: Health::all(&probes.measured),
            agrees: probes.differences.is_empty(),
            differences: &probes.differences,
        }
    }
}

/// Whether a target answers health checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// The target's address and port.
    pub target: String,
    /// Whether it answers.
    pub alive: bool,
}

impl Health {
    fn all(targets: &[(SocketAddr, bool)]) -> Vec<Self> {
        let health = |(target, alive): &(SocketAddr, bool)| Self {
            target: target.to_string(),
            alive: *alive,
        };
        targets.iter().map(health).collect()
    }
}

/// What was seen of a connection, beside what was predicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explained<'a> {
    /// What was seen.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// The name of the scenario.
    pub scenario: &'a str,
    /// The case: `3 nodes, ipvs`.
    pub case: &'a str,
    /// The mechanisms that were predicted.
    pub predicted: Vec<&'static str>,
    /// Whether the mechanism that was seen is one of them; true where none was seen.
    pub agrees: bool,
}

/// One connection, packet by packet. The small machine reports it in this form too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// How the connection ended; null where none of those that were made failed.
    pub outcome: Option<Outcome>,
    /// How many connections were made until one failed.
    pub connects: u64,
    /// Its packets, in the order in which they were seen.
    pub packets: Vec<Packet>,
    /// What else was seen: counters that grew, what could not be watched.
    pub notes: Vec<String>,
    /// Why it failed; null where that could not be seen.
    pub mechanism: Option<String>,
    /// What the mechanism rests on.
    pub because: String,
    /// The connection.
    #[serde(flatten)]
    pub connection: Connection,
}

/// A connection that is explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Connection {
    /// A health check of a load balancer.
    HealthCheck {
        /// The listener, `ADDRESS:PORT`.
        health_check_of: String,
        /// The listener's protocol: `tcp` or `udp`.
        protocol: String,
        /// The target that is checked, `ADDRESS:PORT`.
        to: String,
    },
    /// A call of a client.
    Call {
        /// The client.
        from: String,
        /// The destination.
        to: String,
        /// The place of its flow among those of the case, from 0.
        flow: usize,
    },
}

/// A packet at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Packet {
    /// How long after the first packet, in microseconds.
    pub after_us: u64,
    /// Where: `pod NAMESPACE/NAME`, `node NAME`, `fabric`.
    pub place: String,
    /// The interface.
    pub link: String,
    /// Whether it came in by that interface or left by it.
    pub way: Direction,
    /// Its addresses and flags.
    pub packet: String,
    /// How often the same packet was seen there: more than once where it was sent again.
    pub times: u64,
    /// Where in the kernel it was dropped, and why; null where it was not.
    pub dropped: Option<String>,
}

/// The direction of a packet at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Direction {
    /// Into the place.
    In,
    /// Out of the place.
    Out,
}
