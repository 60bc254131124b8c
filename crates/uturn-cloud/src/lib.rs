//! The CLB API: Tencent Cloud API 3.0, as a server and as a client.
//!
//! **Owns** the wire ([`wire`]: signatures, parameters, envelopes and codes), the published
//! schema that every request is held against ([`schema`]), and what the actions do.
//!
//! **Refuses** to know what traffic does on a load balancer: `uturn-proxy` serves it, and
//! `uturn-lb` decides.
//!
//! **Start reading** at [`wire`].

pub mod credentials;
pub mod schema;
pub mod wire;
