//! The decision whether a target is alive, by successive good or bad probes.
//!
//! # Guarantees
//! - Nothing is decided before `rise` good probes or `fall` bad ones in a row.
//! - A decision changes only after as many contrary probes in a row; a probe that agrees with
//!   it begins the count anew.
//! - A target that fails `failures` requests in a row is ejected for the time that its check
//!   states; then its failures are counted from zero.
//!
//! # Assumptions
//! - Until the first decision, a target counts as alive: a new load balancer refuses no client.

use std::time::Instant;

use uturn_model::lb::{HealthCheck, PassiveCheck};

/// The results of a target's probes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    rise: u32,
    fall: u32,
    decided: Option<bool>,
    /// The latest result, and the number of successive probes that had it.
    streak: (bool, u32),
}

impl Health {
    /// Makes the state before the first probe.
    pub fn new(check: &HealthCheck) -> Self {
        Self { rise: check.rise.max(1), fall: check.fall.max(1), decided: None, streak: (true, 0) }
    }

    /// Records the result of a probe. Returns the decision if it is new or changed.
    pub fn record(&mut self, good: bool) -> Option<bool> {
        let before = if self.streak.0 == good { self.streak.1 } else { 0 };
        self.streak = (good, before.saturating_add(1));
        let needed = if good { self.rise } else { self.fall };
        if self.streak.1 < needed || self.decided == Some(good) {
            return None;
        }
        self.decided = Some(good);
        self.decided
    }

    /// Returns the decision. Returns `None` before the first one.
    pub fn decided(&self) -> Option<bool> {
        self.decided
    }

    /// Returns whether the target may be picked.
    pub fn is_alive(&self) -> bool {
        self.decided.unwrap_or(true)
    }
}

/// A target's health by the results of requests: too many failures in a row eject it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassiveHealth {
    failed: u32,
    rests_until: Option<Instant>,
}

impl PassiveHealth {
    /// Records how a request ended. Returns whether the target is ejected from now on.
    pub fn record(&mut self, good: bool, check: &PassiveCheck, now: Instant) -> bool {
        if good {
            self.failed = 0;
            return false;
        }
        self.failed += 1;
        if self.failed < check.failures {
            return false;
        }
        *self = Self { failed: 0, rests_until: Some(now + check.rest) };
        true
    }

    /// Returns whether the target is ejected.
    pub fn rests(&self, now: Instant) -> bool {
        self.rest_ends(now).is_some()
    }

    /// Returns the time at which the target is no longer ejected. Returns `None` if it is not
    /// ejected.
    pub fn rest_ends(&self, now: Instant) -> Option<Instant> {
        self.rests_until.filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use uturn_model::lb::{HealthQuestion, ProbeSource};

    use super::*;

    fn check(rise: u32, fall: u32) -> HealthCheck {
        let second = Duration::from_secs(1);
        HealthCheck {
            source: ProbeSource::Vip,
            interval: second,
            timeout: second,
            rise,
            fall,
            keeps_address: false,
            question: HealthQuestion::Target,
        }
    }

    #[test]
    fn a_row_decides_and_a_single_probe_does_not() {
        let mut health = Health::new(&check(2, 3));
        let decisions: Vec<Option<bool>> =
            [false, false, true, false, false, false, true, false, true, true, true]
                .into_iter()
                .map(|good| health.record(good))
                .collect();
        let mut expected = vec![None; 11];
        expected[5] = Some(false);
        expected[9] = Some(true);
        assert_eq!(decisions, expected);
    }

    #[test]
    fn what_is_not_decided_is_alive() {
        let mut health = Health::new(&check(3, 2));
        assert_eq!((health.decided(), health.is_alive()), (None, true));
        health.record(false);
        assert!(health.is_alive());
        health.record(false);
        assert_eq!((health.decided(), health.is_alive()), (Some(false), false));
    }

    #[test]
    fn a_target_that_fails_too_often_is_ejected() {
        let check = PassiveCheck { failures: 3, rest: Duration::from_secs(10) };
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut health = PassiveHealth::default();
        let ends = [false, false, true, false, false, false];
        let rests = ends.map(|good| health.record(good, &check, at(0)));
        assert_eq!(rests, [false, false, false, false, false, true]);
        assert_eq!([0, 9, 10].map(|second| health.rests(at(second))), [true, true, false]);
        assert!(!health.record(false, &check, at(10)), "it begins anew");
    }

    proptest! {
        #[test]
        fn the_latest_long_row_is_what_holds(
            rise in 1u32..5,
            fall in 1u32..5,
            probes in prop::collection::vec(any::<bool>(), 0..60),
        ) {
            let mut health = Health::new(&check(rise, fall));
            let mut expected = None;
            let (mut good, mut bad) = (0, 0);
            for probe in probes {
                (good, bad) = if probe { (good + 1, 0) } else { (0, bad + 1) };
                if good >= rise {
                    expected = Some(true);
                } else if bad >= fall {
                    expected = Some(false);
                }
                health.record(probe);
                prop_assert_eq!(health.decided(), expected);
            }
        }
    }
}
