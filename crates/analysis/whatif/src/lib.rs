//! What a change does to calls: a cluster before and after it, compared call by call.
//!
//! **Owns** the language of changes ([`change`]: what each flag of `uturn whatif` means), edited
//! copies of a cluster ([`mod@apply`]), and the comparison of two clusters ([`mod@compare`]): which calls
//! get worse, better, or only otherwise, grouped by cause ([`Comparison`]).
//!
//! **Out of scope:** walking packets and finding faults, which `uturn-scan` and `uturn-diagnose`
//! do, and output: `uturn-report` makes texts and files. Nothing is written anywhere.
//!
//! **Start reading** at [`Change`]; [`apply::apply`] makes the edited cluster of it, and
//! [`compare::compare`] holds the two against each other.

pub mod apply;
pub mod change;
pub mod compare;
pub mod presets;
#[cfg(test)]
mod random_cluster;
pub mod result;
pub mod survive;

pub use apply::{Edited, apply, with_losses};
pub use change::Change;
pub use compare::{State, compare};
pub use result::{Comparison, Effect, Entry, Side, Subject, Verdicts, Who};
