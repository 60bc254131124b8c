//! The load balancer: what is set up on it, and how it decides.
//!
//! **Owns** three things. [`cloud`]: how each cloud is recognised and what its controllers and
//! load balancers do, a folder each. [`controller`]: which load balancers, listeners and targets
//! the cluster's cloud makes of Services and Ingresses, and ([`stated`]) which there are that none
//! owns; [`local_addresses`] says which of their addresses nodes have, and [`ingress_controller`] what ingress
//! controllers in the cluster do with requests. [`decide`]: which target a load balancer
//! picks, avoids, and tries next (with [`rules`] and [`request_path`]: which rule serves a request; [`health`]: when a
//! target counts as alive; [`schedule`]: the same decisions, prepared for many connections). It is
//! pure, and the prediction and the data plane (`uturn-proxy`) both call it, so their answers
//! agree. What both sides of the data plane need stands beside it: [`config`], [`change`], [`client_address`], [`event`],
//! [`proxy_header`], [`source`], [`special_address`] and [`steer`].
//!
//! **Out of scope:** how packets travel, which `uturn-path` knows. No code outside a cloud's folder
//! names that cloud.
//!
//! **Start reading** at [`decide`], then at [`cloud`].

mod addresses;
pub mod announcers;
pub mod change;
pub mod client_address;
pub mod cloud;
pub mod config;
pub mod controller;
pub mod decide;
pub mod event;
mod families;
pub mod hash;
pub mod health;
mod ingress_call;
pub mod ingress_controller;
mod ingress_ports;
pub mod local_addresses;
pub mod nft;
pub mod on_nodes;
pub mod pattern;
pub mod proxy_header;
pub mod request_path;
pub mod rules;
pub mod schedule;
pub mod source;
pub mod special_address;
pub mod stated;
pub mod steer;
pub mod targets;
pub mod unserved;
