//! What calls on targets do to what is known.

use super::call::{Binding, Call};
use crate::clb::Targets;
use crate::observed::Balancer;

/// Notes in what is known of a load balancer that a call on its targets was performed. Other calls
/// do more than they state, and what they did has to be looked at.
pub fn apply(found: &mut Balancer, call: &Call) {
    match call {
        Call::Register(bindings) | Call::Weigh(bindings) => {
            for binding in bindings {
                if let Some(targets) = targets_of(found, binding) {
                    targets.insert(binding.target.clone(), binding.weight);
                }
            }
        }
        Call::Deregister(bindings) => {
            for binding in bindings {
                if let Some(targets) = targets_of(found, binding) {
                    targets.remove(&binding.target);
                }
            }
        }
        _ => {}
    }
}

fn targets_of<'f>(found: &'f mut Balancer, binding: &Binding) -> Option<&'f mut Targets> {
    let listener = &mut found.listeners.get_mut(&binding.listener.key)?.listener;
    match &binding.rule {
        None => Some(&mut listener.targets),
        Some(rule) => listener.rules.get_mut(&rule.key).map(|rule| &mut rule.targets),
    }
}
