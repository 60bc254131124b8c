//! The CLB API: Tencent Cloud API 3.0, as a server and as a client.
//!
//! **Owns** the wire protocol ([`wire`]: signatures, envelopes and codes), who may call
//! ([`authorization`]), the published schema that every request is checked against ([`schema`]) and its types ([`api`]), the
//! resources ([`state`], [`inventory`]), and the actions on them ([`actions`]).
//!
//! **Out of scope:** traffic. `uturn-proxy` serves it, and `uturn-lb` decides which target gets it.
//!
//! **Start reading** at [`wire`], then at [`actions`].

pub mod actions;
pub mod api;
pub mod authorization;
pub mod client;
pub mod cloud;
pub mod credentials;
pub mod drive;
pub mod health;
pub mod ids;
pub mod inventory;
pub mod plane;
pub mod quotas;
pub mod refused_targets;
pub mod schema;
mod secret_key;
pub mod server;
pub mod state;
pub mod store;
pub mod unserved;
pub mod wire;

pub use secret_key::SecretKey;
