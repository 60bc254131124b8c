//! Rules, sets and virtual servers as blocks of lines, and what differs between two of them.
//!
//! A line is the text of a parsed rule without what has no effect (comments, counters), so that
//! both sides, which were read by the same parser, have the same text where they mean the same.

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
    /// What it means.
    pub(super) text: String,
    pub(super) role: Role,
    /// The Service that its comment names: `shop/web:http`.
    pub(super) service: Option<Text>,
    pub(super) by: Evidence,
}

/// What a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Leads to an endpoint.
    Endpoint,
    /// Takes what is sent to an address and port of a Service; no address means a NodePort.
    Dispatch(Option<IpAddr>, Option<u16>),
    /// Something else.
    Other,
}

/// What differs in one block.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) block: String,
    /// Whether the order of its lines matters.
    pub(super) is_ordered: bool,
    /// Lines that are expected and not there.
    pub(super) missing: Vec<Line>,
    /// Lines that are there and not expected.
    pub(super) extra: Vec<Line>,
    /// Whether the block is not there at all, or empty.
    pub(super) is_gone: bool,
    /// If it has all lines, but in another order, the first of them.
    pub(super) reordered: Option<Line>,
}

/// What differs. A block that is not expected is not a difference: it has an effect only if a line
/// of another block leads to it, and that line is one.
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

/// The lines of the first that the second does not have, as often as it lacks them.
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
