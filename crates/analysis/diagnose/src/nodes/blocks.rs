//! Rules, sets and virtual servers as blocks of lines, and the differences between two of them.
//!
//! A line is the text of a parsed rule without parts that have no effect (comments, counters). Both
//! sides are read by the same parser, so that lines with the same meaning have the same text.

use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_model::{Evidence, Text};

/// Chains, sets and servers by name.
pub(super) type Blocks = BTreeMap<String, Block>;

/// A chain, a set or a virtual server.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) lines: Vec<Line>,
    /// Whether the order of the lines matters.
    pub(super) is_ordered: bool,
}

/// A rule, an element or a real server.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The text of the rule without parts that have no effect.
    pub(super) text: String,
    pub(super) role: Role,
    /// The Service that the rule's comment names: `shop/web:http`.
    pub(super) service: Option<Text>,
    pub(super) by: Evidence,
}

/// The role of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The line leads to an endpoint.
    Endpoint,
    /// The line takes packets to an address and port of a Service; no address means a NodePort.
    Dispatch(Option<IpAddr>, Option<u16>),
    /// Another role.
    Other,
}

/// The difference of one block.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) block: String,
    /// Whether the order of its lines matters.
    pub(super) is_ordered: bool,
    /// The lines that are expected and were not found.
    pub(super) missing: Vec<Line>,
    /// The lines that were found and are not expected.
    pub(super) extra: Vec<Line>,
    /// Whether the block was not found at all, or is empty.
    pub(super) is_gone: bool,
    /// The first line that was found, if all lines were found in another order.
    pub(super) reordered: Option<Line>,
}

/// Returns the differences. A block that is not expected is not a difference: it has an effect only
/// if a line of another block leads to it, and that line is a difference.
pub(super) fn changes(expected: &Blocks, found: &Blocks) -> Vec<Change> {
    let nothing = Block::default();
    let compared = expected.iter().filter_map(|(name, expected)| {
        let found = found.get(name).unwrap_or(&nothing);
        let missing = beyond(&expected.lines, &found.lines);
        let extra = beyond(&found.lines, &expected.lines);
        let texts = |block: &Block| -> Vec<String> {
            block.lines.iter().map(|line| line.text.clone()).collect()
        };
        let is_same = missing.is_empty() && extra.is_empty();
        let is_reordered = is_same && expected.is_ordered && texts(expected) != texts(found);
        let reordered = found.lines.first().filter(|_| is_reordered).cloned();
        let is_gone = found.lines.is_empty() && !expected.lines.is_empty();
        let block = name.clone();
        (!is_same || is_reordered).then_some(Change {
            block,
            is_ordered: expected.is_ordered,
            missing,
            extra,
            is_gone,
            reordered,
        })
    });
    compared.collect()
}

/// Returns the lines that the second list lacks, as often as it lacks them.
fn beyond(lines: &[Line], others: &[Line]) -> Vec<Line> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for other in others {
        *counts.entry(&other.text).or_default() += 1;
    }
    let mut beyond = Vec::new();
    for line in lines {
        match counts.get_mut(&*line.text) {
            Some(count) if *count > 0 => *count -= 1,
            _ => beyond.push(line.clone()),
        }
    }
    beyond
}
