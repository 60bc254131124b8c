//! Clouds and controllers, and the load balancers that they make from a cluster's objects.
//!
//! **Owns** three things. [`cloud`]: how each cloud is recognised and how its controllers and load
//! balancers behave, one folder each. [`controller`]: which load balancers, listeners and targets
//! the cluster's cloud makes from Services and Ingresses; [`stated`] adds the load balancers that
//! no object owns, and [`local_addresses`] lists the load-balancer addresses that nodes have.
//! [`ingress_controller`]: how ingress controllers in the cluster handle requests.
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
