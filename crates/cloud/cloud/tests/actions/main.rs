//! The actions on load balancers, listeners and rules, and those of neighbour services, driven
//! as clients drive them: by signed requests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::needless_pass_by_value, reason = "requests are written where they are sent")]

mod bounds;
mod codes;
mod first;
mod harness;
mod listeners;
mod load_balancers;
mod neighbours;
mod nothing_changes;
mod plane;
mod rules;
mod tasks;
