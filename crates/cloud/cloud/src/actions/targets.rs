//! Targets of listeners on layer 4 and of rules on layer 7.

mod address;
mod batch;
mod bound;
mod change;
mod describe;
mod group;
mod health;
mod named;
mod refused;
mod register;

pub use self::address::address;
pub(super) use self::batch::{deregister_batch, modify_tags, modify_weights, register_batch};
pub(super) use self::bound::describe as describe_bound;
pub(super) use self::change::{modify_port, modify_weight};
pub(super) use self::describe::describe;
pub(super) use self::health::describe_health;
pub(super) use self::register::{deregister, register};
