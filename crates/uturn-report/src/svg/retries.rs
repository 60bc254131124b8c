//! A load balancer that tries one target after the other: tries that go alike are drawn once.

use std::collections::BTreeMap;
use std::ops::Range;

use uturn_model::route::{Hop, Way};
use uturn_model::{Place, StepKind};

/// Fewer tries than these are drawn one by one.
const FEW: usize = 3;

/// The hops that are not drawn, each run by the hop that comes after it, with how many tries it
/// has.
pub(super) fn folded(hops: &[Hop]) -> BTreeMap<usize, (Range<usize>, usize)> {
    let picks = |hop: &Hop| {
        matches!(hop.place, Place::LoadBalancer(_))
            && hop.way == Way::Out
            && hop.steps.iter().any(|step| step.kind == StepKind::Balance)
    };
    let starts: Vec<usize> = (0..hops.len()).filter(|at| picks(&hops[*at])).collect();
    let own: Vec<&Place> =
        hops.iter().take(starts.first().copied().unwrap_or(0)).map(|one| &one.place).collect();
    // The last try has the end, which is always drawn.
    let tries: Vec<&[Hop]> = starts.windows(2).map(|pair| &hops[pair[0]..pair[1]]).collect();
    let mut folded = BTreeMap::new();
    let mut at = 0;
    while at < tries.len() {
        let same = tries[at..].iter().take_while(|one| are_alike(tries[at], one, &own)).count();
        if same >= FEW {
            let (from, to) = (starts[at + 1], starts[at + same]);
            folded.insert(to, (from..to, same - 1));
        }
        at += same.max(1);
    }
    folded
}

/// Whether the same happens, at the same places or at others of their kind.
fn are_alike(one: &[Hop], other: &[Hop], own: &[&Place]) -> bool {
    let same_place = |a: &Place, b: &Place| {
        a == b
            || std::mem::discriminant(a) == std::mem::discriminant(b)
                && !own.contains(&a)
                && !own.contains(&b)
    };
    one.len() == other.len()
        && one.iter().zip(other).all(|(a, b)| {
            a.way == b.way
                && same_place(&a.place, &b.place)
                && a.steps.iter().map(|step| step.kind).eq(b.steps.iter().map(|step| step.kind))
        })
}
