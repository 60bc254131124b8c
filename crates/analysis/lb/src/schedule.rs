//! Decisions prepared for many connections: the decisions of [`Choice`] in constant time.
//!
//! A data plane asks for a target with every request, while targets and their health change
//! rarely. A [`Schedule`] is made when they do; a pick is then a look-up.
//!
//! # Guarantees
//! - [`Schedule::pick`] returns the same as [`Choice::pick`] for the same targets, health, client
//!   and turn. A property test checks this.
//! - [`Schedule::least`] returns a candidate whose open connections, relative to its weight, are
//!   the fewest; the turn decides between equals.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::OnceLock;

use uturn_model::lb::{Profile, Target};

use crate::decide::Choice;

/// The decisions for one rule while its targets and their health stay as they are.
#[derive(Debug)]
pub struct Schedule {
    profile: Profile,
    targets: Box<[Target]>,
    alive: Box<[bool]>,
    /// The turns for a client whose address is none of the targets'.
    usual: Turns,
    /// The turns for clients with a target's address, made when the first of them connects.
    avoiding: HashMap<IpAddr, OnceLock<Turns>>,
}

/// The candidates, and one round of the scheduler.
#[derive(Debug)]
struct Turns {
    candidates: Box<[usize]>,
    ring: Box<[usize]>,
}

impl Schedule {
    /// Prepares the decisions. `alive` states for each target whether it may be picked.
    ///
    /// # Panics
    /// Panics if `alive` and `targets` differ in length.
    pub fn new(profile: &Profile, targets: &[Target], alive: &[bool]) -> Self {
        let unspecified = IpAddr::from([0, 0, 0, 0]);
        let usual = Turns::of(&Choice::new(profile, targets, alive, unspecified));
        let own_addresses = targets.iter().filter(|_| profile.avoids_client);
        let avoiding = own_addresses.map(|target| (target.address.ip(), OnceLock::new())).collect();
        Self {
            profile: profile.clone(),
            targets: targets.into(),
            alive: alive.into(),
            usual,
            avoiding,
        }
    }

    /// Returns the target of the connection with this number. Returns `None` if there is no
    /// candidate.
    pub fn pick(&self, turn: u64, client: IpAddr) -> Option<usize> {
        let turns = self.turns_for(client);
        let at = self.choice(client).ring_place(turn, turns.ring.len())?;
        Some(turns.ring[at])
    }

    /// Returns the candidate with the fewest open connections relative to its weight. `open`
    /// returns the number of a target's open connections. Returns `None` if there is no candidate.
    pub fn least(&self, turn: u64, client: IpAddr, open: impl Fn(usize) -> u64) -> Option<usize> {
        let candidates = &self.turns_for(client).candidates;
        let first = turn.checked_rem(candidates.len() as u64)? as usize;
        let in_turn = candidates[first..].iter().chain(&candidates[..first]).copied();
        // a/v < b/w, without division; `min_by` keeps the first of equals.
        in_turn.min_by(|a, b| {
            let (weight_a, weight_b) = (self.weight(*a), self.weight(*b));
            (u128::from(open(*a)) * weight_b).cmp(&(u128::from(open(*b)) * weight_a))
        })
    }

    /// Returns the target to try after all of `tried` have failed, as [`Choice::next`].
    pub fn next(&self, client: IpAddr, tried: &[usize]) -> Option<usize> {
        self.choice(client).next(tried)
    }

    /// Returns the targets to which the client may be sent.
    pub fn candidates(&self, client: IpAddr) -> &[usize] {
        &self.turns_for(client).candidates
    }

    fn choice(&self, client: IpAddr) -> Choice<'_> {
        Choice::new(&self.profile, &self.targets, &self.alive, client)
    }

    fn turns_for(&self, client: IpAddr) -> &Turns {
        match self.avoiding.get(&client) {
            Some(turns) => turns.get_or_init(|| Turns::of(&self.choice(client))),
            None => &self.usual,
        }
    }

    fn weight(&self, target: usize) -> u128 {
        u128::from(self.targets[target].weight)
    }
}

impl Turns {
    fn of(choice: &Choice<'_>) -> Self {
        let candidates = choice.candidates();
        let ring = choice.ring(&candidates).into();
        Self { candidates: candidates.into(), ring }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uturn_model::lb::{Layer, Scheduler, TargetKind};

    use super::*;
    use crate::test_profile;

    fn target((number, weight): (usize, &u32)) -> Target {
        Target {
            // Two targets share an address, as two ports of a node do.
            address: format!("10.0.0.{}:{}", 11 + number / 2, 30080 + number).parse().unwrap(),
            weight: *weight,
            kind: TargetKind::NodePort(format!("n{number}").parse().unwrap()),
        }
    }

    fn scheduler() -> impl Strategy<Value = Scheduler> {
        prop_oneof![
            Just(Scheduler::WeightedRoundRobin),
            Just(Scheduler::LeastConnections),
            Just(Scheduler::SourceHash)
        ]
    }

    proptest! {
        #[test]
        fn a_schedule_decides_as_the_choice_does(
            weights in prop::collection::vec(0u32..5, 0..7),
            alive in prop::collection::vec(any::<bool>(), 7),
            scheduler in scheduler(),
            avoids_client: bool,
            panic_threshold in prop::option::of(0u8..100),
            turns in prop::collection::vec((0u64..1000, 8u8..16), 1..20),
        ) {
            let profile = Profile { scheduler, avoids_client, panic_threshold, ..test_profile::profile(Layer::L7) };
            let targets: Vec<Target> = weights.iter().enumerate().map(target).collect();
            let alive = &alive[..targets.len()];
            let schedule = Schedule::new(&profile, &targets, alive);
            for (turn, client) in turns {
                let client = IpAddr::from([10, 0, 0, client]);
                let choice = Choice::new(&profile, &targets, alive, client);
                prop_assert_eq!(schedule.pick(turn, client), choice.pick(turn));
                prop_assert_eq!(schedule.candidates(client), choice.candidates());
            }
        }

        #[test]
        fn the_least_loaded_candidate_is_picked(
            weights in prop::collection::vec(0u32..5, 1..7),
            open in prop::collection::vec(0u64..10, 7),
            turn in 0u64..100,
        ) {
            let profile = test_profile::profile(Layer::L7);
            let targets: Vec<Target> = weights.iter().enumerate().map(target).collect();
            let schedule = Schedule::new(&profile, &targets, &vec![true; targets.len()]);
            let client = IpAddr::from([10, 1, 1, 10]);
            let load = |i: usize| open[i] as f64 / f64::from(targets[i].weight);
            match schedule.least(turn, client, |i| open[i]) {
                Some(picked) => {
                    for candidate in schedule.candidates(client) {
                        prop_assert!(load(picked) <= load(*candidate));
                    }
                }
                None => prop_assert!(schedule.candidates(client).is_empty()),
            }
        }
    }

    #[test]
    fn equals_take_turns() {
        let targets: Vec<Target> = [10, 10, 10].iter().enumerate().map(target).collect();
        let schedule = Schedule::new(&test_profile::profile(Layer::L7), &targets, &[true; 3]);
        let client = IpAddr::from([10, 1, 1, 10]);
        let picks = [0, 1, 2, 3].map(|turn| schedule.least(turn, client, |_| 4));
        assert_eq!(picks, [Some(0), Some(1), Some(2), Some(0)]);
    }
}
