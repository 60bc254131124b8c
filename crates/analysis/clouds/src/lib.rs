//! Clouds and controllers: which load balancers they make of a cluster's objects.
//!
//! **Owns** three things. [`cloud`]: how each cloud is recognised and what its controllers and load
//! balancers do, a folder each. [`controller`]: which load balancers, listeners and targets the
//! cluster's cloud makes of Services and Ingresses, and ([`stated`]) which there are that no object
//! owns; [`local_addresses`] says which of their addresses nodes have. [`ingress_controller`]: what
//! ingress controllers in the cluster do with requests.
//!
//! **Out of scope:** which target a load balancer picks (`uturn-lb`) and how packets travel
//! (`uturn-path`). No code outside a cloud's folder names that cloud.
//!
//! **Start reading** at [`cloud`].

mod addresses;
pub mod announcers;
pub mod cloud;
pub mod controller;
mod families;
mod ingress_call;
pub mod ingress_controller;
mod ingress_ports;
pub mod local_addresses;
pub mod on_nodes;
pub mod stated;
pub mod targets;
pub mod unserved;
