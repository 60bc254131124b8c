//! Decisions of a load balancer: which target it picks, which it avoids, and which it tries next.
//!
//! # Guarantees
//! - A target with weight 0 is never picked. A dead target is picked only if so few are alive that
//!   the profile treats all as alive: by default, if none is.
//! - As long as another target is left, a target with the client's own address is not picked.
//! - A retry continues from the target that failed and does not advance the scheduler's turn. So
//!   with N equal targets and one that fails, one request in N meets that target first, however
//!   many clients there are.
//!
//! # Assumptions
//! - "The client's own address" is the address that the load balancer sees. A pod behind a NodePort
//!   target is not recognised: this is the cause of loopback.

use std::net::IpAddr;

use uturn_model::Share;
use uturn_model::lb::{Profile, Scheduler, Target};

use crate::hash::place_of;

/// The input of a decision: the profile, the targets with their health, and the client.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    profile: &'a Profile,
    targets: &'a [Target],
    alive: &'a [bool],
    client: IpAddr,
}

impl<'a> Choice<'a> {
    /// Makes the input of a decision for one client. `alive` states for each target whether it
    /// answers its health checks.
    ///
    /// # Panics
    /// Panics if `alive` and `targets` differ in length.
    pub fn new(
        profile: &'a Profile,
        targets: &'a [Target],
        alive: &'a [bool],
        client: IpAddr,
    ) -> Self {
        assert_eq!(targets.len(), alive.len(), "one health for each target");
        Self { profile, targets, alive, client }
    }

    /// Returns the targets that may be picked, in order.
    pub fn candidates(&self) -> Vec<usize> {
        let weighted = |i: &usize| self.targets[*i].weight > 0;
        let mut all: Vec<usize> = (0..self.targets.len()).filter(weighted).collect();
        if !self.is_panic(&all) {
            all.retain(|i| self.alive[*i]);
        }
        if self.profile.avoids_client {
            all.retain(|i| self.targets[*i].address.ip() != self.client);
        }
        all
    }

    /// Returns whether so few of these targets are alive that all count as alive.
    fn is_panic(&self, targets: &[usize]) -> bool {
        let alive = targets.iter().filter(|i| self.alive[**i]).count();
        let threshold = self.profile.panic_threshold.map(usize::from);
        threshold.is_some_and(|percent| alive * 100 <= targets.len() * percent)
    }

    /// Returns the target of the connection with this number. Returns `None` if there is no
    /// candidate.
    pub fn pick(&self, turn: u64) -> Option<usize> {
        let ring = self.ring(&self.candidates());
        self.ring_place(turn, ring.len()).map(|at| ring[at])
    }

    /// Returns the place in a ring of this length that the connection with this number gets.
    /// Returns `None` if the ring is empty.
    pub(crate) fn ring_place(&self, turn: u64, length: usize) -> Option<usize> {
        match self.profile.scheduler {
            // Without a count of open connections, the scheduler for the fewest connections takes
            // turns.
            Scheduler::WeightedRoundRobin | Scheduler::LeastConnections => {
                turn.checked_rem(length as u64).map(|at| at as usize)
            }
            Scheduler::SourceHash => place_of(self.client, length),
        }
    }

    /// Returns the target to try after all of `tried`, in that order, have failed. Returns `None`
    /// if the profile tries no other target or none is left.
    pub fn next(&self, tried: &[usize]) -> Option<usize> {
        if !self.profile.next_target {
            return None;
        }
        let last = *tried.last()?;
        let candidates = self.candidates();
        let after = candidates.iter().copied().filter(|i| *i > last);
        let before = candidates.iter().copied().filter(|i| *i < last);
        after.chain(before).find(|i| !tried.contains(i))
    }

    /// Returns each target that can be picked first, with the share of connections that meet it.
    pub fn shares(&self) -> Vec<(usize, Share)> {
        match self.profile.scheduler {
            Scheduler::SourceHash => {
                self.pick(0).map(|only| (only, Share::ALL)).into_iter().collect()
            }
            Scheduler::WeightedRoundRobin | Scheduler::LeastConnections => {
                self.shares_of_any_client()
            }
        }
    }

    /// Returns the same for an unknown client, which may get any target by a hash of its address.
    pub fn shares_of_any_client(&self) -> Vec<(usize, Share)> {
        let candidates = self.candidates();
        let weight = |i: usize| f64::from(self.targets[i].weight);
        let total: f64 = candidates.iter().map(|i| weight(*i)).sum();
        candidates.into_iter().map(|i| (i, Share::ratio(weight(i), total))).collect()
    }

