//! The health of targets as the machines see it.
//!
//! Machines probe each for itself. A target is alive if all machines that can be reached say so,
//! and dead if any does: then a part of the traffic does not reach it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{PoisonError, RwLock};

use crate::health::{HealthOf, HealthView, TargetState};

/// A target of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TargetKey {
    pub(super) load_balancer: String,
    pub(super) listener: String,
    pub(super) rule: Option<String>,
    pub(super) address: SocketAddr,
}

/// What one machine says of targets.
pub(super) type MachineHealth = HashMap<TargetKey, TargetState>;

/// The health of targets as the machines see it.
#[derive(Debug, Default)]
pub struct PlaneHealth {
    /// `None` for a machine that cannot be reached.
    machines: RwLock<Vec<Option<MachineHealth>>>,
}

impl PlaneHealth {
    /// Waits for the views of so many machines.
    pub(super) fn expect(&self, machines: usize) {
        let mut views = self.machines.write().unwrap_or_else(PoisonError::into_inner);
        views.resize_with(machines, || None);
    }

    /// A machine says this.
    pub(super) fn update(&self, machine: usize, health: MachineHealth) {
        self.set(machine, Some(health));
    }

    /// A machine cannot be reached.
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
}

/// What two machines, or two listeners of one machine, say together.
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
}
