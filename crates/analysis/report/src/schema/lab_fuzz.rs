//! `lab fuzz -o json`.

use std::collections::BTreeMap;

use serde::Serialize;

/// What `uturn lab fuzz -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fuzz<'a> {
    /// The seed of the random clusters.
    pub seed: u64,
    /// How many clusters were built.
    pub scenarios: usize,
    /// How many flows were measured.
    pub flows: usize,
    /// How many connections were made.
    pub connects: u64,
    /// How many targets of health checks were measured.
    pub probed: usize,
    /// How many flows cannot be judged because chance decides which targets are alive.
    pub by_chance: usize,
    /// How many flows are predicted to end in a way that is not known.
    pub not_known: usize,
    /// How long all of it took.
    pub seconds: f64,
    /// How many connections ended how.
    pub outcomes: &'a BTreeMap<String, u64>,
    /// How many flows were predicted to fail by which mechanism.
    pub mechanisms: BTreeMap<&'static str, usize>,
    /// The clusters that were not built.
    pub not_run: Vec<NotRun<'a>>,
    /// The clusters at which the lab failed.
    pub failed: Vec<Found<'a>>,
    /// The flows that disagree at one try and agree at another.
    pub flaky: Vec<Found<'a>>,
    /// The flows at which the kernel does not do what was predicted.
    pub disagreements: Vec<Found<'a>>,
}

/// A cluster that was not built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotRun<'a> {
    /// The name of its scenario.
    pub name: &'a str,
    /// Why it was not built.
    pub why: &'a str,
}

/// Something that should not be, saved as a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found<'a> {
    /// The name of the scenario.
    pub name: &'a str,
    /// The file of the scenario.
    pub file: String,
    /// What was found.
    #[serde(rename = "said")]
    pub differences: &'a [String],
    /// The command that shows it.
    pub run: &'a str,
}
