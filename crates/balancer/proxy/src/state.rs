//! What workers share: listeners, their rules, and what is known of each target.

mod gate;
mod listener;
mod rule;
mod stickiness;

pub(crate) use listener::{Listener, Slot};
pub(crate) use rule::{OpenGuard, Rule, Target};
