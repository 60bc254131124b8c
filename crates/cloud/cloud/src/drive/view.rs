//! The health of targets as the machines see it, and the parts that they do not serve.
//!
//! Each machine probes for itself. A target is alive if all reachable machines say so, and dead if
//! any says so, because then a part of the traffic does not reach it.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use uturn_cloud_api::unserved::Unserved;

use crate::health::{HealthOf, HealthView, TargetState};
use crate::plane::Part;

/// A target of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TargetKey {
    pub(super) load_balancer: String,
    pub(super) listener: String,
    pub(super) rule: Option<String>,
    pub(super) address: SocketAddr,
}

/// The health of targets as one machine reports it.
pub(super) type MachineHealth = HashMap<TargetKey, TargetState>;

/// The health of targets as the machines see it.
#[derive(Debug, Default)]
pub struct PlaneHealth {
    /// `None` for a machine that cannot be reached.
    machines: RwLock<Vec<Option<MachineHealth>>>,
    serving: RwLock<Serving>,
}

/// The load balancers and listeners that are not served.
#[derive(Debug, Default)]
struct Serving {
    machines: Vec<MachineServing>,
    /// Load balancers and listeners that the plan leaves out.
    planned: BTreeMap<Part, Unserved>,
}

/// The load balancers and listeners that a machine does not serve.
#[derive(Clone, Debug, Default)]
struct MachineServing {
    /// Whether the machine could not be reached for some time.
    is_lost: bool,
    /// The load balancers and listeners that the machine refused when it was last driven.
    refused: BTreeMap<Part, Unserved>,
}

impl PlaneHealth {
    /// Sets the number of machines, none of which has reported yet.
    pub(super) fn expect(&self, machines: usize) {
        let mut views = self.machines.write().unwrap_or_else(PoisonError::into_inner);
        views.resize_with(machines, || None);
        self.serving_mut().machines.resize_with(machines, MachineServing::default);
    }

    /// Sets the load balancers and listeners that the plan leaves out.
    pub(super) fn leaves_out(&self, planned: BTreeMap<Part, Unserved>) {
        self.serving_mut().planned = planned;
    }

    /// Notes that a machine serves what it has to, except these load balancers and listeners.
    pub(super) fn serves(&self, machine: usize, refused: BTreeMap<Part, Unserved>) {
        self.set_serving(machine, MachineServing { is_lost: false, refused });
    }

    /// Notes that a machine could not be reached for some time.
    pub(super) fn lost(&self, machine: usize) {
        self.set_serving(machine, MachineServing { is_lost: true, refused: BTreeMap::new() });
    }

    fn set_serving(&self, machine: usize, serving: MachineServing) {
        if let Some(known) = self.serving_mut().machines.get_mut(machine) {
            *known = serving;
        }
    }

    /// Returns the number of load balancers and listeners that are not served, for each reason.
    pub(super) fn unserved_counts(&self) -> BTreeMap<Unserved, usize> {
        let serving = self.serving();
        let refused = serving.machines.iter().flat_map(|machine| &machine.refused);
        let all: BTreeMap<&Part, Unserved> =
            refused.chain(&serving.planned).map(|(part, why)| (part, *why)).collect();
        let mut counts = BTreeMap::new();
        for why in all.into_values() {
            *counts.entry(why).or_default() += 1;
        }
        counts
    }

    fn serving(&self) -> RwLockReadGuard<'_, Serving> {
        self.serving.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn serving_mut(&self) -> RwLockWriteGuard<'_, Serving> {
        self.serving.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the health of targets as a machine reports it.
    pub(super) fn update(&self, machine: usize, health: MachineHealth) {
        self.set(machine, Some(health));
    }

    /// Forgets the health reported by a machine, which cannot be reached.
    pub(super) fn forget(&self, machine: usize) {
        self.set(machine, None);
    }

    fn set(&self, machine: usize, health: Option<MachineHealth>) {
        let mut views = self.machines.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get_mut(machine) {
            *view = health;
        }
    }
}

impl Serving {
    /// Returns why a part is not served, by a machine's refusal or by the plan.
    fn of(&self, part: &Part) -> Option<Unserved> {
        let refused = self.machines.iter().find_map(|machine| machine.refused.get(part));
        refused.or_else(|| self.planned.get(part)).copied()
    }
}

impl HealthView for PlaneHealth {
    fn state(&self, target: &HealthOf<'_>) -> TargetState {
        let key = TargetKey {
            load_balancer: target.load_balancer.to_owned(),
            listener: target.listener.to_owned(),
            rule: target.rule.map(str::to_owned),
            address: target.address,
        };
        let views = self.machines.read().unwrap_or_else(PoisonError::into_inner);
        let states = views.iter().flatten().map(|view| view.get(&key).copied());
        states
            .map(|state| state.unwrap_or(TargetState::Unknown))
            .reduce(both)
            .unwrap_or(TargetState::Unknown)
    }

