//! The load balancer: what is set up on it, how it decides, and the part that does it.
//!
//! **Owns** three things. [`controller`]: which load balancers, listeners and targets the
//! cloud's controllers make of a cluster's Services and Ingresses. [`decide`]: whom a load
//! balancer picks, whom it avoids, whom it tries next (with [`rules`]: which rule a request
//! meets; [`health`]: when a target counts as alive); pure, and called by the prediction
//! and by the data plane alike, so that there is one opinion. `l7` (Linux only): the
//! process that does it for real, keeping the client's address, and asks after its targets'
//! health; it reads and passes on what [`http`] knows.
//!
//! **Refuses** to know how packets travel: that is `uturn-path`'s business. How clouds
//! differ is data here ([`profile`]), not code.
//!
//! **Start reading** at [`decide`].

pub mod controller;
pub mod decide;
pub mod health;
pub mod http;
#[cfg(target_os = "linux")]
pub mod l7;
pub mod listeners;
pub mod profile;
pub mod rules;
