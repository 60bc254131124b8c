//! A run of the lab.
//!
//! **Owns** its state on disk, by which a later run cleans up after it, its programs and threads,
//! and what interrupts it.

pub(crate) mod interrupt;
pub(crate) mod program;
pub(crate) mod state;
pub(crate) mod worker;
