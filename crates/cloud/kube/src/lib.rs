//! The controllers in a cluster: they watch its objects, configure load balancers for them, and
//! write back the results.
//!
//! ```text
//! API server ── watch ── store ── cluster ─┐
//!                                          sync ── uturn-operator ── the cloud's API
//! API server ◀──────────── write ──────────┘
//! ```
//!
//! **Owns** the watches, the order of a round ([`sync`]), finalizers, addresses and conditions
//! ([`mod@write`]), events, the ledger of which object has which port ([`records`]), the lease that
//! lets only one of several processes work ([`lease`]), and the HTTP pages for administrators
//! ([`health`]).
//!
//! **Out of scope:** decisions about load balancers, which `uturn-lb` and `uturn-operator` make.
//! This crate deletes no object, and reads only Secrets that an object names for TLS.
//!
//! **Start reading** at [`sync`].

pub mod auto;
pub mod cluster;
pub mod controller;
pub mod gates;
pub mod health;
pub mod index;
pub mod kept;
pub mod kinds;
pub mod lease;
pub mod manifests;
pub mod metrics;
pub mod pods;
pub mod queue;
pub mod records;
pub mod related;
pub mod start;
pub mod store;
pub mod sync;
pub mod unserved;
pub mod watch;
pub mod write;
