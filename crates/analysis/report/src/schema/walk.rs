//! `walk -o json`.

use serde::Serialize;
use uturn_model as model;

use super::common::{Step, Supposition};
use crate::trace::end as address;
use crate::walk::{WalkEnd, cases};

/// What `uturn walk -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Walk<'a> {
    /// Every end that the packet can come to; the shares add up to 1.
    pub ends: Vec<End<'a>>,
    /// What was supposed for any of them because nothing stated it.
    pub supposed: Vec<Supposition>,
}

impl<'a> From<&'a [WalkEnd]> for Walk<'a> {
    fn from(ends: &'a [WalkEnd]) -> Self {
        let mut supposed: Vec<&model::Assumption> = Vec::new();
        for supposition in ends.iter().flat_map(|end| &end.supposed) {
            if !supposed.contains(&supposition) {
                supposed.push(supposition);
            }
        }
        Self { ends: ends.iter().map(End::from).collect(), supposed: Supposition::all(supposed) }
    }
}

/// An end that a packet can come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct End<'a> {
    /// How often it comes to this end: more than 0 and at most 1.
    pub share: f64,
    /// `local`, `forward`, `drop`, `reject`, `unsettled`.
    pub end: &'static str,
    /// What kind of drop or rejection it is; null for the other ends.
    pub reason: Option<&'a str>,
    /// The cases that lead to this end, where something that is not known decides; empty where
    /// all do.
    #[serde(rename = "if")]
    pub conditions: Vec<String>,
    /// The interface that the packet came in by; null where the node itself sends it.
    #[serde(rename = "in")]
    pub came_in: Option<&'a str>,
    /// The interface that the packet leaves by; null where it does not leave.
    #[serde(rename = "out")]
    pub leaves_by: Option<&'a str>,
    /// The source of the packet as it leaves, or as it was last seen.
    pub src: String,
    /// Its destination.
    pub dst: String,
    /// What happens to the packet, in order.
    pub steps: Vec<Step<'a>>,
    /// The rules on its way that are not modelled.
    pub unknown: &'a [String],
    /// What was supposed because nothing stated it.
    pub supposed: Vec<Supposition>,
}

impl<'a> From<&'a WalkEnd> for End<'a> {
    fn from(end: &'a WalkEnd) -> Self {
        Self {
            share: end.share.get(),
            end: end.end,
            reason: end.reason.as_deref(),
            conditions: cases(end),
            came_in: end.came_in.as_deref(),
            leaves_by: end.leaves_by.as_deref(),
            src: address(end.leg.src),
            dst: address(end.leg.dst),
            steps: end.steps.iter().map(Step::from).collect(),
            unknown: &end.unknown,
            supposed: Supposition::all(&end.supposed),
        }
    }
}
