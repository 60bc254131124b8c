//! The effects of calls on targets on the observed state.

use super::call::{Binding, Call};
use crate::clb::Targets;
use crate::observed::Balancer;

/// Applies a call on targets to the observed state of a load balancer. Other calls have further
/// effects, so that the load balancer has to be read again after them.
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
