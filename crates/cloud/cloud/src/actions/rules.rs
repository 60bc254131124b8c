//! Creates, changes and deletes rules of HTTP and HTTPS listeners, and turns them into
//! redirections.

pub(super) mod auto_rewrite;
pub(super) mod create;
pub(super) mod delete;
mod domain;
pub(super) mod domain_attributes;
pub(super) mod modify;
pub(super) mod redirections;
pub(super) mod rewrite;
pub(super) mod view;
