//! The summary of all cases.

use std::collections::BTreeMap;
use std::fmt;

use uturn_model::Version;

use crate::mode::Mode;
use crate::nodes::Examined;
use crate::packets::{EndCounts, Tried};
use crate::rules::Compared;

/// The summary.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    parts: BTreeMap<(Version, Mode), Part>,
    end_counts: EndCounts,
}

/// The results of one version in one mode.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) clusters: usize,
    pub(crate) nodes: usize,
    chains: usize,
    lines: usize,
    flows: usize,
    packets: usize,
    answers: usize,
    pub(crate) differences: usize,
    /// The numbers of captured nodes, and of faults that were put into them.
    captured: usize,
    pub(crate) faults: usize,
    /// Whether the judges have detected a deliberate difference.
    pub(crate) judges_work: bool,
}

impl Summary {
    pub(crate) fn part(&mut self, version: Version, mode: Mode) -> &mut Part {
        self.parts.entry((version, mode)).or_default()
    }

    /// Adds the results of a node.
    pub(crate) fn add(
        &mut self,
        (version, mode): (Version, Mode),
        rules: &Compared,
        tried: &Tried,
    ) {
        for (class, count) in &tried.end_counts {
            *self.end_counts.entry(*class).or_default() += count;
        }
        let part = self.part(version, mode);
        part.nodes += 1;
        part.chains += rules.blocks;
        part.lines += rules.lines;
        part.flows += tried.flows;
        part.packets += tried.packets;
        part.answers += tried.answers;
        part.differences += rules.differences.len() + tried.differences.len();
    }

    /// Adds the results of `check nodes` for a node.
    pub(crate) fn add_examined(&mut self, of: (Version, Mode), examined: &Examined) {
        let part = self.part(of.0, of.1);
        part.captured += usize::from(examined.faults == 0);
        part.faults += examined.faults;
        part.differences += examined.differences.len();
    }

    /// Returns the versions and modes in which the judges have not detected a deliberate
    /// difference.
    pub(crate) fn unproven(&self) -> Vec<String> {
        let unproven = self.parts.iter().filter(|(_, part)| !part.judges_work);
        unproven.map(|((version, mode), _)| format!("{version} {mode}")).collect()
    }

    pub(crate) fn differences(&self) -> usize {
        self.parts.values().map(|part| part.differences).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((version, mode), part) in &self.parts {
            let Part {
                clusters,
                nodes,
                chains,
                lines,
                flows,
                packets,
                answers,
                captured,
                faults,
                ..
            } = part;
            let differences = part.differences;
            writeln!(
                f,
                "{version} {mode}: {clusters} clusters, {nodes} nodes: {chains} chains and sets \
                 with {lines} lines, {flows} flows with {packets} packets and {answers} answers \
                 compared, {captured} nodes captured and {faults} faults put in: {differences} \
                 differences"
            )?;
        }
        let mut shown = "";
        for ((heading, word), count) in &self.end_counts {
            let before = if shown == *heading { ", " } else { heading };
            let blank = if shown == *heading { "" } else { ": " };
            if !shown.is_empty() && shown != *heading {
                writeln!(f)?;
            }
            write!(f, "{before}{blank}{count} {word}")?;
            shown = heading;
        }
        Ok(())
    }
}
