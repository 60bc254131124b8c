//! The verdicts of a flow in all cases, merged where they come out equal.

use std::collections::BTreeSet;

use uturn_model::{NamespacedName, Outcome, Share, Text, Verdict};

use super::kube_proxy::{Running, describe_running};
use super::listed;
use super::placement::NodeKind;

/// The verdicts of one flow, by kube-proxy's configuration and the kind of node the client is on.
pub(super) struct Table {
    pub(super) runnings: Vec<Running>,
    pub(super) node_kinds: Vec<NodeKind>,
    /// The verdicts: a row for each configuration, a column for each kind of node.
    pub(super) verdicts: Vec<Vec<Verdict>>,
}

impl Table {
    pub(super) fn is_one(&self) -> bool {
        let mut all = self.verdicts.iter().flatten();
        let Some(first) = all.next() else { return true };
        all.all(|verdict| is_same(first, verdict))
    }

    /// Returns one verdict for each block of the table with equal verdicts.
    pub(super) fn merged(&self) -> Vec<Verdict> {
        let mut found: Vec<(Vec<usize>, Vec<usize>, &Verdict)> = Vec::new();
        for (at, row) in self.verdicts.iter().enumerate() {
            let mut parts: Vec<(Vec<usize>, &Verdict)> = Vec::new();
            for (column, verdict) in row.iter().enumerate() {
                match parts.iter_mut().find(|(_, known)| is_same(known, verdict)) {
                    Some((columns, _)) => columns.push(column),
                    None => parts.push((vec![column], verdict)),
                }
            }
            for (columns, verdict) in parts {
                let same = |known: &&mut (Vec<usize>, Vec<usize>, &Verdict)| {
                    known.1 == columns && is_same(known.2, verdict)
                };
                match found.iter_mut().find(same) {
                    Some((rows, ..)) => rows.push(at),
                    None => found.push((vec![at], columns, verdict)),
                }
            }
        }
        let verdicts = found.into_iter().map(|(rows, columns, verdict)| {
            let mut verdict = verdict.clone();
            if rows.len() < self.runnings.len() {
                let some: Vec<Running> = rows.iter().map(|at| self.runnings[*at]).collect();
                verdict.conditions.push(describe_running(&some, &self.runnings));
            }
            if columns.len() < self.verdicts[0].len() {
                verdict.conditions.push(self.placed(&columns));
            }
            verdict
        });
        verdicts.collect()
    }

    /// Describes the client's node: `the client runs on a node with an endpoint of shop/web`.
    fn placed(&self, columns: &[usize]) -> Text {
        let within = |at: &usize| columns.contains(at);
        let (here, there): (Vec<usize>, Vec<usize>) =
            (0..self.node_kinds.len()).partition(|at| within(at));
        let all: BTreeSet<&NamespacedName> =
            self.node_kinds.iter().flat_map(|node_kind| &node_kind.serves).collect();
        for service in all {
            let serves = |at: &usize| self.node_kinds[*at].serves.contains(service);
            if here.iter().all(serves) && !there.iter().any(serves) {
                return format!("the client runs on a node with an endpoint of {service}").into();
            }
            if there.iter().all(serves) && !here.iter().any(serves) {
                return format!("the client runs on a node without an endpoint of {service}")
                    .into();
            }
        }
        let nodes: Vec<String> =
            here.iter().map(|at| format!("one like {}", self.node_kinds[*at].node)).collect();
        format!("the client's node is {}", listed(&nodes)).into()
    }
}

/// Combines the verdicts of two cases: equal ones do not depend on the case and are not marked.
pub(super) fn either(
    yes: &[Verdict],
    no: &[Verdict],
    mark: impl Fn(&mut Verdict, bool),
) -> Vec<Verdict> {
    let alike = |verdict: &Verdict, other: &Verdict| {
        verdict.conditions == other.conditions && is_same(verdict, other)
    };
    let mut verdicts: Vec<Verdict> = Vec::new();
    for (holds, here, there) in [(true, yes, no), (false, no, yes)] {
        for verdict in here {
            let mut verdict = verdict.clone();
            if there.iter().any(|other| alike(&verdict, other)) {
                if holds {
                    verdicts.push(verdict);
                }
                continue;
            }
            mark(&mut verdict, holds);
            verdicts.push(verdict);
        }
    }
    verdicts
}

/// Returns whether two verdicts have equal results, whatever their ways.
pub(super) fn is_same(verdict: &Verdict, other: &Verdict) -> bool {
    let close = |(a, b): (&(Outcome, Share), &(Outcome, Share))| a.0 == b.0 && a.1.is_about(b.1);
    verdict.mechanisms == other.mechanisms
        && verdict.outcomes.len() == other.outcomes.len()
        && verdict.outcomes.iter().zip(&other.outcomes).all(close)
}
