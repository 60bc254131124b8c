//! Creates, describes, changes and deletes load balancers.

pub(super) mod addresses;
pub(super) mod create;
pub(super) mod custom_config;
pub(super) mod delete;
pub(super) mod describe;
pub(super) mod detail;
pub(super) mod modify;
mod order;
pub(super) mod project;
pub(super) mod protection;
pub(super) mod quota;
pub(super) mod resources;
pub(super) mod security_groups;
pub(super) mod snat;
pub(super) mod start_status;
pub(super) mod view;
