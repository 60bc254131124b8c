//! The goals of the comparison, and whether each was reached.

use serde::Serialize;

use crate::contestant::Contestant;
use crate::result::{ContestantResult, Figure, RowResult, Sample};
use crate::row::{Measure, Row};
use crate::statistics::Summary;

/// The goal on layer 7: uturn is as good as the better peer.
const LAYER_7: f64 = 1.0;

/// The goal on layer 4: uturn is nearly as good as plain routing.
const LAYER_4: f64 = 0.95;

/// A goal for one figure, relative to a peer's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Goal {
    pub(crate) row: Row,
    pub(crate) figure: Figure,
    /// The peer that sets the goal: on layer 7 the better one, on layer 4 plain routing.
    pub(crate) peer: Contestant,
    /// The ratio that is the goal; above 1 uturn is better.
    pub(crate) least: f64,
    /// The ratio that was measured.
    pub(crate) ratio: Summary,
    pub(crate) outcome: Outcome,
}

/// The outcome of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Reached,
    Missed,
    /// The rounds disagree: some are above the goal and some below.
    Unclear,
}

impl Goal {
    /// Returns the goals of a row. There is none for a p99.9 of too few answers.
    pub(crate) fn of_row(result: &RowResult) -> Vec<Self> {
        type Samples = fn(&ContestantResult) -> &[Sample];
        let full: Samples = |result| &result.full;
        let constant: Samples = |result| &result.constant;
        let goal = |(of, figure): (Samples, Figure)| {
            let ratios =
                result.peers().iter().filter(|peer| is_measure(result.row, peer.contestant));
            let ratios =
                ratios.filter_map(|peer| Some((peer.contestant, result.ratio(peer, of, figure)?)));
            Self::against_best(result.row, figure, ratios)
        };
        match result.row.measure() {
            Measure::Memory => Self::of_memory(result).into_iter().collect(),
            Measure::Speed => {
                let mut figures = vec![
                    (full, Figure::PerSecond),
                    (constant, Figure::Median),
                    (constant, Figure::OneInHundred),
                ];
                if result.has_enough_answers() {
                    figures.push((constant, Figure::OneInThousand));
                }
                figures.into_iter().filter_map(goal).collect()
            }
        }
    }

    fn of_memory(result: &RowResult) -> Option<Self> {
        let each = |result: &ContestantResult, connections| {
            result.memory.map(|memory| memory.each(connections))
        };
        let ours = each(result.contestants.first()?, result.connections)?;
        let ratios = result.peers().iter().filter_map(|peer| {
            let theirs = each(peer, result.connections)?;
            Some((peer.contestant, Summary::ratio(&[ours], &[theirs], false)?))
        });
        Self::against_best(result.row, Figure::Memory, ratios)
    }

    /// Returns the goal against the peer to which uturn compares worst.
    fn against_best(
        row: Row,
        figure: Figure,
        ratios: impl Iterator<Item = (Contestant, Summary)>,
    ) -> Option<Self> {
        let least = if row.is_layer_4() { LAYER_4 } else { LAYER_7 };
        let (peer, ratio) = ratios.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))?;
        Some(Self { row, figure, peer, least, ratio, outcome: Outcome::of(ratio, least) })
    }
}

impl Outcome {
    fn of(ratio: Summary, goal: f64) -> Self {
        // Ratios are compared as they are printed, with two digits.
        let is_reached = |ratio: f64| (ratio * 100.0).round() / 100.0 >= goal;
        match (is_reached(ratio.least), is_reached(ratio.most)) {
            (false, true) => Self::Unclear,
            (true, _) => Self::Reached,
            (false, false) => Self::Missed,
        }
    }
}

/// Returns whether a row's goal may be set by this peer.
fn is_measure(row: Row, peer: Contestant) -> bool {
    !row.is_layer_4() || peer == Contestant::Routing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::row_result;

    fn goal(result: &RowResult, figure: Figure) -> Goal {
        Goal::of_row(result).into_iter().find(|goal| goal.figure == figure).unwrap()
    }

    #[test]
    fn the_better_peer_sets_the_goal_of_layer_7() {
        let result = row_result(Row::Small, &[&[30_000; 3], &[20_000; 3], &[40_000; 3]]);
        let goal = goal(&result, Figure::PerSecond);
        assert_eq!((goal.peer, goal.least, goal.ratio.median), (Contestant::HaProxy, 1.0, 0.75));
        assert_eq!(goal.outcome, Outcome::Missed);
    }

    #[test]
    fn plain_routing_sets_the_goal_of_layer_4() {
        let result = row_result(Row::L4Small, &[&[19_000; 3], &[20_000; 3], &[40_000; 3]]);
        let goal = goal(&result, Figure::PerSecond);
        assert_eq!((goal.peer, goal.ratio.median), (Contestant::Routing, 0.95));
        assert_eq!(goal.outcome, Outcome::Reached);
    }

    #[test]
    fn rounds_that_disagree_decide_nothing() {
        let rounds: [&[u64]; 2] = [&[19_000, 21_000, 22_000], &[20_000; 3]];
        let result = row_result(Row::Small, &rounds);
        assert_eq!(goal(&result, Figure::PerSecond).outcome, Outcome::Unclear);
        assert_eq!(goal(&result, Figure::Median).outcome, Outcome::Unclear);
    }

    #[test]
    fn too_few_answers_have_no_goal_for_one_in_a_thousand() {
        let has_it = |answers: &[u64]| {
            let goals = Goal::of_row(&row_result(Row::Small, &[answers, answers]));
            goals.iter().any(|goal| goal.figure == Figure::OneInThousand)
        };
        assert!(has_it(&[10_000]));
        assert!(!has_it(&[9_000]));
    }

    #[test]
    fn without_peers_there_is_no_goal() {
        assert_eq!(Goal::of_row(&row_result(Row::Small, &[&[1000; 3]])), []);
    }
}
