//! Retries of a load balancer at one target after the other: tries that end alike are drawn once.

use std::collections::BTreeMap;
use std::ops::Range;

use uturn_model::route::{Direction, Hop};
use uturn_model::{Place, StepKind};

/// The number of equal tries from which on they are drawn once.
const FEW: usize = 3;

/// Returns the runs of hops that are not drawn, with the number of tries in each, by the hop that
/// follows the run.
pub(super) fn repeated(hops: &[Hop]) -> BTreeMap<usize, (Range<usize>, usize)> {
    let picks = |hop: &Hop| {
        matches!(hop.place, Place::LoadBalancer(_))
            && hop.direction == Direction::Out
            && hop.steps.iter().any(|step| step.kind == StepKind::Balance)
    };
    let starts: Vec<usize> = (0..hops.len()).filter(|at| picks(&hops[*at])).collect();
    let own: Vec<&Place> =
        hops.iter().take(starts.first().copied().unwrap_or(0)).map(|hop| &hop.place).collect();
    // The last try contains the end, which is always drawn.
    let tries: Vec<&[Hop]> = starts.windows(2).map(|pair| &hops[pair[0]..pair[1]]).collect();
    let mut repeated = BTreeMap::new();
    let mut at = 0;
    while at < tries.len() {
        let same = tries[at..].iter().take_while(|other| are_alike(tries[at], other, &own)).count();
        if same >= FEW {
            let (from, to) = (starts[at + 1], starts[at + same]);
            repeated.insert(to, (from..to, same - 1));
        }
        at += same.max(1);
    }
    repeated
}

/// Returns whether two tries have the same events, at the same places or at others of their kind.
fn are_alike(first: &[Hop], second: &[Hop], own: &[&Place]) -> bool {
    let same_place = |a: &Place, b: &Place| {
        a == b
            || std::mem::discriminant(a) == std::mem::discriminant(b)
                && !own.contains(&a)
                && !own.contains(&b)
    };
    first.len() == second.len()
        && first.iter().zip(second).all(|(a, b)| {
            a.direction == b.direction
                && same_place(&a.place, &b.place)
                && a.steps.iter().map(|step| step.kind).eq(b.steps.iter().map(|step| step.kind))
        })
}
