//! A server of the CLB API, Tencent Cloud API 3.0.
//!
//! **Owns** who may call ([`authorization`], [`credentials`]), the resources ([`state`],
//! [`inventory`]), the actions on them ([`actions`]), and the plan that data planes are driven by
//! ([`plane`], [`drive`]). The wire protocol, the schema and the types of the actions are those of
//! [`uturn_cloud_api`].
//!
//! **Out of scope:** traffic. `uturn-proxy` serves it, and `uturn-lb` decides which target gets it.
//!
//! **Start reading** at [`cloud`], then at [`actions`].

pub mod actions;
pub mod authorization;
pub mod cloud;
pub mod credentials;
pub mod drive;
pub mod health;
pub mod ids;
pub mod inventory;
pub mod plane;
pub mod quotas;
pub mod refused_targets;
pub mod server;
pub mod state;
pub mod store;
