//! A load balancer: its configuration, and its decisions.
//!
//! **Owns** the decisions: [`decide`] picks a target, avoids one, and names the next to try;
//! [`rules`] and [`request_path`] find the rule that serves a request; [`health`] decides whether a
//! target is alive; [`schedule`] prepares the same decisions for many connections. They are pure.
//! The prediction and the data plane (`uturn-proxy`) both call them, so their answers agree. The
//! crate also owns what both sides of the data plane need: [`config`], [`change`],
//! [`client_address`], [`event`], [`nft`], [`proxy_header`], [`source`], [`special_address`] and
//! [`steer`].
//!
//! **Out of scope:** the paths of packets (`uturn-path`), and the behaviour of the load balancers
//! of a cloud (`uturn-clouds`).
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
