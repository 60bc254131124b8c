//! Finds differences between captured nodes and what the objects require.

use std::collections::BTreeMap;

use uturn_model::{Node, ObjectRef, Place};
use uturn_path::Engine;

use super::object_faults::about;
use crate::finding::Finding;
use crate::nodes::{self, Answer, Difference};
use crate::{Code, Observation};

/// The maximum number of a node's differences that are shown in one finding.
const SHOWN: usize = 5;

/// Returns a finding for each node and code.
pub(super) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let nodes = engine.cluster().nodes.values();
    nodes.flat_map(|node| of_node(engine, node)).collect()
}

fn of_node(engine: &Engine<'_>, node: &Node) -> Vec<Finding> {
    let questions = nodes::examine(engine, node).into_iter().flatten();
    let mut by_code: BTreeMap<Code, Vec<Difference>> = BTreeMap::new();
    for question in questions {
        let Answer::Differs(differences) = question.answer else { continue };
        for difference in differences {
            by_code.entry(difference.code).or_default().push(difference);
        }
    }
    let finding = |(code, differences)| finding(code, node, differences);
    by_code.into_iter().map(finding).collect()
}

fn finding(code: Code, node: &Node, differences: Vec<Difference>) -> Finding {
    let subject: ObjectRef = node.object();
    let mut finding = about(code, subject, &node.origin, String::new());
    let worst = differences.iter().map(|difference| difference.severity).max();
    finding.severity = worst.unwrap_or(finding.severity);
    let more = differences.len().saturating_sub(SHOWN);
    finding.other_evidence = differences
        .into_iter()
        .take(SHOWN)
        .map(|difference| Observation {
            place: Some(Place::Node(node.name.clone())),
            what: difference.what.into(),
            by: difference.by,
        })
        .collect();
    if more > 0
        && let Some(last) = finding.other_evidence.last_mut()
    {
        last.what = format!("{}; and {more} more differences", last.what).into();
    }
    finding
}
