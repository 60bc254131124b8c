//! Creates, describes, changes and deletes listeners.

pub(super) mod create;
pub(super) mod delete;
pub(super) mod describe;
pub(super) mod modify;
mod settings;
mod view;