    fn unserved(&self, load_balancer: &str) -> Option<Unserved> {
        let serving = self.serving();
        let is_lost =
            !serving.machines.is_empty() && serving.machines.iter().all(|machine| machine.is_lost);
        let why = serving.of(&(load_balancer.to_owned(), None));
        why.or(is_lost.then_some(Unserved::Unreachable))
    }

    fn unserved_listener(&self, load_balancer: &str, listener: &str) -> Option<Unserved> {
        self.serving().of(&(load_balancer.to_owned(), Some(listener.to_owned())))
    }

    fn has_unserved_listeners(&self, load_balancer: &str) -> bool {
        let first = (load_balancer.to_owned(), Some(String::new()));
        let has = |parts: &BTreeMap<Part, Unserved>| {
            parts.range(&first..).next().is_some_and(|((id, _), _)| id == load_balancer)
        };
        let serving = self.serving();
        has(&serving.planned) || serving.machines.iter().any(|machine| has(&machine.refused))
    }
}

/// Returns the combined state of a target that two machines, or two listeners of one machine,
/// report.
pub(super) fn both(first: TargetState, second: TargetState) -> TargetState {
    use TargetState::{Alive, Dead};
    match (first, second) {
        (Dead, _) | (_, Dead) => Dead,
        (Alive, Alive) => Alive,
        _ => TargetState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_alive_if_all_machines_that_answer_say_so() {
        use TargetState::{Alive, Dead, Unknown};
        let address: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let of = HealthOf { load_balancer: "lb", listener: "lbl", rule: Some("loc"), address };
        let key = TargetKey {
            load_balancer: "lb".to_owned(),
            listener: "lbl".to_owned(),
            rule: Some("loc".to_owned()),
            address,
        };
        let state = |views: &[Option<TargetState>]| {
            let health = PlaneHealth::default();
            health.expect(views.len());
            for (machine, view) in views.iter().enumerate() {
                match view {
                    Some(state) => health.update(machine, [(key.clone(), *state)].into()),
                    None => health.forget(machine),
                }
            }
            health.state(&of)
        };
        assert_eq!(state(&[]), Unknown);
        assert_eq!(state(&[None, None]), Unknown);
        assert_eq!(state(&[Some(Alive), None]), Alive);
        assert_eq!(state(&[Some(Alive), Some(Alive)]), Alive);
        assert_eq!(state(&[Some(Alive), Some(Unknown)]), Unknown);
        assert_eq!(state(&[Some(Alive), Some(Dead)]), Dead);
        assert_eq!(state(&[Some(Unknown), Some(Dead), None]), Dead);
        let health = PlaneHealth::default();
        health.expect(1);
        health.update(0, [(key, Alive)].into());
        assert_eq!(health.state(&HealthOf { rule: None, ..of }), Unknown, "another group");
    }

    #[test]
    fn a_load_balancer_is_not_served_if_any_machine_refuses_it_or_none_is_reached() {
        let health = PlaneHealth::default();
        let unserved = || health.unserved("lb-1");
        assert_eq!(unserved(), None, "there is no machine");
        health.expect(2);
        assert_eq!(unserved(), None, "none was tried yet");
        health.lost(0);
        assert_eq!(unserved(), None, "the other may serve it");
        health.lost(1);
        assert_eq!(unserved(), Some(Unserved::Unreachable));
        health.serves(1, BTreeMap::from([(("lb-1".to_owned(), None), Unserved::PortInUse)]));
        assert_eq!(unserved(), Some(Unserved::PortInUse));
        assert_eq!(health.unserved("lb-2"), None);
        health.serves(0, BTreeMap::new());
        assert_eq!(unserved(), Some(Unserved::PortInUse), "a part of the traffic is not served");
        health.serves(1, BTreeMap::new());
        assert_eq!(unserved(), None);
        assert!(!health.has_unserved_listeners("lb-1"));
        let listener = |id: &str| ("lb-1".to_owned(), Some(id.to_owned()));
        health.leaves_out(BTreeMap::from([(listener("lbl-1"), Unserved::LeftOut)]));
        health.serves(1, BTreeMap::from([(listener("lbl-3"), Unserved::PortInUse)]));
        assert_eq!(unserved(), None, "its other listeners are served");
        let of = |id: &str| health.unserved_listener("lb-1", id);
        let expected = [Some(Unserved::LeftOut), None, Some(Unserved::PortInUse)];
        assert_eq!(["lbl-1", "lbl-2", "lbl-3"].map(of), expected);
        assert!(health.has_unserved_listeners("lb-1") && !health.has_unserved_listeners("lb-0"));
        let counts = BTreeMap::from([(Unserved::LeftOut, 1), (Unserved::PortInUse, 1)]);
        assert_eq!(health.unserved_counts(), counts);
    }
}
