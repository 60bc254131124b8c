//! Decides whether honest clients were served, and whether the load balancer gave back what hostile
//! clients had taken.

use std::time::Duration;

use super::honest::{FLOWS, counts};
use super::turn::{Holding, Turn};

/// The allowed growth of memory, in kB, from when honest clients were alone until the end.
const GAIN: u64 = 32 * 1024;

/// The load balancer's resource use after all clients have left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) descriptors: usize,
    /// The resident memory, in kB.
    pub(super) resident: u64,
    /// The time since the clients left.
    pub(super) after: Duration,
}

/// The verdict of a run.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) left: Left,
    /// The faults that were found. An empty list means that the run passed.
    pub(super) faults: Vec<String>,
}

impl Verdict {
    pub(super) fn of(turns: &[Turn], left: Left) -> Self {
        let mut faults = Vec::new();
        for (number, flow) in FLOWS.iter().enumerate() {
            let failed: u64 = turns.iter().map(|turn| counts(&turn.honest[number]).1).sum();
            if failed > 0 {
                faults.push(format!("{failed} honest requests failed ({})", flow.name));
            }
        }
        let sum = |of: fn(&Turn) -> u64| turns.iter().map(of).sum::<u64>();
        for (count, what) in [
            (sum(|turn| turn.deaths), "times a target was taken for dead"),
            (sum(|turn| turn.target_failures), "attempts were held against targets"),
            (sum(|turn| turn.log.bad), "lines of the access log are not what they should be"),
        ] {
            if count > 0 {
                faults.push(format!("{count} {what}"));
            }
        }
        if let Some(first) = turns.first() {
            faults.extend(not_given_back(&first.end, left));
        }
        Self { left, faults }
    }
}

/// Returns the resources that the load balancer has not given back, compared with its use when
/// honest clients were alone.
pub(super) fn not_given_back(first: &Holding, left: Left) -> Vec<String> {
    let Holding { descriptors, resident } = *first;
    let mut faults = Vec::new();
    if left.descriptors > descriptors {
        let held = left.descriptors;
        faults.push(format!("{held} descriptors are open at the end, of {descriptors} at first"));
    }
    if left.resident > resident + GAIN {
        let held = left.resident;
        faults.push(format!("{held} kB of memory are in use at the end, of {resident} at first"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_at_the_end_is_a_fault() {
        let left = |descriptors, resident| Left { descriptors, resident, after: Duration::ZERO };
        let first = Holding { descriptors: 60, resident: 20_000 };
        assert!(not_given_back(&first, left(60, 20_000)).is_empty());
        assert!(not_given_back(&first, left(40, 20_000 + GAIN)).is_empty());
        assert_eq!(not_given_back(&first, left(61, 20_000)).len(), 1);
        assert_eq!(not_given_back(&first, left(61, 20_001 + GAIN)).len(), 2);
    }
}
