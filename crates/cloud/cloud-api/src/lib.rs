//! The CLB API, Tencent Cloud API 3.0: what its server and its clients share.
//!
//! **Owns** the wire protocol ([`wire`]: signatures, envelopes and codes), the published schema of
//! all actions ([`schema`]), their requests and answers as types ([`Action`], and a module for each
//! service, such as [`clb`]), the reasons why a load balancer is not served ([`unserved`]), and the
//! [`client`].
//!
//! **Out of scope:** what an action does. `uturn-cloud` is the server.
//!
//! **Start reading** at [`Action`], then at [`client`].

mod api;
pub mod client;
pub mod https;
pub mod schema;
mod secret_key;
pub mod unserved;
pub mod wire;

pub use api::{Action, cam, clb, cvm, ssl, sts, tag, vpc};
pub use secret_key::SecretKey;