    /// Returns a round of the scheduler: each candidate as often as its weight says, evenly mixed.
    pub(crate) fn ring(&self, candidates: &[usize]) -> Vec<usize> {
        let weights: Vec<u64> =
            candidates.iter().map(|i| u64::from(self.targets[*i].weight)).collect();
        let divisor = weights.iter().copied().fold(0, gcd);
        let total: u64 = weights.iter().sum();
        let Some(length) = total.checked_div(divisor) else { return Vec::new() };
        if weights.iter().all(|weight| *weight == divisor) {
            // This is the result of the loop below, without a step for each pair of targets.
            return candidates.to_vec();
        }
        let mut credit = vec![0i64; candidates.len()];
        (0..length)
            .filter_map(|_| {
                for (credit, weight) in credit.iter_mut().zip(&weights) {
                    *credit += *weight as i64;
                }
                let richest = (0..credit.len()).max_by_key(|i| (credit[*i], usize::MAX - i))?;
                credit[richest] -= total as i64;
                Some(candidates[richest])
            })
            .collect()
    }
}

/// Returns the greatest common divisor.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uturn_model::lb::{Layer, TargetKind};

    use super::*;
    use crate::test_profile;

    fn targets(weights: &[u32]) -> Vec<Target> {
        weights
            .iter()
            .enumerate()
            .map(|(i, weight)| Target {
                address: format!("10.0.0.{}:30080", 11 + i).parse().unwrap(),
                weight: *weight,
                kind: TargetKind::NodePort(format!("n{}", i + 1).parse().unwrap()),
            })
            .collect()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_host_is_avoided_and_a_pod_is_not() {
        let (profile, targets) = (test_profile::profile(Layer::L7), targets(&[10, 10]));
        let choice = |client| Choice::new(&profile, &targets, &[true, true], ip(client));
        assert_eq!(choice("10.0.0.11").candidates(), [1]);
        assert_eq!(choice("10.1.1.10").candidates(), [0, 1]);
    }

    #[test]
    fn the_only_node_is_no_candidate_for_its_own_host() {
        let (profile, targets) = (test_profile::profile(Layer::L7), targets(&[10]));
        let choice = Choice::new(&profile, &targets, &[true], ip("10.0.0.11"));
        assert_eq!(choice.pick(0), None);
        assert_eq!(choice.shares(), []);
    }

    #[test]
    fn all_dead_is_all_alive() {
        let (profile, targets) = (test_profile::profile(Layer::L4), targets(&[10, 10, 10]));
        let client = ip("10.1.1.10");
        assert_eq!(
            Choice::new(&profile, &targets, &[false, true, false], client).candidates(),
            [1]
        );
        assert_eq!(Choice::new(&profile, &targets, &[false; 3], client).candidates(), [0, 1, 2]);
    }

    #[test]
    fn few_alive_are_all_alive_up_to_the_threshold() {
        let targets = targets(&[10, 10, 10, 0]);
        let candidates = |panic_threshold, alive: [bool; 4]| {
            let profile = Profile { panic_threshold, ..test_profile::profile(Layer::L4) };
            Choice::new(&profile, &targets, &alive, ip("10.1.1.10")).candidates()
        };
        let third = [true, false, false, true];
        assert_eq!(candidates(Some(33), third), [0], "a third is more than 33 percent");
        assert_eq!(candidates(Some(34), third), [0, 1, 2]);
        assert_eq!(candidates(None, third), [0]);
        assert_eq!(candidates(None, [false; 4]), [0; 0]);
        assert_eq!(candidates(Some(0), [false; 4]), [0, 1, 2]);
    }

    #[test]
    fn layer_4_never_retries() {
        let (profile, targets) = (test_profile::profile(Layer::L4), targets(&[10, 10]));
        assert_eq!(Choice::new(&profile, &targets, &[true; 2], ip("10.1.1.10")).next(&[0]), None);
    }

    proptest! {
        #[test]
        fn turns_meet_targets_as_their_shares_say(
            weights in prop::collection::vec(0u32..5, 0..6),
            dead in prop::collection::vec(any::<bool>(), 6),
            client in 0u8..20,
        ) {
            let (profile, targets) = (test_profile::profile(Layer::L7), targets(&weights));
            let alive = &dead[..targets.len()];
            let client = ip(&format!("10.0.0.{client}"));
            let choice = Choice::new(&profile, &targets, alive, client);
            let total: u64 = choice.candidates().iter().map(|i| u64::from(targets[*i].weight)).sum();
            let mut met = vec![0u64; targets.len()];
            for turn in 0..total {
                met[choice.pick(turn).unwrap()] += 1;
            }
            for (i, share) in choice.shares() {
                prop_assert!(share.is_about(Share::ratio(met[i] as f64, total as f64)));
            }
            prop_assert_eq!(choice.shares().is_empty(), choice.pick(0).is_none());
        }

        #[test]
        fn retries_try_every_candidate_once(count in 1usize..6, first in 0usize..6) {
            let (profile, targets) = (test_profile::profile(Layer::L7), targets(&vec![10; count]));
            let alive = vec![true; count];
            let choice = Choice::new(&profile, &targets, &alive, ip("10.1.1.10"));
            let mut tried = vec![first % count];
            while let Some(next) = choice.next(&tried) {
                prop_assert!(!tried.contains(&next));
                tried.push(next);
            }
            prop_assert_eq!(tried.len(), count);
        }
    }
}
