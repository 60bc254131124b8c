//! Where packets of a route are stopped, and by what.

use super::{Hop, Place, Step};
use crate::{Evidence, Mechanism};

/// What stops a packet of a route, or of one of the routes that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailurePoint {
    /// Why the packet is stopped.
    pub mechanism: Mechanism,
    /// The place. Rules are missing on the last node that the packet passed, wherever it is dropped.
    pub place: Place,
    /// The rule or object that stops it. Lines of generated rules depend on all rules and are left out.
    pub by: Evidence,
}

impl FailurePoint {
    /// A point at which packets are stopped.
    pub fn new(mechanism: Mechanism, place: Place, mut by: Evidence) -> Self {
        by.clear_generated_line();
        Self { mechanism, place, by }
    }

    /// The point at which the last of the packets with these hops was stopped. Returns `None` if the
    /// hops do not show it.
    pub fn last_of(hops: &[Hop], mechanism: Mechanism) -> Option<Self> {
        let (hop, step) = stopping_steps(hops).last()?;
        let place = place_of(&hops[..=hop], mechanism)?.clone();
        Some(Self::new(mechanism, place, step.by.clone()))
    }

    /// The index of the hop in which packets are stopped at this point.
    pub fn hop_in(&self, hops: &[Hop]) -> Option<usize> {
        let is_here = |(hop, step): &(usize, &Step)| {
            place_of(&hops[..=*hop], self.mechanism) == Some(&self.place) && self.is_by(step)
        };
        Some(stopping_steps(hops).find(is_here)?.0)
    }

    /// Whether this is the evidence for a step.
    fn is_by(&self, step: &Step) -> bool {
        let mut by = step.by.clone();
        by.clear_generated_line();
        by == self.by
    }
}

/// The steps in which packets are stopped, with the indices of their hops.
fn stopping_steps(hops: &[Hop]) -> impl DoubleEndedIterator<Item = (usize, &Step)> {
    let hops = hops.iter().enumerate();
    let steps = hops.flat_map(|(index, hop)| hop.steps.iter().map(move |step| (index, step)));
    steps.filter(|(_, step)| step.kind.stops_packet())
}

/// Where the cause of a failure is that shows in the last of these hops.
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
