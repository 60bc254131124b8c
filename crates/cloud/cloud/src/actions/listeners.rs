//! Listeners: created, described, changed and deleted.

pub(super) mod create;
pub(super) mod delete;
pub(super) mod describe;
pub(super) mod modify;
mod settings;
mod view;
