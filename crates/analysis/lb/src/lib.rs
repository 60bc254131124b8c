//! A load balancer: what is set up on it, and how it decides.
//!
//! **Owns** the decisions: [`decide`] picks a target, avoids one, and names the next to try;
//! [`rules`] and [`request_path`] find the rule that serves a request; [`health`] says when a target
//! counts as alive; [`schedule`] prepares the same decisions for many connections. They are pure.
//! The prediction and the data plane (`uturn-proxy`) both call them, so their answers agree. The
//! crate also owns what both sides of the data plane need: [`config`], [`change`],
//! [`client_address`], [`event`], [`nft`], [`proxy_header`], [`source`], [`special_address`] and
//! [`steer`].
//!
//! **Out of scope:** how packets travel, which `uturn-path` knows, and how the load balancers of a
//! cloud behave, which `uturn-clouds` knows.
//!
//! **Start reading** at [`decide`].

pub mod change;
pub mod client_address;
pub mod config;
pub mod decide;
pub mod event;
pub mod hash;
pub mod health;
pub mod nft;
pub mod pattern;
pub mod proxy_header;
pub mod request_path;
pub mod rules;
pub mod schedule;
pub mod source;
pub mod special_address;
pub mod steer;
#[cfg(test)]
mod test_profile;
