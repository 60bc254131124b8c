//! `migrate -o json`.

use serde::Serialize;
use uturn_whatif::presets;

use super::whatif::WhatIf;
use crate::whatif::WhatIfReport;

/// What `uturn migrate PRESET -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Migrate<'a> {
    /// The preset.
    pub preset: &'a str,
    /// What it does, in a few words.
    pub title: &'a str,
    /// What to look at besides.
    pub checks: Vec<Check<'a>>,
    /// What is not modelled of it.
    pub not_modelled: &'a [&'static str],
    /// What it does to calls.
    #[serde(flatten)]
    pub comparison: WhatIf<'a>,
}

/// Something to look at besides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check<'a> {
    /// What it is about, in a word or two.
    pub about: &'a str,
    /// What to know of it.
    pub text: &'a str,
    /// The command that shows it; null where none does.
    pub see: Option<&'a str>,
}

impl<'a> Migrate<'a> {
    /// Makes the document of a preset that was tried.
    pub fn new(preset: &'a presets::Preset, report: &'a WhatIfReport) -> Self {
        Self {
            preset: preset.name,
            title: preset.title,
            checks: preset.checks.iter().map(Check::from).collect(),
            not_modelled: &preset.not_modelled,
            comparison: report.into(),
        }
    }
}

impl From<&presets::Check> for Check<'_> {
    fn from(check: &presets::Check) -> Self {
        Self { about: check.about, text: check.text, see: check.see }
    }
}

/// What `uturn migrate -o json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Presets {
    /// The presets.
    pub presets: Vec<Preset>,
}

/// A preset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preset {
    /// Its name on the command line.
    pub preset: &'static str,
    /// What it does, in a few words.
    pub title: &'static str,
    /// Whether it needs new objects (`-p`).
    pub needs_objects: bool,
}

impl Presets {
    /// Lists all presets.
    pub fn all() -> Self {
        let of = |own: presets::Preset| Preset {
            preset: own.name,
            title: own.title,
            needs_objects: own.needs_objects,
        };
        Self { presets: presets::all().map(of).collect() }
    }
}
