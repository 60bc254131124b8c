//! The points where packets of a route are stopped, and the rules or objects that stop them.

use super::{Hop, Place, Step};
use crate::{Evidence, Mechanism};

/// A point at which a packet is stopped, of a route or of one of those that the route represents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailurePoint {
    /// The reason why the packet is stopped.
    pub mechanism: Mechanism,
    /// The place. Missing rules are missing on the last node that the packet passed, wherever the
    /// packet is dropped.
    pub place: Place,
    /// The rule or object that stops it, without the line numbers of generated rules, which depend
    /// on all rules.
    pub by: Evidence,
}

impl FailurePoint {
    /// Makes a point at which packets are stopped.
    pub fn new(mechanism: Mechanism, place: Place, mut by: Evidence) -> Self {
        by.clear_generated_line();
        Self { mechanism, place, by }
    }

    /// Returns the point at which the last of the packets with these hops was stopped. Returns
    /// `None` if the hops do not show it.
    pub fn last_of(hops: &[Hop], mechanism: Mechanism) -> Option<Self> {
        let (hop, step) = stopping_steps(hops).last()?;
        let place = place_of(&hops[..=hop], mechanism)?.clone();
        Some(Self::new(mechanism, place, step.by.clone()))
    }

    /// Returns the index of the hop in which packets are stopped at this point.
    pub fn hop_in(&self, hops: &[Hop]) -> Option<usize> {
        let is_here = |(hop, step): &(usize, &Step)| {
            place_of(&hops[..=*hop], self.mechanism) == Some(&self.place) && self.is_by(step)
        };
        Some(stopping_steps(hops).find(is_here)?.0)
    }

    /// Returns whether this point's evidence is that of a step.
    fn is_by(&self, step: &Step) -> bool {
        let mut by = step.by.clone();
        by.clear_generated_line();
        by == self.by
    }
}

/// Returns the steps in which packets are stopped, with the indices of their hops.
fn stopping_steps(hops: &[Hop]) -> impl DoubleEndedIterator<Item = (usize, &Step)> {
    let hops = hops.iter().enumerate();
    let steps = hops.flat_map(|(index, hop)| hop.steps.iter().map(move |step| (index, step)));
    steps.filter(|(_, step)| step.kind.stops_packet())
}

/// Returns the place of the cause of a failure that shows in the last of these hops.
fn place_of(hops: &[Hop], mechanism: Mechanism) -> Option<&Place> {
    let last = &hops.last()?.place;
    let passed = || hops.iter().rev().map(|hop| &hop.place);
    match mechanism {
        Mechanism::RuleMissing => {
            Some(passed().find(|place| matches!(place, Place::Node(_))).unwrap_or(last))
        }
        _ => Some(last),
    }
}
