//! The state that workers share: listeners, their rules, and the targets.

mod gate;
mod listener;
mod rule;
mod stickiness;

pub(crate) use listener::{Listener, Slot};
pub(crate) use rule::{OpenGuard, Rule, Target};
