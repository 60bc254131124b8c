//! The controllers are stopped at every call, and begin again.

use uturn_operator::wanted::{self, Wanted};

use crate::held::{self, All};
use crate::one_decision::{random, random_environment};
use crate::rich;
use crate::stage::{Stage, Stop};

/// The names of the load balancers with what each serves, which does not depend on ids.
fn state(stage: &Stage) -> (Vec<String>, All) {
    let accounts = stage.accounts();
    let balancers = accounts.values().flat_map(|account| account.load_balancers.values());
    let mut names: Vec<String> = balancers.map(|balancer| balancer.name.clone()).collect();
    names.sort();
    (names, held::served(&accounts))
}

/// Every point at which a change from one cluster to another can stop, before a write and after
/// it.
fn every_stop(
    prepare: impl Fn(&Stage) -> (Wanted, Wanted, uturn_operator::environment::Environment),
) -> usize {
    let whole = Stage::new();
    let (before, after, environment) = prepare(&whole);
    whole.settle_wanted(&before, &environment);
    whole.stop(Stop::Never);
    whole.settle_wanted(&after, &environment);
    let (writes, expected) = (whole.writes(), state(&whole));
    for number in 0..writes {
        for stop in [Stop::Before(number), Stop::After(number)] {
            let stage = Stage::new();
            let (before, after, environment) = prepare(&stage);
            stage.settle_wanted(&before, &environment);
            stage.stop(stop);
            assert!(stage.reconcile(&after, &environment).is_err(), "{stop:?} of {writes}");
            stage.stop(Stop::Never);
            stage.settle_wanted(&after, &environment);
            assert_eq!(state(&stage), expected, "{stop:?} of {writes}");
        }
    }
    writes
}

#[test]
fn creation_goes_on_from_every_call() {
    let writes = every_stop(|stage| {
        let (cluster, environment) = rich::cluster_and_environment(stage);
        (Wanted::default(), wanted::wanted(&cluster, &environment).unwrap(), environment)
    });
    assert!(writes > 25, "{writes} writes");
}

#[test]
fn deletion_goes_on_from_every_call() {
    let writes = every_stop(|stage| {
        let (cluster, environment) = rich::cluster_and_environment(stage);
        (wanted::wanted(&cluster, &environment).unwrap(), Wanted::default(), environment)
    });
    assert_eq!(writes, 7, "a call for each load balancer");
}

#[test]
fn changes_go_on_from_every_call() {
    let mut writes = 0;
    for seed in 1..=12 {
        writes += every_stop(|_| {
            let (before, after) = (random(seed), random(seed + 20));
            let (old, mut environment) = (random_environment(&before), random_environment(&after));
            for (object, uid) in &old.uids {
                environment.uids.entry(object.clone()).or_insert_with(|| uid.clone());
            }
            (
                wanted::wanted(&before, &old).unwrap(),
                wanted::wanted(&after, &environment).unwrap(),
                environment,
            )
        });
    }
    assert!(writes > 20, "{writes} writes");
}
