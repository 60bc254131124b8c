//! The options of an analysis.

use crate::Finding;
#[cfg(doc)]
use crate::group::shown_in_full;

/// The scope and thoroughness of an analysis.
#[derive(Clone, Copy, Default)]
pub struct Options<'o> {
    /// The only namespace whose targets and findings are included. Findings about objects without a
    /// namespace are always included.
    pub namespace: Option<&'o str>,
    /// The findings that do not count because they are known.
    pub known: Option<KnownFindings<'o>>,
    /// Whether each client is walked against each target, without classes.
    pub is_exhaustive: bool,
    /// How much is computed for each finding.
    pub detail: Detail,
}

/// A list of known findings, such as a baseline.
#[derive(Clone, Copy)]
pub struct KnownFindings<'o> {
    /// The name of the list, as users see it.
    pub list: &'o str,
    /// Returns whether a finding is in the list.
    pub contains: &'o dyn Fn(&Finding) -> bool,
}

/// How much is computed for each finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The findings, their groups and their cures.
    #[default]
    Findings,
    /// The evidence of each finding as well.
    Evidence,
    /// For the findings that are shown in full (see [`shown_in_full`]): their evidence, all cures
    /// that were tried, and the flow that shows the finding, with its verdicts.
    InFull,
}
